"""Shares of a budget, and reservations that may be repeated under their id."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from typer.testing import CliRunner

from privlearn import Ledger
from privlearn.budget import Amount, Cost, Reservation
from privlearn.cli import app
from privlearn.errors import BudgetExceeded, LedgerError
from privlearn.guarantee import Guarantee
from tests.support.forked import child_context
from tests.support.raw_store import execute

TOTAL = Guarantee(1.0, 1e-6)
SHARES = {"alice": Guarantee(0.5, 5e-7), "bob": Guarantee(0.7, 1e-6)}
COST = Cost(Guarantee(0.25, 2e-7))


@pytest.fixture
def ledger(store: str) -> Ledger:
    return Ledger.create(store, "census", TOTAL)


@pytest.fixture
def alice(ledger: Ledger) -> Ledger:
    return ledger.of_account("alice", SHARES["alice"])


def test_a_share_is_the_limit_of_its_account_alone(ledger: Ledger, alice: Ledger) -> None:
    alice.reserve(COST, "a test").commit()
    alice.reserve(COST, "a test")
    with pytest.raises(BudgetExceeded, match=r"the share of 'alice' .* left: epsilon 0.0, delta 1e-07"):
        alice.reserve(Cost(Guarantee(0.01)), "a test")
    ledger.of_account("bob", SHARES["bob"]).reserve(COST, "a test")
    assert [entry.account for entry in ledger.statement().entries] == ["alice", "alice", "bob"]


def test_a_share_s_delta_counts_too(alice: Ledger) -> None:
    alice.reserve(Cost(Guarantee(0.1, 5e-7)), "a test")
    with pytest.raises(BudgetExceeded, match="the share of 'alice'"):
        alice.reserve(Cost(Guarantee(0.1, 1e-9)), "a test")
    alice.reserve(Cost(Guarantee(0.1)), "a test")


def test_the_total_holds_for_all_accounts_together(ledger: Ledger, alice: Ledger) -> None:
    bob = ledger.of_account("bob", SHARES["bob"])
    bob.reserve(Cost(Guarantee(0.7)), "a test")
    with pytest.raises(BudgetExceeded, match=r"^the budget of data set 'census' .* left: epsilon 0.3"):
        alice.reserve(Cost(Guarantee(0.4)), "a test")
    alice.reserve(Cost(Guarantee(0.3)), "a test")
    assert ledger.statement().left.epsilon == 0.0


def test_statement_of_an_account(ledger: Ledger, alice: Ledger) -> None:
    ledger.reserve(COST, "the holder").commit()
    alice.reserve(COST, "alice").commit()
    alice.reserve(Cost(Guarantee(0.1)), "alice")
    alice.reserve(Cost(Guarantee(0.1)), "alice").cancel()
    share = alice.statement().share
    assert share is not None
    assert (share.account, share.total) == ("alice", SHARES["alice"])
    assert (share.spent, share.reserved) == (COST_AMOUNT, Amount(0.1, 0.0))
    assert share.left == Amount(0.15, 3e-7)
    assert alice.statement().left == ledger.statement().left == Amount(0.4, 6e-7)
    assert "share of alice: (epsilon = 0.5, delta = 5e-07)" in str(alice.statement())
    assert ledger.statement().share is None


COST_AMOUNT = Amount(0.25, 2e-7)


def test_shares_of_a_renyi_ledger_add_up(tmp_path: Path) -> None:
    """The total counts divergences, the share each release's own epsilon and delta."""
    ledger = Ledger.create(tmp_path / "budgets.db", "census", Guarantee(2.0, 1e-6), composition="renyi")
    alice = ledger.of_account("alice", Guarantee(0.5, 1e-7))
    cost = Cost(Guarantee(0.1, 1e-8), renyi=lambda order: order * 1e-4)
    for _ in range(5):
        alice.reserve(cost, "a test").commit()
    with pytest.raises(BudgetExceeded, match=r"the share of 'alice'.* left: epsilon 0.0, delta 5e-08"):
        alice.reserve(cost, "a test")
    share = alice.statement().share
    assert share is not None
    assert share.spent == Amount(0.5, 5e-8)
    ledger.of_account("bob", Guarantee(0.5, 1e-7)).reserve(cost, "a test")
    large = Cost(Guarantee(0.5, 1e-8), renyi=lambda order: 100.0)
    with pytest.raises(BudgetExceeded, match="the budget of data set"):
        ledger.of_account("carol", Guarantee(0.5, 1e-7)).reserve(large, "a test")


def test_what_is_no_account_or_share_is_refused(ledger: Ledger) -> None:
    with pytest.raises(LedgerError, match="of_account"):
        Ledger(ledger.store, "census", share=TOTAL)
    with pytest.raises(LedgerError, match="the account's name must be one line"):
        ledger.of_account("two\nlines")
    with pytest.raises(LedgerError, match="must be finite"):
        ledger.of_account("alice", Guarantee(float("inf"))).reserve(COST, "a test")
    with pytest.raises(LedgerError, match="Nothing is converted silently"):
        ledger.of_account("alice", Guarantee(1.0, 1e-6, "zero_out")).reserve(COST, "a test")
    assert ledger.statement().entries == ()


def test_an_id_is_charged_once(alice: Ledger) -> None:
    first = alice.reserve(COST, "a test", id="job 1")
    assert first.id == "job 1"
    again = alice.reserve(COST, "a test", id="job 1")
    assert (again.id, alice.statement().reserved) == ("job 1", COST_AMOUNT)
    with pytest.raises(LedgerError, match="may have been computed"):
        again.cancel()
    again.commit()
    first.commit()
    assert alice.statement().spent == COST_AMOUNT


def test_an_id_finds_its_reservation_when_nothing_is_left(ledger: Ledger) -> None:
    whole = Cost(TOTAL)
    ledger.reserve(whole, "a test", id="job 1")
    ledger.reserve(whole, "a test", id="job 1")
    with pytest.raises(BudgetExceeded):
        ledger.reserve(whole, "a test", id="job 2")
    assert Reservation(ledger.store, "census", "job 2").state() is None


@pytest.mark.parametrize("end", ["commit", "cancel"])
def test_an_id_that_is_settled_is_used_up(alice: Ledger, end: str) -> None:
    getattr(alice.reserve(COST, "a test", id="job 1"), end)()
    before = alice.statement()
    with pytest.raises(LedgerError, match=r"is already (committed|cancelled)"):
        alice.reserve(COST, "a test", id="job 1")
    assert alice.statement() == before


def test_an_id_stands_for_one_data_set_account_and_cost(ledger: Ledger, alice: Ledger) -> None:
    other = Ledger.create(ledger.store, "another", TOTAL)
    alice.reserve(COST, "a test", id="job 1")
    attempts: list[Callable[[], Reservation]] = [
        lambda: alice.reserve(Cost(Guarantee(0.24, 2e-7)), "a test", id="job 1"),
        lambda: alice.reserve(Cost(Guarantee(0.25, 1e-7)), "a test", id="job 1"),
        lambda: ledger.reserve(COST, "a test", id="job 1"),
        lambda: ledger.of_account("bob").reserve(COST, "a test", id="job 1"),
        lambda: other.reserve(COST, "a test", id="job 1"),
        lambda: other.of_account("alice").reserve(COST, "a test", id="job 1"),
    ]
    for attempt in attempts:
        with pytest.raises(LedgerError, match="a different data set, account, part or cost"):
            attempt()
    assert len(ledger.statement().entries) == 1
    assert other.statement().entries == ()


def test_an_id_in_a_renyi_ledger_stands_for_its_divergence(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "budgets.db", "census", TOTAL, composition="renyi")
    for _ in range(2):
        ledger.reserve(Cost(COST.guarantee, lambda _: 0.01), "a test", id="job 1")
    with pytest.raises(LedgerError, match="a different data set, account, part or cost"):
        ledger.reserve(Cost(COST.guarantee, lambda _: 0.005), "a test", id="job 1")
    assert len(ledger.statement().entries) == 1


@pytest.mark.parametrize("id", ["", " ", "two\nlines", "x" * 37])
def test_an_id_is_one_short_line(ledger: Ledger, id: str) -> None:
    with pytest.raises(LedgerError, match="1 to 36"):
        ledger.reserve(COST, "a test", id=id)


def test_states_of_a_reservation(ledger: Ledger) -> None:
    reservations = [ledger.reserve(COST, "a test") for _ in range(3)]
    reservations[1].commit()
    reservations[2].cancel()
    assert [each.state() for each in reservations] == ["reserved", "committed", "cancelled"]
    assert Reservation(ledger.store, "another", reservations[0].id).state() is None


numbers = st.sampled_from([0.1, 0.2, 0.3, 0.5]) | st.floats(0.01, 0.6)
deltas = st.sampled_from([0.0, 1e-7, 3e-7])


class SharedBudget(RuleBasedStateMachine):
    """Any interleaving of accounts: the rule once more in fractions, beside the ledger."""

    @initialize()
    def begin(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.ledger = Ledger.create(Path(self.folder.name) / "budgets.db", "census", TOTAL)
        self.accounts = {"": self.ledger} | {
            name: self.ledger.of_account(name, share) for name, share in SHARES.items()
        }
        self.named: dict[str, tuple[str, float, float]] = {}
        self.states: dict[str, str] = {}

    def _fits(self, account: str, epsilon: float, delta: float) -> bool:
        limits = [(None, TOTAL)] + ([(account, SHARES[account])] if account else [])
        return all(
            _sum(self._counted(whose), 1) + _exact(epsilon) <= _exact(limit.epsilon)
            and _sum(self._counted(whose), 2) + _exact(delta) <= _exact(limit.delta)
            for whose, limit in limits
        )

    def _counted(self, account: str | None) -> list[tuple[str, float, float]]:
        return [
            known
            for id, known in self.named.items()
            if self.states[id] != "cancelled" and account in (None, known[0])
        ]

    @rule(account=st.sampled_from(["", *SHARES]), epsilon=numbers, delta=deltas, number=st.integers(0, 5))
    def reserve(self, account: str, epsilon: float, delta: float, number: int) -> None:
        id, wanted = f"job {number}", (account, epsilon, delta)
        ask = lambda: self.accounts[account].reserve(Cost(Guarantee(epsilon, delta)), "a test", id=id)  # noqa: E731
        if id in self.named:
            if self.named[id] == wanted and self.states[id] == "reserved":
                assert ask().id == id
            else:
                with pytest.raises(LedgerError, match="Use a new id"):
                    ask()
        elif self._fits(*wanted):
            ask()
            self.named[id], self.states[id] = wanted, "reserved"
        else:
            with pytest.raises(BudgetExceeded):
                ask()

    @rule(number=st.integers(0, 5), again=st.booleans())
    def repeat(self, number: int, again: bool) -> None:
        """A request that was granted is made once more, and perhaps committed."""
        id = f"job {number}"
        if self.states.get(id) == "reserved":
            self.reserve(*self.named[id], number)
            if again:
                Reservation(self.ledger.store, "census", id).commit()
                self.states[id] = "committed"

    @rule(number=st.integers(0, 5))
    def cancel(self, number: int) -> None:
        id = f"job {number}"
        if self.states.get(id) == "reserved":
            Reservation(self.ledger.store, "census", id).cancel()
            self.states[id] = "cancelled"

    @invariant()
    def the_ledger_says_the_same(self) -> None:
        if not hasattr(self, "ledger"):
            return
        shown = self.ledger.statement()
        assert {entry.reservation: entry.state for entry in shown.entries} == self.states
        assert shown.left.epsilon >= 0
        for name in SHARES:
            share = self.accounts[name].statement().share
            assert share is not None
            assert share.left.epsilon >= 0
            assert share.left.delta >= 0
            assert _exact(share.left.epsilon) <= _exact(share.total.epsilon) - _sum(self._counted(name), 1)

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            self.folder.cleanup()


def _exact(number: float) -> Fraction:
    return Fraction(repr(number))


def _sum(known: list[tuple[str, float, float]], place: int) -> Fraction:
    return sum((_exact(entry[place]) for entry in known), Fraction(0))  # type: ignore[arg-type]


SharedBudget.TestCase.settings = settings(max_examples=12, stateful_step_count=15, deadline=None)
TestSharedBudget = SharedBudget.TestCase


@settings(max_examples=10, deadline=None)
@given(shares=st.lists(st.floats(0.05, 0.6), min_size=1, max_size=4))
def test_what_a_share_has_left_can_be_spent_if_the_total_has_it(shares: list[float]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger.create(Path(folder) / "budgets.db", "census", Guarantee(10.0))
        for number, share in enumerate(shares):
            mine = ledger.of_account(f"account {number}", Guarantee(share))
            mine.reserve(Cost(Guarantee(share / 3)), "a test")
            statement = mine.statement().share
            assert statement is not None
            mine.reserve(Cost(Guarantee(statement.left.epsilon)), "a test")
            with pytest.raises(BudgetExceeded):
                mine.reserve(Cost(Guarantee(1e-3)), "a test")


def _race(ledgers: dict[str, Ledger], start: Any, results: Any) -> None:
    """Every process asks for the same jobs, then for as many of its own as it gets."""
    for number in range(4):
        start.wait()
        ledgers["alice"].reserve(Cost(Guarantee(0.1, 1e-8)), "the same job", id=f"job {number}")
    own = 0
    for account in ("bob", "alice") * 30:
        try:
            ledgers[account].reserve(Cost(Guarantee(0.02, 1e-8)), "own").commit()
            own += 1
        except BudgetExceeded:
            continue
    results.put((os.getpid(), own))


def test_processes_that_race_for_one_id_pay_once_and_keep_to_the_shares(store: str) -> None:
    ledger = Ledger.create(store, "census", TOTAL)
    ledgers = {name: ledger.of_account(name, share) for name, share in SHARES.items()}
    context = child_context()
    start, results = context.Barrier(4), context.Queue()
    workers = [context.Process(target=_race, args=(ledgers, start, results)) for _ in range(4)]
    for worker in workers:
        worker.start()
    own = sum(results.get(timeout=120)[1] for _ in workers)
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    rows = execute(store, "SELECT account, epsilon, reservation FROM entries WHERE kind = 'reserved'")
    assert sorted(id for _, _, id in rows if id.startswith("job")) == [f"job {number}" for number in range(4)]
    spent = {name: sum(_exact(epsilon) for account, epsilon, _ in rows if account == name) for name in SHARES}
    # Alice's four jobs leave 0.1 of her share, and the two of them together use up the total.
    assert spent == {"alice": Fraction("0.5"), "bob": Fraction("0.5")}
    assert own == 30


def test_the_command_line_shows_accounts_if_there_are_any(alice: Ledger) -> None:
    plain = CliRunner().invoke(app, ["budget", "show", "--ledger", alice.store])
    assert "account" not in plain.output
    alice.reserve(COST, "a test")
    shown = CliRunner().invoke(app, ["budget", "show", "--ledger", alice.store])
    assert shown.exit_code == 0
    assert "account" in shown.output
    assert "alice" in shown.output

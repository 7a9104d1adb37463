"""Running sums: those of the entries, always; and nothing is relied on that is not."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from privlearn import BudgetExceeded, Guarantee, Ledger, LedgerError, Schema, split
from privlearn.budget import Composition, CompositionName, Cost, Entry, Sum
from tests.support.raw_store import execute

TOTAL = Guarantee(3.0, 1e-4)
SCHEMA = Schema.from_dict({"name": "clinic", "columns": {"age": {"type": "number", "lower": 0, "upper": 9}}})
SPLIT = split({"age": [1] * 10}, SCHEMA, seed="x").split


def cost(epsilon: float, delta: float = 1e-7) -> Cost:
    return Cost(Guarantee(epsilon, delta), renyi=lambda order: order * epsilon**2 / 2.0)


def ledgers(store: str, composition: CompositionName = "basic") -> list[Ledger]:
    """Return the budget as accounts and parts use it."""
    whole = Ledger.create(store, "clinic", TOTAL, composition=composition)
    shared = [whole.of_account(name, Guarantee(1.0, 1e-4)) for name in ("ann", "bob")]
    return [whole, *shared, *(whole.of_part(SPLIT.part(name)) for name in ("train", "test"))]


def use(some: Sequence[Ledger], times: int, seed: int = 0) -> None:
    chance = random.Random(seed)
    for _ in range(times):
        try:
            reservation = chance.choice(some).reserve(cost(chance.choice([0.1, 0.03, 1e-9, 0.7])), "a test")
        except BudgetExceeded:
            continue
        settle = chance.choice([reservation.commit, reservation.cancel, lambda: None])
        settle()


def added_up(rule: Composition, entries: Sequence[Entry], part: str) -> tuple[object, ...]:
    """Spent, reserved and left, from the entries alone."""
    own = [entry for entry in entries if entry.part in ("", part)]
    states = [Sum.of(*(e.amount for e in own if e.state == state)) for state in ("committed", "reserved")]
    balance = rule.balance(*states)
    return balance.spent, balance.reserved, balance.left


@pytest.mark.parametrize("composition", ["basic", "renyi"])
def test_a_statement_is_what_its_entries_add_up_to(store: str, composition: CompositionName) -> None:
    some = ledgers(store, composition)
    use(some, 60)
    whole = some[0]
    statement, rule = whole.statement(), whole.rule()
    assert {entry.state for entry in statement.entries} == {"reserved", "committed", "cancelled"}
    for part in statement.parts:
        assert added_up(rule, statement.entries, part.name) == (part.spent, part.reserved, part.left)
    assert whole.check() == 60 + sum(e.state != "reserved" for e in statement.entries) - refused(statement)


def refused(statement: object) -> int:
    return 60 - len(statement.entries)  # type: ignore[attr-defined]


def test_standing_is_the_statement_without_entries(store: str) -> None:
    some = ledgers(store)
    use(some, 20)
    for ledger in some:
        standing, statement = ledger.standing(), ledger.statement()
        assert str(standing) == str(statement)
        assert standing.share == statement.share
        assert standing.parts == statement.parts


def test_entries_come_in_pages(store: str) -> None:
    some = ledgers(store)
    use(some, 25)
    whole, ann, *_ = some
    everything = list(whole.statement().entries)
    last = whole.entries(10)
    assert last == everything[-10:]
    assert whole.entries(10, before=last[0].reservation) == everything[-20:-10]
    assert whole.entries(1000, before=everything[0].reservation) == []
    assert ann.entries(3, of_account=True) == [e for e in everything if e.account == "ann"][-3:]


def test_history_ends_where_the_budget_stands(store: str) -> None:
    some = ledgers(store)
    use(some, 40)
    whole, ann, *_ = some
    standing, share = whole.standing(), ann.standing().share
    assert share is not None
    assert (whole.history(1000)[-1][1].left, ann.history(1000)[-1][1].left) == (standing.left, share.left)
    drawn = whole.history(5)
    assert len(drawn) <= 15
    assert drawn[-1] == whole.history(1000)[-1]
    assert [time for time, _ in drawn] == sorted(time for time, _ in drawn)


CHANGES = {
    "an entry without sums": "INSERT INTO entries (dataset, reservation, kind, time) SELECT dataset, reservation,"
    " 'cancelled', time FROM entries WHERE kind = 'reserved'",
    "a sum without an entry": "INSERT INTO sums SELECT dataset, account, part, number + 1, 1, '0', '0', NULL, '0',"
    " '0', NULL FROM sums",
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_others_have_written_is_noticed_and_nothing_is_spent(store: str, change: str) -> None:
    ledger = Ledger.create(store, "clinic", TOTAL)
    ledger.reserve(cost(3.0), "everything")
    execute(store, change)
    for attempt in (lambda: ledger.reserve(cost(0.1), "more"), ledger.check, ledger.standing):
        with pytest.raises(LedgerError, match="do not match its entries"):
            attempt()


def test_a_sum_that_is_too_small_is_found_by_the_check(store: str) -> None:
    ledger = Ledger.create(store, "clinic", TOTAL)
    ledger.reserve(cost(3.0), "everything")
    (last,) = execute(store, "SELECT max(id) FROM entries")[0]
    execute(
        store,
        f"INSERT INTO sums SELECT dataset, account, part, number + 1, {last}, '0', '0', NULL, '0', '0', NULL FROM sums",
    )
    with pytest.raises(LedgerError, match="do not match its entries"):
        ledger.check()

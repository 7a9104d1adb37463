"""However a run ends, a party's screen and ledger say what was asked, what it costs, and what was given back."""

from __future__ import annotations

from pathlib import Path

import pytest

from privlearn import Ledger
from privlearn.budget import CompositionName, Cost, Reservation
from privlearn.errors import BudgetExceeded, LedgerError, ProtocolError
from privlearn.guarantee import Guarantee
from privlearn.parties.run import Parts, RunBudget, Stage
from tests.support.run_cases import Wire, agreement_of

AGREEMENT = agreement_of()
KINDS = AGREEMENT.mechanism.kinds


def ledger_in(folder: Path, composition: CompositionName, epsilon: float = 20.0) -> Ledger:
    return Ledger.create(folder / "ledger", "census", Guarantee(epsilon, 1e-4), composition=composition)


def states(ledger: Ledger) -> list[str]:
    return [entry.state for entry in ledger.statement().entries]


def stopped_at(stage: Stage, times: int, ledger: Ledger) -> Wire:
    """Return a run in which the coordinator is gone before it sends this stage for the n-th time."""
    wire = Wire(AGREEMENT, ledger)
    exchange, sent = wire.exchange, []

    def go(now: Stage, parts):  # type: ignore[no-untyped-def]
        sent.append(now)
        if sent.count(stage) == times or now is Stage.STOP:
            raise ProtocolError("gone")
        return exchange(now, parts)

    wire.coordinator._exchange = go
    with pytest.raises(ProtocolError, match="gone"):
        wire.coordinator.train()
    return wire


@pytest.mark.parametrize("composition", ["basic", "renyi"])
def test_what_was_never_asked_is_given_back(tmp_path: Path, composition: CompositionName) -> None:
    ledger = ledger_in(tmp_path, composition)
    wire = stopped_at(Stage.QUESTION, 1, ledger)
    assert set(states(ledger)) == {"reserved"}
    for party in wire.parties.values():
        party.settle()
    assert set(states(ledger)) == {"cancelled"}
    assert ledger.statement().left.epsilon == 20.0
    assert "nothing about the rows was sent, and the budget is unchanged" in wire.heard["north"][-1]


def test_a_renyi_ledger_charges_what_was_asked(tmp_path: Path) -> None:
    ledger = ledger_in(tmp_path, "renyi")
    wire = stopped_at(Stage.QUESTION, 3, ledger)
    wire.parties["north"].settle()
    assert states(ledger)[: len(KINDS)] == ["committed", "committed", "cancelled"]
    order = ledger.statement().renyi_order
    assert order is not None
    spent = sum(
        entry.amount.renyi or 0.0
        for entry in ledger.statement().entries[: len(KINDS)]
        if entry.state == "committed"
    )
    assert spent == pytest.approx(AGREEMENT.mechanism.renyi_of(KINDS[:2], order))
    told = wire.heard["north"][-1]
    assert (
        f"Answered 2 of 3 questions: epsilon {AGREEMENT.mechanism.epsilon_after(2):.3g} of the agreement's 2."
        in told
    )
    assert "The ledger charges these; the cost of 1 was given back." in told


def test_a_basic_ledger_charges_a_run_that_was_begun_in_full(tmp_path: Path) -> None:
    """Who sees the answers chooses the moment to stop: a smaller epsilon would not hold for that."""
    ledger = ledger_in(tmp_path, "basic")
    wire = stopped_at(Stage.QUESTION, 2, ledger)
    for party in wire.parties.values():
        party.settle()
    assert ledger.statement().spent.epsilon == 6.0
    assert "The ledger charges the whole agreement" in wire.heard["north"][-1]


@pytest.mark.parametrize("composition", ["basic", "renyi"])
def test_a_whole_run_costs_the_plan(tmp_path: Path, composition: CompositionName) -> None:
    ledger = ledger_in(tmp_path, composition)
    wire = Wire(AGREEMENT, ledger)
    wire.coordinator.train()
    for party in wire.parties.values():
        party.settle()
        party.settle()
    assert set(states(ledger)) == {"committed"}
    assert wire.heard["north"][-1] == "Answered 3 of 3 questions: epsilon 2 of the agreement's 2."
    if composition == "renyi":
        order = ledger.statement().renyi_order
        assert order is not None
        assert ledger.statement().spent.renyi == pytest.approx(3.0 * AGREEMENT.mechanism.renyi(order))


def test_without_a_ledger_nothing_is_charged() -> None:
    wire = Wire(AGREEMENT)
    wire.coordinator.train()
    wire.parties["north"].settle()
    assert wire.heard["north"][-1] == "Answered 3 of 3 questions: epsilon 2 of the agreement's 2."
    assert RunBudget(AGREEMENT, "north", None).cancel_stranded() == 0


def test_all_questions_are_reserved_or_none(tmp_path: Path) -> None:
    """Room for the first question only: nothing stays reserved."""
    ledger = ledger_in(tmp_path, "renyi", epsilon=AGREEMENT.mechanism.epsilon_after(2))
    with pytest.raises(BudgetExceeded):
        RunBudget(AGREEMENT, "north", ledger).reserve()
    assert states(ledger)
    assert set(states(ledger)) == {"cancelled"}


@pytest.mark.parametrize(("composition", "given"), [("basic", 0), ("renyi", 2)])
def test_after_a_kill_what_paid_for_no_answer_is_given_back(
    tmp_path: Path, composition: CompositionName, given: int
) -> None:
    ledger = ledger_in(tmp_path, composition)
    ledger.reserve(Cost(Guarantee(0.5)), "somebody else's, which may have computed a result")
    north = stopped_at(Stage.QUESTION, 2, ledger).parties["north"]  # and never settled
    del north
    assert RunBudget(AGREEMENT, "north", ledger).cancel_stranded() == given
    assert RunBudget(AGREEMENT, "north", ledger).cancel_stranded() == 0
    kept = [entry.state for entry in ledger.statement().entries if "north" in entry.purpose]
    assert kept == (["committed"] if composition == "basic" else ["committed", "cancelled", "cancelled"])
    assert states(ledger)[0] == "reserved"


@pytest.mark.parametrize("composition", ["basic", "renyi"])
def test_who_lost_its_reservation_answers_no_more(tmp_path: Path, composition: CompositionName) -> None:
    """A process that lives after all, when its reservation was given back: no vector leaves without its cost."""
    ledger = ledger_in(tmp_path, composition)
    wire = Wire(AGREEMENT, ledger)
    answers: list[Parts | str] = []

    def give_back_before_questions(stage: Stage, name: str, reply: Parts | str) -> Parts | str:
        if (stage, name) == (Stage.INBOX, "north"):
            assert RunBudget(AGREEMENT, "north", ledger).cancel_stranded() > 0
        if (stage, name) == (Stage.QUESTION, "north"):
            answers.append(reply)
        return reply

    wire.tamper = give_back_before_questions
    with pytest.raises(ProtocolError):
        wire.coordinator.train()
    assert answers == ["for a reason that stays with this party"]


def test_a_cancelled_reservation_cannot_be_committed(tmp_path: Path) -> None:
    ledger = ledger_in(tmp_path, "basic")
    budget = RunBudget(AGREEMENT, "north", ledger)
    budget.reserve()
    budget.cancel_stranded()
    with pytest.raises(LedgerError, match="cannot be committed any more"):
        budget.commit(0)


@pytest.mark.parametrize("composition", ["basic", "renyi"])
def test_a_plan_without_colluding_parties_costs_what_another_party_learns(
    tmp_path: Path, composition: CompositionName
) -> None:
    """One of three shares of the noise is known to it: the Renyi divergence is 3/2 of that towards the coordinator."""
    agreement, ledger = agreement_of(colluding=0), ledger_in(tmp_path, composition)
    budget = RunBudget(agreement, "north", ledger)
    budget.reserve()
    towards, reserved = agreement.towards_a_party, [entry.amount for entry in ledger.statement().entries]
    assert towards is not None
    if composition == "basic":
        assert [amount.epsilon for amount in reserved] == [pytest.approx(towards.epsilon)]
        assert towards.epsilon > agreement.guarantee.epsilon
        return
    order = ledger.statement().renyi_order
    assert order is not None
    assert sum(amount.renyi or 0.0 for amount in reserved) == pytest.approx(
        1.5 * agreement.mechanism.renyi(order)
    )
    assert all(
        amount.epsilon > agreement.mechanism.epsilon_of((kind,))
        for amount, kind in zip(reserved, KINDS, strict=True)
    )


@pytest.mark.parametrize("composition", ["basic", "renyi"])
def test_a_commit_that_fails_is_no_answer(
    tmp_path: Path, composition: CompositionName, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = ledger_in(tmp_path, composition)
    budget = RunBudget(AGREEMENT, "north", ledger)
    budget.reserve()
    commit = Reservation.commit_answer

    def fail(reservation: Reservation, question: int) -> None:
        raise LedgerError("disk full")

    monkeypatch.setattr(Reservation, "commit_answer", fail)
    with pytest.raises(LedgerError, match="disk full"):
        budget.commit(0)
    assert "No question was answered" in budget.close()
    assert set(states(ledger)) == {"cancelled"}

    def fail_afterwards(reservation: Reservation, question: int) -> None:
        commit(reservation, question)
        raise LedgerError("connection lost")

    monkeypatch.setattr(Reservation, "commit_answer", fail_afterwards)
    budget = RunBudget(AGREEMENT, "north", ledger)
    budget.reserve()
    with pytest.raises(LedgerError, match="connection lost"):
        budget.commit(0)
    assert "Answered 1 of 3 questions" in budget.close()
    assert states(ledger).count("committed") == 1

"""However a run ends, a party's screen and ledger say what was asked, what it costs, and what was given back."""

from __future__ import annotations

from pathlib import Path

import pytest

from privlearn.errors import BudgetExceeded, LedgerError, ProtocolError
from privlearn.guarantee import Guarantee
from privlearn.ledger import Cost, Ledger
from privlearn.ledger.charge import Reservation
from privlearn.ledger.statement import CompositionName
from privlearn.multiparty.run.conversation import Parts, Stage
from privlearn.multiparty.run.purse import Purse
from tests.support.run_cases import Wire, plan_of

PLAN = plan_of()
KINDS = PLAN.mechanism.kinds


def ledger_in(folder: Path, composition: CompositionName, epsilon: float = 20.0) -> Ledger:
    return Ledger.create(folder / "ledger", "census", Guarantee(epsilon, 1e-4), composition=composition)


def states(ledger: Ledger) -> list[str]:
    return [entry.state for entry in ledger.statement().entries]


def stopped_at(stage: Stage, times: int, ledger: Ledger) -> Wire:
    """A run in which the coordinator is gone before it sends this stage for so many-th time."""
    wire = Wire(PLAN, ledger)
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
    assert "nothing about the rows was sent, and the budget is as it was" in wire.heard["north"][-1]


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
    assert spent == pytest.approx(PLAN.mechanism.renyi_of(KINDS[:2], order))
    told = wire.heard["north"][-1]
    assert (
        f"Answered 2 of 3 questions: epsilon {PLAN.mechanism.epsilon_after(2):.3g} of the plan's 2." in told
    )
    assert "The ledger charges these; the cost of 1 was given back." in told


def test_a_basic_ledger_charges_a_run_that_was_begun_in_full(tmp_path: Path) -> None:
    """Who sees the answers chooses the moment to stop: a smaller epsilon would not hold for that."""
    ledger = ledger_in(tmp_path, "basic")
    wire = stopped_at(Stage.QUESTION, 2, ledger)
    for party in wire.parties.values():
        party.settle()
    assert ledger.statement().spent.epsilon == 6.0
    assert "The ledger charges the whole plan" in wire.heard["north"][-1]


@pytest.mark.parametrize("composition", ["basic", "renyi"])
def test_a_whole_run_costs_the_plan(tmp_path: Path, composition: CompositionName) -> None:
    ledger = ledger_in(tmp_path, composition)
    wire = Wire(PLAN, ledger)
    wire.coordinator.train()
    for party in wire.parties.values():
        party.settle()
        party.settle()
    assert set(states(ledger)) == {"committed"}
    assert wire.heard["north"][-1] == "Answered 3 of 3 questions: epsilon 2 of the plan's 2."
    if composition == "renyi":
        order = ledger.statement().renyi_order
        assert order is not None
        assert ledger.statement().spent.renyi == pytest.approx(3.0 * PLAN.mechanism.renyi(order))


def test_without_a_ledger_nothing_is_charged() -> None:
    wire = Wire(PLAN)
    wire.coordinator.train()
    wire.parties["north"].settle()
    assert wire.heard["north"][-1] == "Answered 3 of 3 questions: epsilon 2 of the plan's 2."
    assert Purse(PLAN, "north", None).give_back_stranded() == 0


def test_all_questions_are_reserved_or_none(tmp_path: Path) -> None:
    """Room for the first question only: nothing stays reserved."""
    ledger = ledger_in(tmp_path, "renyi", epsilon=PLAN.mechanism.epsilon_after(2))
    with pytest.raises(BudgetExceeded):
        Purse(PLAN, "north", ledger).reserve()
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
    assert Purse(PLAN, "north", ledger).give_back_stranded() == given
    assert Purse(PLAN, "north", ledger).give_back_stranded() == 0
    kept = [entry.state for entry in ledger.statement().entries if "north" in entry.purpose]
    assert kept == (["committed"] if composition == "basic" else ["committed", "cancelled", "cancelled"])
    assert states(ledger)[0] == "reserved"


@pytest.mark.parametrize("composition", ["basic", "renyi"])
def test_who_lost_its_reservation_answers_no_more(tmp_path: Path, composition: CompositionName) -> None:
    """A process that lives after all, when its reservation was given back: no vector leaves without its cost."""
    ledger = ledger_in(tmp_path, composition)
    wire = Wire(PLAN, ledger)
    answers: list[Parts | str] = []

    def give_back_before_questions(stage: Stage, name: str, reply: Parts | str) -> Parts | str:
        if (stage, name) == (Stage.INBOX, "north"):
            assert Purse(PLAN, "north", ledger).give_back_stranded() > 0
        if (stage, name) == (Stage.QUESTION, "north"):
            answers.append(reply)
        return reply

    wire.tamper = give_back_before_questions
    with pytest.raises(ProtocolError):
        wire.coordinator.train()
    assert answers == ["for a reason that stays with this party"]


def test_a_cancelled_reservation_cannot_be_committed(tmp_path: Path) -> None:
    ledger = ledger_in(tmp_path, "basic")
    purse = Purse(PLAN, "north", ledger)
    purse.reserve()
    purse.give_back_stranded()
    with pytest.raises(LedgerError, match="cannot be committed any more"):
        purse.spend(0)


@pytest.mark.parametrize("composition", ["basic", "renyi"])
def test_a_run_that_answered_before_answers_were_recorded_does_not_go_on(
    tmp_path: Path, composition: CompositionName
) -> None:
    """Ledgers of format 5 committed the cost and kept no answers; the file of the run is from before the first."""
    ledger = ledger_in(tmp_path, composition)
    purse = Purse(PLAN, "north", ledger)
    purse.reserve()
    kept = purse.to_dict()
    Purse(PLAN, "north", ledger).resume(kept, begun=None)
    Reservation(ledger.store, ledger.dataset, kept["reserved"][0]).commit()
    for begun in (None, 0):
        with pytest.raises(LedgerError, match=r"has answered, and not what.*--give-back"):
            Purse(PLAN, "north", ledger).resume(kept, begun)

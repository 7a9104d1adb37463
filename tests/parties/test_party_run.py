"""A party answers what its plan has, once, and pays before it does; everything else is refused with a reason."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from privlearn import Ledger
from privlearn.data import open_records, write_table
from privlearn.errors import ProtocolError, SolverError
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.summed import Question
from privlearn.parties.run import QUESTION_NUMBER, Identity, Parts, PartyRun, RunBudget, Stage, proposal
from privlearn.parties.run.conversation import RUN_BYTES
from privlearn.parties.secure_sum import COORDINATOR, Step, seal
from privlearn.release import Release
from tests.support.run_cases import IDENTITIES, TABLES, Wire, agreement_of

RUN = bytes(RUN_BYTES)
AGREEMENT = agreement_of()
QUESTIONS = len(AGREEMENT.mechanism.kinds)


def asked_until(stage: Stage, number: int | None = None) -> tuple[Wire, Parts]:
    """Run until this stage reaches the party north; return the run and the message."""
    wire = Wire(AGREEMENT)
    exchange, held = wire.exchange, []

    class Reached(Exception):
        pass

    def watch(now: Stage, parts):  # type: ignore[no-untyped-def]
        at_question = number is None or parts[0][:1] == [QUESTION_NUMBER.pack(number)]
        if now == stage and at_question:
            held.append(parts[0])
            raise Reached
        return exchange(now, parts)

    wire.coordinator._exchange = watch
    with pytest.raises(Reached):
        wire.coordinator.train()
    wire.parties["north"].stopped = None  # the coordinator told them to stop
    return wire, held[0]


def test_only_the_agreed_plan_is_signed() -> None:
    other = agreement_of(epsilon=1.9)
    party = Wire(AGREEMENT).parties["north"]
    with pytest.raises(ProtocolError, match="agreement differs from this party's"):
        party.handle("agreement", proposal(other, RUN))
    with pytest.raises(ProtocolError, match="malformed"):
        party.handle("agreement", proposal(AGREEMENT, b"short"))
    assert party.handle("agreement", proposal(AGREEMENT, RUN))


@pytest.mark.parametrize("stage", ["keys", "roster", "inbox", "question", "survivors", "result", "release"])
def test_nothing_is_answered_before_the_plan(stage: str) -> None:
    with pytest.raises(ProtocolError, match="has signed no run"):
        Wire(AGREEMENT).parties["north"].handle(stage, [b""])


def test_a_run_cannot_be_begun_twice_and_has_no_other_stages() -> None:
    party = Wire(AGREEMENT).parties["north"]
    party.handle("agreement", proposal(AGREEMENT, RUN))
    with pytest.raises(ProtocolError, match="start the party again"):
        party.handle("agreement", proposal(AGREEMENT, bytes(range(RUN_BYTES))))
    with pytest.raises(ProtocolError, match="a message that the agreement does not have"):
        party.handle("rows", [])


@pytest.mark.parametrize("spoil", [lambda parts: parts[::-1], lambda parts: parts[:-1]])
def test_no_key_leaves_before_everybody_signed(spoil: Callable[[Parts], Parts]) -> None:
    wire, sign_offs = asked_until(Stage.KEYS)
    with pytest.raises(ProtocolError, match=r"sign-off of 'north'|parts"):
        wire.parties["north"].handle("keys", spoil(sign_offs))
    assert wire.parties["north"].handle("keys", sign_offs)


def test_a_question_is_answered_once() -> None:
    wire, parts = asked_until(Stage.QUESTION, 1)
    north = wire.parties["north"]
    first = north.handle("question", parts)
    assert north.handle("question", parts) == first  # the same message: the same bytes, no new noise
    other = seal(
        IDENTITIES["coordinator"].key,
        north._sessions[1],
        Step.QUESTION,
        COORDINATOR,
        b"1" * (len(parts[1]) - 107),
    )
    with pytest.raises(ProtocolError, match="question 1 is over"):
        north.handle("question", [parts[0], other])
    with pytest.raises(ProtocolError, match="question 0 is over"):
        north.handle("question", [QUESTION_NUMBER.pack(0), parts[1]])


def test_a_question_beyond_the_plan_is_refused() -> None:
    wire, parts = asked_until(Stage.QUESTION, 1)
    for number in (QUESTIONS, 2**32 - 1):
        with pytest.raises(ProtocolError, match="no number below"):
            wire.parties["north"].handle("question", [QUESTION_NUMBER.pack(number), parts[1]])


def test_a_question_in_another_round_is_refused() -> None:
    wire, parts = asked_until(Stage.QUESTION, 1)
    with pytest.raises(ProtocolError, match="sealed for another round"):
        wire.parties["north"].handle("question", [QUESTION_NUMBER.pack(2), parts[1]])


@pytest.mark.parametrize(
    ("coefficients", "told"), [([1.0, 2.0], "shape"), ([math.nan], "finite"), ([math.inf], "finite")]
)
def test_coefficients_that_make_no_sense_are_refused(coefficients: list[float], told: str) -> None:
    wire, parts = asked_until(Stage.QUESTION, 1)
    north = wire.parties["north"]
    body = np.array(
        coefficients * (1 if len(coefficients) > 1 else AGREEMENT.mechanism.task.dimension)
    ).tobytes()
    key, session = IDENTITIES["coordinator"].key, north._sessions[1]
    with pytest.raises(ProtocolError, match=told):
        north.handle("question", [parts[0], seal(key, session, Step.QUESTION, COORDINATOR, body, 0)])
    forged = seal(IDENTITIES["south"].key, session, Step.QUESTION, COORDINATOR, body, 0)
    with pytest.raises(ProtocolError, match="signature"):
        north.handle("question", [parts[0], forged])


FAILURES: dict[str, Callable[[object], np.ndarray]] = {
    "not finite": lambda question: np.full(AGREEMENT.mechanism.task.dimension, np.nan),
    "exceeds the bound": lambda question: np.full(AGREEMENT.mechanism.task.dimension, 1e9),
    "another shape": lambda question: np.zeros(2),
    "no memory": lambda question: _raise(MemoryError("17 rows")),
    "an overflow": lambda question: _raise(FloatingPointError("row 17")),
    "a warning": lambda question: _raise(RuntimeWarning("row 17")),
    "an error of ours": lambda question: _raise(SolverError("row 17")),
    "a protocol error": lambda question: _raise(ProtocolError("row 17")),
}


def _raise(error: Exception) -> np.ndarray:
    raise error


@pytest.mark.parametrize("failure", FAILURES)
def test_an_answer_that_fails_ends_the_run_in_the_same_words(failure: str) -> None:
    wire, parts = asked_until(Stage.QUESTION, 1)
    north, heard = wire.parties["north"], wire.heard["north"]
    north._party.answer = FAILURES[failure]  # type: ignore[assignment]
    assert north.reply("question", parts) == "for a reason that stays with this party"
    assert north.finished
    assert north._budget.answered == {0, 1}
    assert "The run ends here for this party: question 1" in heard[-2]
    later = {north.reply(stage, parts) for stage in ("question", "survivors", "agreement")}
    assert later == {"the coordinator sent a message that the agreement does not have"}
    del north._party.answer
    assert north.reply("question", parts) in later  # not even if it would succeed now


def test_a_question_counts_and_is_paid_for_before_a_row_is_read() -> None:
    wire, parts = asked_until(Stage.QUESTION, 1)
    north, exact = wire.parties["north"], wire.parties["north"]._party.answer
    seen: list[tuple[int, bool]] = []

    def watched(question: Question) -> np.ndarray:
        seen.append((north._next_question, 1 in north._budget.answered))
        return exact(question)

    north._party.answer = watched  # type: ignore[method-assign]
    assert north._budget.answered == {0}
    assert north.handle("question", parts)
    assert seen == [(2, True)]


def test_a_question_before_the_session_has_started_is_refused_and_costs_nothing() -> None:
    wire, _ = asked_until(Stage.INBOX)
    north = wire.parties["north"]
    message = seal(IDENTITIES["coordinator"].key, north._sessions[0], Step.QUESTION, COORDINATOR, b"", 0)
    with pytest.raises(ProtocolError, match="the session has not started"):
        north.handle("question", [QUESTION_NUMBER.pack(0), message])
    assert not north._budget.answered
    assert not north.finished


def test_a_stage_that_fails_in_a_foreign_way_ends_the_run_and_tells_nothing() -> None:
    wire, parts = asked_until(Stage.SURVIVORS, 1)
    north = wire.parties["north"]
    north._sums[1].reveal = lambda message: _raise(IndexError("row 17"))  # type: ignore[method-assign, return-value, assignment]
    assert north.reply("survivors", parts) == "for a reason that stays with this party"
    assert north.stopped == "IndexError"


def test_what_needs_no_coefficients_is_computed_before_the_sign_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """A solver that fails on these rows fails on this screen: the coordinator never meets the party."""
    agreement = agreement_of(algorithm="aggregation", rounds=None)
    rows = agreement.read_party("north", TABLES["north"])
    party = PartyRun(
        agreement, "north", IDENTITIES["north"], rows, RunBudget(agreement, "north", None), print
    )
    monkeypatch.setattr(rows, "answer", lambda question: _raise(SolverError("not certified")))
    assert party._noisy(agreement.mechanism.question(0)).size == agreement.mechanism.task.dimension
    with pytest.raises(SolverError, match="not certified"):
        PartyRun(agreement, "north", IDENTITIES["north"], rows, RunBudget(agreement, "north", None), print)


@pytest.mark.parametrize("algorithm", ["descent", "aggregation"])
def test_a_party_may_have_blocks_behind_it(
    algorithm: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder whose vectors are made anew for every question, and a table in memory, answer alike."""
    monkeypatch.setattr("privlearn.estimators.reading.IN_MEMORY", 0)
    monkeypatch.setattr("privlearn.data.encoding.packed_cells.BLOCK", 100)
    agreement = agreement_of(algorithm=algorithm, rounds=2 if algorithm == "descent" else None)
    for part in range(3):
        write_table(TABLES["north"].slice(200 * part, 200), tmp_path / f"{part}.parquet")
    in_blocks = agreement.read_party("north", open_records(tmp_path, agreement.table_schema))
    monkeypatch.setattr("privlearn.estimators.reading.IN_MEMORY", 1 << 27)
    in_memory = agreement.read_party("north", TABLES["north"])
    coefficients = np.zeros((1, agreement.mechanism.task.dimension))
    for number in range(len(agreement.mechanism.kinds)):
        question = replace(agreement.mechanism.question(number), coefficients=coefficients)
        expected = in_memory.answer(question)
        np.testing.assert_allclose(in_blocks.answer(question), expected, rtol=1e-12, atol=1e-12)
        coefficients = coefficients + 0.1


def test_a_key_that_is_not_the_plans_is_refused() -> None:
    rows = AGREEMENT.read_party("north", TABLES["north"])
    with pytest.raises(ProtocolError, match="not the key of 'north'"):
        PartyRun(AGREEMENT, "north", Identity.generate(), rows, RunBudget(AGREEMENT, "north", None), print)


def test_a_release_must_be_signed_by_the_coordinator() -> None:
    wire, (right,) = asked_until(Stage.RELEASE)
    unsigned = replace(Release.from_bytes(right), signature=None)
    for other in (unsigned, unsigned.signed(IDENTITIES["south"].key)):
        with pytest.raises(ProtocolError, match="not signed by the coordinator"):
            wire.parties["north"].handle("release", [other.to_bytes()])
    assert wire.parties["north"].handle("release", [right]) == []


class Budget:
    """A party's ledger, and a wire whose parties all draw on it (three times the cost fits)."""

    def __init__(self, folder: Path, epsilon: float) -> None:
        self.ledger = Ledger.create(folder / "ledger", "census", Guarantee(epsilon, 1e-4))
        self.wire = Wire(AGREEMENT, self.ledger)

    @property
    def left(self) -> float:
        return self.ledger.statement().left.epsilon

    @property
    def spent(self) -> float:
        """Return the final costs; a reservation does not count, though its budget is taken."""
        return self.ledger.statement().spent.epsilon


def test_the_budget_is_reserved_before_the_sign_off_and_returned_if_nothing_was_answered(
    tmp_path: Path,
) -> None:
    budget = Budget(tmp_path, 2.0)
    north = budget.wire.parties["north"]
    north.handle("agreement", proposal(AGREEMENT, RUN))
    assert (budget.left, budget.spent) == (0.0, 0.0)
    north.handle("stop", [b"not today"])
    north.settle()
    assert budget.left == 2.0
    assert north.stopped == "not today"


def test_an_answer_makes_the_cost_final(tmp_path: Path) -> None:
    budget = Budget(tmp_path, 6.0)
    budget.wire.tamper = lambda stage, name, reply: None if stage is Stage.QUESTION else reply
    with pytest.raises(ProtocolError):
        budget.wire.coordinator.train()
    for party in budget.wire.parties.values():
        party.settle()
    assert budget.spent == 6.0


def test_without_budget_nothing_is_signed_and_nobody_is_told_why(tmp_path: Path) -> None:
    budget = Budget(tmp_path, 1.0)
    north = budget.wire.parties["north"]
    assert north.reply("agreement", proposal(AGREEMENT, RUN)) == "for a reason that stays with this party"
    assert north.finished
    assert budget.left == 1.0


def test_each_step_counts_once_as_progress() -> None:
    """Sign-offs can be signed anew, with other bytes: a coordinator could keep a party waiting for ever."""
    wire = Wire(AGREEMENT)
    parties = wire.parties.values()
    signed = [party.handle(Stage.AGREEMENT, proposal(AGREEMENT, b"x" * RUN_BYTES))[0] for party in parties]
    north = wire.parties["north"]
    for _ in range(3):
        north._answered = ""  # as if the message had other bytes
        north.handle(Stage.KEYS, signed)
        assert north.progress == 2

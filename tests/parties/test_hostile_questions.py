"""A coordinator that asks whatever it likes learns noisy sums: never whether a row makes a question fail."""

from __future__ import annotations

import warnings
from functools import cache
from typing import cast

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from privlearn.arrays import Array
from privlearn.data import as_table, census_schema, simulated_census
from privlearn.estimators import MemoryOracle
from privlearn.mechanisms.summed import MAX_COEFFICIENT
from privlearn.parties import JointTraining, Party
from privlearn.parties.run import QUESTION_NUMBER, Parts, PartyRun, RunBudget, Stage
from privlearn.parties.secure_sum import COORDINATOR, Step, seal
from tests.support.run_cases import IDENTITIES, TABLES, Wire, agreement_of

HUGE, SUBNORMAL = np.finfo(np.float64).max, 5e-324
QUESTIONS, FEW = 500, 20  # a run's keys are drawn and proven for each of its questions
CHANGED = 17
"""The row in which the neighbouring tables differ."""

LOSSES = ("logistic", "huber_hinge", "smoothed_hinge")


def neighbours() -> tuple[pa.Table, pa.Table]:
    table = as_table(TABLES["north"])
    question_rounds = np.arange(table.num_rows)
    question_rounds[CHANGED] = 0
    return table, table.take(pa.array(question_rounds))


@cache
def agreement_with(loss: str, questions: int = QUESTIONS) -> JointTraining:
    return agreement_of(rounds=questions, loss=loss)


@cache
def parties_of(loss: str, questions: int = QUESTIONS) -> tuple[Party, Party]:
    one, other = (agreement_with(loss, questions).read_party("north", table) for table in neighbours())
    return one, other


class Victim:
    """The party north in the middle of a run with one of the tables."""

    def __init__(self, agreement: JointTraining, party: Party) -> None:
        wire = Wire(agreement)
        wire.parties["north"] = PartyRun(
            agreement,
            "north",
            IDENTITIES["north"],
            party,
            RunBudget(agreement, "north", None),
            lambda line: None,
        )
        wire.coordinator._set_up()
        self.run = wire.parties["north"]
        # a party refuses points that do not follow from the sums; one that colludes can lead them anywhere
        self.run._witness.check_question = lambda question: None  # type: ignore[method-assign]

    def ask(self, round: int, body: bytes) -> Parts | str:
        key, session = IDENTITIES["coordinator"].key, self.run._sessions[1]
        message = seal(key, session, Step.QUESTION, COORDINATOR, body, round)
        return self.run.reply(Stage.QUESTION, [QUESTION_NUMBER.pack(round + 1), message])


def hostile(rows: Array) -> list[Array]:
    """Finite coefficients that overflow, underflow, cancel, or look at one row only."""
    random = np.random.default_rng(12)
    dimension = rows.shape[1]
    row = rows[CHANGED]
    unit = row / np.linalg.norm(row)
    scales = [HUGE, -HUGE, 1e300, 2.0**1000, MAX_COEFFICIENT, 1e30, 1.0, 1e-30, 1e-300, SUBNORMAL, 0.0]
    with np.errstate(all="ignore"):
        aligned = [np.nan_to_num(scale * direction) for scale in scales for direction in (row, unit, -unit)]
    signs = [random.choice([-1.0, 1.0], dimension) * HUGE for _ in range(250)]
    tiny = [random.choice([-1.0, 0.0, 1.0], dimension) * SUBNORMAL for _ in range(50)]
    mixed = [
        random.choice([-1.0, 1.0], dimension) * 10.0 ** random.uniform(-320, 308, dimension)
        for _ in range(QUESTIONS)
    ]
    return (aligned + signs + tiny + mixed)[:QUESTIONS]


def size(reply: Parts | str) -> list[int] | str:
    return reply if isinstance(reply, str) else [len(part) for part in reply]


@pytest.mark.parametrize("loss", LOSSES)
def test_500_hostile_questions_get_an_answer_whatever_the_rows(loss: str) -> None:
    agreement, (one, other) = agreement_with(loss), parties_of(loss)
    victims = [Victim(agreement, party) for party in (one, other)]
    questions = hostile(np.asarray(cast(MemoryOracle, one._oracle)._rows.features))
    assert len(questions) == QUESTIONS
    farthest = 0.0
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        for round, coefficients in enumerate(questions):
            replies = [size(victim.ask(round, coefficients.tobytes())) for victim in victims]
            assert replies[0] == replies[1]
            assert isinstance(replies[0], list), replies[0]
            question = agreement.mechanism.question(round + 1, coefficients.reshape(1, -1))
            answers = [party.answer(question) for party in (one, other)]
            assert all(np.isfinite(answer).all() for answer in answers)
            farthest = max(farthest, float(np.linalg.norm(answers[0] - answers[1])))
    assert 0.1 < farthest <= agreement.mechanism.sum_sensitivity
    assert not any(victim.run.finished for victim in victims)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_refused_by_its_message_alone(value: float) -> None:
    agreement = agreement_with("logistic", FEW)
    victims = [Victim(agreement, party) for party in parties_of("logistic", FEW)]
    for round in range(FEW):
        coefficients = np.zeros(agreement.mechanism.task.dimension)
        coefficients[round % coefficients.size] = value
        replies = {str(victim.ask(round, coefficients.tobytes())) for victim in victims}
        assert replies == {"the question's coefficients are not finite"}
    assert not any(victim.run._budget.answered for victim in victims)


def test_no_row_overflows_where_another_does_not() -> None:
    """The attack of the review: coefficients whose margin is inf - inf for a single row of all columns."""
    schema, table = census_schema(), simulated_census(500, seed=1)
    agreement = JointTraining(schema=schema, parties={"north": 500, "south": 2500}, epsilon=0.01, delta=1e-9)
    party, number = agreement.read_party("north", table), agreement.mechanism.kinds.index("gradients")
    rows, random, separating = agreement.features.encoder.encode(table), np.random.default_rng(0), 0
    for _ in range(2000):
        pattern = random.choice([-1.0, 1.0], rows.shape[1]) * HUGE
        with np.errstate(all="ignore"):
            separating += int(np.sum(np.isnan(rows @ pattern)) == 1)
        answer = party.answer(agreement.mechanism.question(number, pattern.reshape(1, -1)))
        assert np.isfinite(answer).all()
    assert separating > 20


def test_a_question_cannot_be_asked_again() -> None:
    agreement = agreement_with("logistic", FEW)
    victim = Victim(agreement, parties_of("logistic", FEW)[0])
    body = np.full(agreement.mechanism.task.dimension, HUGE).tobytes()
    first = victim.ask(0, body)
    assert isinstance(first, list)
    for _ in range(3):
        assert victim.ask(0, body) == first  # the same message: the same bytes, which tell nothing new
        assert victim.ask(0, bytes(len(body))) == "question 1 is over: each is answered once, in order"


@settings(max_examples=200, deadline=None)
@given(
    hnp.arrays(
        np.float64, agreement_with("logistic").mechanism.task.dimension, elements=st.floats(allow_nan=False)
    ),
    st.sampled_from(LOSSES),
)
def test_no_point_moves_the_sum_further_than_the_theorem_says(coefficients: Array, loss: str) -> None:
    mechanism = agreement_with(loss).mechanism
    question = mechanism.question(1, coefficients.reshape(1, -1))
    assert question.coefficients is not None
    assert np.max(np.abs(question.coefficients)) <= MAX_COEFFICIENT
    one, other = (party.answer(question) for party in parties_of(loss))
    assert np.max(np.abs(one)) <= question.bound
    assert float(np.linalg.norm(one - other)) <= mechanism.sum_sensitivity

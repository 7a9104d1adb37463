"""Noisy descent: how much noise, what it costs on the exact law of a transcript, and where it leads without noise."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from privlearn.errors import InvalidParameter
from privlearn.guarantee import Guarantee
from privlearn.mechanisms import NoisyDescent
from privlearn.mechanisms.summed import Noise, NoisySum, Question, pack, unpack
from privlearn.parties import TrustedSum
from privlearn.randomness import SeededRandomness
from privlearn.solvers import Hinge, HuberHinge, Logistic, SmoothedHinge
from tests.support.oracles import Sums
from tests.support.party_cases import (
    DELTA,
    EPSILON,
    NOWHERE,
    descent,
    exact_sum,
    hockey_stick,
    max_ratio,
    parties_of,
    pooled_minimiser,
    random_rows,
    task_of,
)

ALARM = 1e-6


def recorded(mechanism: NoisyDescent, answers: Any) -> tuple[list[Question], Any]:
    """Run on given answers instead of sums; the questions asked, and the result."""
    asked: list[Question] = []

    def ask(question: Question) -> NoisySum:
        asked.append(question)
        return NoisySum(answers(len(asked) - 1, question), mechanism.task.total, mechanism.parties)

    return asked, mechanism.run(Sums(ask))


@pytest.mark.parametrize("neighbours", ["replace_one", "zero_out", "add_remove"])
@pytest.mark.parametrize(
    "facts", [{}, {"problems": 4}, {"weight_bound": 3.0}, {"rows_per_person": 2}, {"dimension": 500}], ids=str
)
@pytest.mark.parametrize("rounds", [1, 7, 200])
def test_plain_noise_is_one_gaussian_mechanism_split_over_the_rounds(
    neighbours: Any, facts: Any, rounds: int
) -> None:
    task = task_of(neighbours=neighbours, **facts)
    moved = (2.0 if neighbours == "replace_one" else 1.0) * math.sqrt(task.problems)
    moved *= task.weight_bound * task.rows_per_person
    mechanism = descent(task, rounds=rounds)
    assert mechanism.noise_scale == pytest.approx(moved * math.sqrt(rounds) / max_ratio(), rel=1e-6)


@pytest.mark.parametrize(
    ("neighbours", "moved"),
    [("replace_one", (2.0, math.sqrt(2.0))), ("zero_out", (1.0, 1.0)), ("add_remove", (1.0, 1.0))],
)
@pytest.mark.parametrize("facts", [{}, {"weight_bound": 3.0}, {"rows_per_person": 3}], ids=str)
def test_a_tenth_of_the_budget_pays_for_the_second_moments(neighbours: Any, moved: Any, facts: Any) -> None:
    mechanism = descent(task_of(neighbours=neighbours, **facts), calibration="preconditioned", rounds=12)
    moved = [(3.0 if facts else 1.0) * distance for distance in moved]
    budget = max_ratio() ** 2
    assert 12 * (moved[0] / mechanism.noise_scale) ** 2 == pytest.approx(0.9 * budget, rel=1e-6)
    assert (moved[1] / mechanism.curvature_noise_scale) ** 2 == pytest.approx(0.1 * budget, rel=1e-6)
    assert mechanism.ratio**2 == pytest.approx(budget, rel=1e-6)
    assert mechanism.renyi(2.0) == pytest.approx(budget, rel=1e-6)


@pytest.mark.parametrize("calibration", ["plain", "preconditioned"])
def test_every_sum_is_asked_with_its_noise(calibration: str) -> None:
    mechanism = descent(task_of(), calibration=calibration)
    asked, _ = recorded(mechanism, lambda number, question: np.zeros(question.length))
    moments = [question for question in asked if question.kind == "second_moments"]
    gradients = [question for question in asked if question.kind == "gradients"]
    assert len(moments) == (calibration == "preconditioned")
    assert len(gradients) == mechanism.rounds
    assert all(question.noise == (Noise("gaussian", mechanism.noise_scale),) for question in gradients)
    assert all(
        question.noise == (Noise("gaussian", mechanism.curvature_noise_scale),) for question in moments
    )


def test_spends_what_it_promises_and_no_less() -> None:
    for calibration in ("plain", "preconditioned"):
        mechanism = descent(task_of(), calibration=calibration)
        assert DELTA * (1.0 - 1e-5) < mechanism.spends().delta <= DELTA
        assert (
            not dataclasses.replace(mechanism, noise_scale=0.99 * mechanism.noise_scale).spends()
            <= mechanism.guarantee
        )


def test_rounding_of_the_sums_and_the_grid_is_paid_for() -> None:
    small, large = descent(task_of(), rounds=5), descent(task_of(total=2**26), rounds=5)
    assert large.noise_scale > small.noise_scale * 1.0005  # 2^26 records times 2^-36, of a sensitivity of 2
    wide = descent(task_of(dimension=2**40), rounds=5)
    assert wide.noise_scale > small.noise_scale * 1.0005
    with pytest.raises(InvalidParameter, match="rounding is proven"):
        descent(task_of(total=2**26 + 1))


@pytest.mark.parametrize("factor", [1.0, 0.5, 2.0])
def test_exact_law_of_a_transcript_on_a_line(factor: float) -> None:
    """Two rounds, one coefficient: the divergence between neighbours' transcripts, integrated over both answers.

    With records +1 and -1 exchanged, and coefficients inside the hinge's corner, both rounds move by 2, the bound.
    """
    task = task_of(total=3, dimension=1, regularization=40.0)
    promised = descent(task, rounds=2)
    mechanism = dataclasses.replace(promised, noise_scale=factor * promised.noise_scale)
    scale = mechanism.noise_scale
    axis, width = np.linspace(-9 * scale, 9 * scale, 901, retstep=True)

    def second_point(first: float) -> float:
        answers = [np.array([first]), np.zeros(1)]
        asked, _ = recorded(mechanism, lambda number, question: answers[number])
        assert asked[0].coefficients is not None
        assert asked[1].coefficients is not None
        return float(asked[1].coefficients[0, 0])

    points = np.array([second_point(first) for first in axis])
    assert np.all(np.abs(points[np.abs(axis) < 6 * scale]) < 0.5 * factor + 0.5)

    def law(records: list[float]) -> Any:
        loss = HuberHinge()
        sums = [
            np.sum([x * loss.first_derivative(x * w) for x in records], axis=0) for w in (np.zeros(1), points)
        ]
        first = stats.norm.pdf(axis, sums[0], scale)
        second = stats.norm.pdf(axis[np.newaxis], sums[1][:, np.newaxis], scale)
        return first[:, np.newaxis] * second * width**2

    one, other = law([1.0, 0.0, 1.0]), law([-1.0, 0.0, 1.0])
    delta = max(
        float(np.sum(np.maximum(p - math.exp(EPSILON) * q, 0.0))) for p, q in ((one, other), (other, one))
    )
    holds, is_tight = delta <= DELTA * 1.01, delta >= 0.9 * DELTA
    assert holds == (factor >= 1.0)
    assert is_tight == (factor <= 1.0)
    assert delta == pytest.approx(hockey_stick(EPSILON, 2.0 * math.sqrt(2.0) / scale), rel=0.05)


@pytest.mark.parametrize("shares", [3, 2])
@pytest.mark.parametrize("factor", [1.0, 0.5, 2.0])
def test_released_coefficients_have_the_noise_of_the_theorem(shares: int, factor: float) -> None:
    """On records of zeros the result is linear in the noise: its variance follows from the answers' impulses."""
    task = task_of(total=30, dimension=2, regularization=0.5)
    mechanism = descent(task, rounds=4, shares=shares)
    impulses = np.eye(4)
    weights = [recorded(mechanism, lambda n, q, i=i: impulses[i, n] * np.ones(2))[1][0, 0] for i in range(4)]
    scale = (
        factor * mechanism.noise_scale * math.sqrt(3 / shares)
    )  # all three add a share, though fewer suffice
    expected = scale**2 * float(np.sum(np.square(weights)))
    parties = parties_of(mechanism, np.zeros((30, 2)), np.ones(30), [5, 10, 15])
    sums = TrustedSum(mechanism, parties, SeededRandomness(3))
    drawn = np.concatenate([mechanism.run(sums).ravel() for _ in range(400)])
    statistic = float(np.sum(drawn**2)) / expected
    chance = 2.0 * min(stats.chi2.cdf(statistic, len(drawn)), stats.chi2.sf(statistic, len(drawn)))
    assert (chance > ALARM) == (factor == 1.0)


@pytest.mark.parametrize("loss", [Logistic(), HuberHinge(), SmoothedHinge()], ids=str)
@pytest.mark.parametrize("calibration", ["plain", "preconditioned"])
def test_without_noise_it_finds_the_pooled_minimiser(loss: Any, calibration: str) -> None:
    rows, signs = random_rows(300, 4, seed=1)
    task = task_of(loss=loss, total=300, dimension=4)
    mechanism = descent(task, NOWHERE, calibration)
    found = mechanism.run(exact_sum(parties_of(mechanism, rows, signs, [10, 90, 200])))
    assert found[0] == pytest.approx(pooled_minimiser(task, rows, signs), abs=1e-8)


def test_who_drops_out_leaves_the_problem_of_the_others() -> None:
    rows, signs = random_rows(300, 3, seed=2)
    task = task_of(total=300)
    mechanism = descent(task, NOWHERE, "preconditioned")
    parties = parties_of(mechanism, rows, signs, [100, 80, 120])
    everyone, others = exact_sum(parties), exact_sum(parties[1:])
    asked = 0

    def ask(question: Question) -> NoisySum:
        nonlocal asked
        asked += 1
        return (everyone if asked <= 3 else others).ask(question)

    rest = task_of(total=200)
    assert mechanism.run(Sums(ask))[0] == pytest.approx(
        pooled_minimiser(rest, rows[100:], signs[100:]), abs=1e-8
    )


def test_with_little_noise_few_rounds_come_near_the_minimiser() -> None:
    """Steps and momentum work: after 2 sqrt(condition) rounds hardly any of the way is left."""
    rows, signs = random_rows(3000, 5, seed=3)
    task = task_of(total=3000, dimension=5, regularization=1e-3, loss=Logistic())

    def height(point: Any) -> float:
        risk = float(np.mean(Logistic().value(signs * (rows @ point))))
        return risk + task.regularization / 2.0 * float(point @ point)

    lowest = height(pooled_minimiser(task, rows, signs))
    for calibration in ("plain", "preconditioned"):
        mechanism = descent(task, Guarantee(50.0, 1e-3), calibration)
        found = mechanism.run(exact_sum(parties_of(mechanism, rows, signs, [1000, 2000])))[0]
        assert height(found) - lowest < 0.05 * (height(np.zeros(5)) - lowest)
    assert descent(task, Guarantee(50.0, 1e-3), "preconditioned").rounds < 12
    assert descent(task, Guarantee(50.0, 1e-3), "plain").rounds > 30


def test_the_curvature_round_is_chosen_by_public_numbers() -> None:
    promise = Guarantee(1.0, 1e-5)
    adult = task_of(loss=Logistic(), total=36177, dimension=185, regularization=9e-5)

    def chosen(**changes: Any) -> str:
        task = dataclasses.replace(adult, **changes)
        return NoisyDescent.better_calibration(task, promise, parties=3, shares=2)

    assert chosen() == "preconditioned"
    assert chosen(dimension=2100) == "plain"
    assert chosen(total=500) == "plain"


def test_steps_are_made_for_the_noise_of_all_shares() -> None:
    """With 1 share of 4 enough, a sum holds twice the promised noise, and its curvature is bounded accordingly."""
    task, promise = task_of(total=36177, dimension=50, regularization=9e-5), Guarantee(1.0, 1e-5)
    alone, many = (descent(task, promise, "preconditioned", parties=4, shares=shares) for shares in (4, 1))
    assert many.condition - 1.0 == pytest.approx(2.0 * (alone.condition - 1.0))
    assert many.rounds == pytest.approx(math.sqrt(2.0) * alone.rounds, rel=0.05)


def test_the_noise_in_the_second_moments_is_bounded_as_said() -> None:
    """The step is safe if the spectral norm stays below its bound, which it does 2,999 times in 3,000."""
    random = np.random.default_rng(0)
    dimension = 40
    norms = [
        np.linalg.norm(unpack(random.normal(size=dimension * (dimension + 1) // 2), dimension), 2)
        for _ in range(300)
    ]
    bound = math.sqrt(2.0 * dimension)
    assert max(norms) < bound + 4.0
    assert 0.8 * bound < float(np.mean(norms)) < 1.1 * bound


def test_packing_keeps_the_norm() -> None:
    matrix = np.arange(9.0).reshape(3, 3)
    matrix = matrix + matrix.T
    assert np.linalg.norm(pack(matrix)) == pytest.approx(np.linalg.norm(matrix))
    assert unpack(pack(matrix), 3) == pytest.approx(matrix)


def test_refusals_say_what_to_do() -> None:
    with pytest.raises(InvalidParameter, match="delta=1e-6"):
        descent(task_of(), Guarantee(1.0))
    with pytest.raises(InvalidParameter, match="shares must be at most"):
        descent(task_of(), shares=4)
    assert "smooth" in str(NoisyDescent.explain_refusal(task_of(loss=Hinge()), "gaussian"))


def test_what_is_spent_so_far_grows_to_the_promise() -> None:
    for calibration in ("plain", "preconditioned"):
        mechanism = descent(task_of(), calibration=calibration, rounds=9)
        spent = [mechanism.epsilon_after(questions) for questions in range(len(mechanism.kinds) + 1)]
        assert spent[0] == 0.0
        assert spent == sorted(spent)
        assert spent[-1] == pytest.approx(EPSILON, rel=1e-6)
        assert hockey_stick(spent[2], mechanism.ratio * spent_share(mechanism, 2)) == pytest.approx(
            DELTA, rel=1e-6
        )


def spent_share(mechanism: NoisyDescent, questions: int) -> float:
    """Return the share of the ratio after n questions: gradients share equally what the second moments leave."""
    moments = 0.1 if mechanism.calibration == "preconditioned" else 0.0
    asked = questions - (moments > 0)
    return math.sqrt(moments + asked * (1.0 - moments) / mechanism.rounds)


def test_no_question_beyond_the_plan() -> None:
    mechanism = descent(task_of(), calibration="preconditioned", rounds=4)
    assert mechanism.question(0).kind == "second_moments"
    assert mechanism.question(4).kind == "gradients"
    for number in (5, -1):
        with pytest.raises(InvalidParameter, match="there are 5 questions"):
            mechanism.question(number)


def test_the_worst_noise_in_the_second_moments_does_no_harm() -> None:
    """Noise that hides the curvature as far as its bound allows: steps stay short enough, and descent descends."""
    rows, signs = random_rows(2000, 4, seed=6)
    task = task_of(total=2000, dimension=4, loss=Logistic(), regularization=1e-3)
    mechanism = descent(task, Guarantee(1.0, 1e-5), "preconditioned", shares=2, rounds=60)
    exact = exact_sum(parties_of(mechanism, rows, signs, [500, 500, 1000]))
    bound = math.sqrt(3 / 2) * mechanism.curvature_noise_scale * (math.sqrt(2 * 4) + 4.0)

    def ask(question: Question) -> NoisySum:
        answer = exact.ask(question)
        hidden = pack(-bound * np.eye(4)) if question.kind == "second_moments" else 0.0
        return NoisySum(answer.vector + hidden, answer.total, answer.parties)

    best = pooled_minimiser(task, rows, signs)
    assert np.linalg.norm(mechanism.run(Sums(ask))[0] - best) < 0.05 * np.linalg.norm(best)

"""TDDL with a ball that is bought: one more answer, and what the ball does."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution
from scipy import stats

from privlearn.guarantee import Guarantee
from privlearn.mechanisms import NormBoundedLearner, PrecomputedMinimisers, Task
from privlearn.mechanisms import TestDataDependentLearner as Tddl
from privlearn.randomness import SeededRandomness
from privlearn.solvers import Logistic

ALARM = 1e-6
FAILURE = 0.05  # with this probability the private ball may miss the minimiser


def plan(kind: Any = NormBoundedLearner, epsilon: float = 1.0, points: int = 3, **facts: Any) -> Any:
    known: dict[str, Any] = {
        "loss": Logistic(),
        "total": 1000,
        "dimension": 3,
        "problems": 1,
        "regularization": 0.05,
        "tolerance": 1e-10,
        "neighbours": "replace_one",
    }
    task = Task(**known | facts)
    return kind.calibrate(task, Guarantee(epsilon, 1e-5), "laplace", "jt13", points=points)


@pytest.mark.parametrize("problems", [1, 3])
def test_it_costs_one_more_answer_for_each_problem(problems: int) -> None:
    bought, plain = plan(points=30, problems=problems), plan(Tddl, points=31, problems=problems)
    assert bought.noise_scale == plain.noise_scale
    assert bought.spends() == plain.spends()
    assert bought.spends() <= bought.guarantee


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_the_exact_composition_of_answers_and_norm_is_within_the_promise(epsilon: float) -> None:
    mechanism = plan(epsilon=epsilon, points=30)
    single = privacy_loss_distribution.from_laplace_mechanism(
        mechanism.noise_scale, sensitivity=mechanism.sensitivity, value_discretization_interval=1e-4
    )
    assert single.self_compose(31).get_delta_for_epsilon(epsilon) <= 1e-5


def test_a_person_moves_the_norm_no_further_than_an_answer() -> None:
    mechanism, rng = plan(), np.random.default_rng(0)
    for _ in range(200):
        one = rng.normal(size=3)
        step = rng.normal(size=3)
        other = one + step * mechanism.task.minimiser_sensitivity / np.linalg.norm(step)
        asked = [mechanism.exact_answers(w, np.eye(3)) for w in (one, other)]
        assert np.max(np.abs(asked[0] - asked[1])) <= mechanism.sensitivity


def test_the_norm_has_the_noise_it_pays_for_and_the_ball_holds_the_minimiser_as_often_as_said() -> None:
    """With answers that pull to the ball's surface the released model is as long as its radius."""
    w = np.tile([3.0, 0.0, 0.0], (1500, 1))
    mechanism = plan(points=1, problems=1500, total=10**7, regularization=0.001, epsilon=5.0)
    seen: list[float] = []

    class Recording(NormBoundedLearner):
        def radius(self, noisy_norm: float) -> float:
            seen.append(noisy_norm)
            return super().radius(noisy_norm)

    recorded = Recording(**vars(mechanism))
    released = recorded.run(PrecomputedMinimisers(w, np.array([[1.0, 0.0, 0.0]])), SeededRandomness(1))
    noise = (np.array(seen) - 3.0) / mechanism.noise_scale
    assert stats.kstest(noise, "laplace").pvalue > ALARM
    radii = np.array([mechanism.radius(norm) for norm in seen])
    assert stats.binomtest(int(np.sum(radii < 3.0)), len(radii), FAILURE).pvalue > ALARM
    assert np.all(np.linalg.norm(released, axis=1) <= radii * (1 + 1e-12))


def test_the_radius_by_hand() -> None:
    mechanism = plan()
    scale, public = mechanism.noise_scale, mechanism.task.ball_radius
    assert mechanism.radius(0.1) == pytest.approx(min(0.1 + scale * math.log(10.0), public))
    assert mechanism.radius(1e9) == public
    assert 0 < mechanism.radius(-1e9) < 1e-6


def test_where_the_public_ball_is_far_too_large_the_bought_one_is_nearer_to_the_minimiser() -> None:
    """|w| is 3, the public bound 32, and the noise in an answer 2."""
    rng = np.random.default_rng(3)
    points = rng.normal(size=(60, 30))
    points /= 1.001 * np.linalg.norm(points, axis=1, keepdims=True)
    w = np.zeros((1, 30))
    w[0, 0] = 3.0
    misses = {}
    for kind in (Tddl, NormBoundedLearner):
        mechanism = plan(kind, 1.0, 60, dimension=30, total=50_000, regularization=0.001)
        runs = [mechanism.run(PrecomputedMinimisers(w, points), SeededRandomness(seed)) for seed in range(30)]
        misses[kind] = np.mean([np.linalg.norm(run - w) for run in runs])
    assert misses[NormBoundedLearner] < 0.6 * misses[Tddl]


def test_without_a_promise_it_is_the_minimiser() -> None:
    task = plan().task
    plain = NormBoundedLearner.calibrate(task, Guarantee(math.inf), "laplace", "jt13", points=2)
    assert np.array_equal(
        plain.run(PrecomputedMinimisers(np.ones((1, 3))), SeededRandomness(0)), np.ones((1, 3))
    )

"""What noise costs in J: each bound against exact laws and against the mechanisms themselves."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from privlearn.guarantee import Guarantee
from privlearn.mechanisms import ObjectivePerturbation, OutputPerturbation, Task
from privlearn.papers.bounds import (
    gamma_length,
    gaussian_excess,
    objective_excess,
    output_excess,
    ra12_noise,
    tuning_excess,
)
from privlearn.randomness import SeededRandomness
from privlearn.solvers import HuberHinge, Logistic, Problem, minimise
from tests.support.oracles import Solver

FAILURE = 0.1
failures = st.floats(1e-6, 0.9)


@given(shape=st.integers(1, 400), failure=failures)
def test_lemma_5_by_the_exact_law(shape: int, failure: float) -> None:
    found = gamma_length(shape, 0.3, failure)
    assert stats.gamma.sf(found.sharp, shape, scale=0.3) == pytest.approx(failure)
    assert found.sharp <= found.printed * (1 + 1e-9)


@pytest.mark.parametrize("loss", [HuberHinge(0.5), Logistic()], ids=lambda loss: loss.name)
def test_the_bounds_hold_for_the_mechanisms_and_not_by_wide_margins_where_data_is_flat(loss: Any) -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(60, 3))
    rows /= 1.001 * np.linalg.norm(rows, axis=1, keepdims=True)
    signs = np.where(rows[:, 0] > 0, 1.0, -1.0)
    strength, epsilon = 0.1, 2.0
    facts = (60, strength, 3, loss.smoothness, FAILURE)
    sigma = ra12_noise(epsilon, 1e-3, 60, strength, 3, loss.smoothness)
    objective = objective_excess(epsilon, *facts)
    assert sigma is not None
    assert objective is not None
    cases: list[tuple[Any, str, str, float, Any]] = [
        (OutputPerturbation, "norm_gamma", "cms11", 0.0, output_excess(epsilon, *facts)),
        (ObjectivePerturbation, "norm_gamma", "cms11", 0.0, objective),
        (ObjectivePerturbation, "gaussian", "ra12", 1e-3, gaussian_excess(sigma, *facts)),
    ]
    for kind, noise, calibration, delta, bound in cases:
        task = Task(loss, 60, 3, 1, strength, 1e-9, "replace_one")
        mechanism = kind.calibrate(task, Guarantee(epsilon, delta), noise, calibration)
        assert mechanism.effective_regularization == strength
        gaps = _rises(mechanism, rows, signs, loss, strength, 300)
        assert np.mean(gaps > bound.sharp) < FAILURE + 0.05
        assert bound.sharp <= bound.printed


def _rises(mechanism: Any, rows: Any, signs: Any, loss: Any, strength: float, draws: int) -> Any:
    """Return how much J rises in n runs."""

    def solve(linear: Any, regularization: float) -> Any:
        term = None if linear is None else linear[0]
        problem = Problem(rows, signs, loss, regularization, len(signs), linear=term)
        return minimise(problem, tolerance=1e-9).coefficients[np.newaxis]

    def objective(w: Any) -> float:
        return float(np.mean(loss.value(signs * (rows @ w))) + strength / 2 * w @ w)

    least = objective(solve(None, strength)[0])
    randomness = SeededRandomness(0)
    released = [mechanism.run(Solver(solve), randomness)[0] for _ in range(draws)]
    return np.array([objective(w) - least for w in released])


def test_on_rows_without_features_the_sharp_bounds_are_reached() -> None:
    """Then J is a constant plus (Lambda/2)|w|^2, so |b|^2 / (2 n^2 Lambda) is exact."""
    rng = np.random.default_rng(1)
    rows, strength, dimension, smoothness, epsilon = 50, 0.2, 4, 1.0, 1.0
    bound = objective_excess(epsilon, rows, strength, dimension, smoothness, FAILURE)
    assert bound is not None
    left = epsilon - 2 * math.log1p(smoothness / (rows * strength))
    lengths = rng.gamma(dimension, 2 / left, 40_000)
    assert np.mean(lengths**2 / (2 * rows**2 * strength) > bound.sharp) == pytest.approx(FAILURE, abs=0.006)
    gaussian = gaussian_excess(3.0, rows, strength, dimension, smoothness, FAILURE)
    squared = 9.0 * rng.chisquare(dimension, 40_000)
    assert np.mean(squared / (2 * rows**2 * strength) > gaussian.sharp) == pytest.approx(FAILURE, abs=0.006)


def test_lemma_6_as_printed_is_false_where_the_slack_takes_a_third_of_epsilon() -> None:
    rows, strength, epsilon = 10, 1.0, 0.3
    bound = objective_excess(epsilon, rows, strength, 1, 1.0, FAILURE)
    assert bound is not None
    left = epsilon - 2 * math.log1p(1 / (rows * strength))
    assert 0 < left < epsilon / math.sqrt(2)
    # one column, rows of zeros: |b| is exponential, and J rises by b^2 / (2 n^2 Lambda)
    longest = rows * math.sqrt(2 * strength * bound.printed)
    assert stats.gamma.sf(longest, 1, scale=2 / left) > 2 * FAILURE
    assert bound.printed < bound.sharp


def test_the_theorems_are_silent_where_lambda_would_be_raised() -> None:
    assert objective_excess(0.1, 10, 0.1, 3, 1.0, FAILURE) is None
    assert ra12_noise(0.1, 1e-6, 10, 0.1, 3, 1.0) is None


@given(
    mistakes=st.lists(st.integers(0, 60), min_size=1, max_size=8),
    epsilon=st.floats(0.05, 4.0),
    failure=st.floats(0.001, 0.5),
)
def test_theorem_9_by_exact_probabilities(mistakes: list[int], epsilon: float, failure: float) -> None:
    bound = tuning_excess(epsilon, len(mistakes), failure)
    found = np.array(mistakes, dtype=float)
    weights = np.exp(-epsilon * (found - found.min()) / 2)
    beyond = found > found.min() + bound.sharp + 1e-9
    assert float(np.sum(weights[beyond]) / np.sum(weights)) <= failure + 1e-12
    assert bound.sharp <= bound.printed


def test_theorem_9_s_worst_case() -> None:
    bound = tuning_excess(0.5, 6, 0.05).sharp
    weights = np.exp(-0.5 * np.array([0.0] + [bound] * 5) / 2)
    assert float(np.sum(weights[1:]) / np.sum(weights)) == pytest.approx(0.05)

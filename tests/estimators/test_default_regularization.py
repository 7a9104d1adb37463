"""The default regularization: public, monotone, and close to the best on rows it has not seen."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privlearn import Guarantee, PrivateLogisticRegression
from privlearn.data.datasets import census_schema, simulated_census
from privlearn.estimators.default_regularization import Curvatures, default_regularization
from privlearn.mechanisms import Task
from privlearn.solvers import HuberHinge, Logistic

TASK = Task(Logistic(), 36_000, 185, 1, 1.0, 1e-10, "replace_one")
WAYS = [("objective", "gaussian"), ("objective", "norm_gamma"), ("output", "gaussian"), ("output", "laplace")]


def strength(task: Task, epsilon: float, mechanism: str, noise: str) -> float:
    """N Lambda."""
    delta = 1e-5 if noise == "gaussian" else 0.0
    return task.total * default_regularization(task, Guarantee(epsilon, delta), mechanism, noise)


@pytest.mark.parametrize(("mechanism", "noise"), WAYS)
def test_less_privacy_needs_less_regularization(mechanism: str, noise: str) -> None:
    found = [strength(TASK, epsilon, mechanism, noise) for epsilon in (0.01, 0.1, 1.0, 10.0)]
    assert found == sorted(found, reverse=True)
    assert found[0] > 5 * found[-1]


@pytest.mark.parametrize("mechanism", ["objective", "output"])
def test_without_privacy_it_is_that_of_scores_of_the_usual_size(mechanism: str) -> None:
    """k = 1 / size^2, as for a normal prior; log-odds have a deviation of 2."""
    found = TASK.total * default_regularization(TASK, Guarantee(math.inf, 0.0), mechanism, "gaussian")
    assert found == pytest.approx(0.25, rel=0.01)


def test_little_noise_approaches_none() -> None:
    """epsilon = inf is the limit."""
    near = default_regularization(TASK, Guarantee(1e4, 1e-5), "objective", "gaussian")
    none = default_regularization(TASK, Guarantee(math.inf, 0.0), "objective", "gaussian")
    assert near == pytest.approx(none, rel=0.05)


def test_relative_to_the_noise_few_records_are_shrunk_more() -> None:
    found = [
        strength(replace(TASK, total=total), 0.5, "objective", "gaussian") for total in (500, 5_000, 50_000)
    ]
    assert found[0] > 1.5 * found[1] > 2.0 * found[2]


def test_it_has_the_smallest_expected_excess() -> None:
    """The sum over directions written out again, over every single one."""
    model = Curvatures(information=900.0, directions=150, size=2.0, sampling=1.0)
    curvatures = 1.0 / np.arange(1, 151)
    curvatures *= 900.0 / curvatures.sum()

    def excess(strength: float) -> float:
        parts = (2.0 * strength) ** 2 + curvatures + 3.6 * 10.0**2
        return float(np.sum(curvatures * parts / (curvatures + strength) ** 2))

    chosen = model.best_strength(10.0)
    assert excess(chosen) < 1.002 * min(excess(chosen * factor) for factor in np.geomspace(0.1, 10, 200))


@settings(max_examples=40, deadline=None)
@given(
    epsilon=st.floats(0.01, 10.0),
    total=st.integers(20, 10**6),
    dimension=st.integers(1, 10**6),
    problems=st.integers(1, 5),
    smooth=st.booleans(),
)
def test_the_slack_leaves_more_than_half_of_epsilon(
    epsilon: float, total: int, dimension: int, problems: int, smooth: bool
) -> None:
    task = Task(
        Logistic() if smooth else HuberHinge(0.5), total, dimension, problems, 1.0, 1e-10, "replace_one"
    )
    chosen = default_regularization(task, Guarantee(epsilon, 1e-6), "objective", "gaussian")
    assert 0 < chosen < math.inf
    assert problems * task.jacobian_slack(chosen) <= 0.45 * epsilon * (1 + 1e-6)


@pytest.mark.parametrize("averaged", [True, False])
def test_the_slack_of_persons_with_several_rows_is_bounded_too(averaged: bool) -> None:
    task = replace(TASK, loss=HuberHinge(0.5), rows_per_person=3, averaged=averaged, total=10**6, dimension=1)
    chosen = default_regularization(task, Guarantee(0.1, 0.0), "objective", "norm_gamma")
    assert task.jacobian_slack(chosen) == pytest.approx(0.045, rel=1e-6)


@pytest.mark.parametrize(("mechanism", "noise"), [("objective", "gaussian"), ("output", "gaussian")])
def test_columns_beyond_what_rows_can_fill_ask_for_nothing(mechanism: str, noise: str) -> None:
    """Curvatures add up to a constant, so most of a million directions do not matter to any prediction."""
    wide = strength(replace(TASK, dimension=10**5), 1.0, mechanism, noise)
    assert strength(replace(TASK, dimension=10**6), 1.0, mechanism, noise) == pytest.approx(wide)


@pytest.mark.parametrize("epsilon", [0.3, 3.0])
def test_it_is_close_to_the_best_of_a_grid_on_a_census(epsilon: float) -> None:
    """A small version of benchmarks/regularization.py: at most one point above hindsight's best."""
    table, held_out = simulated_census(6_000, seed=1), simulated_census(6_000, seed=2)
    truth = np.array(held_out["income"].to_pylist())

    def error(regularization: float | str) -> float:
        fits = [
            PrivateLogisticRegression(
                epsilon=epsilon,
                delta=1e-5,
                schema=census_schema(),
                regularization=regularization,
                random_state=seed,
            ).fit(table)
            for seed in range(5)
        ]
        return float(np.mean([1 - model.score(held_out, truth) for model in fits]))

    best = min(error(2.0**power / 6_000) for power in range(-2, 9, 2))
    assert error("auto") <= best + 0.01

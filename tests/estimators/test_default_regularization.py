"""The default regularization: public, monotone, and close to the best on rows it has not seen."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privlearn import Guarantee, PrivateLogisticRegression
from privlearn.accounting import gaussian_ratio
from privlearn.data import census_schema, simulated_census
from privlearn.estimators import default_regularization
from privlearn.mechanisms import ObjectivePerturbation, Task
from privlearn.mechanisms.statistics import Centring
from privlearn.solvers import Huber, HuberHinge, Logistic, Multinomial

TASK = Task(Logistic(), 36_000, 185, 1, 1.0, 1e-10, "replace_one")
GUARANTEE = Guarantee(1.0, 1e-5, "zero_out")
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
def test_without_privacy_it_is_that_of_scikit_learn_s_c_4(mechanism: str) -> None:
    assert TASK.total * default_regularization(TASK, Guarantee(math.inf, 0.0), mechanism, "gaussian") == 0.25


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


@pytest.mark.parametrize(("total", "felt"), [(1_000, True), (100_000, False)])
def test_few_centred_rows_of_numbers_are_shrunk_more(total: int, felt: bool) -> None:
    """k = sigma^2 d / (N h v^2), written out anew, where that is more than what is asked for otherwise."""
    bought = Centring(60, 1.0, mean_noise_scale=30.0, count_noise_scale=40.0)
    plain = replace(TASK, loss=Huber(0.2), total=total, dimension=60)
    centred = replace(plain, centring=bought)
    found = strength(centred, 1.0, "objective", "gaussian")
    sigma = 2.0 / gaussian_ratio(1.0 - math.log1p(5.0 / found), 1e-5)
    wanted = sigma**2 * 60 / (total * math.erf(math.sqrt(0.5)) * 5.0 * 0.2**2)
    assert (found == pytest.approx(wanted, rel=1e-4)) == felt
    wide = [strength(replace(centred, dimension=d), 1.0, "objective", "gaussian") for d in (400, 10_000)]
    assert wide[1] == pytest.approx(wide[0])


def test_numbers_are_as_large_as_their_unit_allows() -> None:
    """The noise counts until a row's largest target, 3 units, or 0.2 units for each direction."""
    numbers = replace(TASK, loss=Huber(4.0), dimension=100, total=10**6)
    centred = replace(numbers, centring=Centring(100, 1.0, 1.0, 1.0))
    wide = replace(numbers, dimension=10**4)
    ratios = [strength(task, 1.0, "objective", "gaussian") for task in (numbers, centred, wide)]
    assert ratios[1] / ratios[0] == pytest.approx(2.0, rel=0.03)  # the slack differs a little
    assert ratios[2] / ratios[0] == pytest.approx(2.5 / (10.0 / 6.0), rel=0.03)


def test_numbers_in_more_columns_than_records_are_shrunk_like_centred_ones() -> None:
    narrow = replace(TASK, loss=Huber(0.2), total=1_000, dimension=1_000)
    wide = replace(narrow, dimension=1_001)
    centred = replace(wide, centring=Centring(1_001, 1.0, mean_noise_scale=30.0, count_noise_scale=40.0))
    found = [strength(task, 1.0, "objective", "gaussian") for task in (narrow, wide, centred)]
    assert found[0] < found[1] == found[2]


@pytest.mark.parametrize(("total", "leans"), [(5_000, True), (500_000, False)])
def test_softmax_leans_to_more_shrinkage_where_noise_drowns_most_directions(total: int, leans: bool) -> None:
    """The formulas of docs/theory/regularization.md, with the noise of the mechanism itself."""
    rows = Task(Multinomial(), total, 10 * 60, 1, 1.0, 1e-10, "zero_out", classes=10)
    task = replace(rows, regularization=default_regularization(rows, GUARANTEE, "objective", "gaussian"))
    mechanism = ObjectivePerturbation.calibrate(task, GUARANTEE, "gaussian", "tight")
    sigma, size = mechanism.noise_scale, 2.0 / 3.0 / math.sqrt(2.0)
    usual = sigma / (size * (1.0 + math.log(9.0)))
    flat = sigma**2 * 60 / (total * 0.09 * size**2)
    wanted = usual * max(flat / usual, 1.0) ** (1.0 / 3.0)
    assert total * task.regularization == pytest.approx(wanted, rel=0.02)  # noise_scale covers rounding too
    assert (flat > usual) == leans


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

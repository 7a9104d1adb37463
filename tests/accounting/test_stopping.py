"""The best of a random number of trials, against its exact law on tables small enough to enumerate."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privlearn.accounting import STOPPED_PURE, renyi_delta, stopping_budget, stopping_renyi
from privlearn.arrays import Array

ORDERS = (1.5, 2.0, 5.0, 30.0)
TABLES = st.lists(st.floats(0.01, 1.0), min_size=6, max_size=6)


def law(table: Array, expected_trials: float) -> Array:
    """Return the distribution of the best of K draws from the table, from best to worst, P(K = k) = (1-g)^(k-1) g.

    All K draws are at a place or after it with probability f(tail), f(x) = g x / (1 - (1 - g) x).
    """
    stop = 1.0 / expected_trials
    tails = np.append(np.cumsum(table[::-1])[::-1], 0.0)
    generated = stop * tails / (1.0 - (1.0 - stop) * tails)
    return generated[:-1] - generated[1:]


def renyi(first: Array, second: Array, order: float) -> float:
    powers = order * np.log(first) + (1.0 - order) * np.log(second)
    return float(np.logaddexp.reduce(powers)) / (order - 1.0)


def hockey_stick(first: Array, second: Array, epsilon: float) -> float:
    return float(np.maximum(first - math.exp(epsilon) * second, 0.0).sum())


def normalised(table: list[float]) -> Array:
    return np.array(table) / np.sum(table)


def steep_pair(epsilon: float, rare: float) -> tuple[Array, Array]:
    """Better outcomes grow by the factor e^epsilon, the one after them shrinks by it: the worst case for a choice."""
    grown = rare * math.exp(epsilon)
    first = np.array([rare, rare * math.exp(epsilon) / 1e3, 1.0])
    second = np.array([grown, rare / 1e3, 1.0])
    for table in (first, second):
        table[-1] = 2.0 - table.sum()
    return first, second


def test_the_law_is_that_of_the_best_of_k_trials() -> None:
    table, trials = normalised([1, 2, 3, 4]), 5
    direct = np.zeros(4)
    for k in range(1, 400):
        tails = np.append(np.cumsum(table[::-1])[::-1], 0.0) ** k
        direct += (1 - 1 / trials) ** (k - 1) / trials * (tails[:-1] - tails[1:])
    assert np.allclose(law(table, trials), direct, atol=1e-12)


@given(TABLES, TABLES, st.sampled_from([1, 2, 15, 300]), st.sampled_from(ORDERS), st.sampled_from(ORDERS))
def test_no_pair_of_tables_exceeds_the_bound(
    first: list[float], second: list[float], trials: int, order: float, inner_order: float
) -> None:
    one, other = normalised(first), normalised(second)

    def trial(a: float) -> float:
        return max(renyi(one, other, a), renyi(other, one, a))

    claimed = stopping_renyi(trial, trials, order, inner_order)
    best = law(one, trials), law(other, trials)
    for pair in (best, best[::-1]):
        assert renyi(*pair, order) <= claimed + 1e-9
        for epsilon in (0.0, 0.5, 2.0):
            assert hockey_stick(*pair, epsilon) <= renyi_delta(claimed, order, epsilon) + 1e-12


def test_the_bound_is_nearly_reached() -> None:
    """So that a smaller constant in it would be noticed."""
    one, other = steep_pair(0.5, 1e-4)
    order, trials = 60.0, 10**7

    def trial(a: float) -> float:
        return max(renyi(one, other, a), renyi(other, one, a))

    claimed = min(stopping_renyi(trial, trials, order, inner) for inner in np.geomspace(2, 1e5, 200))
    assert claimed > renyi(law(one, trials), law(other, trials), order) > 0.75 * claimed


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_pure_trials_cost_three_times_their_epsilon_and_not_less(epsilon: float) -> None:
    one, other = steep_pair(epsilon, 1e-5)
    assert math.isclose(np.max(np.abs(np.log(one / other))), epsilon, rel_tol=1e-9)
    loss = np.max(np.abs(np.log(law(one, 10**9) / law(other, 10**9))))
    assert 0.99 * STOPPED_PURE * epsilon < loss <= STOPPED_PURE * epsilon


@given(TABLES, TABLES, st.sampled_from([1, 4, 1000]))
def test_pure_trials_never_cost_more(first: list[float], second: list[float], trials: int) -> None:
    one, other = normalised(first), normalised(second)
    epsilon = np.max(np.abs(np.log(one / other)))
    loss = np.max(np.abs(np.log(law(one, trials) / law(other, trials))))
    assert loss <= STOPPED_PURE * epsilon + 1e-9


@pytest.mark.parametrize(("epsilon", "delta", "trials"), [(1.0, 1e-5, 15), (0.1, 1e-6, 60), (10.0, 1e-6, 1)])
def test_the_plan_keeps_the_promise_and_no_larger_rho_does(epsilon: float, delta: float, trials: int) -> None:
    rho, order, inner_order = stopping_budget(epsilon, delta, trials)

    def reached(factor: float, a: float, b: float) -> float:
        return renyi_delta(stopping_renyi(lambda t: t * rho * factor, trials, a, b), a, epsilon)

    assert 0.999 * delta < reached(1.0, order, inner_order) <= delta
    grid = [(1 + a, 1 + b) for a in np.geomspace(0.1, 2000, 60) for b in np.geomspace(0.01, 2000, 60)]
    assert min(reached(1.02, a, b) for a, b in grid) > delta


def test_renyi_delta_is_the_formula() -> None:
    assert math.isclose(
        renyi_delta(0.5, 3.0, 1.0), math.exp(2 * (0.5 - 1.0)) * (2 / 3) ** 3 / 2, rel_tol=1e-12
    )
    assert renyi_delta(1000.0, 50.0, 1.0) == 1.0

"""Composition against closed forms, from the safe side and close to them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from privlearn.accounting import (
    GaussianCurve,
    GaussianObjectiveCurve,
    PureCurve,
    composed_delta,
    renyi_divergence,
)
from privlearn.accounting.compose import pure_renyi


def responses_together(pure: float, times: int, epsilon: float) -> float:
    """Exact hockey-stick divergence of several randomised responses: the number of lies is binomial."""
    lies = np.arange(times + 1)
    lie = 1.0 / (1.0 + math.exp(pure))
    mass, mirrored = stats.binom.pmf(lies, times, lie), stats.binom.pmf(lies, times, 1.0 - lie)
    return float(np.maximum(mass - math.exp(epsilon) * mirrored, 0.0).sum())


@settings(max_examples=40, deadline=None)
@given(st.floats(1e-3, 3.0), st.integers(2, 12), st.floats(0.5, 6.0))
def test_several_gaussians_are_one_gaussian(ratio: float, times: int, deviations: float) -> None:
    together = ratio * math.sqrt(times)
    epsilon = together * deviations
    exact = float(GaussianCurve(together).delta(epsilon))
    for curve in (GaussianCurve(ratio), GaussianObjectiveCurve(ratio, 0.0)):
        assert exact <= composed_delta(curve, times, epsilon) <= exact * (1.0 + 2e-3) + 2e-14


@settings(max_examples=40, deadline=None)
@given(st.floats(1e-3, 3.0), st.integers(2, 12), st.floats(0.05, 1.2))
def test_several_responses_are_binomial(pure: float, times: int, share: float) -> None:
    epsilon = pure * times * share
    exact = responses_together(pure, times, epsilon)
    assert (
        exact * (1.0 - 1e-9)
        <= composed_delta(PureCurve(pure), times, epsilon)
        <= exact * (1.0 + 1e-6) + 2e-14
    )


@pytest.mark.parametrize("slack", [0.01, 0.3])
@pytest.mark.parametrize("times", [2, 5])
def test_slack_costs_in_composition(slack: float, times: int) -> None:
    """More than without it, and no more than slack each on top of the Gaussians (basic composition of the two)."""
    ratio, epsilon = 0.4, 2.0
    delta = composed_delta(GaussianObjectiveCurve(ratio, slack), times, epsilon)
    assert delta > 1.01 * composed_delta(GaussianCurve(ratio), times, epsilon)
    assert delta < composed_delta(GaussianCurve(ratio), times, epsilon - 2.0 * times * slack)


def test_one_mechanism_composes_to_itself() -> None:
    curve = GaussianObjectiveCurve(0.4, 0.1)
    assert composed_delta(curve, 1, 0.9) == float(curve.delta(0.9))


@settings(max_examples=60, deadline=None)
@given(st.floats(1e-3, 5.0), st.floats(1.05, 300.0))
def test_renyi_divergence_of_a_gaussian(ratio: float, order: float) -> None:
    exact = order * ratio**2 / 2.0
    for curve in (GaussianCurve(ratio), GaussianObjectiveCurve(ratio, 0.0)):
        assert exact <= renyi_divergence(curve, order) <= exact * (1.0 + 1e-6)


@settings(max_examples=60, deadline=None)
@given(st.floats(1e-3, 5.0), st.floats(1.05, 100.0))
def test_renyi_divergence_of_a_response(pure: float, order: float) -> None:
    truth = 1.0 / (1.0 + math.exp(-pure))
    powers = [order * math.log(p) + (1.0 - order) * math.log(1.0 - p) for p in (truth, 1.0 - truth)]
    exact = float(np.logaddexp(*powers)) / (order - 1.0)
    assert exact * (1.0 - 1e-12) <= renyi_divergence(PureCurve(pure), order) <= exact * (1.0 + 1e-6)
    assert renyi_divergence(PureCurve(pure), order) <= pure_renyi(pure, order) * (1.0 + 1e-6)


@settings(max_examples=30, deadline=None)
@given(st.floats(0.01, 2.0), st.floats(1e-3, 1.0), st.floats(1.1, 60.0))
def test_renyi_divergence_with_slack_lies_between(ratio: float, slack: float, order: float) -> None:
    """Above the Gaussian's; below the Gaussian's one order higher plus a pure one (weak triangle inequality)."""
    found = renyi_divergence(GaussianObjectiveCurve(ratio, slack), order)
    assert order * ratio**2 / 2.0 < found
    assert found < (order + 1.0) * ratio**2 + 2.0 * slack * order / (order - 1.0)


def test_high_orders_do_not_overflow() -> None:
    """A weak release offered to a ledger of a high order must be priced, so that it can be refused."""
    for free_directions in (0, 1, 2):
        curve = GaussianObjectiveCurve(3.0, 0.1, free_directions)
        assert renyi_divergence(curve, 500.0) > 500.0 * 9.0 / 2.0

"""Composition against closed forms, from the safe side and close to them."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np
import pytest
from flint import arb_poly, ctx
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from privlearn.accounting import (
    Curve,
    GaussianCurve,
    GaussianObjectiveCurve,
    PureCurve,
    compose,
    composition_delta,
    gaussian_ratio,
    pure_renyi,
    renyi_divergence,
)
from privlearn.accounting.compose import _POINTS, _convolve, _dominating_losses
from privlearn.errors import InvalidParameter


def responses_together(pure: float, times: int, epsilon: float) -> float:
    """Return the exact hockey-stick divergence of several randomised responses: the number of lies is binomial."""
    lies = np.arange(times + 1)
    mass = stats.binom.pmf(lies, times, 1.0 / (1.0 + math.exp(pure)))
    losses = pure * times - 2.0 * pure * lies  # at no lie exactly the largest epsilon that the test asks for
    return float((mass * np.maximum(-np.expm1(epsilon - losses), 0.0)).sum())


@settings(max_examples=40, deadline=None)
@given(st.floats(1e-3, 3.0), st.integers(2, 12), st.floats(0.5, 6.0))
def test_several_gaussians_are_one_gaussian(ratio: float, times: int, deviations: float) -> None:
    together = ratio * math.sqrt(times)
    epsilon = together * deviations
    exact = float(GaussianCurve(together).delta(epsilon))
    for curve in (GaussianCurve(ratio), GaussianObjectiveCurve(ratio, 0.0)):
        assert exact * (1.0 - 1e-11) <= composition_delta(curve, times, epsilon) <= exact * (1.0 + 1e-4)


@settings(max_examples=40, deadline=None)
@given(st.floats(1e-3, 3.0), st.integers(2, 12), st.floats(0.05, 1.2))
def test_several_responses_are_binomial(pure: float, times: int, share: float) -> None:
    epsilon = pure * times * share
    exact = responses_together(pure, times, epsilon)
    looser = (
        1e-6 if share < 0.9 else 0.03
    )  # near the largest loss only one atom is left, and the tilt is steep
    bound = composition_delta(PureCurve(pure), times, epsilon)
    assert exact * (1.0 - 1e-9) <= bound <= exact * (1.0 + looser) + 1e-40


TINY = [
    (3, 1.0, 1e-14), (3, 0.01, 1e-15), (3, 20.0, 1e-18), (26, 1.0, 1e-13), (26, 20.0, 1e-9),
    (200, 5.0, 1e-14), (1000, 5.0, 1e-14), (1000, 20.0, 1e-6),
]  # fmt: skip


@pytest.mark.parametrize(("times", "epsilon", "delta"), TINY)
def test_calibrated_noise_keeps_tiny_deltas(times: int, epsilon: float, delta: float) -> None:
    """Without the tilt the true delta was up to 2.2 times the promised one (1,000 classes, 1e-14)."""
    ratio = gaussian_ratio(epsilon, delta, times=times)
    with mpmath.workdps(60):
        e, m = mpmath.mpf(epsilon), mpmath.sqrt(times) * mpmath.mpf(ratio)
        true = mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)
    assert 0.999 * delta < true <= delta


def test_deltas_below_the_grid_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="at least 1e-30"):
        gaussian_ratio(1.0, 1e-40, times=2)


ALL_CURVES = [
    GaussianCurve(0.01),
    GaussianCurve(3.0),
    PureCurve(0.7),
    GaussianObjectiveCurve(0.3, 0.2),
    GaussianObjectiveCurve(0.02, 0.5),
    GaussianObjectiveCurve(0.5, 0.0, True),
    GaussianObjectiveCurve(0.5, 0.1, True),
]


@pytest.mark.parametrize("curve", ALL_CURVES, ids=str)
def test_losses_on_the_grid_dominate_the_curve(curve: Curve) -> None:
    """A law, on both sides of 0, whose curve is that of the mechanism on the grid, where that one is convex at all."""
    gap, masses, infinite = _dominating_losses(curve)
    losses = gap * np.arange(-_POINTS, _POINTS + 1)
    assert (masses >= 0).all()
    assert math.fsum(masses) + infinite == pytest.approx(1.0, abs=1e-12)
    assert math.fsum(masses * np.exp(-losses)) <= 1.0 + 1e-12
    smallest = losses[masses > 1e-12]
    convex = not getattr(curve, "has_open_sign", False)
    for epsilon in np.linspace(0.0 if convex else np.min(np.abs(smallest)), 0.9 * curve.reach(), 40):
        found = infinite + math.fsum(masses * np.maximum(-np.expm1(epsilon - losses), 0.0))
        assert found * (1.0 + 2.0**-38) >= curve.delta(epsilon)
        assert found <= curve.delta(epsilon) * (1.0 + 1e-3) + infinite


@pytest.mark.parametrize("times", [2, 7, 64])
@pytest.mark.parametrize("seed", range(3))
def test_the_transform_errs_by_less_than_is_counted(times: int, seed: int) -> None:
    """Against the same power of a polynomial in 200 bits, wrapped around."""
    rng = np.random.default_rng(seed)
    law, period = np.zeros(2 * _POINTS + 1), 1024
    law[_POINTS - 40 : _POINTS + 41] = rng.exponential(size=81) * np.exp(-rng.uniform(0.0, 30.0, 81))
    law /= law.sum()
    found, counted = _convolve(law, times, period)
    with ctx.workprec(200):
        exact = arb_poly(law[_POINTS - 40 : _POINTS + 41].tolist()) ** times
        wanted = np.zeros(period)
        errors = np.zeros(period)
        for place, value in enumerate(exact.coeffs()):
            wanted[(place - 40 * times) % period] += float(value)
        errors = found - wanted
    assert 1e-19 < np.linalg.norm(errors) < counted < 1e-11


@pytest.mark.parametrize("times", [2, 10])
@pytest.mark.parametrize("half_period", [16, 256])
def test_a_period_too_short_costs_and_never_saves(
    times: int, half_period: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compose, "_half_period", lambda spread, times: half_period)
    for ratio, epsilon in ((0.1, 0.5), (0.5, 1.0), (0.02, 0.3)):
        exact = float(GaussianCurve(ratio * math.sqrt(times)).delta(epsilon))
        assert composition_delta(GaussianCurve(ratio), times, epsilon) >= exact * (1.0 - 1e-11)


def test_the_transforms_error_is_part_of_delta(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = composition_delta(GaussianCurve(0.1), 3, 1.0)

    def worse(law: Any, times: int, period: int) -> tuple[Any, float]:
        sums, error = _convolve(law, times, period)
        return sums, error + 1e-2

    monkeypatch.setattr(compose, "_convolve", worse)
    assert composition_delta(GaussianCurve(0.1), 3, 1.0) > 1.01 * honest


class LeakyResponse(PureCurve):
    """Randomised response that tells everything with a small probability."""

    leak = 1e-3

    def delta(self, epsilon: Any) -> Any:
        at = np.asarray(epsilon, dtype=float)
        return self.leak + (1.0 - self.leak) * super().delta(at)


@pytest.mark.parametrize("times", [2, 5])
def test_losses_without_bound_are_counted(times: int) -> None:
    pure, epsilon, kept = 0.5, 0.6, (1.0 - LeakyResponse.leak) ** times
    exact = 1.0 - kept * (1.0 - responses_together(pure, times, epsilon))
    assert composition_delta(LeakyResponse(pure), times, epsilon) == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize("slack", [0.01, 0.3])
@pytest.mark.parametrize("times", [2, 5])
def test_slack_costs_in_composition(slack: float, times: int) -> None:
    """More than without it, and no more than slack each on top of the Gaussians (basic composition of the two)."""
    ratio, epsilon = 0.4, 2.0
    delta = composition_delta(GaussianObjectiveCurve(ratio, slack), times, epsilon)
    assert delta > 1.01 * composition_delta(GaussianCurve(ratio), times, epsilon)
    assert delta < composition_delta(GaussianCurve(ratio), times, epsilon - 2.0 * times * slack)


def test_one_mechanism_composes_to_itself() -> None:
    curve = GaussianObjectiveCurve(0.4, 0.1)
    assert composition_delta(curve, 1, 0.9) == float(curve.delta(0.9))


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
    exact = float(np.logaddexp(powers[0], powers[1])) / (order - 1.0)
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
    for has_open_sign in (False, True):
        curve = GaussianObjectiveCurve(3.0, 0.1, has_open_sign)
        assert renyi_divergence(curve, 500.0) > 500.0 * 9.0 / 2.0

"""The least noise: enough by arithmetic of fifty digits, and no more than that."""

from __future__ import annotations

from functools import partial

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from privlearn.accounting import (
    MARGIN,
    GaussianObjectiveCurve,
    composition_delta,
    gaussian_ratio,
    ra12_noise_scale,
)
from privlearn.errors import InvalidParameter


def hockey_stick(epsilon: float, ratio: float) -> mpmath.mpf:
    with mpmath.workdps(50):
        e, m = mpmath.mpf(epsilon), mpmath.mpf(ratio)
        return mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)


@settings(max_examples=150, deadline=None)
@given(st.floats(-3.0, 1.3), st.floats(-12.0, -1.0), st.floats(0.0, 0.9))
def test_gaussian_ratio_is_tight_from_the_safe_side(
    log_epsilon: float, log_delta: float, share: float
) -> None:
    epsilon, delta = 10.0**log_epsilon, 10.0**log_delta
    ratio = gaussian_ratio(epsilon, delta, curve=partial(GaussianObjectiveCurve, slack=share * epsilon))
    left = epsilon - share * epsilon
    assert hockey_stick(left, ratio) <= delta
    assert hockey_stick(left, ratio * (1.0 + 1e-6)) > delta


@settings(max_examples=50, deadline=None)
@given(st.floats(-2.0, 1.0), st.floats(-10.0, -1.0))
def test_margin_is_left_for_the_sampler(log_epsilon: float, log_delta: float) -> None:
    """The search itself spends none of it: the promise holds with epsilon and delta reduced by the margin."""
    epsilon, delta = 10.0**log_epsilon, 10.0**log_delta
    divergence = hockey_stick(epsilon * (1.0 - MARGIN), gaussian_ratio(epsilon, delta))
    assert divergence <= delta * (1.0 - MARGIN) * (1.0 + 1e-11)


@pytest.mark.parametrize("times", [2, 3, 10])
@pytest.mark.parametrize(
    ("epsilon", "delta", "slack"), [(0.1, 1e-6, 0.0), (1.0, 1e-8, 0.02), (5.0, 1e-3, 0.1)]
)
def test_ratio_of_several_runs(times: int, epsilon: float, delta: float, slack: float) -> None:
    ratio = gaussian_ratio(epsilon, delta, times=times, curve=partial(GaussianObjectiveCurve, slack=slack))
    assert composition_delta(GaussianObjectiveCurve(ratio, slack), times, epsilon) <= delta
    assert composition_delta(GaussianObjectiveCurve(ratio * (1.0 + 1e-6), slack), times, epsilon) > delta
    if slack == 0.0:
        alone = gaussian_ratio(epsilon, delta)
        assert alone / times**0.5 * (1.0 - 1e-4) < ratio <= alone / times**0.5


def test_numbers_of_the_formula_sheet() -> None:
    """Adult at epsilon 0.1, delta 0.05: RA12 needs 227 in 104 dimensions; 9.0 is enough in any."""
    assert ra12_noise_scale(0.1, 0.05, 2.0, 104) == pytest.approx(227.0, abs=0.5)
    assert 2.0 / gaussian_ratio(0.1, 0.05) == pytest.approx(9.0, abs=0.05)


@settings(max_examples=50, deadline=None)
@given(st.floats(0.01, 10.0), st.floats(1e-9, 0.1), st.floats(0.5, 4.0), st.integers(1, 500))
def test_ra12_bounds_the_norm_of_the_noise(
    epsilon: float, delta: float, sensitivity: float, dimension: int
) -> None:
    """P(privacy loss above epsilon) <= P(|b| > radius) = delta, where the loss is (2 S |b| + S^2) / (2 sigma^2)."""
    sigma = ra12_noise_scale(epsilon, delta, sensitivity, dimension)
    radius = sigma * stats.chi.isf(delta, dimension)
    loss = (2.0 * sensitivity * radius + sensitivity**2) / (2.0 * sigma**2)
    assert loss == pytest.approx(epsilon, rel=1e-9)


@pytest.mark.parametrize(("slack", "times"), [(1.1, 1), (2.0, 1), (0.6, 2)])
def test_slack_that_takes_all_of_epsilon_is_refused(slack: float, times: int) -> None:
    with pytest.raises(InvalidParameter, match="no amount of Gaussian noise"):
        gaussian_ratio(1.0, 1e-6, times=times, curve=partial(GaussianObjectiveCurve, slack=slack))

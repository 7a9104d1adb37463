"""Privacy curves against integrals that know nothing of their formulas."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from privlearn.accounting import (
    Curve,
    FreeGaussianCurve,
    GaussianCurve,
    GaussianObjectiveCurve,
    PureCurve,
    gaussian_epsilon,
)

CURVES = [
    PureCurve(0.3),
    PureCurve(4.0),
    GaussianCurve(0.05),
    GaussianCurve(2.0),
    GaussianObjectiveCurve(0.3, 0.0),
    GaussianObjectiveCurve(0.3, 0.2),
    GaussianObjectiveCurve(2.0, 1.0),
    FreeGaussianCurve(0.3),
    FreeGaussianCurve(2.0),
    GaussianObjectiveCurve(2.0, 0.3, True),
]
SLACKS = st.one_of(st.just(0.0), st.floats(1e-6, 3.0))


@pytest.mark.parametrize("ratio", [0.02, 0.5, 1.0, 3.0])
@pytest.mark.parametrize("epsilon", [-2.0, -0.1, 0.0, 0.3, 1.0, 5.0])
def test_gaussian_curve_is_the_hockey_stick_divergence_of_two_normals(ratio: float, epsilon: float) -> None:
    x = np.linspace(-12.0, 12.0 + ratio, 1_000_001)
    excess = stats.norm.pdf(x, loc=ratio) - math.exp(epsilon) * stats.norm.pdf(x)
    divergence = np.trapezoid(np.maximum(excess, 0.0), x)
    assert GaussianCurve(ratio).delta(epsilon) == pytest.approx(divergence, abs=1e-9)


@pytest.mark.parametrize("ratio", [0.05, 0.7, 2.5])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0, 4.0])
def test_free_gaussian_curve_is_its_integral(ratio: float, epsilon: float) -> None:
    """E max(0, 1 - exp(t - m^2/2 - m |Z|)), Z a standard normal number; never below the curve of a fixed shift."""
    x = np.linspace(0.0, 15.0, 1_000_001)
    share = np.maximum(-np.expm1(epsilon - ratio**2 / 2.0 - ratio * x), 0.0)
    integral = np.trapezoid(share * stats.halfnorm.pdf(x), x)
    curve = FreeGaussianCurve(ratio)
    assert curve.delta(epsilon) == pytest.approx(integral, abs=1e-9)
    assert curve.delta(epsilon) >= GaussianCurve(ratio).delta(epsilon)


@settings(max_examples=150, deadline=None)
@given(
    st.floats(0.05, 3.0),
    st.floats(0.0, math.pi),
    st.floats(0.0, 1.0),
    st.floats(0.5, 1.0),
    st.floats(0.0, 3.0),
)
def test_of_a_record_and_its_replacement_those_on_one_line_are_the_worst(
    ratio: float, angle: float, shorter: float, longer: float, deviations: float
) -> None:
    """Gradients p a + q c with signs of p and q that follow the noise, in the plane of a and c, by quadrature there."""
    half, epsilon = ratio / 2.0, ratio * deviations
    a, c = half * longer * np.array([1.0, 0.0]), half * shorter * np.array([math.cos(angle), math.sin(angle)])
    axis = np.linspace(-9.0, 9.0, 601)
    noise = np.stack(np.meshgrid(axis, axis), axis=-1)
    loss = np.max([v @ v / 2.0 + np.abs(noise @ v) for v in (a + c, a - c)], axis=0)
    density = np.exp(-(noise**2).sum(axis=-1) / 2.0) * 0.03**2 / (2.0 * math.pi)
    exact = float((density * np.maximum(-np.expm1(epsilon - loss), 0.0)).sum())
    assert exact <= float(FreeGaussianCurve(ratio).delta(epsilon)) + 5e-5  # the grid's own error, at a kink


@pytest.mark.parametrize("ratio", [0.1, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("deviations", [0.0, 0.3, 0.6, 1.0, 2.0, 4.0])
def test_delta_falls_as_a_rhombus_opens(ratio: float, deviations: float) -> None:
    """The step of the proof: corners (+-m cos psi, 0), (0, +-m sin psi), delta from the law of the largest loss."""
    epsilon = ratio * deviations
    loss = epsilon + np.linspace(0.0, 40.0, 400_001)

    def delta(opened: float) -> float:
        inside = np.ones_like(loss)
        for corner in (ratio * math.cos(opened), ratio * math.sin(opened)):
            inside *= 2.0 * stats.norm.cdf(np.maximum(loss / corner - corner / 2.0, 0.0)) - 1.0
        return float(np.trapezoid(np.exp(epsilon - loss) * (1.0 - inside), loss))

    deltas = [float(FreeGaussianCurve(ratio).delta(epsilon))]
    deltas += [delta(opened) for opened in np.linspace(0.05, math.pi / 4.0, 9)]
    assert np.all(np.diff(deltas) <= 1e-7)
    assert deltas[-1] < 0.999 * deltas[0]


def gaussian_in_eighty_digits(epsilon: mpmath.mpf, ratio: mpmath.mpf) -> mpmath.mpf:
    half, far = ratio / 2, epsilon / ratio
    return mpmath.ncdf(half - far) - mpmath.exp(epsilon) * mpmath.ncdf(-half - far)


def free_in_eighty_digits(epsilon: mpmath.mpf, ratio: mpmath.mpf) -> mpmath.mpf:
    start = max((epsilon - ratio**2 / 2) / ratio, mpmath.mpf(0))
    return 2 * (mpmath.ncdf(-start) - mpmath.exp(epsilon) * mpmath.ncdf(-start - ratio))


def chord_in_eighty_digits(epsilon: mpmath.mpf, ratio: mpmath.mpf, slack: mpmath.mpf) -> mpmath.mpf:
    corner = gaussian_in_eighty_digits(mpmath.mpf(0), ratio)
    opposite = 1 - mpmath.exp(-slack) + mpmath.exp(-slack) * corner
    share = mpmath.expm1(epsilon + slack) / mpmath.expm1(2 * slack)
    return (1 - share) * opposite + share * corner


RATIOS = st.floats(-12.0, 2.0).map(lambda power: 10.0**power)


@settings(max_examples=400, deadline=None)
@given(
    RATIOS, st.one_of(st.just(0.0), st.floats(0.0, 37.0)), st.booleans(), st.floats(-15.0, 3.0), st.booleans()
)
def test_no_digits_cancel(
    ratio: float, deviations: float, beyond: bool, power: float, any_size: bool
) -> None:
    """Never below eighty digits, and at most 1e-11 above: tiny epsilons, tiny ratios, tiny deltas."""
    epsilon = 10.0**power if any_size else ratio * (deviations + beyond * ratio / 2.0)
    with mpmath.workdps(80):
        at, m = mpmath.mpf(epsilon), mpmath.mpf(ratio)
        pairs: list[tuple[GaussianCurve | FreeGaussianCurve, Any]] = [
            (GaussianCurve(ratio), gaussian_in_eighty_digits(at, m)),
            (FreeGaussianCurve(ratio), free_in_eighty_digits(at, m)),
        ]
        for curve, true in pairs:
            if true > 1e-290:
                assert 0 <= mpmath.mpf(float(curve.delta(epsilon))) / true - 1 < 1e-11


@settings(max_examples=100, deadline=None)
@given(RATIOS, st.floats(-9.0, 0.0), st.floats(0.0, 0.999999))
def test_no_digits_cancel_on_the_chord(ratio: float, power: float, share: float) -> None:
    slack = 10.0**power
    with mpmath.workdps(80):
        true = chord_in_eighty_digits(mpmath.mpf(share * slack), mpmath.mpf(ratio), mpmath.mpf(slack))
        found = mpmath.mpf(float(GaussianObjectiveCurve(ratio, slack).delta(share * slack)))
        assert 0 <= found / true - 1 < 1e-11


@pytest.mark.parametrize(("ratio", "delta"), [(1e-12, 1e-15), (1e-9, 1e-12), (0.3, 1e-6), (5.0, 1e-3)])
def test_epsilon_of_given_noise_is_rounded_upwards(ratio: float, delta: float) -> None:
    epsilon = gaussian_epsilon(ratio, delta)
    assert GaussianCurve(ratio).delta(epsilon) <= delta
    assert GaussianCurve(ratio).delta(epsilon * (1.0 - 1e-9)) > delta


@pytest.mark.parametrize("pure", [0.01, 1.0, 6.0])
@pytest.mark.parametrize("epsilon", [-7.0, -0.5, 0.0, 0.5, 0.999, 1.0, 5.0, 7.0])
def test_pure_curve_is_that_of_randomised_response(pure: float, epsilon: float) -> None:
    truth = 1.0 / (1.0 + math.exp(-pure))
    answers = ((truth, 1.0 - truth), (1.0 - truth, truth))
    divergence = sum(max(0.0, p - math.exp(epsilon) * q) for p, q in answers)
    assert PureCurve(pure).delta(epsilon) == pytest.approx(divergence, abs=1e-13)


@settings(max_examples=200, deadline=None)
@given(st.floats(1e-3, 8.0), SLACKS)
def test_objective_curve_is_a_privacy_curve(ratio: float, slack: float) -> None:
    """Non-increasing and convex in exp(epsilon), chord and corners included; at least max(0, 1 - exp(epsilon))."""
    curve = GaussianObjectiveCurve(ratio, slack)
    reach = min(curve.reach(), 20.0)
    points = np.concatenate([np.linspace(-reach, reach, 301), slack * np.linspace(-1.0, 1.0, 21)])
    at = np.unique(np.exp(np.round(points, 12)))
    epsilon = np.log(at)
    delta = curve.delta(epsilon)
    rounding = 1e-12 / np.diff(at)
    slopes = np.diff(delta) / np.diff(at)
    assert (slopes <= rounding).all()
    assert (np.diff(slopes) >= -(rounding[1:] + rounding[:-1])).all()
    assert (delta >= np.maximum(0.0, -np.expm1(epsilon)) - 1e-14).all()


@settings(max_examples=100, deadline=None)
@given(st.floats(1e-3, 8.0), SLACKS, st.floats(0.0, 10.0))
def test_objective_curve_holds_in_both_directions(ratio: float, slack: float, epsilon: float) -> None:
    curve = GaussianObjectiveCurve(ratio, slack)
    mirrored = -math.expm1(-epsilon) + math.exp(-epsilon) * curve.delta(epsilon)
    assert curve.delta(-epsilon) == pytest.approx(mirrored, abs=1e-12)  # each is rounded upwards


@settings(max_examples=100, deadline=None)
@given(st.floats(1e-3, 8.0), st.floats(1e-6, 3.0), st.floats(0.0, 10.0))
def test_slack_shifts_the_gaussian_curve(ratio: float, slack: float, beyond: float) -> None:
    shifted = GaussianObjectiveCurve(ratio, slack).delta(slack + beyond)
    assert shifted == pytest.approx(float(GaussianCurve(ratio).delta(beyond)), rel=1e-6, abs=1e-15)
    assert shifted > 0 or beyond > 30 * ratio


@pytest.mark.parametrize("curve", CURVES, ids=str)
def test_logarithm_agrees_with_the_curve(curve: Curve) -> None:
    epsilon = np.linspace(0.0, 0.99 * curve.reach(), 101)
    assert np.exp(curve.log_delta(epsilon)) == pytest.approx(curve.delta(epsilon), rel=1e-8, abs=1e-14)


def test_logarithm_reaches_where_the_curve_underflows() -> None:
    curve = GaussianCurve(1.0)
    assert curve.delta(60.0) == 0.0
    tail = stats.norm.logsf(59.5)  # the first term of the divergence; the second takes about 1/60 of it away
    assert tail - 10.0 < curve.log_delta(60.0) < tail


@pytest.mark.parametrize("curve", CURVES, ids=str)
@pytest.mark.parametrize("order", [0.0, 5.0])
def test_nothing_happens_beyond_reach(curve: Curve, order: float) -> None:
    epsilon = np.linspace(0.0, curve.reach(order), 1001)
    heights = order * epsilon + curve.log_delta(epsilon)
    assert heights[-1] < np.max(heights) + math.log(1e-28)


@pytest.mark.parametrize(
    ("ratio", "other_ratio", "epsilon"), [(0.3, 0.3, 0.2), (0.1, 0.5, 0.05), (1.0, 0.1, 2.0)]
)
def test_second_noise_is_covered_wherever_the_first_leads(
    ratio: float, other_ratio: float, epsilon: float
) -> None:
    """The largest of 0 and the first loss, cut there, and a second noise that shifts as far as it may."""
    z, width = np.linspace(-9.0, 9.0, 1801, retstep=True)
    weights = np.exp(-(z**2) / 2.0) * width / math.sqrt(2.0 * math.pi)
    first = np.maximum(ratio**2 / 2.0 + ratio * z, 0.0)[:, np.newaxis]
    costs = np.maximum(-np.expm1(epsilon - first - other_ratio**2 / 2.0 - other_ratio * z), 0.0)
    exact = float(weights @ costs @ weights)
    curve = GaussianObjectiveCurve(ratio, 0.0, other_ratio=other_ratio)
    assert exact * (1.0 - 1e-4) <= float(curve.delta(epsilon)) <= 2.0 * exact
    assert math.exp(curve.log_delta(epsilon)) == pytest.approx(float(curve.delta(epsilon)), rel=1e-9)
    joint = float(GaussianCurve(math.hypot(ratio, other_ratio)).delta(epsilon))
    assert (joint < exact) == (epsilon < 1.0)  # the cut costs something where the second noise is not small


@pytest.mark.parametrize(
    ("ratio", "other_ratio", "epsilon"), [(0.3, 0.3, 0.2), (0.8, 0.4, 0.1), (1.0, 0.1, 2.0)]
)
def test_second_noise_beside_a_free_direction(ratio: float, other_ratio: float, epsilon: float) -> None:
    z, width = np.linspace(-9.0, 9.0, 1801, retstep=True)
    weights = np.exp(-(z**2) / 2.0) * width / math.sqrt(2.0 * math.pi)
    x = np.linspace(0.0, 9.0, 1801) + 0.0025
    density = stats.halfnorm.pdf(x)
    loss = (ratio**2 + other_ratio**2) / 2.0 + ratio * x[:, np.newaxis] + other_ratio * z
    exact = float(density @ np.maximum(-np.expm1(epsilon - loss), 0.0) @ weights) * 0.005
    found = float(GaussianObjectiveCurve(ratio, 0.0, True, other_ratio=other_ratio).delta(epsilon))
    assert exact * (1.0 - 1e-2) <= found <= min(1.3 * exact, 1.0)


def test_curve_of_many_corners_is_never_above_one() -> None:
    curve = GaussianObjectiveCurve(1.0, 0.1, corners=81)
    at = np.linspace(0.2, 12.0, 200)
    assert curve.delta(0.2) == 1.0
    assert np.all(np.diff(curve.delta(at)) <= 0.0)
    assert np.all(curve.delta(-at) <= 1.0)
    assert np.exp(curve.log_delta(at)) == pytest.approx(curve.delta(at), rel=1e-9)

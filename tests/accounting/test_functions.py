"""The functions that promises are recomputed with, against forty digits."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np
import pytest

from privlearn.accounting import GaussianCurve, gaussian_epsilon, renyi_divergence
from privlearn.accounting.functions import (
    binomial_chances,
    erfcx,
    integral,
    log_norm_tail,
    minimum,
    norm_tail_point,
    normal_tail,
    normal_tail_point,
    root,
)

DIGITS = 40


def test_erfcx_is_good_to_a_few_units_in_the_last_place() -> None:
    places = np.concatenate([np.linspace(-3.0, 12.0, 400), np.geomspace(1e-9, 60.0, 100)])
    with mpmath.workdps(DIGITS):
        true = [mpmath.exp(mpmath.mpf(x) ** 2) * mpmath.erfc(x) for x in places.tolist()]
        errors = [abs(found / value - 1) for found, value in zip(erfcx(places).tolist(), true, strict=True)]
    assert max(errors) < 2.0**-49


def test_erfcx_far_out() -> None:
    assert erfcx(1e8) == pytest.approx(1.0 / (1e8 * math.sqrt(math.pi)), rel=1e-15)
    assert erfcx(math.inf) == 0.0
    assert erfcx(0.0) == pytest.approx(1.0, rel=1e-15)


@pytest.mark.parametrize("x", [0.0, 1.0, 5.0, 30.0])
def test_normal_tails(x: float) -> None:
    with mpmath.workdps(DIGITS):
        log_tail = float(mpmath.log(mpmath.erfc(x / mpmath.sqrt(2)) / 2))
    assert math.log(normal_tail(x)) == pytest.approx(log_tail, rel=1e-14)
    assert normal_tail_point(log_tail) == pytest.approx(x, rel=1e-13, abs=1e-14)


@pytest.mark.parametrize("dimension", [1, 2, 3, 14, 15, 1000, 1001])
@pytest.mark.parametrize("probability", [0.3, 1e-6, 1e-40])
def test_norms_of_normal_vectors(dimension: int, probability: float) -> None:
    length = norm_tail_point(probability, dimension)
    with mpmath.workdps(DIGITS):
        half = mpmath.mpf(length) ** 2 / 2
        true = mpmath.gammainc(mpmath.mpf(dimension) / 2, half, regularized=True)
        assert float(mpmath.log(true)) == pytest.approx(math.log(probability), rel=1e-11)
        assert log_norm_tail(length, dimension) == pytest.approx(float(mpmath.log(true)), rel=1e-12)


def test_a_ball_without_extent_holds_nothing() -> None:
    assert log_norm_tail(0.0, 3) == log_norm_tail(0.0, 4) == 0.0


@pytest.mark.parametrize(("times", "log_odds"), [(1, 0.1), (10, 1.0), (2000, 0.02)])
def test_binomial_chances(times: int, log_odds: float) -> None:
    found = binomial_chances(times, log_odds)
    with mpmath.workdps(DIGITS):
        share = 1 / (1 + mpmath.exp(-mpmath.mpf(log_odds)))
        for successes in range(0, times + 1, max(1, times // 20)):
            true = mpmath.binomial(times, successes) * share**successes * (1 - share) ** (times - successes)
            assert found[successes] == pytest.approx(float(true), rel=1e-11, abs=1e-290)


@pytest.mark.parametrize(
    ("function", "low", "high", "place"),
    [
        (lambda x: math.cos(x) - x, 0.0, 1.0, 0.7390851332151607),
        (lambda x: math.exp(x) - 1e-5, -700.0, 5.0, math.log(1e-5)),
        (lambda x: x**3, -1.0, 4.0, 0.0),
        (lambda x: 1.0 - x, 1.0, 2.0, 1.0),
        (lambda x: -1.0 if x < 0.25 else 1.0, 0.0, 1.0, 0.25),
    ],
)
def test_roots(function, low: float, high: float, place: float) -> None:  # type: ignore[no-untyped-def]
    assert root(function, low, high, xtol=1e-12) == pytest.approx(place, rel=1e-14, abs=2e-12)


def test_a_function_that_keeps_its_sign_has_no_root() -> None:
    with pytest.raises(ValueError, match="same sign"):
        root(lambda x: x + 2.0, 0.0, 1.0)


def test_the_least_value_may_be_at_an_end() -> None:
    assert minimum(lambda x: (x - 1.3) ** 2 + 2.0, -5.0, 10.0, xtol=1e-4) == pytest.approx(2.0, abs=1e-8)
    assert minimum(lambda x: x, 1.0, 2.0, xtol=1e-3) == 1.0


def test_integrals_of_peaks_and_of_corners() -> None:
    value, error = integral(lambda t: np.exp(-np.abs(t - 1.0) * 500.0), 0.0, 3.0, 1e-10)
    assert value == pytest.approx(2.0 / 500.0, rel=1e-9)
    assert error < 1e-9
    value, error = integral(lambda t: np.where(t < math.sqrt(2.0), 1.0, 0.0), 0.0, 2.0, 1e-8)
    assert abs(value - math.sqrt(2.0)) <= error + 1e-8


def test_an_integral_ends_where_rounding_keeps_it_from_its_precision() -> None:
    def noisy(x: Any) -> Any:  # a narrow peak, known to nine digits
        return np.exp(-((x - 0.5) ** 2) * 1e8) * (1.0 + 1e-9 * np.sin(1e14 * x))

    value, error = integral(noisy, 0.0, 1.0, 1e-14)
    assert abs(value - math.sqrt(math.pi) * 1e-4) <= max(error, 1e-12)
    assert error < 1e-10
    assert integral(lambda x: np.where(x > 0.5, np.inf, 1.0), 0.0, 1.0, 1e-8) == (math.inf, 0.0)


def test_a_high_order_is_bounded_from_above_in_bounded_time() -> None:
    for ratio, order in ((5.0, 1024.0), (30.0, 256.0)):
        assert (
            order * ratio**2 / 2.0
            <= renyi_divergence(GaussianCurve(ratio), order)
            <= 1.0001 * order * ratio**2
        )


@pytest.mark.parametrize("delta", [1e-40, 1e-200, 1e-300])
def test_the_epsilon_of_a_tiny_delta(delta: float) -> None:
    for ratio in (0.01, 1.0, 30.0):
        found = gaussian_epsilon(ratio, delta)
        assert GaussianCurve(ratio).delta(found) <= delta < GaussianCurve(ratio).delta(0.999 * found)

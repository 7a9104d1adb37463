"""Functions that promises are recomputed with, in numpy alone: whoever only verifies a release installs no scipy.

Each is as accurate as scipy's; the tests hold them to forty digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from privlearn.arrays import Array

Function = Callable[[float], float]


def _weideman(terms: int) -> tuple[float, list[float]]:
    """A length L and the coefficients, highest first, of a polynomial in (L - x) / (L + x): Weideman 1994."""
    length = math.sqrt(terms / math.sqrt(2.0))
    nodes = length * np.tan(np.arange(1 - 2 * terms, 2 * terms) * math.pi / (4 * terms))
    values = np.append(0.0, np.exp(-(nodes**2)) * (length**2 + nodes**2))
    waves = np.real(np.fft.fft(np.fft.fftshift(values))) / len(values)
    return length, waves[terms:0:-1].tolist()


_LENGTH, _COEFFICIENTS = _weideman(40)  # more terms gain no digit


def erfcx(x: ArrayLike) -> Any:
    """exp(x^2) erfc(x), with a relative error below 2^-49 for x >= 0, and x^2 2^-52 more below, where exp has it."""
    at = np.asarray(x, dtype=float)
    share = 1.0 / (_LENGTH + np.abs(at))
    place: Any = 2.0 * _LENGTH * share - 1.0
    if at.ndim == 0:
        place = float(place)  # the same digits in a fortieth of the time
    series: Any = 0.0
    for coefficient in _COEFFICIENTS:
        series = series * place + coefficient
    right = share * (2.0 * share * series + 1.0 / math.sqrt(math.pi))
    if np.all(at >= 0.0):
        return right
    return np.where(at < 0.0, 2.0 * np.exp(np.minimum(at, 0.0) ** 2) - right, right)


def normal_tail(x: float) -> float:
    """P(Z > x) of a standard normal number."""
    return math.erfc(x / math.sqrt(2.0)) / 2.0


def normal_tail_point(log_probability: float) -> float:
    """The x >= 0 beyond which a standard normal number has this probability, of which the logarithm is given."""

    def excess(x: float) -> float:
        return math.log(float(erfcx(x / math.sqrt(2.0))) / 2.0) - x**2 / 2.0 - log_probability

    return root(excess, 0.0, math.sqrt(-2.0 * log_probability), xtol=1e-15)


def log_norm_tail(length: float, dimension: int) -> float:
    """log P(|Z| > length) of a standard normal vector: sums of positive terms, so no digits cancel."""
    half = length**2 / 2.0
    odd = dimension % 2
    powers: Array = np.arange(dimension // 2, dtype=float) + odd / 2.0
    logs = -half + powers * np.log(max(half, _TINY)) - _log_gamma(powers + 1.0)
    if odd:
        logs = np.append(logs, math.log(max(math.erfc(math.sqrt(half)), _TINY)))
    return min(float(np.logaddexp.reduce(logs)), 0.0)


def _log_gamma(x: Array) -> Array:
    """Logarithm of the gamma function: Stirling's series, whose next term is below 2^-53 from 16 on."""
    large = np.maximum(x, 16.0)
    square = large**-2.0
    series = (1.0 / 12.0 - square * (1.0 / 360.0 - square * (1.0 / 1260.0 - square / 1680.0))) / large
    logs = (large - 0.5) * np.log(large) - large + math.log(2.0 * math.pi) / 2.0 + series
    few = np.flatnonzero(x < 16.0)
    logs[few] = [math.lgamma(number) for number in x[few]]
    return logs


_TINY = float(np.finfo(float).tiny)


def norm_tail_point(probability: float, dimension: int) -> float:
    """The length that a standard normal vector exceeds with this probability."""
    most = math.sqrt(dimension) + math.sqrt(
        -2.0 * math.log(probability)
    )  # a norm moves no faster than its vector
    return root(lambda length: log_norm_tail(length, dimension) - math.log(probability), 0.0, most)


def binomial_chances(times: int, log_odds: float) -> Array:
    """P(Binomial = 0, 1, ..., times): ratios of neighbours multiplied up from the likeliest, over the sum of all."""
    successes = np.arange(times)
    ratios = np.log((times - successes) / (successes + 1.0)) + log_odds
    likeliest = int(np.sum(ratios > 0.0))
    below, above = -np.cumsum(ratios[:likeliest][::-1])[::-1], np.cumsum(ratios[likeliest:])
    weights = np.exp(np.concatenate([below, [0.0], above]))
    return np.asarray(weights / np.sum(weights))


def root(
    function: Function, low: float, high: float, *, xtol: float = 2e-12, rtol: float = 2.0**-50
) -> float:
    """Where a function that changes its sign between two ends is 0, within xtol + rtol |x|: Chandrupatla 1997.

    The last step lies between the ends of an interval that halves at least every other time.
    """
    last, other = low, high
    at_last, at_other = function(last), function(other)
    if at_last * at_other > 0.0:
        raise ValueError("the function has the same sign at both ends")
    step = 0.5
    while True:
        best, at_best = (last, at_last) if abs(at_last) < abs(at_other) else (other, at_other)
        least = (xtol + rtol * abs(best)) / abs(other - last) if other != last else 1.0
        if at_best == 0.0 or least > 0.5:
            return best
        x = last + min(max(step, least), 1.0 - least) * (other - last)
        at_x = function(x)
        if (at_x > 0.0) == (at_last > 0.0):
            third, at_third = last, at_last
        else:
            third, at_third, other, at_other = other, at_other, last, at_last
        last, at_last = x, at_x
        step = _interpolated((last, at_last), (other, at_other), (third, at_third))


def _interpolated(last: tuple[float, float], other: tuple[float, float], third: tuple[float, float]) -> float:
    """How far to go from the last place to the other: along a parabola on its side where that is safe, else half."""
    (a, at_a), (b, at_b), (c, at_c) = last, other, third
    if at_b == at_c or at_a == at_c:
        return 0.5
    along, up = (a - b) / (c - b), (at_a - at_b) / (at_c - at_b)
    if not (up**2 < along and (1.0 - up) ** 2 < 1.0 - along):
        return 0.5
    return at_a / (at_b - at_a) * at_c / (at_b - at_c) + (c - a) / (b - a) * at_a / (at_c - at_a) * at_b / (
        at_c - at_b
    )


_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0


def least(function: Function, low: float, high: float, *, xtol: float) -> float:
    """The least value of a function that falls, then rises, by golden section; the ends count."""
    ends = min(function(low), function(high))
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_left, at_right = function(left), function(right)
    while high - low > xtol:
        if at_left < at_right:
            high, right, at_right = right, left, at_left
            left = high - _GOLDEN * (high - low)
            at_left = function(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + _GOLDEN * (high - low)
            at_right = function(right)
    return min(ends, at_left, at_right)


_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(12)
_PIECES, _MOST_PIECES = 100, 4096


def integral(
    function: Callable[[Array], Array], low: float, high: float, precision: float
) -> tuple[float, float]:
    """Of a function >= 0 of arrays: the value, and an estimate of its error; infinite if the function is.

    Gauss and Legendre's rule on pieces; those are halved on which it disagrees with itself on their halves. Rounding
    may keep it from agreeing anywhere: beyond so many pieces what they disagree by is error.
    """
    widths: Array = np.full(_PIECES, (high - low) / _PIECES)
    starts = low + widths * np.arange(_PIECES)
    whole = np.nan_to_num(_by_pieces(function, starts, widths))
    value = error = 0.0
    while True:
        widths = widths / 2.0
        halves = np.array([_by_pieces(function, begin, widths) for begin in (starts, starts + widths)])
        if not np.all(np.isfinite(halves)):
            return math.inf, 0.0
        errors = np.abs(np.sum(halves, axis=0) - whole)
        done = errors <= precision * (value + np.sum(halves)) * widths / (high - low)
        if len(widths) > _MOST_PIECES:
            done[:] = True
        value, error = value + float(np.sum(halves[:, done])), error + float(np.sum(errors[done]))
        if np.all(done):
            return value, error
        starts, widths = np.append(starts[~done], (starts + widths)[~done]), np.tile(widths[~done], 2)
        whole = halves[:, ~done].ravel()


def _by_pieces(function: Callable[[Array], Array], starts: Array, widths: Array) -> Array:
    places = starts[:, np.newaxis] + widths[:, np.newaxis] * (1.0 + _NODES) / 2.0
    return np.asarray(widths / 2.0 * (function(places.ravel()).reshape(places.shape) @ _WEIGHTS))

"""Special functions, root finding and integration in numpy alone: a release can be verified without scipy.

Each function is as accurate as scipy's; the tests compare them with forty digits.
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
    """Return a length L and coefficients, highest first, with which `erfcx` evaluates its series (Weideman 1994).

    The series is a polynomial in (L - x) / (L + x), which maps x >= 0 to (-1, 1]; its coefficients are Fourier
    coefficients of a function on the circle, computed by one FFT.
    """
    length = math.sqrt(terms / math.sqrt(2.0))
    nodes = length * np.tan(np.arange(1 - 2 * terms, 2 * terms) * math.pi / (4 * terms))
    values = np.append(0.0, np.exp(-(nodes**2)) * (length**2 + nodes**2))
    waves = np.real(np.fft.fft(np.fft.fftshift(values))) / len(values)
    return length, waves[terms:0:-1].tolist()


_LENGTH, _COEFFICIENTS = _weideman(40)  # more terms gain no digit


def erfcx(x: ArrayLike) -> Any:
    """Return exp(x^2) erfc(x), with a relative error below 2^-49 for x >= 0, and x^2 2^-52 more below."""
    points = np.asarray(x, dtype=float)
    share = 1.0 / (_LENGTH + np.abs(points))
    position: Any = 2.0 * _LENGTH * share - 1.0  # (L - |x|) / (L + |x|)
    if points.ndim == 0:
        position = float(position)  # the same digits in a fortieth of the time
    series: Any = 0.0
    for coefficient in _COEFFICIENTS:
        series = series * position + coefficient
    right = share * (2.0 * share * series + 1.0 / math.sqrt(math.pi))
    if np.all(points >= 0.0):
        return right
    # erfc(-x) = 2 - erfc(x) gives the left half from the right one.
    return np.where(points < 0.0, 2.0 * np.exp(np.minimum(points, 0.0) ** 2) - right, right)


def normal_tail(x: float) -> float:
    """Return P(Z > x) of a standard normal number."""
    return math.erfc(x / math.sqrt(2.0)) / 2.0


def normal_tail_point(log_probability: float) -> float:
    """Return the x >= 0 that a standard normal number exceeds with a probability given by its logarithm.

    >>> round(normal_tail_point(math.log(0.025)), 4)
    1.96
    """

    def excess(x: float) -> float:
        return math.log(float(erfcx(x / math.sqrt(2.0))) / 2.0) - x**2 / 2.0 - log_probability

    return root(excess, 0.0, math.sqrt(-2.0 * log_probability), xtol=1e-15)


def log_norm_tail(length: float, dimension: int) -> float:
    """Return log P(|Z| > length) of a standard normal vector: sums of positive terms, so no digits cancel."""
    half = length**2 / 2.0
    odd = dimension % 2
    powers: Array = np.arange(dimension // 2, dtype=float) + odd / 2.0
    logs = -half + powers * np.log(max(half, _TINY)) - _log_gamma(powers + 1.0)
    if odd:
        logs = np.append(logs, math.log(max(math.erfc(math.sqrt(half)), _TINY)))
    return min(float(np.logaddexp.reduce(logs)), 0.0)


def _log_gamma(x: Array) -> Array:
    """Return the logarithm of the gamma function: Stirling's series, whose next term is below 2^-53 from 16 on."""
    large = np.maximum(x, 16.0)
    square = large**-2.0
    series = (1.0 / 12.0 - square * (1.0 / 360.0 - square * (1.0 / 1260.0 - square / 1680.0))) / large
    logs = (large - 0.5) * np.log(large) - large + math.log(2.0 * math.pi) / 2.0 + series
    few = np.flatnonzero(x < 16.0)
    logs[few] = [math.lgamma(number) for number in x[few]]
    return logs


_TINY = float(np.finfo(float).tiny)


def norm_tail_point(probability: float, dimension: int) -> float:
    """Return the length that a standard normal vector exceeds with this probability."""
    upper = math.sqrt(dimension) + math.sqrt(-2.0 * math.log(probability))  # the norm is 1-Lipschitz
    return root(lambda length: log_norm_tail(length, dimension) - math.log(probability), 0.0, upper)


def binomial_chances(times: int, log_odds: float) -> Array:
    """Return P(Binomial = 0, 1, ..., times): ratios of neighbours, multiplied from the likeliest, then normalised."""
    successes = np.arange(times)
    ratios = np.log((times - successes) / (successes + 1.0)) + log_odds
    # Counted from the likeliest outcome, no weight exceeds 1: weights may underflow, but not overflow.
    likeliest = int(np.sum(ratios > 0.0))
    below, above = -np.cumsum(ratios[:likeliest][::-1])[::-1], np.cumsum(ratios[likeliest:])
    weights = np.exp(np.concatenate([below, [0.0], above]))
    return np.asarray(weights / np.sum(weights))


def root(
    function: Function, low: float, high: float, *, xtol: float = 2e-12, rtol: float = 2.0**-50
) -> float:
    """Return the zero of a function that changes its sign between two ends, to xtol + rtol |x| (Chandrupatla 1997).

    The interval between ``last``, the newest point, and ``other`` always contains the zero; ``third`` is the point that
    left it last. The interval halves at least every other step.

    >>> round(root(lambda x: x**2 - 2.0, 0.0, 2.0), 10)
    1.4142135624
    """
    last, other = low, high
    at_last, at_other = function(last), function(other)
    if at_last * at_other > 0.0:
        raise ValueError("the function has the same sign at both ends")
    step = 0.5
    while True:
        best, at_best = (last, at_last) if abs(at_last) < abs(at_other) else (other, at_other)
        min_step = (xtol + rtol * abs(best)) / abs(other - last) if other != last else 1.0
        if at_best == 0.0 or min_step > 0.5:
            return best
        x = last + min(max(step, min_step), 1.0 - min_step) * (other - last)
        at_x = function(x)
        if (at_x > 0.0) == (at_last > 0.0):  # the zero is between x and the other end, which stays
            third, at_third = last, at_last
        else:
            third, at_third, other, at_other = other, at_other, last, at_last
        last, at_last = x, at_x
        step = _interpolate((last, at_last), (other, at_other), (third, at_third))


def _interpolate(last: tuple[float, float], other: tuple[float, float], third: tuple[float, float]) -> float:
    """Return where to evaluate next, as a share of the way from the last point to the other.

    The zero of the inverse parabola through the three points, or a half where the parabola is not monotone between them
    (Chandrupatla's criterion).
    """
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


def minimum(function: Function, low: float, high: float, *, xtol: float) -> float:
    """Return the smallest value of a unimodal function by golden section search, the ends included."""
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


_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(12)  # of one piece of an integral
_PIECES, _MAX_PIECES = 100, 4096


def integral(
    function: Callable[[Array], Array], low: float, high: float, precision: float
) -> tuple[float, float]:
    """Return the integral of a function >= 0 of arrays and an estimate of its error; infinite if the function is.

    Gauss-Legendre on pieces; a piece is halved while the rule disagrees with itself on the two halves. Rounding may
    prevent agreement: beyond `_MAX_PIECES` the disagreement is counted as error.
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
        if len(widths) > _MAX_PIECES:
            done[:] = True
        value, error = value + float(np.sum(halves[:, done])), error + float(np.sum(errors[done]))
        if np.all(done):
            return value, error
        starts, widths = np.append(starts[~done], (starts + widths)[~done]), np.tile(widths[~done], 2)
        whole = halves[:, ~done].ravel()


def _by_pieces(function: Callable[[Array], Array], starts: Array, widths: Array) -> Array:
    """Return the Gauss-Legendre rule's integral over each piece, an array of the shape of ``starts``."""
    points = starts[:, np.newaxis] + widths[:, np.newaxis] * (1.0 + _NODES) / 2.0
    return np.asarray(widths / 2.0 * (function(points.ravel()).reshape(points.shape) @ _WEIGHTS))

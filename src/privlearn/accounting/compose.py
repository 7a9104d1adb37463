"""Composition: the joint cost of several mechanisms on the same data, as delta or as a Renyi divergence.

Then conversions to (epsilon, delta): from Renyi divergences, zCDP, pure epsilon and Gaussian noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privlearn.accounting.curves import Curve, GaussianCurve, log_or_minus_infinity
from privlearn.accounting.functions import binomial_chances, integral, root
from privlearn.arrays import Array

_POINTS = 5000  # multiples of the gap above 0 on the grid of losses, and as many below
_PRECISION = 1e-8  # relative, of an integral
_UNIT = 2.0**-53  # unit roundoff of doubles
_ROUNDING = 2.0**-38
"""Relative error of one mechanism's losses: two roundings for each of `_POINTS` differences, which may add up."""
_STEEPEST = 700.0  # exponents beyond it overflow


def composition_delta(curve: Curve, times: int, epsilon: float) -> float:
    """Return a bound on delta(epsilon) >= 0 of ``times`` mechanisms with independent noise, each with the given curve.

    **Theorem** (docs/theory/composition.md). The losses of `_dominating_losses` dominate every mechanism with this
    curve, so the sum of ``times`` independent ones dominates all together. Its distribution is computed by a Fourier
    transform of the tilted distribution, in which losses near epsilon are typical and not rare. Truncation and rounding
    are added to the result, which is an upper bound even for deltas far below the resolution of a transform.
    """
    if times == 1:
        return float(curve.delta(epsilon))
    if curve.reach() > _STEEPEST * _POINTS:
        return 1.0  # the grid would be coarser than any number: no guarantee
    gap, masses, infinite = _dominating_losses(curve)
    lost = -math.expm1(times * math.log1p(-infinite))
    return min(1.0, lost + _finite_part(gap, masses, times, epsilon))


def _dominating_losses(curve: Curve) -> tuple[float, Array, float]:
    """Return a gap, the masses at its multiples from -_POINTS to _POINTS, and the mass at infinity.

    The privacy curve of these losses is nowhere below the given one. On the grid the two are equal, and between its
    points it is the chord ("connect the dots", Doroshenko et al. 2022). Masses at negative losses mirror those at
    positive ones. If the masses would exceed 1, those at the smallest losses are left out: the chord across 0 is still
    a bound.
    """
    gap = curve.reach() / _POINTS
    steps = np.arange(_POINTS + 1)
    # A curve is non-increasing; where rounding lets it rise, a mass would be negative.
    deltas = np.minimum.accumulate(curve.delta(steps * gap))
    falls = -np.diff(deltas) / math.expm1(gap)  # slopes of the chords in exp(loss), times exp(loss)
    positive = np.maximum(np.exp(gap) * falls - np.append(falls[1:], 0.0), 0.0)
    both = positive * (1.0 + np.exp(-gap * steps[1:]))
    larger = np.append(np.cumsum(both[::-1])[::-1][1:], 0.0)
    # What is left for a loss and its mirror image after all larger ones.
    left = np.maximum(1.0 - deltas[-1] - larger, 0.0)
    positive = positive * np.minimum(1.0, left / np.maximum(both, np.finfo(float).tiny))
    negative = positive * np.exp(-gap * steps[1:])
    centre = max(1.0 - deltas[-1] - float(np.sum(positive) + np.sum(negative)), 0.0)
    return gap, np.concatenate([negative[::-1], [centre], positive]), float(deltas[-1])


def _finite_part(gap: float, masses: Array, times: int, epsilon: float) -> float:
    """Return an upper bound of E max(0, 1 - exp(epsilon - sum of ``times`` losses)) over finite losses."""
    losses: Array = gap * np.arange(-_POINTS, _POINTS + 1.0)
    max_sum = times * float(losses[-1])
    if max_sum <= epsilon:
        return 0.0
    tilt, log_moment, deviation = _tilt(masses, losses, epsilon / times)
    half = _half_period(12.0 * math.sqrt(times) * deviation / gap, times)
    # Sums below epsilon do not count: the positive part of 1 - exp(epsilon - sum) is 0 there.
    first = math.floor(epsilon / gap)
    top = gap * (first + half)
    above = np.maximum(gap * np.arange(first, first + half) - epsilon, 0.0) + 4.0 * _UNIT * top
    weights = np.exp(-tilt * above) * -np.expm1(-above)
    sums, error = _convolve(masses * np.exp(tilt * losses - log_moment), times, 2 * half)
    # A transform returns tiny negative numbers where a probability is 0.
    chances = np.maximum(sums[np.arange(first, first + half) % (2 * half)], 0.0)
    # Cauchy-Schwarz: an error of this length moves the weighted sum by at most its product with the weights' length.
    bound = float(np.sum(weights * chances)) + error * _length(weights)
    bound *= math.exp(times * log_moment - tilt * epsilon)
    steepest = tilt
    if top <= max_sum:  # sums beyond the period, by Chernoff's bound
        steepest, log_moment, _ = _tilt(masses, losses, top / times)
        bound += math.exp(min(times * log_moment - steepest * top, 0.0))
    exponents = 16.0 * _UNIT * max(tilt, steepest) * max_sum
    return bound * math.exp(times * _ROUNDING + exponents)


def _tilt(masses: Array, losses: Array, mean: float) -> tuple[float, float, float]:
    """Return t >= 0, log E exp(t loss), and the deviation of losses weighted by exp(t loss).

    t is chosen so that the weighted mean is about the given one: there the bounds are sharpest; they hold at any t.
    """
    logs, top = log_or_minus_infinity(masses), float(losses[-1])

    def moments(tilt: float) -> tuple[float, float, float]:
        exponents = logs + tilt * losses
        # The largest exponent is factored out, so that no exponential overflows.
        peak = float(np.max(exponents))
        weights = np.exp(exponents - peak)
        total = float(np.sum(weights))
        centre = float(np.sum(weights * losses)) / total
        variance = float(np.sum(weights * (losses - centre) ** 2)) / total
        return centre, peak + math.log(total), math.sqrt(variance)

    low, high = 0.0, 1.0 / top
    while moments(high)[0] < mean and high * top < _STEEPEST:
        low, high = high, 2.0 * high
    if moments(low)[0] < mean < moments(high)[0]:
        low = root(lambda tilt: moments(tilt)[0] - mean, low, high, xtol=1e-6 / top, rtol=1e-6)
    return low, *moments(low)[1:]


def _half_period(span: float, times: int) -> int:
    """Return a power of two: at least ``span`` steps, or all between the smallest and the largest sum."""
    return 1 << math.ceil(math.log2(min(span, 2.0 * times * _POINTS) + 2.0))


def _convolve(distribution: Array, times: int, period: int) -> tuple[Array, float]:
    """Return the distribution of a sum of ``times``, in steps modulo the period, and an L2 bound on its error.

    A transform of length N = 2^k has a relative error of at most 7 k 2^-53 in the Euclidean norm (Higham 2002, Theorem
    24.2, with twiddle factors good to 2^-53); 16 is counted here. An error e in one entry of a spectrum of modulus at
    most p becomes K e p^(K-1) in its K-th power, and multiplications add at most 3 K 2^-53 of the power itself.
    """
    points = np.arange(-_POINTS, _POINTS + 1) % period
    wrapped: Array = np.bincount(points, weights=distribution, minlength=period).astype(float)
    transform = 16.0 * _UNIT * math.log2(period)
    spectrum = np.fft.rfft(wrapped)
    first_error = transform * math.sqrt(period) * _length(wrapped)
    peak = float(np.sum(wrapped)) + first_error
    power = _power(spectrum, times)
    size = math.sqrt(2.0) * _length(np.abs(power))  # of the whole spectrum, of which this is half
    error = times * first_error * peak ** (times - 1) + (transform + 3.0 * times * _UNIT) * size
    return np.fft.irfft(power, period), 1.01 * error / math.sqrt(period)


def _length(vector: Array) -> float:
    """Return the Euclidean norm; numpy's own starts threads, which takes longer."""
    return math.sqrt(float(np.sum(vector**2)))


def _power(values: NDArray[np.complex128], times: int) -> NDArray[np.complex128]:
    """Raise to a power in at most 2 log2(times) products, each with a relative error of at most 3 2^-53."""
    power = values
    for digit in f"{times:b}"[1:]:
        power = power * power * values if digit == "1" else power * power
    return power


def renyi_divergence(curve: Curve, order: float) -> float:
    """Return a bound on the Renyi divergence of the given order (above 1) of any mechanism with this curve.

    From E_Q[(P/Q)^a] = 1 + a (a-1) * integral of exp((a-1) t) (H(t) - max(0, 1 - exp(t))) dt over all real t,
    the f-divergence written through hockey-stick divergences. The negative half is folded onto the positive one
    by H(-t) = 1 - exp(-t) + exp(-t) H(t). Everything is in logarithms, because high orders overflow.
    """

    def log_integrand(t: Any) -> Any:
        return curve.log_delta(t) + np.logaddexp((order - 1.0) * t, -order * t)

    grid = np.linspace(0.0, curve.reach(order), _POINTS)
    heights = log_integrand(grid)
    top, peak = float(np.max(heights)), float(grid[np.argmax(heights)])
    pieces = pairwise(sorted({0.0, peak, float(grid[-1])}))
    area = sum(_integral(lambda t: np.exp(log_integrand(t) - top), *piece) for piece in pieces)
    moment = math.log(order * (order - 1.0) * area) + top
    return float(np.logaddexp(0.0, moment)) / (order - 1.0)


def _integral(function: Callable[[Array], Array], low: float, high: float) -> float:
    """Return an upper bound: the error is added, also where rounding prevents the requested precision."""
    value, error = integral(function, low, high, _PRECISION)
    return value * (1.0 + 10.0 * _PRECISION) + error


def pure_renyi(epsilon: float, order: float) -> float:
    """Return the Renyi divergence of any pure mechanism: epsilon^2/2-zCDP (Bun-Steinke 2016), at most epsilon."""
    return min(epsilon, order * epsilon**2 / 2.0)


def renyi_delta(divergence: float, order: float, epsilon: float) -> float:
    """Return a bound on delta(epsilon) from one Renyi divergence: Canonne, Kamath and Steinke 2020, Prop. 12.

    exp((a-1)(D - epsilon)) (1 - 1/a)^a / (a-1) at the order a.
    """
    return _delta(divergence, order - 1.0, epsilon)


def zcdp_delta(rho: float, epsilon: float) -> float:
    """Return a bound on delta(epsilon) of any rho-zCDP mechanism: `renyi_delta` at the best order."""
    if rho > epsilon + 100.0:
        return 1.0  # the best order exceeds 1 by less than exp(-100), so its bound is 1 to all digits
    excess = _best_excess(rho, epsilon)
    return _delta((1.0 + excess) * rho, excess, epsilon)


def zcdp_order(rho: float, epsilon: float) -> float:
    """Return the order at which rho-zCDP gives the smallest delta(epsilon)."""
    return 1.0 + _best_excess(rho, epsilon)


def _best_excess(rho: float, epsilon: float) -> float:
    """Return the best order minus 1.

    The bound's logarithm is convex in the order a, with derivative (2a-1) rho - epsilon + log(1 - 1/a), written here in
    the excess x = a - 1, which may be tiny or huge.
    """

    def slope(log_excess: float) -> float:
        excess = math.exp(log_excess)
        return (2.0 * excess + 1.0) * rho - epsilon - math.log1p(1.0 / excess)

    # At the upper end 2 x rho >= epsilon + 1 and log(1 + 1/x) <= log(2): the slope is positive. At -700 it is negative.
    upper = math.log(1.0 + (epsilon + 1.0) / (2.0 * rho))
    return math.exp(root(slope, -700.0, upper, xtol=1e-12))


def _delta(divergence: float, excess: float, epsilon: float) -> float:
    exponent = excess * (divergence - epsilon) - excess * math.log1p(1.0 / excess) - math.log1p(excess)
    return min(1.0, math.exp(min(exponent, 0.0)))


def pure_composition_delta(round_epsilon: float, times: int, epsilon: float) -> float:
    """Return the smallest delta(epsilon) of any ``times`` adaptive mechanisms, each round_epsilon-private.

    Randomised response dominates them all: the number i of its answers that point to one of the two data sets is
    Binomial(times, 1 / (1 + exp(-round_epsilon))), and the loss is then (2 i - times) round_epsilon.
    """
    answers = np.arange(times + 1)
    losses = (2.0 * answers - times) * round_epsilon
    beyond = losses > epsilon
    chances = binomial_chances(times, round_epsilon)[beyond]
    return float(np.sum(chances * -np.expm1(epsilon - losses[beyond])))


def pure_composition_epsilon(round_epsilon: float, times: int, delta: float) -> float:
    """Return the smallest epsilon with `pure_composition_delta` at most ``delta``; never above times round_epsilon."""
    limit = times * round_epsilon
    if delta == 0:  # below the limit, delta underflows long before it vanishes
        return limit

    def excess(epsilon: float) -> float:
        return pure_composition_delta(round_epsilon, times, epsilon) - delta

    return 0.0 if excess(0.0) <= 0 else root(excess, 0.0, limit, xtol=1e-12 * limit)


def gaussian_epsilon(ratio: float, delta: float) -> float:
    """Return the smallest epsilon, rounded up, at which Gaussian noise of this ratio has at most ``delta``."""
    curve = GaussianCurve(ratio)
    if curve.delta(0.0) <= delta:
        return 0.0
    reach = curve.reach()
    while float(curve.delta(reach)) > delta:  # a delta below 1e-33
        reach *= 2.0
    precision = 2.0**-40 * reach
    found = root(
        lambda epsilon: float(curve.delta(epsilon)) - delta, 0.0, reach, xtol=precision, rtol=2.0**-40
    )
    return found + 4.0 * precision

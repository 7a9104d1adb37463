"""From one way of counting privacy loss to another: Renyi and concentrated privacy, pure epsilon, Gaussian noise."""

from __future__ import annotations

import math

import numpy as np

from privlearn.accounting.curves import GaussianCurve
from privlearn.accounting.functions import binomial_chances, root


def renyi_delta(divergence: float, order: float, epsilon: float) -> float:
    """Bound on delta(epsilon) from one Renyi divergence: Canonne, Kamath and Steinke 2020, Prop. 12.

    exp((a-1)(D - epsilon)) (1 - 1/a)^a / (a-1) at the order a.
    """
    return _delta(divergence, order - 1.0, epsilon)


def zcdp_delta(rho: float, epsilon: float) -> float:
    """Bound on delta(epsilon) of any rho-zCDP mechanism: `renyi_delta` at the best order."""
    if rho > epsilon + 100.0:
        return 1.0  # the best order's excess over 1 is below exp(-100), its bound is 1 to all digits
    excess = _best_excess(rho, epsilon)
    return _delta((1.0 + excess) * rho, excess, epsilon)


def zcdp_order(rho: float, epsilon: float) -> float:
    """The order at which rho-zCDP gives the least delta(epsilon)."""
    return 1.0 + _best_excess(rho, epsilon)


def _best_excess(rho: float, epsilon: float) -> float:
    """The bound's logarithm is convex in the order a, with derivative (2a-1) rho - epsilon + log(1 - 1/a).

    Written in the excess x = a - 1, which may be tiny or huge.
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


def composed_pure_delta(round_epsilon: float, times: int, epsilon: float) -> float:
    """Smallest delta(epsilon) that holds for every sequence of ``times`` adaptive round_epsilon-private mechanisms.

    Randomised response dominates them all: of its ``times`` answers i speak for one data set with probability
    Binomial(times, 1 / (1 + exp(-round_epsilon))), and the loss is then (2 i - times) round_epsilon.
    """
    answers = np.arange(times + 1)
    losses = (2.0 * answers - times) * round_epsilon
    beyond = losses > epsilon
    chances = binomial_chances(times, round_epsilon)[beyond]
    return float(np.sum(chances * -np.expm1(epsilon - losses[beyond])))


def composed_pure_epsilon(round_epsilon: float, times: int, delta: float) -> float:
    """Smallest epsilon with `composed_pure_delta` at most ``delta``; never above times round_epsilon."""
    most = times * round_epsilon

    def excess(epsilon: float) -> float:
        return composed_pure_delta(round_epsilon, times, epsilon) - delta

    return 0.0 if excess(0.0) <= 0 else root(excess, 0.0, most, xtol=1e-12 * most)


def gaussian_epsilon(ratio: float, delta: float) -> float:
    """Smallest epsilon at which Gaussian noise of this sensitivity / scale has at most ``delta``, rounded upwards."""
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

"""Conversions to (epsilon, delta): from Renyi divergences, zCDP, pure epsilon and Gaussian noise."""

from __future__ import annotations

import math

import numpy as np

from privlearn.accounting.curves import GaussianCurve
from privlearn.accounting.functions import binomial_chances, root


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

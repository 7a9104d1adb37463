"""Renyi divergence to delta; zero-concentrated differential privacy: divergence of every order a at most rho a."""

from __future__ import annotations

import math

from scipy.optimize import brentq


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
    return math.exp(brentq(slope, -700.0, upper, xtol=1e-12))


def _delta(divergence: float, excess: float, epsilon: float) -> float:
    exponent = excess * (divergence - epsilon) - excess * math.log1p(1.0 / excess) - math.log1p(excess)
    return min(1.0, math.exp(min(exponent, 0.0)))

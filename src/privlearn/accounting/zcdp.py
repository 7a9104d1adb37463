"""Zero-concentrated differential privacy: Renyi divergence of every order a at most rho a."""

from __future__ import annotations

import math

from scipy.optimize import brentq


def zcdp_delta(rho: float, epsilon: float) -> float:
    """Bound on delta(epsilon) of any rho-zCDP mechanism: Canonne, Kamath and Steinke 2020, Prop. 12, at the best order.

    At the order a the bound is exp((a-1)(a rho - epsilon)) (1 - 1/a)^a / (a-1). Its logarithm is convex in a, with
    derivative (2a-1) rho - epsilon + log(1 - 1/a); written in the excess x = a - 1, which may be tiny or huge.
    """

    def slope(log_excess: float) -> float:
        excess = math.exp(log_excess)
        return (2.0 * excess + 1.0) * rho - epsilon - math.log1p(1.0 / excess)

    if rho > epsilon + 100.0:
        return 1.0  # the best order's excess over 1 is below exp(-100), its bound is 1 to all digits
    # At the upper end 2 x rho >= epsilon + 1 and log(1 + 1/x) <= log(2): the slope is positive. At -700 it is negative.
    upper = math.log(1.0 + (epsilon + 1.0) / (2.0 * rho))
    excess = math.exp(brentq(slope, -700.0, upper, xtol=1e-12))
    exponent = (
        excess * ((1.0 + excess) * rho - epsilon) - excess * math.log1p(1.0 / excess) - math.log1p(excess)
    )
    return min(1.0, math.exp(exponent))

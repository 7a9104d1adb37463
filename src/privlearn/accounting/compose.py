"""What several mechanisms on the same data cost together."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from dp_accounting.pld import pld_pmf
from scipy.integrate import quad

from privlearn.accounting.curves import Curve

_POINTS = 5000
_PRECISION = 1e-8


def composed_delta(curve: Curve, times: int, epsilon: float) -> float:
    """Bound on delta(epsilon) of ``times`` mechanisms with independent noise, each with the given curve.

    The curve is discretised pessimistically ("connect the dots", Doroshenko et al. 2022) and composed by
    dp-accounting: the discrete distribution dominates every mechanism with this curve, so the result is an upper bound
    whatever the grid. Resolved down to deltas of about 1e-14, the precision of the Fourier transform.
    """
    if times == 1:
        return float(curve.delta(epsilon))
    gap = curve.reach() / _POINTS
    steps = np.arange(-_POINTS, _POINTS + 1)
    deltas = np.minimum.accumulate(curve.delta(steps * gap))
    single = pld_pmf.create_pmf_pessimistic_connect_dots(gap, steps, deltas)
    return float(single.self_compose(times).get_delta_for_epsilon(epsilon))


def renyi_divergence(curve: Curve, order: float) -> float:
    """Bound on the Renyi divergence of the given order (above 1) of any mechanism with this curve.

    From E_Q[(P/Q)^a] = 1 + a (a-1) * integral of exp((a-1) t) (H(t) - max(0, 1 - exp(t))) dt over all real t,
    the f-divergence written through hockey-stick divergences. The negative half is folded onto the positive one
    by H(-t) = 1 - exp(-t) + exp(-t) H(t), and all is in logarithms, because high orders overflow.
    """

    def log_integrand(t: Any) -> Any:
        return curve.log_delta(t) + np.logaddexp((order - 1.0) * t, -order * t)

    grid = np.linspace(0.0, curve.reach(order), _POINTS)
    heights = log_integrand(grid)
    top, peak = float(np.max(heights)), float(grid[np.argmax(heights)])
    pieces = pairwise(sorted({0.0, peak, float(grid[-1])}))
    area = sum(_integral(lambda t: math.exp(log_integrand(t) - top), *piece) for piece in pieces)
    moment = math.log(order * (order - 1.0) * area) + top
    return float(np.logaddexp(0.0, moment)) / (order - 1.0)


def _integral(function: Callable[[float], float], low: float, high: float) -> float:
    """From above: the error is added, also where rounding keeps it from the precision aimed at."""
    value, error, *_ = quad(function, low, high, limit=500, epsabs=0.0, epsrel=_PRECISION, full_output=1)
    return float(value) * (1.0 + 10.0 * _PRECISION) + float(error)


def pure_renyi(epsilon: float, order: float) -> float:
    """Renyi divergence of any epsilon-private mechanism: epsilon^2/2-zCDP (Bun-Steinke 2016), never above epsilon."""
    return min(epsilon, order * epsilon**2 / 2.0)

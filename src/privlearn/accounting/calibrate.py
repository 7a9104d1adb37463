"""The least noise, and the most trials, that keep a promise."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from privlearn.accounting.compose import composed_delta
from privlearn.accounting.conversions import zcdp_delta, zcdp_order
from privlearn.accounting.curves import Curve, GaussianCurve
from privlearn.accounting.functions import norm_tail_point, root
from privlearn.errors import InvalidParameter

MARGIN = 2.0**-30
"""Relative share of epsilon and delta kept back. It pays for the bisection's last digit and for sampling the
discrete Gaussian instead of the rounded continuous one (docs/theory/noise.md)."""

LEAST_COMPOSED_DELTA = 1e-30
"""Below it the losses that `composed_delta` takes for infinite would be most of delta."""


@lru_cache(maxsize=4096)  # a plan that looks for the fewest rows comes by the same numbers ten times
def gaussian_ratio(
    epsilon: float, delta: float, *, times: int = 1, curve: Callable[[float], Curve] = GaussianCurve
) -> float:
    """Largest sensitivity / standard deviation with which Gaussian noise is (epsilon, delta)-private.

    ``curve`` makes the privacy curve of a ratio, here that of Balle and Wang (2018), elsewhere that of objective
    perturbation (`GaussianObjectiveCurves`); ``times`` is the number of runs with independent noise.
    """
    if times > 1 and delta < LEAST_COMPOSED_DELTA:
        raise InvalidParameter(
            f"several classes need a delta of at least {LEAST_COMPOSED_DELTA:g}: ask for a larger one"
        )
    epsilon, delta = epsilon * (1.0 - MARGIN), delta * (1.0 - MARGIN)
    return largest(lambda ratio: composed_delta(curve(ratio), times, epsilon), delta)


def gaussian_delta(ratio: float, epsilon: float) -> float:
    """The delta that noise of a `gaussian_ratio` costs at epsilon, with the same margin kept back."""
    return float(GaussianCurve(ratio).delta(epsilon * (1.0 - MARGIN))) / (1.0 - MARGIN)


def zcdp_budget(epsilon: float, delta: float) -> float:
    """Largest rho such that every rho-zCDP mechanism is (epsilon, delta)-private by `zcdp_delta`."""
    epsilon, delta = epsilon * (1.0 - MARGIN), delta * (1.0 - MARGIN)
    return largest(lambda rho: zcdp_delta(rho, epsilon), delta)


def ra12_noise_scale(epsilon: float, delta: float, sensitivity: float, dimension: int) -> float:
    """Standard deviation of RA12's Gaussian objective perturbation (its appendix; Procedure 3 misprints a square).

    The smallest sigma with P(|b| <= (2 sigma^2 epsilon - S^2) / (2 S)) >= 1 - delta for b ~ N(0, sigma^2 I_d):
    off that event the privacy loss is at most epsilon. It grows like sqrt(d), unlike `gaussian_ratio`.
    """
    quantile = norm_tail_point(delta, dimension)
    # (2 sigma^2 epsilon - S^2) / (2 S) = sigma * quantile, solved for sigma
    return sensitivity * (quantile + math.sqrt(quantile**2 + 2.0 * epsilon)) / (2.0 * epsilon)


def largest(cost: Callable[[float], float], most: float) -> float:
    """Largest number, to 30 bits, at which a cost that rises from 0 is at most this; always on the safe side.

    It is where bisection ends, to the last bit: sessions that were opened with it go on with it.
    """
    known = _Known(cost, most)
    known.narrow()
    low, high = 1e-12, 1.0
    if not known.holds(low):
        raise InvalidParameter(
            "no amount of Gaussian noise keeps this promise: ask for a larger epsilon or delta, or a stronger "
            "regularization"
        )
    while known.holds(high):
        low, high = high, high * 2.0
    while high > low * (1.0 + MARGIN):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if known.holds(middle) else (low, middle)
    return low


class _Known:
    """Up to where a rising cost is known to be at most so much, and from where on it is known not to be."""

    def __init__(self, cost: Callable[[float], float], most: float) -> None:
        self._cost = cost
        self._most = most
        self._low, self._high = 0.0, math.inf

    def holds(self, number: float) -> bool:
        if self._low < number < self._high:
            self._excess(number)
        return number <= self._low

    def narrow(self) -> None:
        """By interpolation, in a quarter of the steps that halving takes."""
        start = 1.0
        while self.holds(start) and start < _HUGE:
            start *= 2.0
        while not self.holds(start) and start > _SMALL:
            start /= 16.0
        if self._low > 0.0 and self._high < math.inf:
            ends = math.log(self._low), math.log(self._high)
            root(lambda log_number: self._excess(math.exp(log_number)), *ends, xtol=MARGIN / 4.0, rtol=0.0)

    def _excess(self, number: float) -> float:
        cost = self._cost(number)
        if cost <= self._most:
            self._low = max(self._low, number)
        else:
            self._high = min(self._high, number)
        return math.log(max(cost, _TINY) / max(self._most, _TINY))


STOPPED_PURE = 3.0
"""What multiplies a pure epsilon: the best of geometrically many epsilon-private trials is 3 epsilon-private
(Liu and Talwar 2019, Theorem 3.2)."""


def stopped_renyi(
    trial: Callable[[float], float], expected_trials: int, order: float, inner_order: float
) -> float:
    """Renyi divergence of the best of K independent trials, K geometric: P(K = k) = (1 - 1/T)^(k-1) / T.

    Papernot and Steinke 2022, Theorem 2 with eta = 1 and gamma = 1/T, T the expected number of trials: at order a,

        R(a) + 2 (1 - 1/b) R(b) + 2 log(T) / b + log(T) / (a - 1)

    for a trial of Renyi curve R and any order b >= 1. Only the best trial may leave, not K.
    """
    spread = math.log(expected_trials)
    chosen = 2.0 * ((1.0 - 1.0 / inner_order) * trial(inner_order) + spread / inner_order)
    return trial(order) + chosen + spread / (order - 1.0)


def stopping_plan(epsilon: float, delta: float, expected_trials: int) -> tuple[float, float, float]:
    """The largest rho for which rho-zCDP trials keep the promise, with the order and the inner order that show it.

    For R(a) = rho a the best inner order is sqrt(log(T) / rho). What it adds is the same at every order, so that delta
    is T times that of rho-zCDP at what is left of epsilon. Trials of other curves may use the same two orders.
    """
    spread = math.log(expected_trials)

    def inner_order(rho: float) -> float:
        return max(math.sqrt(spread / rho), _LEAST_ORDER)

    def left(rho: float) -> float:
        inner = inner_order(rho)
        return epsilon * (1.0 - MARGIN) - 2.0 * ((inner - 1.0) * rho + spread / inner)

    def cost(rho: float) -> float:
        return expected_trials * zcdp_delta(rho, left(rho)) if left(rho) > 0 else math.inf

    rho = largest(cost, delta * (1.0 - MARGIN))
    return rho, zcdp_order(rho, left(rho)), inner_order(rho)


_TINY = float(np.finfo(float).tiny)
_SMALL, _HUGE = 1e-12, 1e12
_LEAST_ORDER = 1.01  # Renyi curves are computed above order 1

"""Calibration: the smallest noise, and the largest number of trials, for a given (epsilon, delta)."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from privlearn.accounting.compose import composition_delta, zcdp_delta, zcdp_order
from privlearn.accounting.curves import Curve, GaussianCurve
from privlearn.accounting.functions import norm_tail_point, root
from privlearn.errors import InvalidParameter

MARGIN = 2.0**-30
"""Relative share of epsilon and delta held back, for the last digit of the bisection and for sampling the
discrete Gaussian instead of the rounded continuous one (docs/theory/noise.md)."""

MIN_COMPOSED_DELTA = 1e-30
"""Below it, the losses that `composition_delta` treats as infinite would be most of delta."""


# A forecast that searches for the smallest number of rows repeats each call ten times.
@lru_cache(maxsize=4096)
def gaussian_ratio(
    epsilon: float, delta: float, *, times: int = 1, curve: Callable[[float], Curve] = GaussianCurve
) -> float:
    """Return the largest sensitivity / standard deviation with which Gaussian noise is (epsilon, delta)-private.

    ``curve`` creates the privacy curve of a ratio: that of Balle and Wang (2018) by default, or that of objective
    perturbation (`GaussianObjectiveCurves`). ``times`` is the number of runs with independent noise.

    >>> round(gaussian_ratio(1.0, 1e-6), 4)  # noise of 4.22 times the sensitivity
    0.2367
    """
    if times > 1 and delta < MIN_COMPOSED_DELTA:
        raise InvalidParameter(
            f"several classes need a delta of at least {MIN_COMPOSED_DELTA:g}. Pass a larger delta."
        )
    epsilon, delta = epsilon * (1.0 - MARGIN), delta * (1.0 - MARGIN)
    return max_affordable(lambda ratio: composition_delta(curve(ratio), times, epsilon), delta)


def gaussian_delta(ratio: float, epsilon: float) -> float:
    """Return the delta of Gaussian noise at epsilon, with the margin of `gaussian_ratio` held back."""
    return float(GaussianCurve(ratio).delta(epsilon * (1.0 - MARGIN))) / (1.0 - MARGIN)


def zcdp_budget(epsilon: float, delta: float) -> float:
    """Return the largest rho such that every rho-zCDP mechanism is (epsilon, delta)-private by `zcdp_delta`."""
    epsilon, delta = epsilon * (1.0 - MARGIN), delta * (1.0 - MARGIN)
    return max_affordable(lambda rho: zcdp_delta(rho, epsilon), delta)


def ra12_noise_scale(epsilon: float, delta: float, sensitivity: float, dimension: int) -> float:
    """Return the standard deviation of RA12's Gaussian objective perturbation.

    It is the smallest sigma with P(|b| <= (2 sigma^2 epsilon - S^2) / (2 S)) >= 1 - delta for b ~ N(0, sigma^2 I_d).
    On that event the privacy loss is at most epsilon. The formula is from the paper's appendix (Procedure 3 misprints a
    square). Unlike the noise of `gaussian_ratio`, it grows like sqrt(d).
    """
    quantile = norm_tail_point(delta, dimension)
    # (2 sigma^2 epsilon - S^2) / (2 S) = sigma * quantile, solved for sigma
    return sensitivity * (quantile + math.sqrt(quantile**2 + 2.0 * epsilon)) / (2.0 * epsilon)


def max_affordable(cost: Callable[[float], float], limit: float) -> float:
    """Return the largest number, to 30 bits and rounded down, at which an increasing cost is at most the limit.

    The result equals that of plain bisection to the last bit: an open session recomputes its constants with it.
    """
    known = _Bracket(cost, limit)
    # Interpolation narrows the bracket in few evaluations; most steps of the bisection then evaluate nothing.
    known.narrow()
    low, high = 1e-12, 1.0
    if not known.holds(low):
        raise InvalidParameter(
            "no amount of Gaussian noise gives this guarantee. Pass a larger epsilon or delta, or a stronger "
            "regularization."
        )
    while known.holds(high):
        low, high = high, high * 2.0
    while high > low * (1.0 + MARGIN):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if known.holds(middle) else (low, middle)
    return low


class _Bracket:
    """The interval in which an increasing cost passes its limit, narrowed by every evaluation."""

    def __init__(self, cost: Callable[[float], float], limit: float) -> None:
        self._cost = cost
        self._limit = limit
        self._low, self._high = 0.0, math.inf

    def holds(self, number: float) -> bool:
        """Return whether the cost of a number is within the limit; evaluate it only if that is not known."""
        if self._low < number < self._high:
            self._excess(number)
        return number <= self._low

    def narrow(self) -> None:
        """Shrink the interval by interpolation, which takes a quarter of the steps of bisection."""
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
        if cost <= self._limit:
            self._low = max(self._low, number)
        else:
            self._high = min(self._high, number)
        # Costs span hundreds of orders of magnitude: only their logarithm is smooth enough to interpolate.
        return math.log(max(cost, _TINY) / max(self._limit, _TINY))


STOPPED_PURE = 3.0
"""Cost of a search in units of epsilon: the best of K trials that are epsilon-private, K geometric, is 3
epsilon-private (Liu and Talwar 2019, Theorem 3.2)."""


def stopping_renyi(
    trial: Callable[[float], float], expected_trials: int, order: float, inner_order: float
) -> float:
    """Return the Renyi divergence of the best of K independent trials, K geometric: P(K = k) = (1 - 1/T)^(k-1) / T.

    Papernot and Steinke 2022, Theorem 2 with eta = 1 and gamma = 1/T, T the expected number of trials: at order a,

        R(a) + 2 (1 - 1/b) R(b) + 2 log(T) / b + log(T) / (a - 1)

    for a trial of Renyi curve R and any order b >= 1. Only the best trial may be released, not K.
    """
    log_trials = math.log(expected_trials)
    selection = 2.0 * ((1.0 - 1.0 / inner_order) * trial(inner_order) + log_trials / inner_order)
    return trial(order) + selection + log_trials / (order - 1.0)


def stopping_budget(epsilon: float, delta: float, expected_trials: int) -> tuple[float, float, float]:
    """Return the largest rho of zCDP trials for a guarantee, with the order and the inner order that prove it.

    For R(a) = rho a the best inner order is sqrt(log(T) / rho). What it adds is the same at every order, so that delta
    is T times that of rho-zCDP at the remaining epsilon. Trials of other curves may use the same two orders.
    """
    log_trials = math.log(expected_trials)

    def inner_order(rho: float) -> float:
        return max(math.sqrt(log_trials / rho), _MIN_ORDER)

    def remaining(rho: float) -> float:
        inner = inner_order(rho)
        return epsilon * (1.0 - MARGIN) - 2.0 * ((inner - 1.0) * rho + log_trials / inner)

    def cost(rho: float) -> float:
        return expected_trials * zcdp_delta(rho, remaining(rho)) if remaining(rho) > 0 else math.inf

    rho = max_affordable(cost, delta * (1.0 - MARGIN))
    return rho, zcdp_order(rho, remaining(rho)), inner_order(rho)


_TINY = float(np.finfo(float).tiny)
_SMALL, _HUGE = 1e-12, 1e12
_MIN_ORDER = 1.01  # Renyi curves are computed above order 1

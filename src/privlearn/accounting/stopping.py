"""The best of a random number of trials: private selection after Liu and Talwar (2019), Papernot and Steinke (2022)."""

from __future__ import annotations

import math
from collections.abc import Callable

from privlearn.accounting.calibrate import MARGIN, largest
from privlearn.accounting.zcdp import zcdp_delta, zcdp_order

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

    def holds(rho: float) -> bool:
        return left(rho) > 0 and expected_trials * zcdp_delta(rho, left(rho)) <= delta * (1.0 - MARGIN)

    rho = largest(holds)
    return rho, zcdp_order(rho, left(rho)), inner_order(rho)


_LEAST_ORDER = 1.01  # Renyi curves are computed above order 1

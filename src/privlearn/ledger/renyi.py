"""Renyi composition at one order, fixed when the budget is created."""

from __future__ import annotations

import math
from collections.abc import Sequence

from scipy.optimize import minimize_scalar

from privlearn.errors import LedgerError
from privlearn.guarantee import Guarantee
from privlearn.ledger.composition import Amount, Balance, Composition, difference, exact, exact_sum
from privlearn.ledger.cost import Cost


class RenyiComposition(Composition):
    """Renyi divergences of one fixed order add up (a filter: Feldman and Zrnic 2021).

    Parameters
    ----------
    total : Guarantee
        With delta > 0.
    order, limit : float
        The order, fixed before the first release (the best order in hindsight is not a filter), and the
        largest divergence of that order that keeps the total.
    """

    def __init__(self, total: Guarantee, order: float, limit: float) -> None:
        super().__init__(total)
        self.order = order
        self.limit = limit

    @classmethod
    def of(cls, total: Guarantee) -> RenyiComposition:
        """Fixes the order for a new budget."""
        if total.delta == 0 or not total.is_private:
            raise LedgerError(
                "composition='renyi' needs a total with finite epsilon and delta > 0; or use 'basic'"
            )
        order = best_order(total)
        return cls(total, order, divergence_limit(total, order))

    def _price(self, cost: Cost) -> Amount:
        guarantee = cost.guarantee
        return Amount(float(guarantee.epsilon), float(guarantee.delta), cost.renyi_at(self.order))

    def admits(self, counted: Sequence[Amount], requested: Amount) -> bool:
        return exact_sum(_divergences([*counted, requested])) <= exact(self.limit)

    def balance(self, committed: Sequence[Amount], reserved: Sequence[Amount]) -> Balance:
        """Epsilons are dp-accounting's at the total's delta; spent, reserved and left add up to the total."""
        everything = _divergences([*committed, *reserved])
        spent, counted = float(exact_sum(_divergences(committed))), float(exact_sum(everything))
        epsilon_spent, epsilon_counted = self._epsilon(spent), self._epsilon(counted)
        return Balance(
            self._amount(epsilon_spent, spent),
            self._amount(epsilon_counted - epsilon_spent, float(exact_sum(_divergences(reserved)))),
            self._amount(self.total.epsilon - epsilon_counted, difference(self.limit, everything)),
        )

    def _epsilon(self, divergence: float) -> float:
        return _epsilon(self.order, divergence, self.total.delta) if divergence else 0.0

    def _amount(self, epsilon: float, divergence: float) -> Amount:
        return Amount(epsilon, self.total.delta, divergence)


def best_order(total: Guarantee) -> float:
    """The order at which the most Gaussian noise mechanisms fit into the total.

    A Gaussian mechanism's divergence grows in proportion to the order (rho times order: rho-zCDP), so the
    best order maximises limit / order. It depends on the total alone; four digits keep it readable.
    """
    widest = 100 * (1 + (1 - math.log(total.delta)) / total.epsilon)
    found = minimize_scalar(
        lambda excess: -_limit_formula(total, 1 + math.exp(excess)) / (1 + math.exp(excess)),
        bounds=(math.log(_SMALLEST_EXCESS), math.log(widest)),
        method="bounded",
    )
    return float(f"{1 + math.exp(found.x):.4g}")


def divergence_limit(total: Guarantee, order: float) -> float:
    """The largest divergence of this order that dp-accounting converts to at most the total."""
    limit = _limit_formula(total, order)
    # The formula inverts the conversion in real numbers; the last bits are settled by the conversion itself.
    step = math.ulp(limit)
    while limit > 0 and _epsilon(order, limit, total.delta) > total.epsilon:
        limit, step = limit - step, 2 * step
    return limit


def _limit_formula(total: Guarantee, order: float) -> float:
    """Canonne, Kamath and Steinke 2020, Prop. 12, solved for the divergence."""
    return total.epsilon - math.log1p(-1 / order) + math.log(total.delta * order) / (order - 1)


def _epsilon(order: float, divergence: float, delta: float) -> float:
    # Imported here because it takes a second, which a basic ledger need not pay.
    from dp_accounting import rdp

    epsilon, _ = rdp.compute_epsilon([order], [divergence], delta)
    return float(epsilon)


def _divergences(amounts: Sequence[Amount]) -> list[float]:
    divergences = [a.renyi for a in amounts if a.renyi is not None]
    if len(divergences) < len(amounts):
        raise LedgerError(
            "an entry of this renyi ledger lacks its divergence: the file was changed by other means"
        )
    return divergences


# dp-accounting converts no order at or below 1.01.
_SMALLEST_EXCESS = 0.02

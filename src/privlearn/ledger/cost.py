"""What a release asks of a budget."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from privlearn.accounting.compose import pure_renyi
from privlearn.errors import LedgerError, shown
from privlearn.guarantee import Guarantee


@dataclass(frozen=True)
class Cost:
    """What one release costs.

    Parameters
    ----------
    guarantee : Guarantee
        What the release promises on its own.
    renyi : callable, optional
        The release's Renyi curve: a bound on its Renyi divergence as a function of the order, under the
        same neighbours. A ledger with ``composition="renyi"`` asks for it at its one order.
    """

    guarantee: Guarantee
    renyi: Callable[[float], float] | None = None

    def renyi_at(self, order: float) -> float:
        """Renyi divergence of this order between the outputs on neighbours, at most.

        Without a curve, pure epsilon-DP is epsilon^2/2-zCDP (Bun and Steinke 2016, Prop. 1.4), so the bound
        is min(epsilon, order epsilon^2 / 2).

        Raises
        ------
        LedgerError
            If there is neither a curve nor a pure guarantee, or if the curve has no usable value there.
        """
        if self.renyi is not None:
            divergence = float(self.renyi(order))
        elif self.guarantee.delta == 0:
            divergence = pure_renyi(self.guarantee.epsilon, order)
        else:
            raise LedgerError(
                "a ledger with composition='renyi' needs the Renyi curve of a cost with delta > 0: give "
                "Cost(guarantee, renyi=...), or use a ledger with composition='basic'"
            )
        # Zero would be a free release, and no release is free; a NaN would pass every comparison.
        if not 0 < divergence < math.inf:
            raise LedgerError(
                f"the cost's Renyi curve must be positive and finite at order {order!r}, not {shown(divergence)}"
            )
        return divergence

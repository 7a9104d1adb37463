"""Costs of releases, and how they add up: exactly, in decimals.

Numbers are taken as they were typed (0.1 is one tenth), and sums are never rounded, so ten costs of 0.1 fill a total
of 1.0 exactly. `Composition` decides whether a cost fits; it is a privacy filter, so costs may be chosen adaptively.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal, Inexact, localcontext
from typing import Literal, get_args

from privlearn.accounting.compose import pure_renyi
from privlearn.errors import LedgerError, preview
from privlearn.guarantee import Guarantee
from privlearn.imports import optimize

CompositionName = Literal["basic", "renyi"]
COMPOSITIONS: tuple[str, ...] = get_args(CompositionName)


@dataclass(frozen=True)
class Cost:
    """The cost of one release.

    Parameters
    ----------
    guarantee : Guarantee
        The guarantee of the release on its own.
    renyi : callable, optional
        The release's Renyi curve: a bound on its Renyi divergence as a function of the order, under the
        same neighbours. A ledger with ``composition="renyi"`` evaluates it at its one order.
    """

    guarantee: Guarantee
    renyi: Callable[[float], float] | None = None

    def renyi_at(self, order: float) -> float:
        """Return a bound on the Renyi divergence of this order between the outputs on neighbours.

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
                "a ledger with composition='renyi' needs the Renyi curve of a cost with delta > 0. Give "
                "Cost(guarantee, renyi=...), or use a ledger with composition='basic'"
            )
        # Zero would be a free release, and no release is free; a NaN would pass every comparison.
        if not 0 < divergence < math.inf:
            raise LedgerError(
                f"the cost's Renyi curve must be positive and finite at order {order!r}, not {preview(divergence)}"
            )
        return divergence


@dataclass(frozen=True)
class Amount:
    """A part of a budget.

    Attributes
    ----------
    epsilon, delta : float
    renyi : float or None
        Renyi divergence at the ledger's order; None in a basic ledger.
    """

    epsilon: float
    delta: float
    renyi: float | None = None

    def __str__(self) -> str:
        text = f"epsilon {self.epsilon!r}" + (f", delta {self.delta!r}" if self.delta else "")
        return text if self.renyi is None else f"{text} (Renyi divergence {self.renyi!r})"


def delta_hint(requested: Amount | Guarantee, left: Amount) -> str:
    """Return a sentence for requests whose epsilon fits into a basic budget but whose delta does not; else empty."""
    if left.renyi is not None or requested.delta <= left.delta or requested.epsilon > left.epsilon:
        return ""
    return (
        f". Delta is missing, not epsilon: {left.delta:g} is left and {requested.delta:g} was requested"
        + ("; pass delta 0 to use none" if left.delta == 0 else "")
    )


@dataclass(frozen=True)
class Sum:
    """The exact sum of amounts: it does not depend on the order of the entries.

    Attributes
    ----------
    epsilon, delta : Decimal
    renyi : Decimal or None
        None once an amount lacked its divergence, as all do in a basic ledger.

    Examples
    --------
    >>> Sum.of(*[Amount(0.1, 0.0)] * 10).epsilon
    Decimal('1.0')
    """

    epsilon: Decimal = Decimal(0)
    delta: Decimal = Decimal(0)
    renyi: Decimal | None = Decimal(0)

    @classmethod
    def of(cls, *amounts: Amount) -> Sum:
        """Return the sum of some amounts."""
        divergences = [a.renyi for a in amounts if a.renyi is not None]
        return cls(
            exact_sum(a.epsilon for a in amounts),
            exact_sum(a.delta for a in amounts),
            exact_sum(divergences) if len(divergences) == len(amounts) else None,
        )

    def __add__(self, other: Sum) -> Sum:
        return self._with(other, lambda a, b: a + b)

    def __sub__(self, other: Sum) -> Sum:
        return self._with(other, lambda a, b: a - b)

    def _with(self, other: Sum, combine: Callable[[Decimal, Decimal], Decimal]) -> Sum:
        with _exactly():
            known = self.renyi is not None and other.renyi is not None
            return Sum(
                combine(self.epsilon, other.epsilon),
                combine(self.delta, other.delta),
                combine(self.renyi, other.renyi) if known else None,  # type: ignore[arg-type]
            )


@dataclass(frozen=True)
class Balance:
    """Spent, reserved and remaining amounts of a budget."""

    spent: Amount
    reserved: Amount
    left: Amount


class Composition(ABC):
    """A privacy filter: decides which costs fit into a total, also if they are chosen adaptively."""

    def __init__(self, total: Guarantee) -> None:
        if not total.is_private:
            raise LedgerError("a budget must be finite. Pass a total epsilon below infinity.")
        self.total = total

    def price(self, cost: Cost) -> Amount:
        """Return how much the cost takes from the budget; refuse a cost that cannot be compared with the total."""
        guarantee = cost.guarantee
        if not guarantee.is_private:
            raise LedgerError(
                "a release with epsilon = inf guarantees nothing and fits no budget. Pass a finite epsilon."
            )
        if guarantee.neighbours != self.total.neighbours:
            raise LedgerError(
                f"the budget counts {self.total.neighbours!r} neighbours, the cost {guarantee.neighbours!r}. "
                f"Request neighbours={self.total.neighbours!r}. Nothing is converted silently "
                "(zero_out at epsilon, delta implies replace_one at 2 epsilon, (1 + e^epsilon) delta)"
            )
        return self._price(cost)

    @abstractmethod
    def _price(self, cost: Cost) -> Amount: ...

    @abstractmethod
    def admits(self, counted: Sum, requested: Amount) -> bool:
        """Return whether the request fits in addition to everything counted, that is reserved or committed."""

    @abstractmethod
    def balance(self, committed: Sum, reserved: Sum) -> Balance:
        """Return the balance after these committed and reserved sums."""

    @abstractmethod
    def tightest(self, balances: Sequence[Balance]) -> Balance:
        """Return the balance of several disjoint parts together: the smallest amounts left."""


class BasicComposition(Composition):
    """Add up epsilons, and add up deltas (a filter: Rogers, Roth, Ullman and Vadhan 2016)."""

    def _price(self, cost: Cost) -> Amount:
        return Amount(float(cost.guarantee.epsilon), float(cost.guarantee.delta))

    def admits(self, counted: Sum, requested: Amount) -> bool:
        after = counted + Sum.of(requested)
        return after.epsilon <= exact(self.total.epsilon) and after.delta <= exact(self.total.delta)

    def balance(self, committed: Sum, reserved: Sum) -> Balance:
        counted = committed + reserved
        left = Amount(
            _remainder(self.total.epsilon, counted.epsilon), _remainder(self.total.delta, counted.delta)
        )
        return Balance(_as_amount(committed), _as_amount(reserved), left)

    def tightest(self, balances: Sequence[Balance]) -> Balance:
        """Return the smallest remaining epsilon, and the smallest remaining delta."""
        by_epsilon = min(balances, key=lambda balance: balance.left.epsilon)
        by_delta = min(balances, key=lambda balance: balance.left.delta)
        return Balance(
            Amount(by_epsilon.spent.epsilon, by_delta.spent.delta),
            Amount(by_epsilon.reserved.epsilon, by_delta.reserved.delta),
            Amount(by_epsilon.left.epsilon, by_delta.left.delta),
        )


def _as_amount(total: Sum) -> Amount:
    return Amount(float(total.epsilon), float(total.delta))


def exact(number: float) -> Decimal:
    """Return the number as people write it: its shortest decimal form.

    A budget is what was typed. The binary numbers nearest to 0.1 and 1.0 would make ten times 0.1 exceed 1.0.
    """
    return Decimal(repr(float(number)))


def exact_sum(numbers: Iterable[float]) -> Decimal:
    """Return the sum without rounding."""
    with _exactly():
        return sum(map(exact, numbers), Decimal(0))


def difference(whole: float, parts: Iterable[float]) -> float:
    """Return whole minus parts, subtracted exactly and rounded once, downwards: a request for this rest is admitted."""
    return _remainder(whole, exact_sum(parts))


def _remainder(whole: float, counted: Decimal) -> float:
    with _exactly():
        return round_down(exact(whole) - counted)


@contextmanager
def _exactly() -> Iterator[None]:
    """Compute inside the block with arithmetic that raises an error rather than round."""
    with localcontext() as context:
        context.prec = _DIGITS
        context.traps[Inexact] = True
        yield


def round_down(number: Decimal) -> float:
    """Return the nearest float that, as people write it, is not above the number."""
    nearest = float(number)
    return nearest if exact(nearest) <= number else math.nextafter(nearest, -math.inf)


# Doubles reach from 1e-324 to 1e309 and need 17 digits: no sum of fewer than 10^300 of them has more digits.
_DIGITS = 1000


class RenyiComposition(Composition):
    """Add up Renyi divergences of one fixed order (a filter: Feldman and Zrnic 2021).

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
        """Return the composition of a new budget, with its order fixed."""
        if total.delta == 0 or not total.is_private:
            raise LedgerError(
                "composition='renyi' needs a total with finite epsilon and delta > 0. Pass both, or use 'basic'."
            )
        order = best_order(total)
        return cls(total, order, divergence_limit(total, order))

    def _price(self, cost: Cost) -> Amount:
        guarantee = cost.guarantee
        return Amount(float(guarantee.epsilon), float(guarantee.delta), cost.renyi_at(self.order))

    def admits(self, counted: Sum, requested: Amount) -> bool:
        return _divergence(counted + Sum.of(requested)) <= exact(self.limit)

    def balance(self, committed: Sum, reserved: Sum) -> Balance:
        """Return the balance: epsilons are dp-accounting's at the total's delta; all three add up to the total."""
        everything = _divergence(committed + reserved)
        spent, counted = float(_divergence(committed)), float(everything)
        epsilon_spent, epsilon_counted = self._epsilon(spent), self._epsilon(counted)
        return Balance(
            self._amount(epsilon_spent, spent),
            self._amount(epsilon_counted - epsilon_spent, float(_divergence(reserved))),
            self._amount(self.total.epsilon - epsilon_counted, _remainder(self.limit, everything)),
        )

    def tightest(self, balances: Sequence[Balance]) -> Balance:
        return min(balances, key=lambda balance: balance.left.renyi or 0.0)

    def _epsilon(self, divergence: float) -> float:
        return _epsilon(self.order, divergence, self.total.delta) if divergence else 0.0

    def _amount(self, epsilon: float, divergence: float) -> Amount:
        return Amount(epsilon, self.total.delta, divergence)


def best_order(total: Guarantee) -> float:
    """Return the order at which the most Gaussian mechanisms fit into the total.

    A Gaussian mechanism's divergence grows in proportion to the order (rho times order: rho-zCDP), so the
    best order maximises limit / order. It depends on the total alone; four digits keep it readable.
    """
    widest = 100 * (1 + (1 - math.log(total.delta)) / total.epsilon)
    optimum = optimize.minimize_scalar(
        lambda excess: -_limit_formula(total, 1 + math.exp(excess)) / (1 + math.exp(excess)),
        bounds=(math.log(_MIN_EXCESS), math.log(widest)),
        method="bounded",
    )
    return float(f"{1 + math.exp(optimum.x):.4g}")


def divergence_limit(total: Guarantee, order: float) -> float:
    """Return the largest divergence of this order that dp-accounting converts to at most the total."""
    limit = _limit_formula(total, order)
    # The formula inverts the conversion in real numbers; the last bits are settled by the conversion itself.
    step = math.ulp(limit)
    while limit > 0 and _epsilon(order, limit, total.delta) > total.epsilon:
        limit, step = limit - step, 2 * step
    return limit


def _limit_formula(total: Guarantee, order: float) -> float:
    """Return the divergence that solves Canonne, Kamath and Steinke 2020, Prop. 12."""
    return total.epsilon - math.log1p(-1 / order) + math.log(total.delta * order) / (order - 1)


def _epsilon(order: float, divergence: float, delta: float) -> float:
    # Imported here because it takes a second, which a basic ledger need not pay.
    from dp_accounting import rdp

    epsilon, _ = rdp.compute_epsilon([order], [divergence], delta)
    return float(epsilon)


def _divergence(total: Sum) -> Decimal:
    if total.renyi is None:
        raise LedgerError(
            "an entry of this renyi ledger lacks its divergence: the file was changed by other means"
        )
    return total.renyi


# dp-accounting converts no order at or below 1.01.
_MIN_EXCESS = 0.02

"""What is left of a budget, and what still fits: the rule every composition follows, and the basic one."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal, Inexact, localcontext

from privlearn.errors import LedgerError
from privlearn.guarantee import Guarantee
from privlearn.ledger.cost import Cost


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


@dataclass(frozen=True)
class Balance:
    """Where a budget stands."""

    spent: Amount
    reserved: Amount
    left: Amount


class Composition(ABC):
    """A privacy filter: decides which costs fit into a total, however they were chosen."""

    def __init__(self, total: Guarantee) -> None:
        if not total.is_private:
            raise LedgerError("a budget must be finite: give the data set a total epsilon below infinity")
        self.total = total

    def price(self, cost: Cost) -> Amount:
        """What the cost takes out of the budget; refuses a cost that cannot be compared with the total."""
        guarantee = cost.guarantee
        if not guarantee.is_private:
            raise LedgerError(
                "a release with epsilon = inf promises nothing and fits no budget: give it a finite epsilon"
            )
        if guarantee.neighbours != self.total.neighbours:
            raise LedgerError(
                f"the budget counts {self.total.neighbours!r} neighbours, the cost {guarantee.neighbours!r}: "
                f"ask for neighbours={self.total.neighbours!r}. Nothing is converted silently "
                "(zero_out at epsilon implies replace_one at 2 epsilon)"
            )
        return self._price(cost)

    @abstractmethod
    def _price(self, cost: Cost) -> Amount: ...

    @abstractmethod
    def admits(self, counted: Sequence[Amount], requested: Amount) -> bool:
        """True if the request fits beside everything counted, that is reserved or committed."""

    @abstractmethod
    def balance(self, committed: Sequence[Amount], reserved: Sequence[Amount]) -> Balance: ...


class BasicComposition(Composition):
    """Epsilons add up, deltas add up (a filter: Rogers, Roth, Ullman and Vadhan 2016)."""

    def _price(self, cost: Cost) -> Amount:
        return Amount(float(cost.guarantee.epsilon), float(cost.guarantee.delta))

    def admits(self, counted: Sequence[Amount], requested: Amount) -> bool:
        amounts = [*counted, requested]
        return exact_sum(a.epsilon for a in amounts) <= exact(self.total.epsilon) and exact_sum(
            a.delta for a in amounts
        ) <= exact(self.total.delta)

    def balance(self, committed: Sequence[Amount], reserved: Sequence[Amount]) -> Balance:
        left = Amount(
            difference(self.total.epsilon, (a.epsilon for a in [*committed, *reserved])),
            difference(self.total.delta, (a.delta for a in [*committed, *reserved])),
        )
        return Balance(_total(committed), _total(reserved), left)


def _total(amounts: Sequence[Amount]) -> Amount:
    return Amount(float(exact_sum(a.epsilon for a in amounts)), float(exact_sum(a.delta for a in amounts)))


def exact(number: float) -> Decimal:
    """The number as people write it: its shortest decimal form.

    A budget is what was typed. The binary numbers nearest to 0.1 and 1.0 would make ten times 0.1 exceed 1.0.
    """
    return Decimal(repr(float(number)))


def exact_sum(numbers: Iterable[float]) -> Decimal:
    """The sum without rounding: order and number of entries cannot move it."""
    with localcontext() as context:
        context.prec = _DIGITS
        context.traps[Inexact] = True
        return sum(map(exact, numbers), Decimal(0))


def difference(whole: float, parts: Iterable[float]) -> float:
    """Whole minus parts, subtracted exactly and rounded once, downwards: what is shown as left does fit."""
    with localcontext() as context:
        context.prec = _DIGITS
        return rounded_down(exact(whole) - exact_sum(parts))


def rounded_down(number: Decimal) -> float:
    """The nearest float that, as people write it, is not above the number."""
    nearest = float(number)
    return nearest if exact(nearest) <= number else math.nextafter(nearest, -math.inf)


# Doubles reach from 1e-324 to 1e309 and need 17 digits: no sum of fewer than 10^300 of them has more digits.
_DIGITS = 1000

"""Privacy curves of whole releases: of what is known from epsilon and delta alone, of several runs, of a bought schema.

Each extends `Curve`; `Mechanism.curve` hands one out, and `accounting/meaning.py` reads from it what a promise means.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from privlearn.accounting.compose import composed_delta
from privlearn.accounting.conversions import composed_pure_delta, renyi_delta
from privlearn.accounting.curves import Curve, GaussianCurve, PureCurve, log_or_minus_infinity


@dataclass(frozen=True)
class StatedCurve:
    """Any mechanism of which no more is known than that it is (epsilon, delta)-private.

    The worst of them gives itself away with probability delta, and is randomised response otherwise
    (Kairouz, Oh and Viswanath 2015).
    """

    epsilon: float
    stated_delta: float = 0.0

    def delta(self, epsilon: ArrayLike) -> Any:
        return self.stated_delta + (1.0 - self.stated_delta) * PureCurve(self.epsilon).delta(epsilon)

    def log_delta(self, epsilon: ArrayLike) -> Any:
        return log_or_minus_infinity(self.delta(epsilon))

    def reach(self, order: float = 0.0) -> float:
        return self.epsilon


@dataclass(frozen=True)
class ZcdpCurve:
    """Any rho-zCDP mechanism: the least of the bounds that several orders give. Each of them holds by itself."""

    rho: float

    def delta(self, epsilon: ArrayLike) -> Any:
        return np.exp(self.log_delta(epsilon))

    def log_delta(self, epsilon: ArrayLike) -> Any:
        at = np.atleast_1d(np.asarray(epsilon, dtype=float))
        found = [min(renyi_delta(order * self.rho, order, one) for order in _ORDERS) for one in at]
        return log_or_minus_infinity(np.reshape(found, np.shape(epsilon)))

    def reach(self, order: float = 0.0) -> float:
        return GaussianCurve(math.sqrt(2.0 * self.rho)).reach(order)


_ORDERS = tuple(1.0 + excess for excess in np.geomspace(1e-2, 1e4, 120).tolist())


@dataclass(frozen=True)
class ComposedCurve:
    """``times`` mechanisms of one curve, with independent noise."""

    each: Curve
    times: int

    def delta(self, epsilon: ArrayLike) -> Any:
        """Of epsilon >= 0; below it the bound at 0 is not the least, but 1 is."""
        at = np.asarray(epsilon, dtype=float)
        found = np.vectorize(lambda one: composed_delta(self.each, self.times, max(one, 0.0)))(at)
        return np.where(at >= 0, found, 1.0)

    def log_delta(self, epsilon: ArrayLike) -> Any:
        return log_or_minus_infinity(self.delta(epsilon))

    def reach(self, order: float = 0.0) -> float:
        return self.times * self.each.reach(order)


@dataclass(frozen=True)
class ComposedPureCurve:
    """``times`` adaptive mechanisms, each epsilon-private: as many answers of randomised response."""

    epsilon: float
    times: int

    def delta(self, epsilon: ArrayLike) -> Any:
        return np.vectorize(lambda one: composed_pure_delta(self.epsilon, self.times, one))(epsilon)

    def log_delta(self, epsilon: ArrayLike) -> Any:
        return log_or_minus_infinity(self.delta(epsilon))

    def reach(self, order: float = 0.0) -> float:
        likely = GaussianCurve(math.sqrt(self.times) * self.epsilon).reach(order)  # epsilon^2/2-zCDP each
        return min(self.times * self.epsilon, likely)


def composed(each: Curve, times: int) -> Curve:
    """The curve of so many runs; of one run its own, in closed form."""
    if isinstance(each, PureCurve):
        return ComposedPureCurve(each.epsilon, times)
    return each if times == 1 else ComposedCurve(each, times)


@dataclass(frozen=True)
class CurveBeside:
    """A mechanism of this curve and another that is (epsilon, delta)-private, on the same records.

    But for a probability of delta the second's loss is at most epsilon, and a curve never rises: so the first's curve
    at what is left is a bound at every epsilon, positive or not.
    """

    curve: Curve
    epsilon: float
    other_delta: float

    def delta(self, epsilon: ArrayLike) -> Any:
        at = np.asarray(epsilon, dtype=float)
        return np.minimum(self.curve.delta(at - self.epsilon) + self.other_delta, 1.0)

    def log_delta(self, epsilon: ArrayLike) -> Any:
        return log_or_minus_infinity(self.delta(epsilon))

    def reach(self, order: float = 0.0) -> float:
        return self.curve.reach(order) + self.epsilon

"""Privacy curves of whole releases: from epsilon and delta alone, of several runs, of a privately estimated schema.

Each implements `Curve`. `Mechanism.curve` returns one, and `meaning.py` derives from it what a guarantee means.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from privlearn.accounting.compose import composition_delta, pure_composition_delta, renyi_delta
from privlearn.accounting.curves import Curve, GaussianCurve, PureCurve, log_or_minus_infinity


@dataclass(frozen=True)
class EpsilonDeltaCurve(Curve):
    """Any (epsilon, delta)-private mechanism.

    The worst of them reveals everything with probability delta, and is randomised response otherwise
    (Kairouz, Oh and Viswanath 2015).
    """

    epsilon: float
    failure_delta: float = 0.0

    def delta(self, epsilon: ArrayLike) -> Any:
        return self.failure_delta + (1.0 - self.failure_delta) * PureCurve(self.epsilon).delta(epsilon)

    def reach(self, order: float = 0.0) -> float:
        return self.epsilon


@dataclass(frozen=True)
class ZcdpCurve(Curve):
    """Any rho-zCDP mechanism: the smallest of the bounds at several orders, each of which holds."""

    rho: float

    def delta(self, epsilon: ArrayLike) -> Any:
        return np.exp(self.log_delta(epsilon))

    def log_delta(self, epsilon: ArrayLike) -> Any:
        at = np.atleast_1d(np.asarray(epsilon, dtype=float))
        bounds = [min(renyi_delta(order * self.rho, order, one) for order in _ORDERS) for one in at]
        return log_or_minus_infinity(np.reshape(bounds, np.shape(epsilon)))

    def reach(self, order: float = 0.0) -> float:
        return GaussianCurve(math.sqrt(2.0 * self.rho)).reach(order)


# Every order gives a valid bound, so this grid affects only how sharp the smallest one is.
_ORDERS = tuple(1.0 + excess for excess in np.geomspace(1e-2, 1e4, 120).tolist())


@dataclass(frozen=True)
class ComposedCurve(Curve):
    """``times`` mechanisms that have the same curve and independent noise."""

    each: Curve
    times: int

    def delta(self, epsilon: ArrayLike) -> Any:
        """Return the composed bound for epsilon >= 0, and the trivial bound 1 below."""
        at = np.asarray(epsilon, dtype=float)
        bound = np.vectorize(lambda one: composition_delta(self.each, self.times, max(one, 0.0)))(at)
        return np.where(at >= 0, bound, 1.0)

    def reach(self, order: float = 0.0) -> float:
        return self.times * self.each.reach(order)


@dataclass(frozen=True)
class ComposedPureCurve(Curve):
    """``times`` adaptive mechanisms, each epsilon-private; dominated by ``times`` answers of randomised response."""

    epsilon: float
    times: int

    def delta(self, epsilon: ArrayLike) -> Any:
        return np.vectorize(lambda one: pure_composition_delta(self.epsilon, self.times, one))(epsilon)

    def reach(self, order: float = 0.0) -> float:
        by_zcdp = GaussianCurve(math.sqrt(self.times) * self.epsilon).reach(order)  # epsilon^2/2-zCDP each
        return min(self.times * self.epsilon, by_zcdp)


def curve_of_runs(each: Curve, times: int) -> Curve:
    """Return the curve of ``times`` runs. One run, and runs of a pure mechanism, have closed forms."""
    if isinstance(each, PureCurve):
        return ComposedPureCurve(each.epsilon, times)
    return each if times == 1 else ComposedCurve(each, times)


@dataclass(frozen=True)
class JointCurve(Curve):
    """A mechanism of this curve and another that is (epsilon, delta)-private, on the same records.

    The loss of the second mechanism exceeds epsilon with probability at most delta, and a curve is non-increasing.
    So the first mechanism's curve at the remaining epsilon is a bound, also where that epsilon is negative.
    """

    curve: Curve
    epsilon: float
    other_delta: float

    def delta(self, epsilon: ArrayLike) -> Any:
        at = np.asarray(epsilon, dtype=float)
        return np.minimum(self.curve.delta(at - self.epsilon) + self.other_delta, 1.0)

    def reach(self, order: float = 0.0) -> float:
        return self.curve.reach(order) + self.epsilon

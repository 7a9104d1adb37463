"""Privacy curves: delta as a function of epsilon, for each thing that can happen to a data set.

A curve maps every real epsilon to an upper bound of the hockey-stick divergence between the outputs on two
neighbouring data sets, in both directions. Composition needs the bound for all epsilon, not only positive ones;
the negative side follows from the positive one, since H(-e; P, Q) = 1 - exp(-e) + exp(-e) H(e; Q, P).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_ndtr, ndtr

Array = NDArray[np.float64]


class Curve(Protocol):
    """A privacy curve, non-increasing and convex in exp(epsilon)."""

    def delta(self, epsilon: ArrayLike) -> Any:
        """Bound on the hockey-stick divergence at ``epsilon`` (a number or an array)."""

    def log_delta(self, epsilon: ArrayLike) -> Any:
        """Logarithm of ``delta`` for epsilon >= 0, also where ``delta`` itself underflows."""

    def reach(self, order: float = 0.0) -> float:
        """An epsilon beyond which the curve times exp(order * epsilon) is negligible beside its largest value."""


@dataclass(frozen=True)
class PureCurve:
    """Any epsilon-differentially private mechanism; the curve of randomised response, which dominates them all."""

    epsilon: float

    def delta(self, epsilon: ArrayLike) -> Any:
        at = np.asarray(epsilon, dtype=float)
        inside = -np.expm1(at - self.epsilon) / (1.0 + np.exp(-self.epsilon))
        return np.maximum(np.where(at <= -self.epsilon, -np.expm1(at), inside), 0.0)

    def log_delta(self, epsilon: ArrayLike) -> Any:
        return _log(self.delta(epsilon))

    def reach(self, order: float = 0.0) -> float:
        return self.epsilon


@dataclass(frozen=True)
class GaussianCurve:
    """The Gaussian mechanism, ``ratio`` = L2-sensitivity / standard deviation (Balle-Wang 2018, Theorem 8)."""

    ratio: float

    def delta(self, epsilon: ArrayLike) -> Any:
        at = np.asarray(epsilon, dtype=float)
        half, far = self.ratio / 2.0, at / self.ratio
        return np.clip(ndtr(half - far) - np.exp(at + log_ndtr(-half - far)), 0.0, 1.0)

    def log_delta(self, epsilon: ArrayLike) -> Any:
        at = np.asarray(epsilon, dtype=float)
        half, far = self.ratio / 2.0, at / self.ratio
        larger, smaller = log_ndtr(half - far), at + log_ndtr(-half - far)
        return larger + _log(-np.expm1(np.minimum(smaller - larger, 0.0)))

    def reach(self, order: float = 0.0) -> float:
        return self.ratio * (12.0 + self.ratio * (0.5 + order))


@dataclass(frozen=True)
class GaussianObjectiveCurve:
    """Gaussian objective perturbation of a monotone margin loss: ``delta = Gaussian(epsilon - slack)``.

    Proven in docs/theory/objective.md for epsilon >= slack; below -slack it follows because the bound holds in both
    directions, and between the two by the chord, since a privacy curve is convex in exp(epsilon).
    """

    ratio: float
    slack: float

    def delta(self, epsilon: ArrayLike) -> Any:
        at = np.asarray(epsilon, dtype=float)
        right = GaussianCurve(self.ratio).delta(np.abs(at) - self.slack)
        left = -np.expm1(-np.abs(at)) + np.exp(-np.abs(at)) * right
        low, high = -np.expm1(-self.slack) + np.exp(-self.slack) * self._corner, self._corner
        inside = np.clip(at, -self.slack, self.slack)
        share = np.expm1(inside + self.slack) / np.expm1(2.0 * self.slack) if self.slack else 0.0
        chord = (1.0 - share) * low + share * high
        return np.where(np.abs(at) < self.slack, chord, np.where(at >= 0, right, left))

    def log_delta(self, epsilon: ArrayLike) -> Any:
        at = np.asarray(epsilon, dtype=float)
        beyond = GaussianCurve(self.ratio).log_delta(np.maximum(at - self.slack, 0.0))
        return np.where(at < self.slack, _log(self.delta(np.minimum(at, self.slack))), beyond)

    @property
    def _corner(self) -> Any:
        return GaussianCurve(self.ratio).delta(0.0)

    def reach(self, order: float = 0.0) -> float:
        return self.slack + GaussianCurve(self.ratio).reach(order)


def _log(values: Array) -> Any:
    with np.errstate(divide="ignore"):
        return np.log(values)

"""Privacy curves: delta as a function of epsilon, for each thing that can happen to a data set.

A curve maps every real epsilon to an upper bound of the hockey-stick divergence between the outputs on two
neighbouring data sets, in both directions. Composition needs the bound for all epsilon, not only positive ones;
the negative side follows from the positive one, since H(-e; P, Q) = 1 - exp(-e) + exp(-e) H(e; Q, P).
"""

from __future__ import annotations

import math
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
class FreeGaussianCurve:
    """Gaussian noise against a shift of norm at most ``ratio`` that may point anywhere, even after seeing the noise.

    The shift lives in 1 or 2 ``directions``: the loss is at most ratio^2/2 + ratio X, X the norm of a standard normal
    vector of that dimension, so delta(t) = E max(0, 1 - exp(t - ratio^2/2 - ratio X)), in closed form for t >= 0.
    """

    ratio: float
    directions: int

    def delta(self, epsilon: ArrayLike) -> Any:
        at = np.maximum(np.asarray(epsilon, dtype=float), 0.0)
        start = np.maximum((at - self.ratio**2 / 2.0) / self.ratio, 0.0)
        shifted = start + self.ratio
        if self.directions == 1:
            return 2.0 * (ndtr(-start) - np.exp(at + log_ndtr(-shifted)))
        density = np.exp(at - shifted**2 / 2.0)
        tail = math.sqrt(2.0 * math.pi) * self.ratio * np.exp(at + log_ndtr(-shifted))
        return np.clip(np.exp(-(start**2) / 2.0) - density + tail, 0.0, 1.0)

    def log_delta(self, epsilon: ArrayLike) -> Any:
        at, corner = np.asarray(epsilon, dtype=float), self.ratio**2 / 2.0
        beyond = np.maximum(at, corner)
        if self.directions == 1:
            far = math.log(2.0) + GaussianCurve(self.ratio).log_delta(beyond)
        else:  # the first two terms of ``delta`` cancel there
            tail = log_ndtr(-beyond / self.ratio - self.ratio / 2.0)
            far = math.log(math.sqrt(2.0 * math.pi) * self.ratio) + beyond + tail
        return np.where(at < corner, _log(self.delta(np.minimum(at, corner))), far)

    def reach(self, order: float = 0.0) -> float:
        return GaussianCurve(self.ratio).reach(order)


@dataclass(frozen=True)
class GaussianObjectiveCurve:
    """Gaussian objective perturbation: ``delta = Gaussian(epsilon - slack)`` for a monotone margin loss.

    Proven in docs/theory/objective.md for epsilon >= slack; below -slack it follows because the bound holds in both
    directions, and between the two by the chord, since a privacy curve is convex in exp(epsilon). A loss that is not
    monotone leaves the sign of a record's gradient open: ``free_directions`` is then 1 (zero_out) or 2 (replace_one).
    """

    ratio: float
    slack: float
    free_directions: int = 0

    def delta(self, epsilon: ArrayLike) -> Any:
        at = np.asarray(epsilon, dtype=float)
        right = self._core.delta(np.abs(at) - self.slack)
        left = -np.expm1(-np.abs(at)) + np.exp(-np.abs(at)) * right
        low, high = -np.expm1(-self.slack) + np.exp(-self.slack) * self._corner, self._corner
        inside = np.clip(at, -self.slack, self.slack)
        share = np.expm1(inside + self.slack) / np.expm1(2.0 * self.slack) if self.slack else 0.0
        chord = (1.0 - share) * low + share * high
        return np.where(np.abs(at) < self.slack, chord, np.where(at >= 0, right, left))

    def log_delta(self, epsilon: ArrayLike) -> Any:
        at = np.asarray(epsilon, dtype=float)
        beyond = self._core.log_delta(np.maximum(at - self.slack, 0.0))
        return np.where(at < self.slack, _log(self.delta(np.minimum(at, self.slack))), beyond)

    @property
    def _core(self) -> GaussianCurve | FreeGaussianCurve:
        return (
            FreeGaussianCurve(self.ratio, self.free_directions)
            if self.free_directions
            else GaussianCurve(self.ratio)
        )

    @property
    def _corner(self) -> Any:
        return self._core.delta(0.0)

    def reach(self, order: float = 0.0) -> float:
        return self.slack + self._core.reach(order)


def _log(values: Array) -> Any:
    with np.errstate(divide="ignore"):
        return np.log(values)

"""Privacy curves: delta as a function of epsilon, for single mechanisms.

A curve maps every real epsilon to an upper bound of the hockey-stick divergence between the outputs on two
neighbouring data sets, in both directions. Composition needs the bound for all epsilon, not only positive ones;
the negative side follows from the positive one, since H(-e; P, Q) = 1 - exp(-e) + exp(-e) H(e; Q, P).

Nearly equal numbers are never subtracted, so that tiny epsilons and ratios keep their digits. The remaining rounding
error is added (`_ROUNDING`), so that a computed delta is not below the true one. See docs/theory/composition.md.

>>> float(GaussianCurve(1.0).delta(1.0)) > float(GaussianCurve(0.5).delta(1.0))  # more noise, smaller delta
True
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from privlearn.accounting.functions import erfcx
from privlearn.arrays import Array

_UNIT = 2.0**-53  # unit roundoff of doubles
_ROUNDING = 2.0**-42
"""Relative error of the values computed here, in addition to that of the exponents: `erfcx` is good to a few 2^-53, and
no difference loses more than a factor of 80."""

_NARROW = 0.5  # up to this ratio, a difference of Mills ratios is integrated
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(6)  # for that integral
_FAR, _TERMS = 8.0, 20  # of the continued fraction: beyond 8 its 20 terms are good to all digits


class Curve(Protocol):
    """A privacy curve, non-increasing and convex in exp(epsilon)."""

    @abstractmethod
    def delta(self, epsilon: ArrayLike) -> Any:
        """Return a bound on the hockey-stick divergence at ``epsilon`` (a number or an array)."""

    def log_delta(self, epsilon: ArrayLike) -> Any:
        """Return the logarithm of ``delta`` for epsilon >= 0; curves override it where ``delta`` underflows."""
        return log_or_minus_infinity(self.delta(epsilon))

    @abstractmethod
    def reach(self, order: float = 0.0) -> float:
        """Return an epsilon beyond which the curve times exp(order * epsilon) is negligible."""


@dataclass(frozen=True)
class PureCurve(Curve):
    """Any epsilon-differentially private mechanism; the curve of randomised response, which dominates them all."""

    epsilon: float

    def delta(self, epsilon: ArrayLike) -> Any:
        at = np.asarray(epsilon, dtype=float)
        # Both are computed everywhere, and clipped where they are not used: there they could overflow.
        inside = -np.expm1(np.minimum(at - self.epsilon, 0.0)) / (1.0 + np.exp(-self.epsilon))
        below = -np.expm1(np.minimum(at, 0.0))
        return np.maximum(np.where(at <= -self.epsilon, below, inside), 0.0)

    def reach(self, order: float = 0.0) -> float:
        return self.epsilon


@dataclass(frozen=True)
class GaussianCurve(Curve):
    """The Gaussian mechanism, ``ratio`` = L2-sensitivity / standard deviation (Balle-Wang 2018, Theorem 8).

    Theorem 8's difference of two tails is phi(a) (m(a) - m(b)), where phi is the normal density, m the Mills ratio,
    a = epsilon / ratio - ratio / 2 and b = a + ratio.
    """

    ratio: float

    def delta(self, epsilon: ArrayLike) -> Any:
        at = np.asarray(epsilon, dtype=float)
        return _both_sides(at, np.exp(self.log_delta(np.abs(at))))

    def log_delta(self, epsilon: ArrayLike) -> Any:
        near = (np.asarray(epsilon, dtype=float) - self.ratio**2 / 2.0) / self.ratio
        # Where the nearer point is below 0, its tail is the larger part, and the other term is at most half of it.
        outside = np.maximum(near, 0.0)
        inside = np.minimum(near, 0.0)
        if self.ratio <= _NARROW:
            # Two Mills ratios this close would lose digits in a difference, so their difference is integrated.
            logs = _log_density(near) + np.log(_mills_fall(near, self.ratio))
        else:
            tails = 1.0 - np.exp(_log_density(inside)) * (_mills(-inside) + _mills(inside + self.ratio))
            far = _log_density(outside) + np.log(_mills(outside) - _mills(outside + self.ratio))
            logs = np.where(near > 0.0, far, np.log(tails))
        # `near` has a few roundings, which the squares in the exponents of the densities magnify.
        exponent = 4.0 * _UNIT * np.abs(near) * (np.abs(near) + self.ratio)
        return np.minimum(logs + exponent + _ROUNDING, 0.0)

    def reach(self, order: float = 0.0) -> float:
        # Twelve standard deviations: a normal number lies beyond with a probability below 2e-33.
        return self.ratio * (12.0 + self.ratio * (0.5 + order))


@dataclass(frozen=True)
class FreeGaussianCurve(Curve):
    """Gaussian noise against a shift of norm at most ``ratio`` along a line, either way, even after seeing the noise.

    The loss is at most ratio^2/2 + ratio |Z|, Z a standard normal number, so
    delta(t) = E max(0, 1 - exp(t - ratio^2/2 - ratio |Z|)), in closed form for t >= 0.
    """

    ratio: float

    def delta(self, epsilon: ArrayLike) -> Any:
        return np.exp(self.log_delta(np.maximum(np.asarray(epsilon, dtype=float), 0.0)))

    def log_delta(self, epsilon: ArrayLike) -> Any:
        at, corner = np.asarray(epsilon, dtype=float), self.ratio**2 / 2.0
        # Both forms are evaluated everywhere, each clipped to where it holds: elsewhere it could overflow.
        below, beyond = np.minimum(at, corner), np.maximum(at, corner)
        width = self.ratio / math.sqrt(2.0)
        close = np.log(math.erf(width) + np.expm1(-below) * np.exp(below - corner) * erfcx(width))
        far = math.log(2.0) + GaussianCurve(self.ratio).log_delta(beyond)
        return np.minimum(np.where(at < corner, close, far) + _ROUNDING, 0.0)

    def reach(self, order: float = 0.0) -> float:
        return GaussianCurve(self.ratio).reach(order)


@dataclass(frozen=True)
class SummedCurve(Curve):
    """The largest of several losses: deltas add up, to at most 1. Each part is a count and a curve.

    Clipped at 1 it is a bound, but not convex there, which composition does not need.
    """

    parts: tuple[tuple[int, GaussianCurve], ...]

    def delta(self, epsilon: ArrayLike) -> Any:
        at = np.asarray(epsilon, dtype=float)
        return np.minimum(sum(count * curve.delta(at) for count, curve in self.parts), 1.0)

    def log_delta(self, epsilon: ArrayLike) -> Any:
        logs = [math.log(count) + curve.log_delta(epsilon) for count, curve in self.parts]
        return np.minimum(np.logaddexp.reduce(logs), 0.0)

    def reach(self, order: float = 0.0) -> float:
        return max(curve.reach(order) for _, curve in self.parts)


@dataclass(frozen=True)
class GaussianObjectiveCurve(Curve):
    """Gaussian objective perturbation: ``delta = Gaussian(epsilon - slack)`` for a monotone margin loss.

    Proven in docs/theory/objective.md for epsilon >= slack; below -slack it follows because the bound holds in both
    directions, and between the two by the chord, since a privacy curve is convex in exp(epsilon). A loss that is not
    monotone leaves the sign of a record's gradient open: ``has_open_sign``.
    The softmax loss of K classes has K - 1 ``corners``, whose deltas add up (docs/theory/softmax.md).

    ``other_ratio`` is the ratio of further Gaussian noise, of a centring before and of the solver's tolerance after:
    each of the two may depend on the noisy result of the other.
    """

    ratio: float
    slack: float
    has_open_sign: bool = False
    corners: int = 1
    other_ratio: float = 0.0

    def delta(self, epsilon: ArrayLike) -> Any:
        at = np.asarray(epsilon, dtype=float)
        outside = _both_sides(at, self._core.delta(np.maximum(np.abs(at) - self.slack, 0.0)))
        return np.where(np.abs(at) < self.slack, self._chord(at), outside)

    def log_delta(self, epsilon: ArrayLike) -> Any:
        at = np.asarray(epsilon, dtype=float)
        beyond = self._core.log_delta(np.maximum(at - self.slack, 0.0))
        if np.all(at >= self.slack):
            return beyond
        return np.where(
            at < self.slack, log_or_minus_infinity(self.delta(np.minimum(at, self.slack))), beyond
        )

    @property
    def _core(self) -> GaussianCurve | FreeGaussianCurve | SummedCurve:
        joint = math.hypot(self.ratio, self.other_ratio)
        if self.has_open_sign:
            return FreeGaussianCurve(joint)
        if not self.other_ratio and self.corners == 1:
            return GaussianCurve(joint)
        parts = ((self.corners, GaussianCurve(joint)),)
        # At the corner 0, which costs nothing without other noise, that noise is alone.
        return SummedCurve((*parts, (1, GaussianCurve(self.other_ratio))) if self.other_ratio else parts)

    def _chord(self, at: Array) -> Any:
        """Interpolate linearly in exp(epsilon) between -slack and slack."""
        if not self.slack:
            return 0.0  # nothing lies between
        # Values outside are not used, but must not overflow.
        inside = np.clip(at, -self.slack, self.slack)
        corner = self._core.delta(0.0)
        opposite = _both_sides(np.asarray(-self.slack), corner)
        far = np.expm1(inside - self.slack) / math.expm1(-2.0 * self.slack)
        near = np.exp(inside - self.slack) * np.expm1(-inside - self.slack) / math.expm1(-2.0 * self.slack)
        return (far * opposite + near * corner) * (1.0 + _ROUNDING)

    def reach(self, order: float = 0.0) -> float:
        return self.slack + self._core.reach(order)


@dataclass(frozen=True)
class GaussianObjectiveCurves:
    """The curve of any ratio, with further noise of a fixed ratio and of a ratio that is ``share`` times the first."""

    slack: float
    has_open_sign: bool = False
    corners: int = 1
    other_ratio: float = 0.0
    share: float = 0.0

    def __call__(self, ratio: float) -> GaussianObjectiveCurve:
        other_ratio = math.hypot(self.share * ratio, self.other_ratio)
        return GaussianObjectiveCurve(ratio, self.slack, self.has_open_sign, self.corners, other_ratio)


def _both_sides(at: Array, right: Any) -> Any:
    """Return a curve at any epsilon from its values at the absolute value."""
    left = -np.expm1(-np.abs(at)) + np.exp(-np.abs(at)) * right
    return np.where(at >= 0, right, left)


def _log_density(x: Array) -> Array:
    return -(x**2) / 2.0 - math.log(2.0 * math.pi) / 2.0


def _mills(x: Array) -> Array:
    """Return the normal tail over its density, m(x) = integral of exp(-x t - t^2 / 2) dt over t > 0."""
    return np.asarray(math.sqrt(math.pi / 2.0) * erfcx(x / math.sqrt(2.0)))


def _mills_fall(start: Array, width: float) -> Array:
    """Return m(start) - m(start + width) for a narrow width: the integral of -m' by Gauss-Legendre, positive terms."""
    points = start[..., np.newaxis] + width * (1.0 + _NODES) / 2.0
    return np.asarray(width / 2.0 * (_mills_slope(points) @ _WEIGHTS))


def _mills_slope(x: Array) -> Array:
    """Return -m'(x) = 1 - x m(x); far out, where the two terms cancel, m(x) / (x + 2 / (x + 3 / (x + ...)))."""
    ratios = _mills(x)
    if np.all(x <= _FAR):
        return np.asarray(1.0 - x * ratios)
    far = np.maximum(x, _FAR)
    rest = np.zeros_like(far)
    for term in range(_TERMS, 0, -1):
        rest = term / (far + rest)
    return np.where(x > _FAR, ratios * rest, 1.0 - np.minimum(x, _FAR) * ratios)


def log_or_minus_infinity(values: Array) -> Any:
    with np.errstate(divide="ignore"):
        return np.log(values)

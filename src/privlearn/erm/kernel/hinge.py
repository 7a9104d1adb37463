"""The kernel machine with hinge loss: steps along pairs of coordinates of its dual."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privlearn.arrays import Array
from privlearn.erm.kernel.gap import hinge_gap, rough_hinge_gap
from privlearn.erm.kernel.newton import DualPoint, newton_step
from privlearn.erm.kernel.problem import SignedGram
from privlearn.erm.problem import Progress
from privlearn.heavy import linalg

NEAR = 0.005  # distance of the margins from where they belong at which Newton's method is quicker
FLAT = 1e-12  # relative: a smaller square or determinant is rounding


def descend_in_pairs(gram: SignedGram, weights: Array) -> DualPoint:
    """From 0 until all margins are `NEAR` where they belong, or for as many steps as there are rows."""
    search = _PairSearch(gram, weights)
    for _ in range(gram.count):
        first = search.furthest(search.pull)
        if abs(search.open[first]) <= NEAR:
            break
        search.move(first, search.partner(first))
    return DualPoint(np.abs(search.shares), 1.0 - gram.signs * search.pull)


class _PairSearch:
    def __init__(self, gram: SignedGram, weights: Array) -> None:
        self._gram = gram
        self._low = np.minimum(gram.signs * weights, 0.0)
        self._high = np.maximum(gram.signs * weights, 0.0)
        self._down = np.where(self._low < 0, -np.inf, 0.0)  # the least and
        self._up = np.where(self._high > 0, np.inf, 0.0)  # the largest pull that a row can follow
        self._squares = np.maximum(gram.diagonal, FLAT * (gram.largest or 1.0)) / gram.scale
        self.shares: Array = np.zeros(gram.count)
        self.pull: Array = gram.signs.copy()
        self.open: Array = np.empty(gram.count)

    def furthest(self, pull: Array) -> int:
        """The row with the strongest pull of those that it can follow, which are left in `open`."""
        np.maximum(pull, self._down, out=self.open)
        np.minimum(self.open, self._up, out=self.open)  # quicker than clip()
        most, least = int(self.open.argmax()), int(self.open.argmin())
        return most if self.open[most] >= -self.open[least] else least

    def partner(self, first: int) -> int:
        """The row that would be next if ``first`` moved alone."""
        end = self._cut(first, self.shares[first] + self.pull[first] / self._squares[first])
        pull = self._pulled(self.pull.copy(), first, end)
        pull[first] = 0.0
        return self.furthest(pull)

    def move(self, first: int, second: int) -> None:
        """Put both where they are best together.

        The best place for the first row if the second had no limits, then for the second, then for the first
        again, which moves only if the second has met a limit: that is exact, docs/theory/kernel-machine.md says why.
        """
        here, there = self.shares[first], self.shares[second]
        product = self._gram.row(first)[second] / self._gram.scale
        one, other = self._squares[first], self._squares[second]
        determinant = max(one * other - product**2, FLAT * one * other)
        joint = (other * self.pull[first] - product * self.pull[second]) / determinant
        near = self._cut(first, here + joint)
        far = self._cut(second, there + (self.pull[second] - product * (near - here)) / other)
        near = self._cut(first, here + (self.pull[first] - product * (far - there)) / one)
        for row, end in ((first, near), (second, far)):
            self.pull = self._pulled(self.pull, row, end)
            self.shares[row] = end
            self._down[row] = -np.inf if end > self._low[row] else 0.0
            self._up[row] = np.inf if end < self._high[row] else 0.0

    def _cut(self, row: int, share: float) -> float:
        return float(min(max(share, self._low[row]), self._high[row]))

    def _pulled(self, pull: Array, row: int, end: float) -> Array:
        """``pull`` after that row's move; its array is used again."""
        step = (end - self.shares[row]) / self._gram.scale
        pulled: Array = linalg.blas.daxpy(self._gram.row(row), pull, a=-step)
        return pulled


MAX_ROUNDS = 60
STALLED = 8  # rounds without a smaller gap: another method is needed
MAX_CENTRES = 30  # proximal steps on one working set
MAX_STEPS = 30  # Newton steps for one centre
LEAST_WIDTH = 1e-5  # relative to the largest entry of Q: below, rounding spoils Newton's steps
BAND = 4.0  # widths from the corner within which a row belongs to the working set
LEAST_BAND = 1e-2
PROVABLE = 0.9  # part of the gap below which a proof, which costs more than a round, is likely to succeed
GAIN = 0.001  # part of the gap that a round may leave in its working set


@dataclass(frozen=True, eq=False)
class _RoundedCorner:
    """The `MarginFunction` of one proximal step: alpha stays between ``low`` and ``high``.

    ``corner`` is 1 less what rows outside the set contribute.
    """

    centre: Array
    low: Array
    high: Array
    corner: Array
    width: float

    def slope(self, margins: Array) -> Array:
        return -np.clip(self._pull(margins), self.low, self.high)

    def curvature(self, margins: Array) -> Array:
        return np.where(self.sides(margins) == 0, 1.0 / self.width, 0.0)

    def sides(self, margins: Array) -> NDArray[np.int8]:
        """-1 where alpha is at its low end, 1 where it is at its high end, 0 between."""
        pull = self._pull(margins)
        sides: NDArray[np.int8] = (pull >= self.high).astype(np.int8) - (pull <= self.low)
        return sides

    def _pull(self, margins: Array) -> Array:
        return self.centre + (self.corner - margins) / self.width


class HingeDual:
    """The search for the dual's minimiser; `alpha` is the best point so far, `steps` the systems solved."""

    def __init__(self, gram: SignedGram, weights: Array, total: float) -> None:
        self._gram, self._weights, self._total = gram, weights, total
        self.alpha: Array = np.zeros(gram.count)
        self.steps = 0

    def minimise(self, gap: float, progress: Progress | None = None) -> float:
        """Improve `alpha` until the gap is proven to be at most ``gap``; infinite if the method gets stuck."""
        point = descend_in_pairs(self._gram, self._weights)
        least, since_least = math.inf, 0
        for _ in range(MAX_ROUNDS):
            self.alpha = point.alpha
            reached = rough_hinge_gap(self._weights, self._total, point.alpha, point.margins)
            least, since_least = (reached, 0) if reached < least else (least, since_least + 1)
            if since_least == STALLED:
                break
            provable = reached <= PROVABLE * gap
            if provable:
                reached = hinge_gap(self._gram, self._weights, self._total, point.alpha)
            if progress is not None:
                progress(self.steps, reached)
            if provable and reached <= gap:
                return reached
            if provable:  # the margins had gathered rounding errors on their way
                point = DualPoint(point.alpha, self._gram.times(point.alpha))
            point = self._improve(point, reached, max(GAIN * reached, 0.3 * gap))
        return math.inf

    def _improve(self, point: DualPoint, reached: float, goal: float) -> DualPoint:
        """Minimise over the rows near the corner or on its wrong side, the others fixed."""
        alpha, excess = point.alpha, point.margins - 1.0
        wrong = (self._weights - alpha) * (excess < 0) + alpha * (excess > 0) > 0
        near = np.abs(excess) < max(BAND * _width(reached, self._gram), LEAST_BAND)
        rows = np.flatnonzero(wrong | near)
        part = self._gram.restricted(rows)
        corner = 1.0 - (point.margins[rows] - part.times(alpha[rows]))
        improved = alpha.copy()
        improved[rows] = self._minimise_part(part, self._weights[rows], corner, alpha[rows], goal)
        return DualPoint(improved, point.margins + self._gram.times(improved - alpha))

    def _minimise_part(
        self, part: SignedGram, weights: Array, corner: Array, alpha: Array, goal: float
    ) -> Array:
        best, least = alpha, math.inf
        for _ in range(MAX_CENTRES):
            point = DualPoint(alpha, part.times(alpha))
            reached = rough_hinge_gap(weights, self._total, alpha, point.margins + (1.0 - corner))
            if reached < least:
                best, least = alpha, reached
            if reached <= goal:
                break
            alpha = self._proximal_step(part, weights, corner, _width(reached, part), point)
        return best

    def _proximal_step(
        self, gram: SignedGram, weights: Array, corner: Array, width: float, point: DualPoint
    ) -> Array:
        """Newton's method, done once no row changes sides.

        Its first step leaves the rows at their ends there and lets the others go: most will stay between.
        """
        centre = point.alpha
        sides = (centre >= weights).astype(np.int8) - (centre <= 0)
        ends = np.where(sides == 0, -np.inf, centre), np.where(sides == 0, np.inf, centre)
        step = _RoundedCorner(centre, *ends, corner, width)
        rounded = _RoundedCorner(centre, np.zeros(len(weights)), weights, corner, width)
        for _ in range(MAX_STEPS):
            point = newton_step(gram, step, point)
            self.steps += 1
            before, sides, step = sides, rounded.sides(point.margins), rounded
            if np.array_equal(sides, before):
                return np.where(sides == 0, np.clip(point.alpha, 0.0, weights), (sides > 0) * weights)
        return np.clip(point.alpha, 0.0, weights)


def _width(gap: float, gram: SignedGram) -> float:
    """About what a proximal step can bridge: found by trial, any width is correct."""
    entry = gram.largest / gram.scale
    return max(min(0.5 * math.sqrt(gap), max(1.0, entry)), LEAST_WIDTH * entry)

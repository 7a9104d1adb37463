"""The kernel machine with hinge loss, minimised in its dual in two stages.

`descend_in_pairs` moves two coordinates at a time, until all margins are near their targets. `HingeDual` then repeats
Newton's method on the rows near the corner, with the corner rounded (a proximal step). `hinge_gap` certifies the
result.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privlearn.arrays import Array
from privlearn.imports import linalg
from privlearn.solvers.kernel.gap import hinge_gap, rough_hinge_gap
from privlearn.solvers.kernel.newton import DualPoint, newton_step
from privlearn.solvers.kernel.problem import SignedGram
from privlearn.solvers.problem import Progress

NEAR = 0.005  # distance of the margins from their targets at which Newton's method is faster
FLAT = 1e-12  # relative: a smaller square or determinant is rounding


def descend_in_pairs(gram: SignedGram, weights: Array) -> DualPoint:
    """Descend from 0 until all margins are within `NEAR` of their targets, or for one step per row."""
    search = _PairSearch(gram, weights)
    for _ in range(gram.count):
        first = search.furthest(search.pull)
        if abs(search.open[first]) <= NEAR:
            break
        search.move(first, search.partner(first))
    return DualPoint(np.abs(search.shares), 1.0 - gram.signs * search.pull)


class _PairSearch:
    """Coordinates of the dual so far, as signed ``shares``, and the derivative of the dual in each, its ``pull``."""

    def __init__(self, gram: SignedGram, weights: Array) -> None:
        self._gram = gram
        self._low = np.minimum(gram.signs * weights, 0.0)
        self._high = np.maximum(gram.signs * weights, 0.0)
        # Limits of the pull that can still move a row: 0 in a direction in which its share is at its end.
        self._down = np.where(self._low < 0, -np.inf, 0.0)
        self._up = np.where(self._high > 0, np.inf, 0.0)
        self._squares = np.maximum(gram.diagonal, FLAT * (gram.max_entry or 1.0)) / gram.scale
        self.shares: Array = np.zeros(gram.count)
        self.pull: Array = gram.signs.copy()
        self.open: Array = np.empty(gram.count)

    def furthest(self, pull: Array) -> int:
        """Return the row with the strongest pull that can still move it; store these pulls in `open`."""
        np.maximum(pull, self._down, out=self.open)
        np.minimum(self.open, self._up, out=self.open)  # faster than clip()
        highest, lowest = int(self.open.argmax()), int(self.open.argmin())
        return highest if self.open[highest] >= -self.open[lowest] else lowest

    def partner(self, first: int) -> int:
        """Return the row that would be next if ``first`` moved alone."""
        end = self._cut(first, self.shares[first] + self.pull[first] / self._squares[first])
        pull = self._update_pull(self.pull.copy(), first, end)
        pull[first] = 0.0
        return self.furthest(pull)

    def move(self, first: int, second: int) -> None:
        """Move both rows to their joint optimum.

        Solve for the first row as if the second had no limits, then for the second, then for the first again, which
        moves only if the second has reached a limit. This is exact (docs/theory/kernel-machine.md).
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
            self.pull = self._update_pull(self.pull, row, end)
            self.shares[row] = end
            self._down[row] = -np.inf if end > self._low[row] else 0.0
            self._up[row] = np.inf if end < self._high[row] else 0.0

    def _cut(self, row: int, share: float) -> float:
        return float(min(max(share, self._low[row]), self._high[row]))

    def _update_pull(self, pull: Array, row: int, end: float) -> Array:
        """Return ``pull`` after that row's move; its array is reused."""
        step = (end - self.shares[row]) / self._gram.scale
        updated: Array = linalg.blas.daxpy(self._gram.row(row), pull, a=-step)
        return updated


MAX_ROUNDS = 60  # of `HingeDual.minimise`
STALLED = 8  # rounds without a smaller gap: another method is needed
MAX_CENTRES = 30  # proximal steps on one working set
MAX_STEPS = 30  # Newton steps for one centre
MIN_WIDTH = 1e-5  # relative to the maximal entry of Q: below, rounding disturbs Newton's steps
BAND = 4.0  # widths from the corner within which a row belongs to the working set
MIN_BAND = 1e-2  # the same in units of the margin, at least
# Part of the gap below which a certificate, which costs more than a round, is likely to succeed.
PROVABLE = 0.9
GAIN = 0.001  # part of the gap that a round may leave in its working set


@dataclass(frozen=True, eq=False)
class _RoundedCorner:
    """The `MarginFunction` of one proximal step: alpha stays between ``low`` and ``high``.

    ``corner`` is 1 minus the contribution of rows outside the set.
    """

    centre: Array
    low: Array
    high: Array
    corner: Array
    width: float

    def first_derivative(self, margins: Array) -> Array:
        return -np.clip(self._pull(margins), self.low, self.high)

    def second_derivative(self, margins: Array) -> Array:
        return np.where(self.sides(margins) == 0, 1.0 / self.width, 0.0)

    def sides(self, margins: Array) -> NDArray[np.int8]:
        """Return -1 where alpha is at its low end, 1 where it is at its high end, 0 between."""
        pull = self._pull(margins)
        sides: NDArray[np.int8] = (pull >= self.high).astype(np.int8) - (pull <= self.low)
        return sides

    def _pull(self, margins: Array) -> Array:
        return self.centre + (self.corner - margins) / self.width


class HingeDual:
    """Search for the dual's minimiser; `alpha` is the best point so far, `steps` the systems solved."""

    def __init__(self, gram: SignedGram, weights: Array, total: float) -> None:
        self._gram, self._weights, self._total = gram, weights, total
        self.alpha: Array = np.zeros(gram.count)
        self.steps = 0

    def minimise(self, gap: float, progress: Progress | None = None) -> float:
        """Improve `alpha` until its gap is proven to be at most ``gap``; return it, or infinity if stalled."""
        point = descend_in_pairs(self._gram, self._weights)
        smallest, rounds_since_best = math.inf, 0
        for _ in range(MAX_ROUNDS):
            self.alpha = point.alpha
            reached = rough_hinge_gap(self._weights, self._total, point.alpha, point.margins)
            smallest, rounds_since_best = (
                (reached, 0) if reached < smallest else (smallest, rounds_since_best + 1)
            )
            if rounds_since_best == STALLED:
                break
            provable = reached <= PROVABLE * gap
            if provable:
                reached = hinge_gap(self._gram, self._weights, self._total, point.alpha)
            if progress is not None:
                progress(self.steps, reached)
            if provable and reached <= gap:
                return reached
            if provable:  # the margins had accumulated rounding errors
                point = DualPoint(point.alpha, self._gram.times(point.alpha))
            point = self._improve(point, reached, max(GAIN * reached, 0.3 * gap))
        return math.inf

    def _improve(self, point: DualPoint, reached: float, target: float) -> DualPoint:
        """Minimise over the rows near the corner or on its wrong side, the others fixed."""
        alpha, excess = point.alpha, point.margins - 1.0
        wrong = (self._weights - alpha) * (excess < 0) + alpha * (excess > 0) > 0
        near = np.abs(excess) < max(BAND * _width(reached, self._gram), MIN_BAND)
        rows = np.flatnonzero(wrong | near)
        part = self._gram.restrict(rows)
        corner = 1.0 - (point.margins[rows] - part.times(alpha[rows]))
        improved = alpha.copy()
        improved[rows] = self._minimise_part(part, self._weights[rows], corner, alpha[rows], target)
        return DualPoint(improved, point.margins + self._gram.times(improved - alpha))

    def _minimise_part(
        self, part: SignedGram, weights: Array, corner: Array, alpha: Array, target: float
    ) -> Array:
        """Return the working set's ``alpha`` after proximal steps, until its rough gap is at most ``target``."""
        best, smallest = alpha, math.inf
        for _ in range(MAX_CENTRES):
            point = DualPoint(alpha, part.times(alpha))
            reached = rough_hinge_gap(weights, self._total, alpha, point.margins + (1.0 - corner))
            if reached < smallest:
                best, smallest = alpha, reached
            if reached <= target:
                break
            alpha = self._proximal_step(part, weights, corner, _width(reached, part), point)
        return best

    def _proximal_step(
        self, gram: SignedGram, weights: Array, corner: Array, width: float, point: DualPoint
    ) -> Array:
        """Run Newton's method until no row changes sides.

        Its first step fixes the rows at their ends and frees the others: most will stay between.
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
    """Return the smoothing width of a proximal step; tuned by experiments, any width is correct."""
    entry = gram.max_entry / gram.scale
    return max(min(0.5 * math.sqrt(gap), max(1.0, entry)), MIN_WIDTH * entry)

"""The hinge loss of a kernel machine: the proximal point method on working sets.

The dual, ``minimise (1/2) alpha' Q alpha - sum_i alpha_i`` over ``0 <= alpha_i <= weight_i``, may be singular. Adding
``(width/2) |alpha - centre|^2`` makes it the dual of a hinge whose corner is rounded over ``width``, which
Newton's method solves in a few steps; moving the centre to the solution again and again leads to the minimiser
for whatever widths. A width in keeping with the gap keeps the steps few. Rows far from the
corner stay at their bounds meanwhile, so that most steps read a small part of the matrix.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privlearn.erm.kernel_gap import hinge_gap, rough_hinge_gap
from privlearn.erm.kernel_gram import SignedGram
from privlearn.erm.kernel_newton import DualPoint, newton_step
from privlearn.erm.losses import Array
from privlearn.erm.problem import Progress

MAX_ROUNDS = 60
MAX_CENTRES = 30  # proximal steps on one working set
MAX_STEPS = 30  # Newton steps for one centre
FIRST_WIDTH = 0.1  # of the warm start
RESTLESS = 0.003  # share of rows still changing sides at which a warm start is good enough
LEAST_WIDTH = 1e-5  # relative to the largest entry of Q: below, rounding spoils Newton's steps
BAND = 10.0  # widths from the corner within which a row belongs to the working set
LEAST_BAND = 1e-2
GAIN = 0.01  # part of the gap that a round may leave in its working set


@dataclass(frozen=True, eq=False)
class _RoundedCorner:
    """The `MarginFunction` of one proximal step; ``corner`` is 1 less what rows outside the set contribute."""

    centre: Array
    weights: Array
    corner: Array
    width: float

    def slope(self, margins: Array) -> Array:
        return -np.clip(self._pull(margins), 0.0, self.weights)

    def curvature(self, margins: Array) -> Array:
        return np.where(self.sides(margins) == 0, 1.0 / self.width, 0.0)

    def sides(self, margins: Array) -> NDArray[np.int8]:
        """-1 where alpha is at 0, 1 where it is at its weight, 0 between."""
        pull = self._pull(margins)
        sides: NDArray[np.int8] = (pull >= self.weights).astype(np.int8) - (pull <= 0)
        return sides

    def _pull(self, margins: Array) -> Array:
        return self.centre + (self.corner - margins) / self.width


class HingeDual:
    """The search for the dual's minimiser; `alpha` is the best point so far, `steps` the systems solved."""

    def __init__(self, gram: SignedGram, weights: Array, total: float) -> None:
        self._gram, self._weights, self._total = gram, weights, total
        self.alpha: Array = 0.5 * weights
        self.steps = 0

    def start_near(self, alpha: Array) -> None:
        """Begin with the minimiser of a rounded hinge, found from a point that may lie outside the box."""
        rounded = _RoundedCorner(0.5 * self._weights, self._weights, np.ones(len(alpha)), FIRST_WIDTH)
        self.alpha = self._proximal_step(
            self._gram, rounded, DualPoint(alpha, self._gram.times(alpha)), RESTLESS
        )

    def minimise(self, gap: float, progress: Progress | None = None) -> float:
        """Improve `alpha` until the gap is proven to be at most ``gap`` or the rounds are used up."""
        reached = math.inf
        for _ in range(MAX_ROUNDS):
            margins = self._gram.times(self.alpha)
            reached = rough_hinge_gap(self._weights, self._total, self.alpha, margins)
            if reached <= gap / 2.0:  # the proof costs more than a round
                reached = hinge_gap(self._gram, self._weights, self._total, self.alpha)
            if progress is not None:
                progress(self.steps, reached)
            if reached <= gap:
                break
            self._improve(margins, reached, max(GAIN * reached, 0.3 * gap))
        return reached

    def _improve(self, margins: Array, reached: float, goal: float) -> None:
        """Minimise over the rows near the corner or on its wrong side, the others fixed."""
        excess = margins - 1.0
        wrong = (self._weights - self.alpha) * (excess < 0) + self.alpha * (excess > 0) > 0
        near = np.abs(excess) < max(BAND * _width(reached, self._gram), LEAST_BAND)
        rows = np.flatnonzero(wrong | near)
        part = self._gram.restricted(rows)
        corner = 1.0 - (margins[rows] - part.times(self.alpha[rows]))
        improved = self.alpha.copy()
        improved[rows] = self._minimise_part(part, self._weights[rows], corner, self.alpha[rows], goal)
        self.alpha = improved

    def _minimise_part(
        self, part: SignedGram, weights: Array, corner: Array, alpha: Array, goal: float
    ) -> Array:
        best, least = alpha, math.inf
        for _ in range(MAX_CENTRES):
            margins = part.times(alpha)
            reached = rough_hinge_gap(weights, self._total, alpha, margins + (1.0 - corner))
            if reached < least:
                best, least = alpha, reached
            if reached <= goal:
                break
            rounded = _RoundedCorner(alpha, weights, corner, _width(reached, part))
            alpha = self._proximal_step(part, rounded, DualPoint(alpha, margins))
        return best

    def _proximal_step(
        self, gram: SignedGram, rounded: _RoundedCorner, point: DualPoint, restless: float = 0.0
    ) -> Array:
        """Newton's method is done once no row changes sides, or only that share of them."""
        weights, sides = rounded.weights, None
        for _ in range(MAX_STEPS):
            before, sides = sides, rounded.sides(point.margins)
            if before is not None and np.mean(sides != before) <= restless:
                return np.where(sides == 0, np.clip(point.alpha, 0.0, weights), (sides > 0) * weights)
            point = newton_step(gram, rounded, point)
            self.steps += 1
        return np.clip(point.alpha, 0.0, weights)


def _width(gap: float, gram: SignedGram) -> float:
    """About what a proximal step can bridge: found by trial, any width is correct."""
    entry = gram.largest / gram.scale
    return max(min(0.5 * math.sqrt(gap), max(1.0, entry)), LEAST_WIDTH * entry)

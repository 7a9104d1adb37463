"""Directions from a sample of the rows: where a pass over all of them costs most, few of those are needed.

The sample's Hessian is near that of all rows, and each step over all rows tells by how much it errs: the directions are
those of L-BFGS around it. How a point is found is of no consequence for what is certified of it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from privlearn.arrays import Array
from privlearn.erm.descent import Directions
from privlearn.erm.newton import POOR, conjugate_gradients, two_loops
from privlearn.erm.objective import Objective, Point

PRECISION = 0.03  # relative residual of a direction: well below what the sample itself errs by

MOST_POOR = 4  # steps in a row, each of which has taught where the sample errs, before others take over


class SampledHessian:
    """Quasi-Newton directions (see `descent.Directions`), and others once these are poor.

    Parameters
    ----------
    sample : Objective
        The same objective of some of the rows, in memory.
    start : array
        A point near the minimiser, where the sample's curvatures are taken.
    otherwise : callable
        Makes the directions that take over.
    """

    def __init__(self, sample: Objective, start: Array, otherwise: Callable[[], Directions]) -> None:
        self._sample = sample
        self._curvatures = sample.curvatures(sample.at(start))
        self._precondition = sample.preconditioner(self._curvatures)
        self._pairs: list[tuple[Array, Array]] = []
        self._otherwise = otherwise
        self._instead: Directions | None = None
        self._poor = 0

    def propose(self, point: Point) -> Array:
        if self._instead is not None:
            return self._instead.propose(point)
        return -two_loops(self._pairs, self._solve, point.gradient)

    def learn(self, before: Point, after: Point) -> None:
        if self._instead is not None:
            self._instead.learn(before, after)
            return
        step, change = after.coefficients - before.coefficients, after.gradient - before.gradient
        if float(step @ change) > 0:
            self._pairs.append((step, change))
        self._poor = self._poor + 1 if after.norm > POOR * before.norm else 0
        if self._poor == MOST_POOR:
            self._instead = self._otherwise()

    def _solve(self, vector: Array) -> Array:
        return conjugate_gradients(
            lambda search: self._sample.hessian_product(self._curvatures, search),
            self._precondition,
            vector,
            PRECISION * float(np.linalg.norm(vector)),
        )

"""Newton's method with conjugate gradients: memory for the non-zeros and a few vectors of length d."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from privlearn.erm.losses import Array
from privlearn.erm.objective import Point

MAX_PRODUCTS = 2000  # Hessian products for one direction
TIGHTEST = 1e-2  # relative residual asked of directions while the steps are good
POOR = 0.5  # a step that leaves more of the gradient than this was poor
MOST_PRECISE = 1e-8  # relative residual that conjugate gradients can still reach


class Curved(Protocol):
    """An objective whose Hessian is known by its products."""

    def curvatures(self, point: Point) -> Array: ...

    def curvatures_between(self, one: Point, other: Point) -> Array: ...

    def hessian_product(self, curvatures: Array, vector: Array) -> Array: ...

    def hessian_diagonal(self, curvatures: Array) -> Array: ...


class ConjugateGradients:
    """Truncated Newton directions (see `descent.Directions`), preconditioned by the Hessian's diagonal."""

    def __init__(self, objective: Curved) -> None:
        self._objective = objective
        self._loosest = self._precision = 0.25
        self._jumped_from: Point | None = None

    def propose(self, point: Point) -> Array:
        if self._jumped_from is None:
            curvatures = self._objective.curvatures(point)
        else:
            curvatures = self._objective.curvatures_between(self._jumped_from, point)
        diagonal = self._objective.hessian_diagonal(curvatures)
        direction = np.zeros_like(point.gradient)
        residual = -point.gradient
        scaled = residual / diagonal
        search, energy = scaled.copy(), float(residual @ scaled)
        target = self._precision * point.norm
        for _ in range(MAX_PRODUCTS):
            product = self._objective.hessian_product(curvatures, search)
            length = energy / float(search @ product)
            direction += length * search
            residual -= length * product
            if float(np.linalg.norm(residual)) <= target:
                break
            scaled = residual / diagonal
            energy, previous = float(residual @ scaled), energy
            search = scaled + (energy / previous) * search
        return direction

    def learn(self, before: Point, after: Point) -> None:
        """Ask for more precise directions as the steps become good, and for ever after a poor one.

        A loose direction leaves out where the objective is flattest; if it is loosened again after each good step,
        the descent may zigzag without end.
        """
        left = after.norm / before.norm
        self._jumped_from = before if left > POOR else None
        if left > POOR:
            self._loosest = max(0.5 * self._loosest, MOST_PRECISE)
        self._precision = min(self._loosest, max(TIGHTEST, left))

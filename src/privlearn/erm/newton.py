"""Newton's method with a factorised Hessian, for dimensions whose square fits in memory.

Only the gradient has to be exact: it alone enters the certificate. So the Hessian is summed in single
precision where that is accurate enough, kept for several steps while it pays, and between two factorisations
corrected by the secant pairs of the steps (BFGS updates of its inverse, by the two-loop recursion).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg

from privlearn.erm.losses import Array
from privlearn.erm.objective import Objective, Point

SINGLE_PRECISION_LIMIT = 1e-6  # relative size of Lambda below which single precision would drown it
SLOW = 0.1  # a step that leaves more of the gradient than this asks for a new Hessian
POOR = 0.5  # one that leaves more than this has jumped across corners


class FactorisedHessian:
    """Newton and quasi-Newton directions (see `descent.Directions`)."""

    def __init__(self, objective: Objective) -> None:
        self._objective = objective
        strongest = objective.loss.smoothness * objective.norm_bound**2
        self._single = objective.regularization > SINGLE_PRECISION_LIMIT * strongest
        self._factor: Any = None
        self._jumped_from: Point | None = None
        self._pairs: list[tuple[Array, Array]] = []

    def propose(self, point: Point) -> Array:
        if self._factor is None:
            self._factorise(point)
        direction = -self._apply_inverse(point.gradient)
        if not float(direction @ point.gradient) < 0:  # single precision was not enough
            self._single = False
            self._factorise(point)
            direction = -self._apply_inverse(point.gradient)
        return direction

    def learn(self, before: Point, after: Point) -> None:
        step, change = after.coefficients - before.coefficients, after.gradient - before.gradient
        self._jumped_from = before if after.norm > POOR * before.norm else None
        if after.norm > SLOW * before.norm:
            self._factor = None
        elif float(step @ change) > 0:
            self._pairs.append((step, change))

    def _factorise(self, point: Point) -> None:
        self._pairs = []
        gram = self._gram(point)
        self._factor, ridge = cholesky(gram, self._objective.regularization)
        if self._single and ridge > self._objective.regularization:
            self._single = False
            self._factorise(point)

    def _gram(self, point: Point) -> Array:
        kind = np.float32 if self._single else np.float64
        if self._jumped_from is None:
            curvatures = self._objective.curvatures(point)
        else:
            curvatures = self._objective.curvatures_between(self._jumped_from, point)
        return self._objective.rows.gram(curvatures, kind)

    def _apply_inverse(self, gradient: Array) -> Array:
        """Two-loop recursion of L-BFGS around the factorised Hessian."""
        vector, shares = gradient.copy(), []
        for step, change in reversed(self._pairs):
            shares.append(float(step @ vector) / float(step @ change))
            vector -= shares[-1] * change
        vector = linalg.cho_solve(self._factor, vector, check_finite=False)
        for (step, change), share in zip(self._pairs, reversed(shares), strict=True):
            vector += (share - float(change @ vector) / float(step @ change)) * step
        return vector


def cholesky(gram: Array, ridge: float) -> tuple[Any, float]:
    """Factor of ``gram + ridge I``, and the ridge; a larger one cures a sum that rounding has made indefinite."""
    while True:
        system = gram.copy()
        system[np.diag_indices_from(system)] += ridge
        try:
            return linalg.cho_factor(system, lower=True, overwrite_a=True, check_finite=False), ridge
        except linalg.LinAlgError:
            ridge = max(10.0 * ridge, 1e-16 * float(np.trace(gram)))

"""Value and gradient of the objective at a point, with a proven bound on the gradient's rounding error.

The bound is derived in docs/theory/solver.md, section "Rounding"; the letters there are the names here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from privlearn.erm.losses import DERIVATIVE_ROUNDING, Array
from privlearn.erm.problem import Problem
from privlearn.erm.rows import Rows, column_squares

UNIT_ROUNDOFF = 2.0**-53
SAFETY = 1.01  # covers the rounding of the bound itself, NORM_SLACK and products of two gammas
UNDERFLOW = 1e-150  # more than underflow takes from a gradient and from the squares in its norm


def gamma(operations: float) -> float:
    """Higham's ``gamma_k = k u / (1 - k u)``: relative error of k roundings in a chain."""
    return operations * UNIT_ROUNDOFF / (1.0 - operations * UNIT_ROUNDOFF)


@dataclass(frozen=True, eq=False)
class Point:
    """The objective at ``coefficients``; ``margins`` are the signed ones, ``sign_i <w, x_i> - offset_i``."""

    coefficients: Array
    margins: Array
    value: float
    gradient: Array
    norm: float


class Objective:
    """`Problem` made computable."""

    def __init__(self, problem: Problem) -> None:
        self.rows = Rows(problem.features, problem.norm_bound)
        self.loss = problem.loss
        self.regularization = problem.regularization
        self.signs = np.asarray(problem.signs, dtype=np.float64)
        weights = np.ones(self.rows.count) if problem.row_weights is None else problem.row_weights
        self.scales: Array = np.asarray(weights, dtype=np.float64) / problem.total
        self.linear: Array = np.zeros(self.rows.dimension) if problem.linear is None else problem.linear
        self.norm_bound = problem.norm_bound
        self.offsets: Array = np.zeros(self.rows.count) if problem.offsets is None else problem.offsets
        self._largest_offset = float(np.max(np.abs(self.offsets), initial=0.0))
        self._reach = problem.norm_bound * float(np.sum(self.scales))
        self._row_length = self.rows.mean_length(self.scales)

    def at(self, coefficients: Array) -> Point:
        """Value, gradient and margins, in one pass over the rows."""
        margins = np.empty(self.rows.count)
        gradient = np.zeros(self.rows.dimension)
        value = 0.0
        for rows, block in self.rows:
            signs, scales = self.signs[rows], self.scales[rows]
            inside = signs * (block @ coefficients) - self.offsets[rows]
            margins[rows] = inside
            value += float(scales @ self.loss.value(inside))
            gradient += block.T @ (signs * scales * self.loss.derivative(inside))
        gradient += self.regularization * coefficients + self.linear
        value += self.ridge(coefficients)
        return Point(coefficients, margins, value, gradient, float(np.linalg.norm(gradient)))

    def ridge(self, coefficients: Array) -> float:
        """The part of the value that does not read the rows."""
        square = float(coefficients @ coefficients)
        return 0.5 * self.regularization * square + float(self.linear @ coefficients)

    def curvatures(self, point: Point) -> Array:
        """The weight of each row in the Hessian, ``sum_i curvature_i x_i x_i' + Lambda I``."""
        return self.scales * self.loss.curvature(point.margins)

    def hessian_product(self, curvatures: Array, vector: Array) -> Array:
        product = self.regularization * vector
        for rows, block in self.rows:
            product += block.T @ (curvatures[rows] * (block @ vector))
        return product

    def hessian_diagonal(self, curvatures: Array) -> Array:
        diagonal = np.full(self.rows.dimension, self.regularization)
        for rows, block in self.rows:
            diagonal += column_squares(block, curvatures[rows])
        return diagonal

    def data_slope(self, margins: Array, change: Array) -> tuple[float, float]:
        """First and second derivative of the data's part of the value along ``change`` of the margins."""
        weighted = self.scales * change
        slope = float(weighted @ self.loss.derivative(margins))
        return slope, float((weighted * change) @ self.loss.curvature(margins))

    def certified_norm(self, point: Point) -> float:
        """Upper bound on the norm of the exact gradient at exactly ``point.coefficients``."""
        return point.norm * (1.0 + 2.0 * gamma(self.rows.dimension + 2)) + self.rounding(point)

    def rounding(self, point: Point) -> float:
        """Upper bound on |computed gradient - exact gradient|."""
        size = float(np.linalg.norm(point.coefficients))
        margin_error = gamma(self._row_length + 2) * (self.norm_bound * size + self._largest_offset)
        slope_error = self.loss.smoothness * margin_error + DERIVATIVE_ROUNDING
        data_term = self._reach * (slope_error + gamma(self.rows.chain + 8) * self.loss.lipschitz)
        other_terms = gamma(4) * (self.regularization * size + float(np.linalg.norm(self.linear)))
        return SAFETY * (data_term + other_terms) + UNDERFLOW

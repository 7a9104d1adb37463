"""Value and gradient of the objective at a point, with a proven bound on the gradient's rounding error.

The bound is derived in docs/theory/solver.md, section "Rounding"; the letters there are the names here.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privlearn.arrays import Array
from privlearn.data.encoding.arrays import blocks
from privlearn.imports import linalg
from privlearn.solvers.certifiable import SPARSE_BLOCK, Rounding, gamma
from privlearn.solvers.problem import Problem, Rows, column_squares, row_products

MIN_COLUMNS, MAX_COLUMNS = 256, 2048  # columns that a preconditioner treats jointly
MIN_STRIDE, ROWS_PER_COLUMN = 8, 16  # it reads at most one row in 8, and at most 16 rows per column


@dataclass(frozen=True, eq=False, repr=False)
class Point:
    """The objective at ``coefficients``; ``margins`` are the signed ones, ``sign_i <w, x_i> - offset_i``."""

    coefficients: Array
    margins: Any
    value: float
    gradient: Array
    gradient_norm: float


class SmoothObjective:
    """Value, gradient and certificate; subclasses compute the sums over rows (`sums`, `product`)."""

    regularization: float
    linear: Array
    single: bool = False
    """Whether products with the Hessian may be computed in single precision; gradients never are."""
    _rounding: Rounding

    @abstractmethod
    def sums(self, coefficients: Array) -> tuple[Any, float, Array]:
        """Return the margins, and the rows' part of value and gradient."""

    @abstractmethod
    def product(self, second_derivatives: Any, vector: Array) -> Array:
        """Return the rows' part of a product with the Hessian."""

    @abstractmethod
    def line_derivatives(self, one: Point, other: Point, length: float) -> tuple[float, float]:
        """Return both derivatives of the rows' part of the value along the line between two points, at ``length``."""

    @abstractmethod
    def second_derivatives(self, point: Point) -> Any:
        """Return the rows' weights in the Hessian, or the points that determine them where rows are remote."""

    @abstractmethod
    def second_derivatives_between(self, one: Point, other: Point) -> Any:
        """Return the weights after a long step, each at least its mean between the two points."""

    @abstractmethod
    def preconditioner(self, second_derivatives: Any) -> Callable[[Array], Array]:
        """Return multiplication by a positive definite approximation of the Hessian's inverse."""

    def at(self, coefficients: Array) -> Point:
        """Return value, gradient and margins, in one pass over the rows."""
        margins, value, gradient = self.sums(coefficients)
        gradient += self.regularization * coefficients + self.linear
        value += 0.5 * self.regularization * float(coefficients @ coefficients)
        value += float(self.linear @ coefficients)
        return Point(coefficients, margins, value, gradient, float(np.linalg.norm(gradient)))

    def hessian_product(self, second_derivatives: Any, vector: Array) -> Array:
        """Return the Hessian times a vector."""
        return self.product(second_derivatives, vector) + self.regularization * vector

    def certified_norm(self, point: Point) -> float:
        """Return an upper bound on the norm of the exact gradient at exactly ``point.coefficients``."""
        return point.gradient_norm * (1.0 + 2.0 * gamma(len(point.gradient) + 2)) + self.rounding(point)

    def rounding(self, point: Point) -> float:
        """Return an upper bound on |computed gradient - exact gradient|."""
        return self._rounding.bound(float(np.linalg.norm(point.coefficients)))


class Objective(SmoothObjective):
    """The objective of a `Problem`."""

    def __init__(self, problem: Problem) -> None:
        self.rows = Rows(problem.features, problem.norm_bound)
        self.count, self.dimension = self.rows.count, self.rows.dimension
        self.is_sparse = self.rows.is_sparse or self.rows.is_looked_up
        self.loss = problem.loss
        self.regularization = problem.regularization
        self.signs = problem.signs
        self.scales: Array = _scales(problem)
        self.linear: Array = np.zeros(self.rows.dimension) if problem.linear is None else problem.linear
        self.norm_bound = problem.norm_bound
        self.offsets: Array = _constant(0.0, self.rows.count) if problem.offsets is None else problem.offsets
        self._rounding = Rounding(
            loss=self.loss,
            regularization=self.regularization,
            dimension=self.rows.dimension,
            chain=self.rows.chain,
            mass=float(np.sum(self.scales)),
            norm_bound=self.norm_bound,
            linear_norm=float(np.linalg.norm(self.linear)),
            max_offset=max(
                -float(np.min(self.offsets, initial=0.0)), float(np.max(self.offsets, initial=0.0))
            ),
        )

    def sums(self, coefficients: Array) -> tuple[Any, float, Array]:
        margins = self.rows.numbers()  # for directions and step lengths, which may be inexact
        block_coefficients = self.rows.block_coefficients(coefficients)

        def work(rows: slice, block: Any) -> tuple[float, Array]:
            signs, scales = self.signs[rows], self.scales[rows]
            inside = signs * row_products(block, block_coefficients) - self.offsets[rows]
            margins[rows] = inside
            value = float(scales @ self.loss.value(inside))
            return value, block.T @ (signs * scales * self.loss.first_derivative(inside))

        return margins, *self.rows.sum_values_and_gradients(work, self.rows.width)

    def second_derivatives(self, point: Point) -> Any:
        """Return the weight of each row in the Hessian, ``sum_i weight_i x_i x_i' + Lambda I``."""
        return self._rowwise(
            lambda rows: self.scales[rows] * self.loss.second_derivative(_wide(point.margins[rows]))
        )

    def second_derivatives_between(self, one: Point, other: Point) -> Any:
        """Return the weights at ``other``, each at least its mean between the two points.

        A loss with a corner has second derivative 0 next to it; with local weights, descent would jump across it
        forever.
        """

        def mean_derivative(rows: slice) -> Array:
            before, after = _wide(one.margins[rows]), _wide(other.margins[rows])
            local, distance = self.loss.second_derivative(after), after - before
            change = self.loss.first_derivative(after) - self.loss.first_derivative(before)
            mean = np.divide(change, distance, out=np.zeros_like(distance), where=distance != 0)
            clipped: Array = np.clip(mean, local, self.loss.smoothness)
            return self.scales[rows] * clipped

        return self._rowwise(mean_derivative)

    def _rowwise(self, weight: Callable[[slice], Array]) -> Any:
        weights = self.rows.numbers()
        for rows in blocks(self.rows.count, SPARSE_BLOCK):
            weights[rows] = weight(rows)
        return weights

    def product(self, second_derivatives: Any, vector: Array) -> Array:
        product, block_vector = np.zeros(self.rows.width), self.rows.block_coefficients(vector)
        for part in self.rows.map_blocks(
            lambda rows, block: block.T @ (second_derivatives[rows] * (block @ block_vector))
        ):
            product += part
        return self.rows.feature_sums(product)

    def gram(self, second_derivatives: Any, kind: type[np.floating[Any]]) -> Array:
        """Return the rows' part of the Hessian."""
        return self.rows.gram(second_derivatives, kind)

    def diagonal(self, second_derivatives: Any) -> tuple[Array, int]:
        """Return the rows' part of the Hessian's diagonal, and the number of their entries."""
        diagonal, entries = np.zeros(self.rows.width), 0
        for squares, size in self.rows.map_blocks(
            lambda rows, block: (column_squares(block, second_derivatives[rows]), block.size)
        ):
            diagonal += squares
            entries += size
        return self.rows.feature_square_sums(diagonal), entries

    def sample_gram(self, second_derivatives: Any, columns: NDArray[np.intp], stride: int) -> Array:
        """Return the part of every ``stride``-th row of the Hessian in some columns."""
        return self.rows.sample_gram(second_derivatives, columns, stride)

    def preconditioner(self, second_derivatives: Any) -> Callable[[Array], Array]:
        """Return an approximate inverse: the strongest columns jointly, from a sample of rows, the others one by one.

        Splines, lists and the intercept are correlated, and so are coarse cells of pairs; thousands of bins hardly are.
        """
        diagonal, entries = self.diagonal(second_derivatives)
        diagonal += self.regularization
        # Their factorisation costs about as much as the passes over the rows that it saves.
        columns = int(np.clip(0.5 * entries**0.5, MIN_COLUMNS, MAX_COLUMNS))
        strongest = np.sort(np.argsort(-diagonal, kind="stable")[:columns])
        joint = self._estimate_hessian(second_derivatives, strongest)
        scale = np.sqrt(diagonal[strongest] / np.diag(joint))  # the diagonal is known from all rows
        factor, _ = cholesky(joint * np.outer(scale, scale), 1e-12 * float(diagonal.max()))

        def apply(vector: Array) -> Array:
            solved: Array = vector / diagonal
            solved[strongest] = linalg.cho_solve(factor, vector[strongest], check_finite=False)
            return solved

        return apply

    def _estimate_hessian(self, second_derivatives: Any, columns: NDArray[np.intp]) -> Array:
        """Return an estimate of the Hessian in some columns, from a sample of the rows."""
        stride = max(MIN_STRIDE, self.count // (ROWS_PER_COLUMN * len(columns)))
        gram: Array = stride * self.sample_gram(second_derivatives, columns, stride)
        gram[np.diag_indices_from(gram)] += self.regularization
        return gram

    def line_derivatives(self, one: Point, other: Point, length: float) -> tuple[float, float]:
        first = second = 0.0
        for rows in blocks(self.rows.count, SPARSE_BLOCK):
            before = _wide(one.margins[rows])
            change = _wide(other.margins[rows]) - before
            margins, weighted = before + length * change, self.scales[rows] * change
            first += float(weighted @ self.loss.first_derivative(margins))
            second += float((weighted * change) @ self.loss.second_derivative(margins))
        return first, second


def _scales(problem: Problem) -> Array:
    """Return the weight of each row over N."""
    if problem.row_weights is None:
        return _constant(1.0 / problem.total, problem.features.shape[0])
    return np.asarray(problem.row_weights, dtype=np.float64) / problem.total


def _constant(number: float, count: int) -> Array:
    """Return the same number for every row, stored once."""
    return np.broadcast_to(np.float64(number), count)


def _wide(margins: NDArray[Any]) -> Array:
    return margins.astype(np.float64)


def cholesky(gram: Array, ridge: float) -> tuple[Any, float]:
    """Return the factor of ``gram + ridge I`` and the ridge, raised if rounding made the sum indefinite."""
    while True:
        system = gram.copy()
        system[np.diag_indices_from(system)] += ridge
        try:
            return linalg.cho_factor(system, lower=True, overwrite_a=True, check_finite=False), ridge
        except linalg.LinAlgError:
            ridge = max(10.0 * ridge, 1e-16 * float(np.trace(gram)))

"""Value and gradient of the objective at a point, with a proven bound on the gradient's rounding error.

The bound is derived in docs/theory/solver.md, section "Rounding"; the letters there are the names here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privlearn.arrays import Array
from privlearn.data.encode.arrays import blocks
from privlearn.erm.certifiable import SPARSE_BLOCK, Rounding, gamma
from privlearn.erm.problem import Problem, Rows, column_squares, pairwise_sum, row_products
from privlearn.heavy import linalg

FEWEST_COLUMNS, MOST_COLUMNS = 256, 2048  # whose joint curvature a preconditioner knows
LEAST_STRIDE, ROWS_PER_COLUMN = (
    8,
    16,
)  # it reads one row in so many at most, and so many rows per column at most


@dataclass(frozen=True, eq=False)
class Point:
    """The objective at ``coefficients``; ``margins`` are the signed ones, ``sign_i <w, x_i> - offset_i``."""

    coefficients: Array
    margins: Any
    value: float
    gradient: Array
    norm: float


class Objective:
    """`Problem` made computable."""

    def __init__(self, problem: Problem) -> None:
        self.rows = Rows(problem.features, problem.norm_bound)
        self.count, self.dimension = self.rows.count, self.rows.dimension
        self.is_sparse = self.rows.is_sparse
        self.loss = problem.loss
        self.regularization = problem.regularization
        self.signs = problem.signs
        self.scales: Array = _scales(problem)
        self.linear: Array = np.zeros(self.rows.dimension) if problem.linear is None else problem.linear
        self.norm_bound = problem.norm_bound
        self.offsets: Array = _repeated(0.0, self.rows.count) if problem.offsets is None else problem.offsets
        self._rounding = Rounding(
            loss=self.loss,
            regularization=self.regularization,
            dimension=self.rows.dimension,
            chain=self.rows.chain,
            mass=float(np.sum(self.scales)),
            norm_bound=self.norm_bound,
            linear_norm=float(np.linalg.norm(self.linear)),
            largest_offset=max(
                -float(np.min(self.offsets, initial=0.0)), float(np.max(self.offsets, initial=0.0))
            ),
        )

    def at(self, coefficients: Array) -> Point:
        """Value, gradient and margins, in one pass over the rows."""
        margins, value, gradient = self.sums(coefficients)
        gradient += self.regularization * coefficients + self.linear
        value += self.ridge(coefficients)
        return Point(coefficients, margins, value, gradient, float(np.linalg.norm(gradient)))

    def sums(self, coefficients: Array) -> tuple[Any, float, Array]:
        """Margins, and what the rows alone add to value and gradient."""
        margins = self.rows.numbers()  # for directions and step lengths, which may be inexact
        values, spread = [], self.rows.spread(coefficients)

        def work(rows: slice, block: Any) -> tuple[float, Array]:
            signs, scales = self.signs[rows], self.scales[rows]
            inside = signs * row_products(block, spread) - self.offsets[rows]
            margins[rows] = inside
            value = float(scales @ self.loss.value(inside))
            return value, block.T @ (signs * scales * self.loss.derivative(inside))

        def gradients() -> Iterator[Array]:
            for value, gradient in self.rows.mapped(work):
                values.append(value)
                yield gradient

        gradient = self.rows.gathered(pairwise_sum(gradients(), self.rows.width))
        return margins, sum(values), gradient

    def ridge(self, coefficients: Array) -> float:
        """The part of the value that does not read the rows."""
        return ridge_value(self.regularization, self.linear, coefficients)

    def curvatures(self, point: Point) -> Any:
        """The weight of each row in the Hessian, ``sum_i curvature_i x_i x_i' + Lambda I``."""
        return self._rowwise(lambda rows: self.scales[rows] * self.loss.curvature(_wide(point.margins[rows])))

    def curvatures_between(self, one: Point, other: Point) -> Any:
        """The same at ``other``, but at least each row's mean curvature on the way from ``one``.

        A loss with a corner has no curvature beside it, and descent by local curvature would jump across it for ever.
        """

        def mean_curvature(rows: slice) -> Array:
            before, after = _wide(one.margins[rows]), _wide(other.margins[rows])
            local, way = self.loss.curvature(after), after - before
            turn = self.loss.derivative(after) - self.loss.derivative(before)
            mean = np.divide(turn, way, out=np.zeros_like(way), where=way != 0)
            curvature: Array = np.clip(mean, local, self.loss.smoothness)
            return self.scales[rows] * curvature

        return self._rowwise(mean_curvature)

    def _rowwise(self, weight: Callable[[slice], Array]) -> Any:
        weights = self.rows.numbers()
        for rows in blocks(self.rows.count, SPARSE_BLOCK):
            weights[rows] = weight(rows)
        return weights

    def hessian_product(self, curvatures: Any, vector: Array) -> Array:
        return self.product(curvatures, vector) + self.regularization * vector

    def product(self, curvatures: Any, vector: Array) -> Array:
        """What the rows alone add to a product with the Hessian."""
        product, spread = np.zeros(self.rows.width), self.rows.spread(vector)
        for part in self.rows.mapped(lambda rows, block: block.T @ (curvatures[rows] * (block @ spread))):
            product += part
        return self.rows.gathered(product)

    def gram(self, curvatures: Any, kind: type[np.floating[Any]]) -> Array:
        """What the rows alone add to the Hessian."""
        return self.rows.gram(curvatures, kind)

    def diagonal(self, curvatures: Any) -> tuple[Array, int]:
        """What the rows alone add to the Hessian's diagonal, and how many entries they have."""
        diagonal, entries = np.zeros(self.rows.width), 0
        for squares, size in self.rows.mapped(
            lambda rows, block: (column_squares(block, curvatures[rows]), block.size)
        ):
            diagonal += squares
            entries += size
        return self.rows.gathered_squares(diagonal), entries

    def some_gram(self, curvatures: Any, columns: NDArray[np.intp], stride: int) -> Array:
        """What every so many-th row adds to the Hessian in some columns."""
        return self.rows.some_gram(curvatures, columns, stride)

    def preconditioner(self, curvatures: Any) -> Callable[[Array], Array]:
        """The strongest columns jointly, as some of the rows know them, the others each by itself.

        Splines, lists and the intercept hang together, and so do coarse cells of pairs; thousands of bins hardly do.
        """
        diagonal, entries = self.diagonal(curvatures)
        diagonal += self.regularization
        # so many that their factorisation costs no more than the passes over the rows that it saves
        columns = int(np.clip(0.5 * entries**0.5, FEWEST_COLUMNS, MOST_COLUMNS))
        strongest = np.sort(np.argsort(-diagonal, kind="stable")[:columns])
        joint = self._sampled_hessian(curvatures, strongest)
        scale = np.sqrt(diagonal[strongest] / np.diag(joint))  # each column by itself is known from all rows
        factor, _ = cholesky(joint * np.outer(scale, scale), 1e-12 * float(diagonal.max()))

        def apply(vector: Array) -> Array:
            solved: Array = vector / diagonal
            solved[strongest] = linalg.cho_solve(factor, vector[strongest], check_finite=False)
            return solved

        return apply

    def _sampled_hessian(self, curvatures: Any, columns: NDArray[np.intp]) -> Array:
        """The Hessian in some columns, estimated from some of the rows."""
        stride = max(LEAST_STRIDE, self.count // (ROWS_PER_COLUMN * len(columns)))
        gram: Array = stride * self.some_gram(curvatures, columns, stride)
        gram[np.diag_indices_from(gram)] += self.regularization
        return gram

    def slope(self, one: Point, other: Point, length: float) -> tuple[float, float]:
        """First and second derivative of the data's part of the value, so far on the line from one point to another."""
        slope = bend = 0.0
        for rows in blocks(self.rows.count, SPARSE_BLOCK):
            before = _wide(one.margins[rows])
            change = _wide(other.margins[rows]) - before
            margins, weighted = before + length * change, self.scales[rows] * change
            slope += float(weighted @ self.loss.derivative(margins))
            bend += float((weighted * change) @ self.loss.curvature(margins))
        return slope, bend

    def certified_norm(self, point: Point) -> float:
        """Upper bound on the norm of the exact gradient at exactly ``point.coefficients``."""
        return point.norm * (1.0 + 2.0 * gamma(self.dimension + 2)) + self.rounding(point)

    def rounding(self, point: Point) -> float:
        """Upper bound on |computed gradient - exact gradient|."""
        return self._rounding.bound(float(np.linalg.norm(point.coefficients)))


def _scales(problem: Problem) -> Array:
    """What each row counts, over N."""
    if problem.row_weights is None:
        return _repeated(1.0 / problem.total, problem.features.shape[0])
    return np.asarray(problem.row_weights, dtype=np.float64) / problem.total


def _repeated(number: float, count: int) -> Array:
    """The same number for every row, kept once."""
    return np.broadcast_to(np.float64(number), count)


def _wide(margins: NDArray[Any]) -> Array:
    return margins.astype(np.float64)


def ridge_value(regularization: float, linear: Array, coefficients: Array) -> float:
    """``(Lambda/2) |w|^2 + <linear, w>``."""
    return 0.5 * regularization * float(coefficients @ coefficients) + float(linear @ coefficients)


def cholesky(gram: Array, ridge: float) -> tuple[Any, float]:
    """Factor of ``gram + ridge I``, and the ridge; a larger one cures a sum that rounding has made indefinite."""
    while True:
        system = gram.copy()
        system[np.diag_indices_from(system)] += ridge
        try:
            return linalg.cho_factor(system, lower=True, overwrite_a=True, check_finite=False), ridge
        except linalg.LinAlgError:
            ridge = max(10.0 * ridge, 1e-16 * float(np.trace(gram)))

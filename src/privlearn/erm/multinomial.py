"""Multinomial (softmax) regression, every class penalised, to a certified gradient norm.

``J(W) = (1/N) sum_i weight_i (log sum_k exp <w_k, x_i> - <w_(y_i), x_i>) + (Lambda/2) |W|^2``. The rows of
``W`` are laid out one after another in one vector, so that the descent is that of the binary losses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privlearn.arrays import Array
from privlearn.erm.certifiable import UNDERFLOW, Rounding, gamma
from privlearn.erm.descent import descend
from privlearn.erm.losses import Multinomial
from privlearn.erm.newton import ConjugateGradients
from privlearn.erm.objective import Point, ridge_value
from privlearn.erm.problem import (
    Features,
    Progress,
    Rows,
    Solution,
    check_features,
    check_row_weights,
    check_vector,
    column_squares,
    pairwise_sum,
    row_products,
)
from privlearn.errors import InvalidParameter, check_positive

MOST_COLUMNS = 3000
"""Up to which a matrix of the columns' square, and its eigenvectors, cost less than the passes over rows they save."""


def minimise_multinomial(
    features: Features,
    labels: NDArray[np.integer[Any]],
    n_classes: int,
    *,
    regularization: float,
    total: int,
    row_weights: Array | None = None,
    linear: Array | None = None,
    norm_bound: float = 1.0,
    tolerance: float = 1e-10,
    progress: Progress | None = None,
) -> Solution:
    """Minimise until the exact gradient's norm is at most ``tolerance``, proven.

    Parameters
    ----------
    features : array or CSR matrix of shape (n, d)
        Rows of norm at most ``norm_bound``.
    labels : integer array of shape (n,)
        0 to ``n_classes - 1``.
    n_classes : int
    regularization, total, row_weights, norm_bound
        As in `Problem`.
    linear : array of shape (n_classes, d), optional
        The perturbation of objective perturbation, already divided by N; zero by default.

    Returns
    -------
    Solution
        ``coefficients`` has shape (n_classes, d).

    Raises
    ------
    SolverError
        If the tolerance cannot be certified.
    """
    check_features(features)
    check_positive(regularization=regularization, total=total, norm_bound=norm_bound)
    check_row_weights(row_weights, features.shape[0])
    check_positive(tolerance=tolerance)
    _check_labels(labels, n_classes, features.shape[0])
    rows = Rows(features, norm_bound)
    weights = np.ones(rows.count) if row_weights is None else row_weights
    start = np.zeros(n_classes * rows.dimension)
    tilt = start if linear is None else linear.ravel()
    check_vector("linear", tilt, len(start))
    objective = Softmax(rows, labels, n_classes, regularization, weights / total, norm_bound, tilt)
    found = descend(objective, ConjugateGradients(objective), start, tolerance, progress)
    coefficients = found.coefficients.reshape(n_classes, rows.dimension)
    return Solution(coefficients, found.gradient_norm, found.distance, found.iterations)


def multinomial_gradient(
    rows: Rows, labels: NDArray[np.integer[Any]], weights: Array, margins: Array
) -> Array:
    """The sum over the rows of the weighted losses' gradients where their scores are ``margins``, (n, classes)."""

    def gradients() -> Iterator[Array]:
        for places, block in rows:
            _, residuals = _losses(margins[places], labels[places])
            yield (block.T @ (weights[places, np.newaxis] * residuals)).T

    return pairwise_sum(gradients(), (margins.shape[1], rows.dimension))


class Softmax:
    """Value, gradient, Hessian products and rounding bound (docs/theory/solver.md, "Multinomial")."""

    def __init__(
        self,
        rows: Rows,
        labels: NDArray[np.integer[Any]],
        n_classes: int,
        regularization: float,
        scales: Array,
        norm_bound: float,
        linear: Array,
    ) -> None:
        self.rows, self.labels, self.scales = rows, labels, scales
        self.regularization = regularization
        self.norm_bound = norm_bound
        self.linear = linear
        self._shape = (n_classes, rows.dimension)
        self._rounding = Rounding(
            loss=Multinomial(),
            regularization=regularization,
            dimension=rows.dimension,
            chain=rows.chain,
            mass=float(np.sum(scales)),
            norm_bound=norm_bound,
            linear_norm=float(np.linalg.norm(linear)),
            largest_offset=0.0,
            classes=n_classes,
        )

    def at(self, coefficients: Array) -> Point:
        """Value, gradient and margins (n, K), in one pass over the rows."""
        margins, value, gradient = self.sums(coefficients)
        gradient += self.regularization * coefficients + self.linear
        value += ridge_value(self.regularization, self.linear, coefficients)
        return Point(coefficients, margins, value, gradient, float(np.linalg.norm(gradient)))

    def sums(self, coefficients: Array) -> tuple[NDArray[Any], float, Array]:
        """Margins, and what the rows alone add to value and gradient."""
        spread = self.rows.spread(coefficients.reshape(self._shape).T)
        margins = np.empty((self.rows.count, self._shape[0]))
        values = []

        def work(rows: slice, block: Any) -> tuple[float, Array]:
            margins[rows] = row_products(block, spread)
            losses, residuals = _losses(margins[rows], self.labels[rows])
            value = float(self.scales[rows] @ losses)
            return value, block.T @ (self.scales[rows, np.newaxis] * residuals)

        def gradients() -> Iterator[Array]:
            for value, gradient in self.rows.mapped(work):
                values.append(value)
                yield gradient

        gradient = self.rows.gathered(pairwise_sum(gradients(), (self.rows.width, self._shape[0])))
        return margins, sum(values), gradient.T.ravel()

    def slope(self, one: Point, other: Point, length: float) -> tuple[float, float]:
        """First and second derivative of the data's part of the value, so far on the line from one point to another."""
        change = other.margins - one.margins
        probabilities, _ = softmax(one.margins + length * change)
        mean = np.einsum("ik,ik->i", probabilities, change)
        square = np.einsum("ik,ik->i", probabilities, change**2)
        own = change[np.arange(len(change)), self.labels]
        return float(self.scales @ (mean - own)), float(self.scales @ (square - mean**2))

    def curvatures(self, point: Point) -> Any:
        """The probabilities (n, K): each row's Hessian in its margins is ``diag(p) - p p'``."""
        return softmax(point.margins)[0]

    def curvatures_between(self, one: Point, other: Point) -> Any:
        """The same at ``other``: this loss has no corners."""
        return self.curvatures(other)

    def hessian_product(self, curvatures: Any, vector: Array) -> Array:
        return self.product(curvatures, vector) + self.regularization * vector

    def product(self, curvatures: Any, vector: Array) -> Array:
        """What the rows alone add to a product with the Hessian."""
        spread = self.rows.spread(vector.reshape(self._shape).T)
        product = np.zeros((self.rows.width, self._shape[0]))

        def work(rows: slice, block: Any) -> Array:
            probabilities = curvatures[rows]
            moved = probabilities * (block @ spread)
            moved -= probabilities * np.sum(moved, axis=1, keepdims=True)
            turned: Array = block.T @ (self.scales[rows, np.newaxis] * moved)
            return turned

        for part in self.rows.mapped(work):
            product += part
        return self.rows.gathered(product).T.ravel()

    def preconditioner(self, curvatures: Any) -> Callable[[Array], Array]:
        """Where columns are few, the inverse of ``mean of (diag(p) - p p') (x) mean of x x' + Lambda I``.

        It would be the Hessian's if a row said nothing about its probabilities.
        """
        if self._shape[1] > MOST_COLUMNS:
            diagonal = self.diagonal(curvatures) + self.regularization
            return lambda vector: vector / diagonal
        sizes, classes = np.linalg.eigh(self.class_moments(curvatures))
        lengths, columns = self._spectrum
        strengths = np.maximum(np.outer(sizes, lengths), 0.0) + self.regularization

        def apply(vector: Array) -> Array:
            turned = classes.T @ vector.reshape(self._shape) @ columns / strengths
            return np.ravel(classes @ turned @ columns.T)

        return apply

    @cached_property
    def _spectrum(self) -> tuple[Array, Array]:
        """Eigenvalues and eigenvectors of the rows' mean second moments."""
        gram = self.second_moments() / max(self._rounding.mass, UNDERFLOW)
        lengths, columns = np.linalg.eigh(gram)
        return np.maximum(lengths, 0.0), columns

    def class_moments(self, curvatures: Any) -> Array:
        """The rows' sum of ``diag(p) - p p'``, by their weights."""
        weighted = self.scales[:, np.newaxis] * curvatures
        moments: Array = np.diag(weighted.sum(axis=0)) - weighted.T @ curvatures
        return moments

    def second_moments(self) -> Array:
        """The rows' sum of ``x x'``, by their weights."""
        return self.rows.gram(self.scales, np.float32)

    def diagonal(self, curvatures: Any) -> Array:
        """What the rows alone add to the Hessian's diagonal."""
        diagonal = np.zeros((self.rows.width, self._shape[0]))

        def work(rows: slice, block: Any) -> Array:
            weights = self.scales[rows, np.newaxis] * curvatures[rows] * (1.0 - curvatures[rows])
            return column_squares(block, weights)

        for part in self.rows.mapped(work):
            diagonal += part
        return self.rows.gathered_squares(diagonal).T.ravel()

    def certified_norm(self, point: Point) -> float:
        """Upper bound on the norm of the exact gradient at exactly ``point.coefficients``."""
        return point.norm * (1.0 + 2.0 * gamma(len(point.gradient) + 2)) + self.rounding(point)

    def rounding(self, point: Point) -> float:
        """Upper bound on |computed gradient - exact gradient|."""
        return self._rounding.bound(float(np.linalg.norm(point.coefficients)))


def _losses(margins: Array, labels: NDArray[np.integer[Any]]) -> tuple[Array, Array]:
    """Loss and its gradient in the margins, for each row."""
    probabilities, logarithms = softmax(margins)
    own = (np.arange(len(margins)), labels)
    losses = logarithms - margins[own]
    probabilities[own] -= 1.0
    return losses, probabilities


def softmax(margins: Array) -> tuple[Array, Array]:
    """Probabilities (n, K) and the logarithm of each row's sum of exponentials."""
    largest = np.max(margins, axis=1, keepdims=True)
    powers = np.exp(margins - largest)
    sums = row_products(powers, np.ones((powers.shape[1], 1)))
    return powers / sums, np.log(sums[:, 0]) + largest[:, 0]


def _check_labels(labels: NDArray[np.integer[Any]], n_classes: int, rows: int) -> None:
    if n_classes < 2:
        raise InvalidParameter(f"n_classes must be at least 2, not {n_classes}")
    if labels.shape != (rows,) or not np.issubdtype(labels.dtype, np.integer):
        raise InvalidParameter(f"labels must be integers of shape ({rows},)")
    if np.any((labels < 0) | (labels >= n_classes)):
        raise InvalidParameter("labels must lie between 0 and n_classes - 1")

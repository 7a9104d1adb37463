"""Multinomial (softmax) regression, every class penalised, to a certified gradient norm.

``J(W) = (1/N) sum_i weight_i (log sum_k exp z_ik - z_(i y_i)) + (Lambda/2) |W|^2`` with scores ``z_ik = <w_k, x_i> +
offset_k``. The columns of ``W``, of shape (K, d), are laid out one after another in one vector, so that the descent is
that of the binary losses; products with sparse rows need this order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privlearn.arrays import Array
from privlearn.errors import InvalidParameter, SolverError, check_positive
from privlearn.solvers import problem
from privlearn.solvers.certifiable import UNDERFLOW, Rounding
from privlearn.solvers.descent import Directions, descend
from privlearn.solvers.losses import Multinomial
from privlearn.solvers.newton import SINGLE_PRECISION_LIMIT, ConjugateGradients, SampledHessian
from privlearn.solvers.objective import Point, SmoothObjective

STRIDE, MIN_SAMPLE_ROWS, WARM_ITERATIONS = 8, 500, 30  # a warm start reads one row in STRIDE
# A warm start's tolerance is this times the norm bound, over the root of the number of rows.
SAMPLING_ERROR = 0.4
ROWS_PER_COLUMN = 16  # a preconditioner's moments need no more
MAX_COLUMNS = 3000
"""Up to here a d x d matrix and its eigenvectors cost less than the passes over rows that they save."""


def minimise_multinomial(
    features: problem.Features,
    labels: NDArray[np.integer[Any]],
    n_classes: int,
    *,
    regularization: float,
    total: int,
    row_weights: Array | None = None,
    linear: Array | None = None,
    norm_bound: float = 1.0,
    offsets: Array | None = None,
    tolerance: float = 1e-10,
    progress: problem.Progress | None = None,
) -> problem.Solution:
    """Minimise until the exact gradient's norm is proven to be at most ``tolerance``.

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
    offsets : array of shape (n_classes,), optional
        Added to every row's scores; zero by default.

    Returns
    -------
    Solution
        ``coefficients`` has shape (n_classes, d).

    Raises
    ------
    SolverError
        If the tolerance cannot be certified.

    Examples
    --------
    >>> rows, labels = np.eye(3), np.array([0, 1, 2])
    >>> solution = minimise_multinomial(rows, labels, 3, regularization=0.1, total=3)
    >>> solution.coefficients.round(3).tolist()[0], solution.distance <= 1e-9
    ([1.014, -0.507, -0.507], True)
    """
    problem.check_features(features)
    check_positive(regularization=regularization, total=total, norm_bound=norm_bound)
    problem.check_row_weights(row_weights, features.shape[0])
    check_positive(tolerance=tolerance)
    _check_labels(labels, n_classes, features.shape[0])
    rows = problem.Rows(features, norm_bound)
    weights = np.ones(rows.count) if row_weights is None else row_weights
    size = n_classes * rows.dimension
    tilt = np.zeros(size) if linear is None else linear.ravel()
    problem.check_vector("linear", tilt, size)
    tilt = tilt.reshape(n_classes, -1).T.ravel()
    if offsets is not None:
        problem.check_vector("offsets", offsets, n_classes)
    objective = Softmax(rows, labels, n_classes, regularization, weights / total, norm_bound, tilt, offsets)
    with problem.threads_for(features):
        solution = _descend(objective, tolerance, progress)
    return replace(solution, coefficients=coefficients_by_class(solution, n_classes))


def coefficients_by_class(solution: problem.Solution, n_classes: int) -> Array:
    """Return the coefficients of a `Softmax`, of shape (n_classes, d)."""
    return np.ascontiguousarray(solution.coefficients.reshape(-1, n_classes).T)


def _descend(
    objective: Softmax, tolerance: float, progress: problem.Progress | None = None
) -> problem.Solution:
    directions: Directions = ConjugateGradients(objective)
    rough = objective.roughly()
    if rough is not None:
        # Its minimiser saves time: one pass over the rows themselves certifies it.
        with suppress(SolverError):
            start = _descend(rough, 0.5 * tolerance).coefficients
            return descend(objective, directions, start, tolerance, progress)
    sample = objective.every(STRIDE)
    start = np.zeros(len(objective.linear)) if sample is None else _warm_start(sample)
    # A Hessian product with encoded rows would expand them all again.
    if sample is not None and objective.rows.is_encoded:
        directions = SampledHessian(sample, start, lambda: ConjugateGradients(objective))
    return descend(objective, directions, start, tolerance, progress)


def _warm_start(sample: Softmax) -> Array:
    """Return the minimiser over a sample of the rows, to about the sampling error."""
    start = np.zeros(len(sample.linear))
    precision = SAMPLING_ERROR * sample.norm_bound / math.sqrt(sample.rows.count)
    try:
        directions = ConjugateGradients(sample)
        return descend(sample, directions, start, precision, max_iterations=WARM_ITERATIONS).coefficients
    except SolverError:  # a warm start only saves time
        return start


def multinomial_gradient(
    rows: problem.Rows, labels: NDArray[np.integer[Any]], weights: Array, margins: Array
) -> Array:
    """Return the sum over the rows of the weighted losses' gradients at scores ``margins``, (n, classes)."""

    def gradients() -> Iterator[Array]:
        for part, block in rows:
            _, residuals = _losses(margins[part], labels[part])
            yield problem.column_products(block, weights[part, np.newaxis] * residuals).T

    return problem.pairwise_sum(gradients(), (margins.shape[1], rows.dimension))


class Softmax(SmoothObjective):
    """Value, gradient, Hessian products and rounding bound (docs/theory/solver.md, "Multinomial")."""

    def __init__(
        self,
        rows: problem.Rows,
        labels: NDArray[np.integer[Any]],
        n_classes: int,
        regularization: float,
        scales: Array,
        norm_bound: float,
        linear: Array,
        offsets: Array | None = None,
    ) -> None:
        self.rows, self.labels, self.scales = rows, labels, scales
        self.offsets = np.zeros(n_classes) if offsets is None else offsets
        self.regularization = regularization
        self.norm_bound = norm_bound
        self.linear = linear
        self.single = rows.is_single and regularization > SINGLE_PRECISION_LIMIT * 0.5 * norm_bound**2
        self._shape = (rows.dimension, n_classes)
        self._rounding = Rounding(
            loss=Multinomial(),
            regularization=regularization,
            dimension=rows.dimension,
            chain=rows.chain,
            mass=float(np.sum(scales)),
            norm_bound=norm_bound,
            linear_norm=float(np.linalg.norm(linear)),
            max_offset=float(np.linalg.norm(self.offsets)),
            classes=n_classes,
        )

    def every(self, stride: int) -> Softmax | None:
        """Return the objective of every ``stride``-th row; None if they are too few."""
        if self.rows.count < stride * max(MIN_SAMPLE_ROWS, 2 * self.rows.dimension):
            return None
        return self._on(self.rows.every(stride), self.labels[::stride], stride * self.scales[::stride])

    def roughly(self) -> Softmax | None:
        """Return the objective of all rows with more rounding; None if that would not be faster."""
        rows = self.rows.roughly()
        return None if rows is None else self._on(rows, self.labels, self.scales)

    def _on(self, rows: problem.Rows, labels: NDArray[np.integer[Any]], scales: Array) -> Softmax:
        return Softmax(
            rows,
            labels,
            self._shape[1],
            self.regularization,
            scales,
            self.norm_bound,
            self.linear,
            self.offsets,
        )

    def sums(self, coefficients: Array) -> tuple[NDArray[Any], float, Array]:
        """Return the margins (n, K), and the rows' part of value and gradient."""
        block_coefficients = self.rows.block_coefficients(coefficients.reshape(self._shape))
        margins = np.empty((self.rows.count, self._shape[1]))

        def work(rows: slice, block: Any) -> tuple[float, Array]:
            margins[rows] = problem.row_products(block, block_coefficients) + self.offsets
            losses, residuals = _losses(margins[rows], self.labels[rows])
            value = float(self.scales[rows] @ losses)
            return value, problem.column_products(block, self.scales[rows, np.newaxis] * residuals)

        value, gradient = self.rows.sum_values_and_gradients(work, (self.rows.width, self._shape[1]))
        return margins, value, gradient.ravel()

    def line_derivatives(self, one: Point, other: Point, length: float) -> tuple[float, float]:
        change = other.margins - one.margins
        probabilities, _ = softmax(one.margins + length * change)
        mean = np.einsum("ik,ik->i", probabilities, change)
        square = np.einsum("ik,ik->i", probabilities, change**2)
        own = change[np.arange(len(change)), self.labels]
        return float(self.scales @ (mean - own)), float(self.scales @ (square - mean**2))

    def second_derivatives(self, point: Point) -> Any:
        """Return the probabilities (n, K): each row's Hessian in its margins is ``diag(p) - p p'``."""
        return softmax(point.margins)[0].astype(np.float32 if self.single else np.float64, copy=False)

    def second_derivatives_between(self, one: Point, other: Point) -> Any:
        """Return the probabilities at ``other``: this loss has no corners."""
        return self.second_derivatives(other)

    def product(self, second_derivatives: Any, vector: Array) -> Array:
        kind = second_derivatives.dtype
        block_vector = self.rows.block_coefficients(vector.reshape(self._shape).astype(kind, copy=False))
        product = np.zeros((self.rows.width, self._shape[1]))
        scales = self.scales.astype(kind, copy=False)

        def work(rows: slice, block: Any) -> Array:
            changes = softmax_product(second_derivatives[rows], block @ block_vector)
            return problem.column_products(block, scales[rows, np.newaxis] * changes)

        for part in self.rows.map_blocks(work, kind):
            product += part
        return self.rows.feature_sums(product).ravel()

    def preconditioner(self, second_derivatives: Any) -> Callable[[Array], Array]:
        """Return, for few columns, the inverse of ``sum of M (x) mean of x x' + Lambda I``, where M = diag(p) - p p'.

        In the mean, rows are weighted by the trace of M. It would equal the Hessian's inverse if the rows' M
        differed by factors only.
        """
        if self._shape[0] > MAX_COLUMNS:
            diagonal = self.diagonal(second_derivatives) + self.regularization
            return lambda vector: vector / diagonal
        moments = self.class_moments(second_derivatives)
        sizes, classes = np.linalg.eigh(moments)
        gram = self.second_moments(second_derivatives) / max(float(np.trace(moments)), UNDERFLOW)
        lengths, columns = np.linalg.eigh(gram)
        strengths = np.maximum(np.outer(lengths, sizes), 0.0) + self.regularization

        def apply(vector: Array) -> Array:
            rotated = columns.T @ vector.reshape(self._shape) @ classes / strengths
            return np.ravel(columns @ rotated @ classes.T)

        return apply

    def class_moments(self, second_derivatives: Any) -> Array:
        """Return the weighted sum of ``diag(p) - p p'`` over the rows."""
        weighted = self.scales[:, np.newaxis] * second_derivatives
        moments: Array = np.diag(weighted.sum(axis=0)) - weighted.T @ second_derivatives
        return moments

    def second_moments(self, second_derivatives: Any) -> Array:
        """Return an estimate of the sum of ``x x'`` over the rows, weighted by the traces of ``diag(p) - p p'``."""
        stride = max(1, self.rows.count // (ROWS_PER_COLUMN * self.rows.dimension))
        some = second_derivatives[::stride]
        traces = 1.0 - np.einsum("ik,ik->i", some, some)
        sample = self.rows if stride == 1 else self.rows.every(stride)
        return sample.gram(stride * self.scales[::stride] * np.maximum(traces, 0.0), np.float32)

    def diagonal(self, second_derivatives: Any) -> Array:
        """Return the rows' part of the Hessian's diagonal."""
        diagonal = np.zeros((self.rows.width, self._shape[1]))

        def work(rows: slice, block: Any) -> Array:
            weights = (
                self.scales[rows, np.newaxis] * second_derivatives[rows] * (1.0 - second_derivatives[rows])
            )
            return problem.column_squares(block, weights)

        for part in self.rows.map_blocks(work):
            diagonal += part
        return self.rows.feature_square_sums(diagonal).ravel()


def _losses(margins: Array, labels: NDArray[np.integer[Any]]) -> tuple[Array, Array]:
    """Return each row's loss and its gradient in the margins."""
    probabilities, logarithms = softmax(margins)
    own = (np.arange(len(margins)), labels)
    losses = logarithms - margins[own]
    probabilities[own] -= 1.0
    return losses, probabilities


def softmax(margins: Array) -> tuple[Array, Array]:
    """Return the probabilities (n, K) and the logarithm of each row's sum of exponentials."""
    peak = np.max(margins, axis=1, keepdims=True)
    powers = np.exp(margins - peak)
    sums = problem.row_products(powers, np.ones((powers.shape[1], 1)))
    return powers / sums, np.log(sums[:, 0]) + peak[:, 0]


def softmax_product(probabilities: Array, margins: Array) -> Array:
    """Return each row's ``(diag(p) - p p') z`` for its probabilities p and margins z, both of shape (n, K)."""
    weighted = probabilities * margins
    weighted -= probabilities * np.einsum("ik->i", weighted)[:, np.newaxis]
    return weighted


def _check_labels(labels: NDArray[np.integer[Any]], n_classes: int, rows: int) -> None:
    if n_classes < 2:
        raise InvalidParameter(f"n_classes must be at least 2, not {n_classes}")
    if labels.shape != (rows,) or not np.issubdtype(labels.dtype, np.integer):
        raise InvalidParameter(f"labels must be integers of shape ({rows},)")
    if np.any((labels < 0) | (labels >= n_classes)):
        raise InvalidParameter("labels must lie between 0 and n_classes - 1")

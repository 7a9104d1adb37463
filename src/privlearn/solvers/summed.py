"""The objectives over rows in several partitions, which return sums only, added in a fixed order.

A partition keeps its rows and what it has computed from them (`PartitionRows`). The linear term, which may be noise,
the ridge and the certificate stay with the caller. docs/theory/solver.md, "Rows on several machines".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from privlearn.arrays import Array
from privlearn.errors import InvalidParameter, SolverError
from privlearn.solvers.certifiable import MAX_LEVELS, Rounding, max_chain, max_target_offset
from privlearn.solvers.descent import descend
from privlearn.solvers.losses import Loss, Multinomial
from privlearn.solvers.multinomial import Softmax, coefficients_by_class
from privlearn.solvers.newton import ConjugateGradients
from privlearn.solvers.objective import Objective, Point
from privlearn.solvers.problem import Progress, Solution, pairwise_sum
from privlearn.solvers.solve import descend_from, warm_rows

STORED_POINTS = 3  # points whose margins a partition stores: where a step began, its full length, its end
MAX_PARTITION_ROWS = 1 << 27
MAX_PARTITIONS = 1 << (MAX_LEVELS - 27)  # the sum over partitions stays within the levels of the chain

Answer = tuple[Any, ...]
"""Arrays and numbers, each of which is summed over all partitions."""


class PartitionRows:
    """PRIVATE: an objective's sums over one partition's rows.

    Requests identify points by their coefficients: a partition that was restarted recomputes what it no longer has, and
    returns the same answer.
    """

    def __init__(self, objective: Objective | Softmax) -> None:
        self._objective = objective
        self._margins: dict[bytes, Any] = {}
        self._stored_derivatives: tuple[bytes, Any] = (b"", None)

    def mass(self) -> Answer:
        """Return the sum of the rows' weights over N."""
        return (float(np.sum(self._objective.scales)),)

    def sums(self, coefficients: Array) -> Answer:
        margins, value, gradient = self._objective.sums(coefficients)
        self._margins[coefficients.tobytes()] = margins
        # Oldest first: a line search only returns to its last points.
        while len(self._margins) > STORED_POINTS:
            del self._margins[next(iter(self._margins))]
        return value, gradient

    def line_derivatives(self, one: Array, other: Array, length: float) -> Answer:
        return self._objective.line_derivatives(self._point(one), self._point(other), length)

    def product(self, at: Points, vector: Array) -> Answer:
        return (self._objective.product(self._second_derivatives(at), vector),)

    def gram(self, at: Points, kind: type[np.floating[Any]]) -> Answer:
        return (self._of_margins.gram(self._second_derivatives(at), kind),)

    def diagonal(self, at: Points) -> Answer:
        diagonal = self._objective.diagonal(self._second_derivatives(at))
        return diagonal if isinstance(diagonal, tuple) else (diagonal,)

    def sample_gram(self, at: Points, columns: NDArray[np.intp], stride: int) -> Answer:
        return (self._of_margins.sample_gram(self._second_derivatives(at), columns, stride),)

    def class_moments(self, at: Points) -> Answer:
        return (self._of_classes.class_moments(self._second_derivatives(at)),)

    def second_moments(self, at: Points) -> Answer:
        return (self._of_classes.second_moments(self._second_derivatives(at)),)

    @property
    def _of_margins(self) -> Objective:
        return cast(Objective, self._objective)

    @property
    def _of_classes(self) -> Softmax:
        return cast(Softmax, self._objective)

    def _point(self, coefficients: Array) -> Point:
        key = coefficients.tobytes()
        if key not in self._margins:
            self.sums(coefficients)
        return Point(coefficients, self._margins[key], 0.0, coefficients, 0.0)

    def _second_derivatives(self, at: Points) -> Any:
        # The bytes name the point: a worker that was restarted recomputes the same sums from them.
        key = b"".join(coefficients.tobytes() for coefficients in at)
        if self._stored_derivatives[0] != key:
            points = [self._point(coefficients) for coefficients in at]
            between = self._objective.second_derivatives_between
            derivatives = (
                between(*points) if len(points) == 2 else self._objective.second_derivatives(*points)
            )
            self._stored_derivatives = key, derivatives
        return self._stored_derivatives[1]


Points = tuple[Array, ...]
"""The coefficients of one point; or of two points, for `second_derivatives_between`."""


class RowPartitions(Protocol):
    """All partitions of one problem."""

    count: int
    """Number of rows."""
    dimension: int
    """Number of columns."""
    is_sparse: bool
    offset_bound: float
    """Bound on the offsets of scores, beyond targets in [-1, 1]."""

    def total(self, answer: Callable[..., Answer], *arguments: Any) -> list[Any]:
        """Return the sum of ``answer(rows, *arguments)`` over the partitions, by `sums_in_order`."""
        ...

    def every(self, stride: int) -> RowPartitions:
        """Return the problem of every ``stride``-th row."""
        ...


def sums_in_order(answers: Sequence[Answer]) -> list[Any]:
    """Return the sums of the answers, added as a tree: independent of the order in which they arrived.

    Examples
    --------
    >>> [total.tolist() for total in sums_in_order([(np.array([1.0, 2.0]), 3.0), (np.array([10.0, 20.0]), 30.0)])]
    [[11.0, 22.0], 33.0]
    """
    columns = ([np.array(each, np.float64) for each in column] for column in zip(*answers, strict=True))
    return [pairwise_sum(column, column[0].shape) for column in columns]


def check_partitions(rows: Sequence[int]) -> None:
    """Raise InvalidParameter for more partitions, or rows in one of them, than the certificate allows."""
    if len(rows) > MAX_PARTITIONS or max(rows, default=0) > MAX_PARTITION_ROWS:
        raise InvalidParameter(
            f"rows may lie in up to {MAX_PARTITIONS} partitions of up to {MAX_PARTITION_ROWS} rows each: divide them so"
        )


class _Summed:
    """Base of both objectives over several partitions."""

    _partitions: RowPartitions

    def sums(self, coefficients: Array) -> tuple[Array, float, Array]:
        value, gradient = self._partitions.total(PartitionRows.sums, coefficients)
        return np.empty(0), float(value), gradient

    def line_derivatives(self, one: Point, other: Point, length: float) -> tuple[float, float]:
        first, second = self._partitions.total(
            PartitionRows.line_derivatives, one.coefficients, other.coefficients, length
        )
        return float(first), float(second)

    def second_derivatives(self, point: Point) -> Points:
        return (point.coefficients,)

    def second_derivatives_between(self, one: Point, other: Point) -> Points:
        return one.coefficients, other.coefficients

    def product(self, second_derivatives: Points, vector: Array) -> Array:
        (product,) = self._partitions.total(PartitionRows.product, second_derivatives, vector)
        return np.asarray(product)

    def _initialise(
        self, partitions: RowPartitions, loss: Any, regularization: float, linear: Array, classes: int = 0
    ) -> None:
        """Set what both objectives need: the partitions, the caller's terms, and the rounding bound of the sums."""
        self._partitions = partitions
        self.regularization, self.linear, self.norm_bound = regularization, linear, 1.0
        (mass,) = partitions.total(PartitionRows.mass)
        self._rounding = Rounding(
            loss=loss,
            regularization=regularization,
            dimension=partitions.dimension,
            chain=max_chain(),
            mass=float(mass),
            norm_bound=1.0,
            linear_norm=float(np.linalg.norm(linear)),
            max_offset=max_target_offset(loss) + partitions.offset_bound,
            classes=classes,
        )


class SummedObjective(_Summed, Objective):
    """`Objective` over several partitions."""

    def __init__(self, partitions: RowPartitions, loss: Loss, regularization: float, linear: Array) -> None:
        self._initialise(partitions, loss, regularization, linear)
        self.loss = loss
        self.count, self.dimension, self.is_sparse = (
            partitions.count,
            partitions.dimension,
            partitions.is_sparse,
        )

    def gram(self, second_derivatives: Points, kind: type[np.floating[Any]]) -> Array:
        (gram,) = self._partitions.total(PartitionRows.gram, second_derivatives, kind)
        return np.asarray(gram)

    def diagonal(self, second_derivatives: Points) -> tuple[Array, int]:
        diagonal, entries = self._partitions.total(PartitionRows.diagonal, second_derivatives)
        return diagonal, int(entries)

    def sample_gram(self, second_derivatives: Points, columns: NDArray[np.intp], stride: int) -> Array:
        (gram,) = self._partitions.total(PartitionRows.sample_gram, second_derivatives, columns, stride)
        return np.asarray(gram)


class SummedSoftmax(_Summed, Softmax):
    """`Softmax` over several partitions."""

    def __init__(
        self, partitions: RowPartitions, n_classes: int, regularization: float, linear: Array
    ) -> None:
        self._initialise(partitions, Multinomial(), regularization, linear, n_classes)
        self._shape = (partitions.dimension, n_classes)

    def diagonal(self, second_derivatives: Points) -> Array:
        (diagonal,) = self._partitions.total(PartitionRows.diagonal, second_derivatives)
        return np.asarray(diagonal)

    def class_moments(self, second_derivatives: Points) -> Array:
        (moments,) = self._partitions.total(PartitionRows.class_moments, second_derivatives)
        return np.asarray(moments)

    def second_moments(self, second_derivatives: Points) -> Array:
        (moments,) = self._partitions.total(PartitionRows.second_moments, second_derivatives)
        return np.asarray(moments)


def minimise_summed(
    partitions: RowPartitions,
    loss: Loss,
    regularization: float,
    linear: Array | None,
    tolerance: float,
    progress: Progress | None = None,
) -> Solution:
    """Run `solve.minimise` over several partitions, for a loss with a bounded second derivative.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from privlearn.solvers import Logistic, Problem
    >>> problem = Problem(np.array([[1.0]]), np.array([1.0]), Logistic(), regularization=0.1, total=2)
    >>> halves = [PartitionRows(Objective(problem)), PartitionRows(Objective(problem))]
    >>> partitions = SimpleNamespace(count=2, dimension=1, is_sparse=False, offset_bound=0.0)
    >>> partitions.total = lambda answer, *arguments: sums_in_order([answer(rows, *arguments) for rows in halves])
    >>> minimise_summed(partitions, Logistic(), 0.1, None, tolerance=1e-9).coefficients.round(4)
    array([1.6335])
    """
    tilt = np.zeros(partitions.dimension) if linear is None else linear
    start = _warm_start(partitions, loss, regularization, tilt)
    objective = SummedObjective(partitions, loss, regularization, tilt)
    return descend_from(start, objective, tolerance, progress)


def minimise_summed_multinomial(
    partitions: RowPartitions,
    n_classes: int,
    regularization: float,
    linear: Array | None,
    tolerance: float,
    progress: Progress | None = None,
) -> Solution:
    """Run `multinomial.minimise_multinomial` over several partitions; ``coefficients`` has shape (n_classes, d).

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from privlearn.solvers.problem import Rows
    >>> scales, linear = np.full(2, 0.5), np.zeros(2)
    >>> softmax = Softmax(Rows(np.array([[1.0], [-1.0]]), 1.0), np.array([0, 1]), 2, 1.0, scales, 1.0, linear)
    >>> partitions = SimpleNamespace(count=2, dimension=1, is_sparse=False, offset_bound=0.0)
    >>> partitions.total = lambda answer, *arguments: sums_in_order([answer(PartitionRows(softmax), *arguments)])
    >>> minimise_summed_multinomial(partitions, 2, 0.1, None, tolerance=1e-9).coefficients.round(4).tolist()
    [[1.064], [-1.064]]
    """
    start = np.zeros(n_classes * partitions.dimension)
    objective = SummedSoftmax(
        partitions,
        n_classes,
        regularization,
        start if linear is None else linear.reshape(n_classes, -1).T.ravel(),
    )
    solution = descend(objective, ConjugateGradients(objective), start, tolerance, progress)
    return replace(solution, coefficients=coefficients_by_class(solution, n_classes))


def _warm_start(partitions: RowPartitions, loss: Loss, regularization: float, linear: Array) -> Array:
    """Return the minimiser over a sample of every partition's rows, as `solve` does."""
    stride, count = warm_rows(partitions.count, partitions.dimension)
    if not count:
        return np.zeros(partitions.dimension)
    some = partitions.every(stride)
    try:
        start = _warm_start(some, loss, regularization, linear)
        objective = SummedObjective(some, loss, regularization, linear)
        return descend_from(start, objective, 0.1 / np.sqrt(count), None).coefficients
    except SolverError:  # a warm start only saves time
        return np.zeros(partitions.dimension)

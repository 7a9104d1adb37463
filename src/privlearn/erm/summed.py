"""The same objectives over rows that lie in several places: only sums come from there, added up in a fixed order.

A place keeps its rows and what it has computed of them (`RowsAt`). The linear term, which may be noise, the ridge and
the certificate stay where the sums are asked for. docs/theory/solver.md, "Rows on several machines".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from privlearn.arrays import Array
from privlearn.erm.certifiable import MOST_LEVELS, Rounding, farthest, longest_chain
from privlearn.erm.descent import descend
from privlearn.erm.losses import Loss, Multinomial
from privlearn.erm.multinomial import Softmax
from privlearn.erm.newton import ConjugateGradients
from privlearn.erm.objective import Objective, Point
from privlearn.erm.problem import Progress, Solution, pairwise_sum
from privlearn.erm.solve import descend_from, warm_rows
from privlearn.errors import InvalidParameter, SolverError

KEPT = 3  # points whose margins a place keeps: where a step began, its full length, its end
MOST_ROWS_OF_A_PLACE = 1 << 27
MOST_PLACES = 1 << (
    MOST_LEVELS - 27
)  # the sum over places lengthens the chain by no more than a place's spares

Answer = tuple[Any, ...]
"""Arrays and numbers, each of which is summed over all places."""


class RowsAt:
    """PRIVATE: an objective's sums over one place's rows.

    Whatever is asked names its points by their coefficients: a place that has begun anew computes what it does not
    know, and gives the same answer.
    """

    def __init__(self, objective: Objective | Softmax) -> None:
        self._objective = objective
        self._margins: dict[bytes, Any] = {}
        self._curved: tuple[bytes, Any] = (b"", None)

    def mass(self) -> Answer:
        """Sum of the rows' weights over N."""
        return (float(np.sum(self._objective.scales)),)

    def sums(self, coefficients: Array) -> Answer:
        margins, value, gradient = self._objective.sums(coefficients)
        self._margins[coefficients.tobytes()] = margins
        while len(self._margins) > KEPT:
            del self._margins[next(iter(self._margins))]
        return value, gradient

    def slope(self, one: Array, other: Array, length: float) -> Answer:
        return self._objective.slope(self._point(one), self._point(other), length)

    def product(self, way: Way, vector: Array) -> Answer:
        return (self._objective.product(self._curvatures(way), vector),)

    def gram(self, way: Way, kind: type[np.floating[Any]]) -> Answer:
        return (self._of_margins.gram(self._curvatures(way), kind),)

    def diagonal(self, way: Way) -> Answer:
        found = self._objective.diagonal(self._curvatures(way))
        return found if isinstance(found, tuple) else (found,)

    def some_gram(self, way: Way, columns: NDArray[np.intp], stride: int) -> Answer:
        return (self._of_margins.some_gram(self._curvatures(way), columns, stride),)

    def class_moments(self, way: Way) -> Answer:
        return (self._of_classes.class_moments(self._curvatures(way)),)

    def second_moments(self) -> Answer:
        return (self._of_classes.second_moments(),)

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

    def _curvatures(self, way: Way) -> Any:
        key = b"".join(coefficients.tobytes() for coefficients in way)
        if self._curved[0] != key:
            points = [self._point(coefficients) for coefficients in way]
            between = self._objective.curvatures_between
            curved = between(*points) if len(points) == 2 else self._objective.curvatures(*points)
            self._curved = key, curved
        return self._curved[1]


Way = tuple[Array, ...]
"""The coefficients of a point, or of two points with the way between them."""


class Places(Protocol):
    """All places of one problem."""

    count: int
    """Of rows."""
    dimension: int
    """Of a row."""
    is_sparse: bool

    def total(self, answer: Callable[..., Answer], *arguments: Any) -> list[Any]:
        """Each place's ``answer(its rows, *arguments)``, summed by `sums_in_order` in the order of the places."""
        ...

    def every(self, stride: int) -> Places:
        """The same of one row in so many, as if there were no others."""
        ...


def sums_in_order(answers: Sequence[Answer]) -> list[Any]:
    """The answers' sums, neighbours first: they do not depend on who answered first."""
    columns = ([np.array(each, np.float64) for each in column] for column in zip(*answers, strict=True))
    return [pairwise_sum(column, column[0].shape) for column in columns]


def check_places(rows: Sequence[int]) -> None:
    """Refuse more places, or rows in one of them, than the certificate reckons with."""
    if len(rows) > MOST_PLACES or max(rows, default=0) > MOST_ROWS_OF_A_PLACE:
        raise InvalidParameter(
            f"rows may lie in up to {MOST_PLACES} partitions of up to {MOST_ROWS_OF_A_PLACE} rows each: divide them so"
        )


class _Summed:
    """What both objectives over several places share."""

    _places: Places

    def sums(self, coefficients: Array) -> tuple[Array, float, Array]:
        value, gradient = self._places.total(RowsAt.sums, coefficients)
        return np.empty(0), float(value), gradient

    def slope(self, one: Point, other: Point, length: float) -> tuple[float, float]:
        slope, bend = self._places.total(RowsAt.slope, one.coefficients, other.coefficients, length)
        return float(slope), float(bend)

    def curvatures(self, point: Point) -> Way:
        return (point.coefficients,)

    def curvatures_between(self, one: Point, other: Point) -> Way:
        return one.coefficients, other.coefficients

    def product(self, curvatures: Way, vector: Array) -> Array:
        (product,) = self._places.total(RowsAt.product, curvatures, vector)
        return np.asarray(product)

    def _keep(
        self, places: Places, loss: Any, regularization: float, linear: Array, classes: int = 0
    ) -> None:
        self._places = places
        self.regularization, self.linear, self.norm_bound = regularization, linear, 1.0
        (mass,) = places.total(RowsAt.mass)
        self._rounding = Rounding(
            loss=loss,
            regularization=regularization,
            dimension=places.dimension,
            chain=longest_chain(),
            mass=float(mass),
            norm_bound=1.0,
            linear_norm=float(np.linalg.norm(linear)),
            largest_offset=farthest(loss),
            classes=classes,
        )


class SummedObjective(_Summed, Objective):
    """`Objective` over several places."""

    def __init__(self, places: Places, loss: Loss, regularization: float, linear: Array) -> None:
        self._keep(places, loss, regularization, linear)
        self.loss = loss
        self.count, self.dimension, self.is_sparse = places.count, places.dimension, places.is_sparse

    def gram(self, curvatures: Way, kind: type[np.floating[Any]]) -> Array:
        (gram,) = self._places.total(RowsAt.gram, curvatures, kind)
        return np.asarray(gram)

    def diagonal(self, curvatures: Way) -> tuple[Array, int]:
        diagonal, entries = self._places.total(RowsAt.diagonal, curvatures)
        return diagonal, int(entries)

    def some_gram(self, curvatures: Way, columns: NDArray[np.intp], stride: int) -> Array:
        (gram,) = self._places.total(RowsAt.some_gram, curvatures, columns, stride)
        return np.asarray(gram)


class SummedSoftmax(_Summed, Softmax):
    """`Softmax` over several places."""

    def __init__(self, places: Places, n_classes: int, regularization: float, linear: Array) -> None:
        self._keep(places, Multinomial(), regularization, linear, n_classes)
        self._shape = (n_classes, places.dimension)

    def diagonal(self, curvatures: Way) -> Array:
        (diagonal,) = self._places.total(RowsAt.diagonal, curvatures)
        return np.asarray(diagonal)

    def class_moments(self, curvatures: Way) -> Array:
        (moments,) = self._places.total(RowsAt.class_moments, curvatures)
        return np.asarray(moments)

    def second_moments(self) -> Array:
        (moments,) = self._places.total(RowsAt.second_moments)
        return np.asarray(moments)


def minimise_summed(
    places: Places,
    loss: Loss,
    regularization: float,
    linear: Array | None,
    tolerance: float,
    progress: Progress | None = None,
) -> Solution:
    """`solve.minimise` over several places, for a loss with bounded curvature."""
    tilt = np.zeros(places.dimension) if linear is None else linear
    start = _warm_start(places, loss, regularization, tilt)
    objective = SummedObjective(places, loss, regularization, tilt)
    return descend_from(start, objective, tolerance, progress)


def minimise_summed_multinomial(
    places: Places,
    n_classes: int,
    regularization: float,
    linear: Array | None,
    tolerance: float,
    progress: Progress | None = None,
) -> Solution:
    """`multinomial.minimise_multinomial` over several places; ``coefficients`` has shape (n_classes, d)."""
    start = np.zeros(n_classes * places.dimension)
    objective = SummedSoftmax(places, n_classes, regularization, start if linear is None else linear.ravel())
    found = descend(objective, ConjugateGradients(objective), start, tolerance, progress)
    coefficients = found.coefficients.reshape(n_classes, places.dimension)
    return Solution(coefficients, found.gradient_norm, found.distance, found.iterations)


def _warm_start(places: Places, loss: Loss, regularization: float, linear: Array) -> Array:
    """Minimiser over some of the rows of every place, as `solve` has it."""
    stride, kept = warm_rows(places.count, places.dimension)
    if not kept:
        return np.zeros(places.dimension)
    some = places.every(stride)
    try:
        start = _warm_start(some, loss, regularization, linear)
        objective = SummedObjective(some, loss, regularization, linear)
        return descend_from(start, objective, 0.1 / np.sqrt(kept), None).coefficients
    except SolverError:  # nobody promised this tolerance: it only saves time
        return np.zeros(places.dimension)

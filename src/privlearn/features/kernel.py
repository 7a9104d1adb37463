"""Points, and what a kernel is: a positive definite function of two of them, with the facts that theorems need."""

from __future__ import annotations

import math
import numbers
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privlearn.arrays import Array, is_sparse, square_sums, summed_entries
from privlearn.data.sources.table import safely
from privlearn.errors import DataError, InvalidParameter, shown
from privlearn.heavy import sparse

Points: TypeAlias = "NDArray[np.float64] | sparse.csr_array"

_UNREADABLE = "the points cannot be read as numbers: give a 2-D array or CSR matrix, or a kernel of your own"


def as_points(X: Any) -> Points:
    """Float64 rows, dense or CSR without duplicate entries; anything else is a DataError."""
    if is_sparse(X):
        _refuse_other_types(X)
        rows = summed_entries(X)
        _refuse_non_finite(rows.data)
        return rows
    given = safely(lambda: np.asarray(X), _UNREADABLE)
    _refuse_other_types(given)
    dense = np.asarray(given, dtype=np.float64)
    _refuse_non_finite(dense)
    return dense


def row_count(X: Any, *, may_be_empty: bool = False) -> int:
    """Number of points in a matrix or in any sequence of objects."""
    if isinstance(X, str | bytes):
        raise DataError("one text is not a sequence of points: put it in a list")
    count = int(X.shape[0]) if hasattr(X, "shape") else safely(lambda: len(X), "the points have no length")
    if count == 0 and not may_be_empty:
        raise DataError("there are no points: give at least one")
    return count


def row_squares(X: Points) -> Array:
    """Squared Euclidean norm of each point."""
    if isinstance(X, sparse.csr_array):
        return np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64)
    return square_sums(X)


def inner_products(X: Points, Z: Points) -> Array:
    """``<x, z>`` for every x of X and z of Z."""
    return as_matrix(X @ Z.T)


def as_matrix(values: Any) -> Array:
    """A dense float64 array of what may be sparse."""
    return np.asarray(values.toarray() if is_sparse(values) else values, dtype=np.float64)


def _refuse_other_types(X: Any) -> None:
    if X.dtype.kind not in "buif" or len(X.shape) != 2:
        raise DataError(_UNREADABLE)


def _refuse_non_finite(entries: Array) -> None:
    if not np.isfinite(entries).all():
        raise DataError("the points have NaN or infinite entries: fill them in, or drop those rows")


ROUNDING = 1e-9  # relative; by how much a computed k(x, x) may exceed the bound
KERNEL_ROUNDING = 2.0**-38  # relative to the bound: no value of a session's kernel may err by more
UNIT_ROUNDOFF = 2.0**-53

Function = Callable[[Any, Any], Any]

_TOGETHER = 8  # points whose k(x, x) are asked for in one call of a user's function


class Kernel(ABC):
    """A positive semidefinite function of two points: public settings, no data.

    Attributes
    ----------
    name : str
    bound : float
        The supremum of k(x, x) over the unit ball, where the encoders put every row.
    settings : tuple of str
        The parameters that make the kernel again.
    """

    name: str
    bound: float
    settings: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def __call__(self, X: Any, Z: Any) -> Array:
        """The matrix k(x, z) for every x of X and z of Z."""

    @abstractmethod
    def diagonal(self, X: Any) -> Array:
        """k(x, x) for every x of X; a value above the bound is a DataError."""

    @abstractmethod
    def rounding(self, dimension: int) -> float:
        """Bound on the error of a computed value, divided by the kernel's bound, at dense points of norm at most 1."""

    def towards(self, Z: Any) -> Callable[[Any], Array]:
        """k(., Z), for many calls with the same Z: what can be done once for Z is done once."""
        return lambda X: self(X, Z)

    def check(self, X: Any) -> None:
        """Refuse points at which k(x, x) exceeds the bound."""
        self.diagonal(X)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values from which ``kernel_from_dict`` makes the kernel again."""
        return {"kernel": self.name} | {setting: getattr(self, setting) for setting in self.settings}

    @staticmethod
    def from_callable(
        function: Function,
        *,
        bound: float,
        name: str | None = None,
        diagonal: Callable[[Any], Any] | None = None,
    ) -> CallableKernel:
        """A kernel of the user's own.

        Parameters
        ----------
        function : callable
            ``function(X, Z)`` returns the matrix of k(x, z), as for scikit-learn's ``SVC(kernel=function)``. X and
            Z are slices of what the caller passes: arrays, or sequences of any objects, such as texts. It
            must be symmetric, positive semidefinite, and look at nothing but its arguments.
        bound : float
            Public upper bound of k(x, x) over every point there could be, never read from the data.
        name : str, optional
            What certificates call it; the function's own name by default.
        diagonal : callable, optional
            ``diagonal(X)`` returns k(x, x) for each x. Without it the function is asked for small square blocks, which
            can take most of the time of a fit.
        """
        named = name or str(getattr(function, "__name__", "callable"))
        return CallableKernel(function, bound, named, diagonal)

    def _bounded(self, diagonal: Array) -> Array:
        if not np.all(diagonal <= self.bound * (1.0 + ROUNDING)):  # also catches NaN
            raise DataError(
                f"the kernel {self.name!r} exceeds its bound {self.bound:g} at some points: "
                "scale the rows to norm at most 1, or declare a bound that holds for every point"
            )
        return diagonal


@dataclass(frozen=True)
class CallableKernel(Kernel):
    """A user's function with a declared bound; see :meth:`Kernel.from_callable`."""

    function: Function
    bound: float
    name: str
    own_diagonal: Callable[[Any], Any] | None = None
    settings = ("name", "bound")

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise InvalidParameter("a kernel of your own must be a function of (X, Z) that returns a matrix")
        if self.own_diagonal is not None and not callable(self.own_diagonal):
            raise InvalidParameter("diagonal must be a function of X that returns k(x, x) for each x")
        object.__setattr__(self, "bound", positive("kernel_bound", self.bound))

    def __call__(self, X: Any, Z: Any) -> Array:
        shape = (row_count(X), row_count(Z))
        values = safely(lambda: as_matrix(self.function(X, Z)), self._failed)
        if values.shape != shape:
            raise DataError(
                f"the kernel {self.name!r} returned shape {values.shape} instead of {shape}: "
                "return one row a point of X, one column a point of Z"
            )
        return finite(values, self.name)

    def diagonal(self, X: Any) -> Array:
        """In blocks: a call of the function often costs more than the values beside the diagonal that come with it."""
        if self.own_diagonal is not None:
            return self._bounded(self._stated_diagonal(self.own_diagonal, X))
        blocks = (X[start : start + _TOGETHER] for start in range(0, row_count(X), _TOGETHER))
        values = [np.diagonal(self(block, block)) for block in blocks]
        return self._bounded(np.concatenate(values))

    def _stated_diagonal(self, diagonal: Callable[[Any], Any], X: Any) -> Array:
        values = safely(lambda: np.asarray(diagonal(X), dtype=np.float64), self._failed)
        if values.shape != (row_count(X),):
            raise DataError(f"diagonal of the kernel {self.name!r} must return one number per point")
        return values

    @property
    def _failed(self) -> str:
        return f"the kernel {self.name!r} failed, or returned no matrix of numbers: try it on made-up points"

    def rounding(self, dimension: int) -> float:
        """Assumed: nobody can know it of a function."""
        return KERNEL_ROUNDING

    def to_dict(self) -> dict[str, Any]:
        """Name and bound: the function itself is code, and has to be given again."""
        return super().to_dict() | {"kernel": "callable"}


@dataclass(frozen=True)
class PrecomputedKernel(Kernel):
    """Matrices that the caller computed: points are rows of k(x, z) against the m public points.

    The public points themselves are the m x m matrix of their kernel values. Such a row does not hold k(x, x); what it
    can betray is a value beyond the bound, or a projection longer than the bound allows, which the landmark map
    refuses.
    """

    bound: float
    name = "precomputed"
    settings = ("bound",)

    def __post_init__(self) -> None:
        object.__setattr__(self, "bound", positive("kernel_bound", self.bound))

    def __call__(self, X: Any, Z: Any) -> Array:
        values = self._values(X)
        if values.shape[1] != row_count(Z):
            raise DataError(
                f"the precomputed matrix has {values.shape[1]} columns, there are {row_count(Z)} public points: "
                "give one column per public point"
            )
        return values

    def diagonal(self, X: Any) -> Array:
        values = self._values(X)
        if values.shape[0] != values.shape[1]:
            raise DataError("only the square matrix of the public points has k(x, x) on its diagonal")
        return np.diagonal(values).copy()

    def rounding(self, dimension: int) -> float:
        """Assumed, as of a function."""
        return KERNEL_ROUNDING

    def check(self, X: Any) -> None:
        self._values(X)

    def _values(self, X: Any) -> Array:
        values = as_matrix(as_points(X))
        self._bounded(np.abs(values))  # as |k(x, z)|^2 <= k(x, x) k(z, z)
        return values


def finite(values: Array, name: str) -> Array:
    """The values, unless one is NaN or infinite."""
    if not np.isfinite(values).all():
        raise DataError(f"the kernel {name!r} has NaN or infinite values at some points: check those rows")
    return values


def positive(parameter: str, value: Any) -> float:
    """The value of a parameter that must be a finite number above 0."""
    if isinstance(value, str):
        raise InvalidParameter(
            f"{parameter} must be a number, not {shown(value)}: reading it off the data would publish the data; "
            f"on rows of norm at most 1, {parameter}=1.0 is a fair start"
        )
    if not is_finite(value) or value <= 0:
        raise InvalidParameter(f"{parameter} must be a finite number above 0, not {shown(value)}")
    return float(value)


def is_finite(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool) and math.isfinite(value)

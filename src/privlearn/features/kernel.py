"""Kernels: positive semidefinite functions of two points, with the bound and the rounding error that theorems need."""

from __future__ import annotations

import math
import numbers
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privlearn.arrays import Array, is_sparse, square_sums, sum_duplicates
from privlearn.data.sources.table import refuse_masked, safely
from privlearn.errors import DataError, InvalidParameter, preview
from privlearn.imports import sparse

Points: TypeAlias = "NDArray[np.float64] | sparse.csr_array"

_UNREADABLE = "the points cannot be read as numbers. Pass a 2-D array or CSR matrix, or a custom kernel."


def as_points(X: Any) -> Points:
    """Return points as float64 rows, dense or CSR without duplicate entries; raise DataError for other objects."""
    if is_sparse(X):
        _refuse_other_types(X)
        rows = sum_duplicates(X)
        _refuse_non_finite(rows.data)
        return rows
    refuse_masked(X)
    array = safely(lambda: np.asarray(X), _UNREADABLE)
    _refuse_other_types(array)
    dense = np.asarray(array, dtype=np.float64)
    _refuse_non_finite(dense)
    return dense


def row_count(X: Any, *, may_be_empty: bool = False) -> int:
    """Return the number of points in a matrix or in a sequence of objects."""
    if isinstance(X, str | bytes):
        raise DataError("one text is not a sequence of points. Put it in a list.")
    count = (
        int(X.shape[0])
        if hasattr(X, "shape")
        else safely(lambda: len(X), "the points have no length. Pass a matrix or a list.")
    )
    if count == 0 and not may_be_empty:
        raise DataError("the list of points is empty. Pass at least one.")
    return count


def row_squares(X: Points) -> Array:
    """Return the squared Euclidean norm of each point."""
    if not isinstance(X, np.ndarray):
        return np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64)
    return square_sums(X)


def inner_products(X: Points, Z: Points) -> Array:
    """Return ``<x, z>`` for every x of X and z of Z."""
    return as_matrix(X @ Z.T)


def as_matrix(values: Any) -> Array:
    """Return a dense float64 array; the values may be sparse."""
    return np.asarray(values.toarray() if is_sparse(values) else values, dtype=np.float64)


def _refuse_other_types(X: Any) -> None:
    if X.dtype.kind not in "buif" or len(X.shape) != 2:
        raise DataError(_UNREADABLE)


def _refuse_non_finite(entries: Array) -> None:
    if not np.isfinite(entries).all():
        raise DataError("the points have NaN or infinite entries. Fill them in, or drop those rows.")


ROUNDING = 1e-9  # maximum relative excess of a computed k(x, x) over the bound
KERNEL_ROUNDING = 2.0**-38  # maximum error of a value of a session's kernel, relative to the bound
UNIT_ROUNDOFF = 2.0**-53  # of doubles

Function = Callable[[Any, Any], Any]

_DIAGONAL_BLOCK = 8  # points whose k(x, x) are computed in one call of a user's function


class Kernel(ABC):
    """A positive semidefinite function of two points: public settings, no data.

    Attributes
    ----------
    name : str
    bound : float
        The supremum of k(x, x) over the unit ball, which contains all encoded rows.
    settings : tuple of str
        The parameters from which the kernel can be created again.
    is_row_local : bool
        Whether a point's values do not depend on the other points of a block, bit for bit; if False, the kernel is
        called for one point at a time.
    """

    name: str
    bound: float
    settings: ClassVar[tuple[str, ...]] = ()
    is_row_local: ClassVar[bool] = False

    @abstractmethod
    def __call__(self, X: Any, Z: Any) -> Array:
        """Return the matrix k(x, z) for every x of X and z of Z."""

    @abstractmethod
    def diagonal(self, X: Any) -> Array:
        """Return k(x, x) for every x of X; raise DataError if a value exceeds the bound."""

    @abstractmethod
    def rounding(self, dimension: int) -> float:
        """Return a bound of the error of a computed value, relative to the kernel's bound, in the unit ball."""

    def towards(self, Z: Any) -> Callable[[Any], Array]:
        """Return the function k(., Z), for many calls with the same Z, which is prepared once."""
        return lambda X: self(X, Z)

    def check(self, X: Any) -> None:
        """Refuse points at which k(x, x) exceeds the bound."""
        self.diagonal(X)

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values from which ``kernel_from_dict`` creates the kernel again."""
        return {"kernel": self.name} | {setting: getattr(self, setting) for setting in self.settings}

    @staticmethod
    def from_callable(
        function: Function,
        *,
        bound: float,
        name: str | None = None,
        diagonal: Callable[[Any], Any] | None = None,
    ) -> CallableKernel:
        """Return a custom kernel.

        Parameters
        ----------
        function : callable
            ``function(X, Z)`` returns the matrix of k(x, z), as for scikit-learn's ``SVC(kernel=function)``. X and
            Z are slices of what the caller passes: arrays, or sequences of any objects, such as texts. It
            must be symmetric, positive semidefinite, and depend on nothing but its arguments.
        bound : float
            Public upper bound of k(x, x) over all possible points, never read from the data.
        name : str, optional
            Name in certificates; by default that of the function.
        diagonal : callable, optional
            ``diagonal(X)`` returns k(x, x) for each x. Without it the function is called for small square blocks, which
            can take most of the time of a fit.
        """
        name = name or str(getattr(function, "__name__", "callable"))
        return CallableKernel(function, bound, name, diagonal)

    @staticmethod
    def from_pairs(
        function: Callable[[Any, Any], float], *, bound: float, name: str | None = None
    ) -> CallableKernel:
        """Return a custom kernel from ``function(x, z)``, which returns k(x, z) for one pair of points.

        It is called once for each pair, so `from_callable` is faster where a matrix can be computed at once. ``bound``
        and ``name`` are as there.

        >>> kernel = Kernel.from_pairs(lambda x, z: float(x == z), bound=1.0, name="equal")
        >>> kernel(["a", "b"], ["a"]).tolist()
        [[1.0], [0.0]]
        """
        pairs = PairwiseFunction(function)
        name = name or str(getattr(function, "__name__", "callable"))
        return CallableKernel(pairs, bound, name, pairs.diagonal)

    def _check_bound(self, diagonal: Array) -> Array:
        if not np.all(diagonal <= self.bound * (1.0 + ROUNDING)):  # also catches NaN
            raise DataError(
                f"the kernel {self.name!r} exceeds its bound {self.bound:g} at some points. "
                "Scale the rows to norm at most 1, or state a bound that holds for every point."
            )
        return diagonal


@dataclass(frozen=True)
class PairwiseFunction:
    """A function of two points, as a function of two sequences of points."""

    function: Callable[[Any, Any], float]

    def __call__(self, X: Any, Z: Any) -> Array:
        values = [self.function(x, z) for x in X for z in Z]
        return np.array(values, dtype=np.float64).reshape(len(X), len(Z))

    def diagonal(self, X: Any) -> Array:
        return np.array([self.function(x, x) for x in X], dtype=np.float64)


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
            raise InvalidParameter("a custom kernel must be a function of (X, Z) that returns a matrix")
        if self.own_diagonal is not None and not callable(self.own_diagonal):
            raise InvalidParameter("diagonal must be a function of X that returns k(x, x) for each x")
        object.__setattr__(self, "bound", positive("kernel_bound", self.bound))

    def __call__(self, X: Any, Z: Any) -> Array:
        shape = (row_count(X), row_count(Z))
        values = safely(lambda: as_matrix(self.function(X, Z)), self._failure)
        if values.shape != shape:
            raise DataError(
                f"the kernel {self.name!r} returned shape {values.shape} instead of {shape}. "
                "Return one row per point of X and one column per point of Z, or pass a function of two points as "
                "kernel=Kernel.from_pairs(function, bound=...)."
            )
        return finite(values, self.name)

    def diagonal(self, X: Any) -> Array:
        """Compute k(x, x) in square blocks: few calls are faster, although they compute values off the diagonal."""
        if self.own_diagonal is not None:
            return self._check_bound(self._call_diagonal(self.own_diagonal, X))
        blocks = (X[start : start + _DIAGONAL_BLOCK] for start in range(0, row_count(X), _DIAGONAL_BLOCK))
        values = [np.diagonal(self(block, block)) for block in blocks]
        return self._check_bound(np.concatenate(values))

    def _call_diagonal(self, diagonal: Callable[[Any], Any], X: Any) -> Array:
        values = safely(lambda: np.asarray(diagonal(X), dtype=np.float64), self._failure)
        if values.shape != (row_count(X),):
            raise DataError(f"diagonal of the kernel {self.name!r} must return one number per point")
        return values

    @property
    def _failure(self) -> str:
        return (
            f"the kernel {self.name!r} failed, or returned no matrix of numbers. Test it on invented points."
        )

    def rounding(self, dimension: int) -> float:
        """Return an assumed bound: it cannot be computed from a function."""
        return KERNEL_ROUNDING

    def to_dict(self) -> dict[str, Any]:
        """Return name and bound; the function itself is code, and has to be passed again."""
        return super().to_dict() | {"kernel": "callable"}


@dataclass(frozen=True)
class PrecomputedKernel(Kernel):
    """Kernel matrices that the caller computed: a point is its row of k(x, z) with the m public points.

    The public points themselves are the m x m matrix of their kernel values. Such a row does not contain k(x, x); only
    values beyond the bound, and projections longer than the bound allows, can be refused (by the landmark map).

    Examples
    --------
    >>> values = np.array([[1.0, 0.5], [0.5, 1.0]])
    >>> PrecomputedKernel(bound=1.0)([[0.2, 0.9]], values).tolist()
    [[0.2, 0.9]]
    """

    bound: float
    name = "precomputed"
    settings = ("bound",)

    is_row_local = True  # nothing is computed

    def __post_init__(self) -> None:
        object.__setattr__(self, "bound", positive("kernel_bound", self.bound))

    def __call__(self, X: Any, Z: Any) -> Array:
        values = self._values(X)
        if values.shape[1] != row_count(Z):
            raise DataError(
                f"the precomputed matrix has {values.shape[1]} columns, there are {row_count(Z)} public points. "
                "Pass one column per public point."
            )
        return values

    def diagonal(self, X: Any) -> Array:
        values = self._values(X)
        if values.shape[0] != values.shape[1]:
            raise DataError(
                "the matrix is not square. Only that of the public points has k(x, x) on its diagonal."
            )
        return np.diagonal(values).copy()

    def rounding(self, dimension: int) -> float:
        """Return an assumed bound, as for a function."""
        return KERNEL_ROUNDING

    def check(self, X: Any) -> None:
        self._values(X)

    def _values(self, X: Any) -> Array:
        values = as_matrix(as_points(X))
        self._check_bound(np.abs(values))  # as |k(x, z)|^2 <= k(x, x) k(z, z)
        return values


def finite(values: Array, name: str) -> Array:
    """Return the values; raise DataError if one is NaN or infinite."""
    if not np.isfinite(values).all():
        raise DataError(f"the kernel {name!r} has NaN or infinite values at some points. Check those rows.")
    return values


def positive(parameter: str, value: Any) -> float:
    """Return the value of a parameter; refuse anything but a finite number above 0."""
    if isinstance(value, str):
        raise InvalidParameter(
            f"{parameter} must be a number, not {preview(value)}: a value from the data would publish the data. "
            f"On rows of norm at most 1, {parameter}=1.0 is a good start."
        )
    if not is_finite(value) or value <= 0:
        raise InvalidParameter(f"{parameter} must be a finite number above 0, not {preview(value)}")
    return float(value)


def is_finite(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool) and math.isfinite(value)

"""Points as a kernel takes them: a dense or CSR matrix of finite numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from privlearn.data.quiet import quietly
from privlearn.errors import DataError

Array = NDArray[np.float64]
Points = NDArray[np.float64] | sparse.csr_array

_UNREADABLE = "the points cannot be read as numbers: give a 2-D array or CSR matrix, or a kernel of your own"


def as_points(X: Any) -> Points:
    """Float64 rows, dense or CSR without duplicate entries; anything else is a DataError."""
    if is_sparse(X):
        _refuse_other_types(X)
        rows: sparse.csr_array = sparse.csr_array(X, dtype=np.float64)
        if not rows.has_canonical_format:
            rows = rows.copy()  # the caller's matrix is not ours to tidy
            rows.sum_duplicates()
        _refuse_non_finite(rows.data)
        return rows
    given = quietly(lambda: np.asarray(X), _UNREADABLE)
    _refuse_other_types(given)
    dense = np.asarray(given, dtype=np.float64)
    _refuse_non_finite(dense)
    return dense


def row_count(X: Any) -> int:
    """Number of points in a matrix or in any sequence of objects."""
    if isinstance(X, str | bytes):
        raise DataError("one text is not a sequence of points: put it in a list")
    count = int(X.shape[0]) if hasattr(X, "shape") else quietly(lambda: len(X), "the points have no length")
    if count == 0:
        raise DataError("there are no points: give at least one")
    return count


def row_squares(X: Points) -> Array:
    """Squared Euclidean norm of each point."""
    if isinstance(X, sparse.csr_array):
        return np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64)
    squares: Array = np.einsum("ij,ij->i", X, X)
    return squares


def inner_products(X: Points, Z: Points) -> Array:
    """``<x, z>`` for every x of X and z of Z."""
    return as_matrix(X @ Z.T)


def as_matrix(values: Any) -> Array:
    """A dense float64 array of what may be sparse."""
    return np.asarray(values.toarray() if is_sparse(values) else values, dtype=np.float64)


def is_sparse(X: Any) -> bool:
    return bool(sparse.issparse(X))


def _refuse_other_types(X: Any) -> None:
    if X.dtype.kind not in "buif" or len(X.shape) != 2:
        raise DataError(_UNREADABLE)


def _refuse_non_finite(entries: Array) -> None:
    if not np.isfinite(entries).all():
        raise DataError("the points have NaN or infinite entries: fill them in, or drop those rows")

"""Plain arrays as rows of norm at most 1, and the norms of rows, rounded so that none exceeds 1."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privlearn.arrays import margin, row_squares, square_sums, summed_entries
from privlearn.data.sources.row_source import ArrayRows, EncodedRows, Matrix
from privlearn.data.sources.table import safely
from privlearn.errors import ON_DROPPING, DataError, InvalidParameter, shown
from privlearn.heavy import sparse

BLOCK = 1024  # rows; measured best of 512 to 8192 on a million rows of 241 features


def blocks(count: int, size: int = BLOCK) -> Iterator[slice]:
    """Slices that cover ``range(count)``."""
    for start in range(0, count, size):
        yield slice(start, min(start + size, count))


INTERCEPT = 0.05
"""Share of a row's squared norm that the constant feature takes: it need not be large, for it is in every row."""

FIRST_INTERCEPT = 0.5
"""What version 0.1 gave to it."""


class ArrayEncoder:
    """The map from arrays without a schema to vectors that the mechanisms take.

    A row x becomes ``x / max(|x|, norm_bound)``; with an intercept, ``(sqrt(1 - share) that, sqrt(share))``.

    Parameters
    ----------
    norm_bound : float
        Public bound; rows of larger Euclidean norm are clipped to it. Never take it from the data.
    n_features : int
        Number of columns.
    fit_intercept : bool, default=True
        Whether to append the constant feature.
    intercept_share : float, default=0.05
        Of the squared norm, between 0 and 1.

    Attributes
    ----------
    dimension : int
        Number of features, intercept included.
    norm_bound : float
        1.0: the bound of the encoded rows, in exact arithmetic.
    row_bound : float
        The bound of the encoded rows without the constant feature.
    clip_bound : float
        The bound of the raw rows, as given.
    """

    norm_bound = 1.0

    def __init__(
        self,
        norm_bound: float,
        n_features: int,
        fit_intercept: bool = True,
        intercept_share: float = INTERCEPT,
    ) -> None:
        if not _is_positive(norm_bound):
            raise InvalidParameter(f"norm_bound must be a finite number above 0, not {shown(norm_bound)}")
        self.clip_bound = float(norm_bound)
        self.n_features = n_features
        self.fit_intercept = fit_intercept
        self.dimension = n_features + fit_intercept
        self.intercept_share = intercept_share if fit_intercept else 0.0
        self.row_bound = math.sqrt(1.0 - self.intercept_share)
        self._factor = margin(self.dimension) * self.row_bound
        self._constant = margin(self.dimension) * math.sqrt(self.intercept_share)

    def encode(self, X: Any, *, may_be_empty: bool = False) -> Matrix:
        """Clip and scale the rows of a dense or sparse matrix; sparse in, CSR out."""
        rows = self.encoded(X)
        if len(rows) == 0 and not may_be_empty:
            raise DataError("X has no rows: give at least one")
        return rows.in_memory()

    def encoded(self, X: Any) -> EncodedRows:
        """The same, block by block and only when asked for."""
        checked = self._checked_sparse(X) if sparse.issparse(X) else self._checked_dense(X)
        return EncodedRows(ArrayRows(checked), self._encode_block, self.dimension, sparse.issparse(checked))

    def _encode_block(self, X: Any) -> Matrix:
        return self._encode_sparse(X) if isinstance(X, sparse.csr_array) else self._encode_dense(X)

    def unscale(self, coefficients: NDArray[np.float64]) -> tuple[NDArray[np.float64], Any]:
        """Coefficients and intercept in the units of X (for rows that need no clipping)."""
        scaled = np.asarray(coefficients, dtype=np.float64)
        if not self.fit_intercept:
            return scaled * self.per_unit, np.zeros(scaled.shape[:-1])[()]
        return scaled[..., :-1] * self.per_unit, scaled[..., -1] * self._constant

    @property
    def per_unit(self) -> float:
        """What a unit of X becomes, in a row that needs no clipping."""
        return self._factor / self.clip_bound

    def _encode_dense(self, X: NDArray[Any]) -> NDArray[np.float64]:
        rows = np.empty((len(X), self.dimension))
        rows[:, self.n_features :] = self._constant
        for part in blocks(len(X)):
            block = rows[part, : self.n_features]
            with np.errstate(over="ignore"):  # numbers longer than a float; refused as what they become
                block[:] = X[part]
            _refuse_non_finite(block)
            largest = self._largest(np.max(np.abs(block), axis=1, initial=0.0))
            block /= largest[:, np.newaxis]
            block *= self._shrink(square_sums(block), largest)[:, np.newaxis]
        return rows

    def _encode_sparse(self, X: sparse.csr_array) -> sparse.csr_array:
        lengths = np.diff(X.indptr)
        largest = self._largest(np.asarray(abs(X).max(axis=1).toarray()).ravel())
        X.data /= np.repeat(largest, lengths)
        X.data *= np.repeat(self._shrink(row_squares(X), largest), lengths)
        if not self.fit_intercept:
            return X
        constant = sparse.csr_array(np.full((X.shape[0], 1), self._constant))
        return sparse.csr_array(sparse.hstack([X, constant], format="csr"))

    def _largest(self, entries: NDArray[np.float64]) -> NDArray[np.float64]:
        """What to divide a row by first, so that no square overflows."""
        return np.maximum(entries, self.clip_bound)

    def _shrink(self, squares: NDArray[np.float64], largest: NDArray[np.float64]) -> NDArray[np.float64]:
        """What to multiply a row by after it was divided by ``largest``."""
        return self._factor / np.maximum(np.sqrt(squares), self.clip_bound / largest)

    def _checked_dense(self, X: Any) -> NDArray[Any]:
        unreadable = "X cannot be read as numbers: give a 2-D array of numbers, or a schema for a table"
        array = safely(lambda: np.asarray(X), unreadable)
        if array.dtype == object:
            array = safely(lambda: array.astype(np.float64), unreadable)
        self._check(array.shape, array.dtype)
        return array

    def _checked_sparse(self, X: Any) -> sparse.csr_array:
        self._check(X.shape, X.dtype)
        rows = summed_entries(X)
        _refuse_non_finite(rows.data)
        return rows

    def _check(self, shape: tuple[int, ...], dtype: Any) -> None:
        if dtype.kind not in "buif":
            raise DataError(
                f"X holds {dtype} where numbers are needed: convert it, or give a schema for a table"
            )
        if len(shape) != 2 or shape[1] != self.n_features:
            raise DataError(f"X has shape {shape}: it must be 2-D with {self.n_features} columns")


def _refuse_non_finite(entries: NDArray[np.float64]) -> None:
    if not np.isfinite(entries).all():
        raise DataError(f"X has NaN or infinite entries: fill them in, or drop those rows ({ON_DROPPING})")


def _is_positive(value: object) -> bool:
    return (
        isinstance(value, numbers.Real)
        and not isinstance(value, bool)
        and math.isfinite(value)
        and float(value) > 0.0
    )

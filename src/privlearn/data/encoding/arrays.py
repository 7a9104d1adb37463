"""Encode arrays without a schema: rows of norm at most 1, rounding errors included.

`ArrayEncoder` needs a public bound of the rows' norms. `schema_of_bounds` is for arrays with public bounds per column.
`CentredEncoder` subtracts a released mean and divides by a released radius, so that a row's norm is spent on what
varies.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterator
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from privlearn.arrays import Array, row_squares, safe_length, square_sums, sum_duplicates
from privlearn.data.schema.columns import AnyColumn, NumberColumn
from privlearn.data.schema.schema import Schema
from privlearn.data.sources.row_source import ArrayRows, EncodedRows, Matrix
from privlearn.data.sources.table import refuse_masked, safely
from privlearn.errors import ON_DROPPING, DataError, InvalidParameter, SchemaError, preview
from privlearn.imports import sparse

BLOCK = 1024  # rows; measured best of 512 to 8192 on a million rows of 241 features


def blocks(count: int, size: int = BLOCK) -> Iterator[slice]:
    """Yield slices that cover ``range(count)``."""
    for start in range(0, count, size):
        yield slice(start, min(start + size, count))


INTERCEPT = 0.05
"""The constant feature's share of a row's squared norm; a small share suffices, since every row has it."""

CENTRED_INTERCEPT = 0.15
"""The same in centred rows, whose mean prediction has noise in proportion to the inverse of its root."""

SINGLE_COLUMNS = 128  # from here on single precision saves more memory than it costs digits


class ArrayEncoder:
    """The map from arrays without a schema to vectors of norm at most 1.

    A row x becomes ``z = x / max(|x|, norm_bound)``; with an intercept, ``(sqrt(1 - share) z, sqrt(share))``.

    Parameters
    ----------
    norm_bound : float
        Public bound; rows of larger Euclidean norm are clipped to it. Never take it from the data.
    n_features : int
        Number of columns.
    fit_intercept : bool, default=True
        Whether to append the constant feature.
    intercept_share : float, default=0.05
        Share of the squared norm for the constant feature, between 0 and 1.

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

    Examples
    --------
    >>> ArrayEncoder(norm_bound=2.0, n_features=2).encode([[2.0, 0.0], [3.0, 4.0]]).round(3)  # the second is clipped
    array([[0.975, 0.   , 0.224],
           [0.585, 0.78 , 0.224]])
    """

    norm_bound = 1.0
    precision: type[np.floating[Any]]
    """Type of dense features: float32 from `SINGLE_COLUMNS` columns on. A row's features are these rounded numbers."""

    def __init__(
        self,
        norm_bound: float,
        n_features: int,
        fit_intercept: bool = True,
        intercept_share: float = INTERCEPT,
    ) -> None:
        if not _is_positive(norm_bound):
            raise InvalidParameter(f"norm_bound must be a finite number above 0, not {preview(norm_bound)}")
        self.clip_bound = float(norm_bound)
        self.n_features = n_features
        self.fit_intercept = fit_intercept
        self.dimension = n_features + fit_intercept
        self.intercept_share = intercept_share if fit_intercept else 0.0
        self.row_bound = math.sqrt(1.0 - self.intercept_share)
        self.precision = np.float32 if n_features >= SINGLE_COLUMNS else np.float64
        whole = safe_length(self.dimension, self.precision)
        self._factor = whole * self.row_bound
        self._constant = whole * math.sqrt(self.intercept_share)

    def encode(self, X: Any, *, may_be_empty: bool = False) -> Matrix:
        """Clip and scale the rows of a dense or sparse matrix; sparse in, CSR out."""
        rows = self.encode_lazily(X)
        if len(rows) == 0 and not may_be_empty:
            raise DataError("X has no rows. Pass at least one.")
        return rows.in_memory()

    def encode_lazily(self, X: Any) -> EncodedRows:
        """Return the rows as a source that encodes them block by block, in each pass."""
        rows = self._check_sparse(X) if sparse.issparse(X) else self._check_dense(X)
        return EncodedRows(ArrayRows(rows), self._encode_block, self.dimension, sparse.issparse(rows))

    def _encode_block(self, X: Any) -> Matrix:
        return self._encode_sparse(X) if isinstance(X, sparse.csr_array) else self._encode_dense(X)

    def unscale(self, coefficients: NDArray[np.float64]) -> tuple[NDArray[np.float64], Any]:
        """Return coefficients and intercept in the units of X (for rows that need no clipping)."""
        scaled = np.asarray(coefficients, dtype=np.float64)
        if not self.fit_intercept:
            return scaled * self.per_unit, np.zeros(scaled.shape[:-1])[()]
        return scaled[..., :-1] * self.per_unit, scaled[..., -1] * self._constant

    @property
    def per_unit(self) -> float:
        """Return the encoding of one unit of X, in a row that needs no clipping."""
        return self._factor / self.clip_bound

    def _encode_dense(self, X: NDArray[Any]) -> NDArray[Any]:
        rows = np.empty((len(X), self.dimension), dtype=self.precision)
        rows[:, self.n_features :] = self._constant
        for part in blocks(len(X)):
            with np.errstate(over="ignore"):  # numbers beyond floats become infinite, and are refused
                block = np.array(X[part], dtype=np.float64)
            _refuse_non_finite(block)
            divisor = self._divisor(np.max(np.abs(block), axis=1, initial=0.0))
            block /= divisor[:, np.newaxis]
            block *= self._factors(square_sums(block), divisor)[:, np.newaxis]
            rows[part, : self.n_features] = block
        return rows

    def _encode_sparse(self, X: sparse.csr_array) -> sparse.csr_array:
        lengths = np.diff(X.indptr)
        divisor = self._divisor(np.asarray(abs(X).max(axis=1).toarray()).ravel())
        X.data /= np.repeat(divisor, lengths)
        X.data *= np.repeat(self._factors(row_squares(X), divisor), lengths)
        if not self.fit_intercept:
            return X
        constant = sparse.csr_array(np.full((X.shape[0], 1), self._constant))
        return sparse.csr_array(sparse.hstack([X, constant], format="csr"))

    def _divisor(self, max_entries: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what to divide each row by first, so that no square overflows."""
        return np.maximum(max_entries, self.clip_bound)

    def _factors(self, squares: NDArray[np.float64], divisor: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what to multiply each row by after the division."""
        return self._factor / np.maximum(np.sqrt(squares), self.clip_bound / divisor)

    def _check_dense(self, X: Any) -> NDArray[Any]:
        unreadable = "X cannot be read as numbers. Pass a 2-D array of numbers, or a schema for a table."
        refuse_masked(X)
        array = safely(lambda: np.asarray(X), unreadable)
        if array.dtype == object:
            array = safely(lambda: array.astype(np.float64), unreadable)
        self._check(array.shape, array.dtype)
        return array

    def _check_sparse(self, X: Any) -> sparse.csr_array:
        self._check(X.shape, X.dtype)
        rows = sum_duplicates(X)
        _refuse_non_finite(rows.data)
        return rows

    def _check(self, shape: tuple[int, ...], dtype: Any) -> None:
        if dtype.kind not in "buif":
            raise DataError(
                f"X holds {dtype} where numbers are needed. Convert it, or pass a schema for a table."
            )
        if len(shape) != 2 or shape[1] != self.n_features:
            raise DataError(f"X has shape {shape}. It must be 2-D with {self.n_features} columns.")


def _refuse_non_finite(entries: NDArray[np.float64]) -> None:
    if not np.isfinite(entries).all():
        raise DataError(f"X has NaN or infinite entries. Fill them in, or drop those rows ({ON_DROPPING})")


def _is_positive(value: object) -> bool:
    return (
        isinstance(value, numbers.Real)
        and not isinstance(value, bool)
        and math.isfinite(value)
        and float(value) > 0.0
    )


def schema_of_bounds(bounds: Any) -> Schema:
    """Public: return the schema of number columns x[0], x[1], ... with these bounds."""
    try:
        pairs = [(lower, upper) for lower, upper in bounds]
    except (TypeError, ValueError):
        pairs = []
    real = all(isinstance(end, numbers.Real) and not isinstance(end, bool) for pair in pairs for end in pair)
    if not pairs or not real:
        raise InvalidParameter(
            "column_bounds must list a lower and an upper number for each column, from public knowledge: "
            "column_bounds=[(0, 120), (0, 1)]"
        )
    try:
        columns: dict[str, AnyColumn] = {
            f"x[{index}]": NumberColumn(lower=float(lower), upper=float(upper))
            for index, (lower, upper) in enumerate(pairs)
        }
    except SchemaError as error:
        raise InvalidParameter(f"column_bounds: {error}") from None
    return Schema(name="array", columns=columns)


def bounded_array(X: Any, schema: Schema) -> NDArray[Any]:
    """Return X as a dense array with the schema's columns."""
    if sparse.issparse(X):
        raise DataError("column_bounds are for dense arrays. Call .toarray(), or pass norm_bound instead.")
    refuse_masked(X)
    array = safely(lambda: np.asarray(X), "X cannot be read as numbers. Pass a 2-D array of numbers.")
    if array.ndim != 2 or array.shape[1] != len(schema.columns):
        raise DataError(
            f"X has shape {array.shape}. It must have the {len(schema.columns)} columns of column_bounds."
        )
    return array


class CentredEncoder:
    """Rows encoded by ``base``, minus a mean, divided by the maximum of their norm and a radius; then the constant.

    Parameters
    ----------
    base : SchemaEncoder, ArrayEncoder or MapEncoder
        Encodes the raw rows; its constant feature, if it has one, is replaced.
    mean : array of shape (d,)
        Mean of the d features without the constant; released with noise.
    radius : float
        About half of the rows are closer to the mean; released with noise.

    Attributes
    ----------
    dimension : int
        Number of features, the same as of ``base``.

    Examples
    --------
    >>> encoder = CentredEncoder(ArrayEncoder(1.0, 2, fit_intercept=False), mean=np.array([0.5, 0.25]), radius=0.25)
    >>> encoder.encode([[0.6, 0.35], [0.1, -0.05]]).round(3)  # the second is farther than the radius
    array([[ 0.4,  0.4],
           [-0.8, -0.6]])
    """

    def __init__(self, base: Any, mean: Array, radius: float) -> None:
        self.base = base
        self.mean = mean
        self.radius = radius
        self.dimension = base.dimension
        self._precision = getattr(base, "precision", np.float64)
        self._factor = safe_length(self.dimension, self._precision)

    @property
    def constant(self) -> float:
        """Return the constant feature; 0 if there is none."""
        return math.sqrt(CENTRED_INTERCEPT) * self._factor if self.base.fit_intercept else 0.0

    @property
    def stretch(self) -> float:
        """Return the norm, without the constant, of rows at the radius and beyond."""
        return math.sqrt(1.0 - CENTRED_INTERCEPT) * self._factor if self.base.fit_intercept else self._factor

    def unscale(self, coefficients: Array) -> tuple[Array, Any]:
        """Return coefficients and intercept in the units of X, for rows of arrays within the radius."""
        slopes = coefficients[..., : len(self.mean)] * (self.stretch / self.radius)
        constants = coefficients[..., len(self.mean) :].sum(axis=-1) * self.constant - slopes @ self.mean
        return cast(ArrayEncoder, self.base).per_unit * slopes, constants

    def encode(self, data: Any) -> Array:
        return self.lift(self.base.encode(data))

    def lift(self, rows: Any) -> Array:
        """Return the features of rows that ``base`` has encoded; each row depends only on itself."""
        centred = np.empty((len(rows), self.dimension), dtype=self._precision)
        centred[:, len(self.mean) :] = self.constant
        for part in blocks(len(rows)):
            block = np.asarray(rows[part, : len(self.mean)] - self.mean, dtype=np.float64)
            block *= (self.stretch / np.maximum(norms(block), self.radius))[:, np.newaxis]
            centred[part, : len(self.mean)] = block
        return centred


def norms(rows: Array) -> Array:
    """Return the norm of each row; its bits depend on that row only."""
    return np.asarray(np.sqrt(square_sums(rows)))


def distances(rows: Array, mean: Array) -> Array:
    """Return the distance of each row from a mean, without the constant feature."""
    parts = [norms(rows[part, : len(mean)] - mean) for part in blocks(len(rows))]
    return np.concatenate([np.zeros(0), *parts])

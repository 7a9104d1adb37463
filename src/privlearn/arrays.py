"""Array types of the whole package, and row norms that stay at most 1 under rounding."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from scipy import sparse

Array = NDArray[np.float64]
Features = NDArray[np.float32] | NDArray[np.float64]


def margin(dimension: int) -> float:
    """Return the factor, just below 1, that covers the rounding errors of a computed norm.

    With unit roundoff u = 2^-53, a sum of d squares in any order has relative error at most d u, its root
    half of that, and the division and the product add 2u: together less than 2^-52 d + 2^-51. The
    factor depends on the dimension alone, which is public.
    """
    return 1.0 - max(2.0**-40, dimension * 2.0**-51)


PIECE = 4096
"""Columns that are summed at once in `square_sums`."""


def is_sparse(rows: Any) -> bool:
    """Return whether rows are a scipy matrix, without importing scipy."""
    return "scipy.sparse" in sys.modules and bool(sys.modules["scipy.sparse"].issparse(rows))


def sum_duplicates(rows: Any) -> sparse.csr_array:
    """Return a CSR copy of sparse rows with one entry per cell; each row's bits depend on that row alone.

    scipy sorts a row's entries if some other row is out of order, and may sum three entries of one cell in another
    order then. Here they are summed as given, row by row, wherever a cell has more than one.
    """
    from scipy import sparse  # late: privlearn-core has no scipy

    summed: sparse.csr_array = sparse.csr_array(rows, dtype=np.float64, copy=True)
    summed.sum_duplicates()
    if summed.nnz == rows.nnz:
        return summed
    entries = rows.tocoo()
    order = np.lexsort((entries.col, entries.row))  # stable
    values = entries.data[order].astype(np.float64)
    return sparse.csr_array((values, (entries.row[order], entries.col[order])), shape=rows.shape)


def square_sums(rows: Array) -> Array:
    """Return the squared norm of each row; its bits depend on that row alone.

    numpy sums long rows in pieces whose borders depend on the number of rows; here the borders are fixed.
    """
    squares: Array = np.zeros(len(rows))
    for start in range(0, rows.shape[1], PIECE):
        piece = rows[:, start : start + PIECE]
        squares += np.einsum("ij,ij->i", piece, piece)
    return squares


def shorten(rows: Features) -> None:
    """Divide, in place, every row whose norm may exceed 1 by its norm.

    Squares are summed in float64, where a sum up to the margin is below 1 in exact arithmetic.
    """
    wide = np.asarray(rows, dtype=np.float64)
    squares = square_sums(wide)
    long = np.flatnonzero(squares > margin(rows.shape[1]))
    if len(long):
        factors: Any = (safe_norm(rows) / np.sqrt(squares[long])).astype(rows.dtype)
        rows[long] *= factors[:, np.newaxis]


def safe_norm(rows: Features) -> float:
    """Return a norm just below 1 that stays below 1 when products are rounded to the rows' precision."""
    return safe_length(rows.shape[1], rows.dtype)


def safe_length(dimension: int, precision: Any) -> float:
    """Return `safe_norm` for rows of this many numbers, from their type."""
    return margin(dimension) * (1.0 if precision == np.float64 else 1.0 - 2.0**-22)


def row_factors(
    coarse: Array, fine: Array | float, coarse_share: float, dimension: int
) -> tuple[Array, Array]:
    """Return the factors of each row's coarse entries and of its fine ones.

    Parameters
    ----------
    coarse, fine : array of shape (n,)
        Sums of squares of the coarse entries (words and intercept included) and of the fine ones.
    coarse_share : float
        Part of the squared norm for the coarse entries.
    dimension : int
        Number of features, which determines how far below 1 the norm has to stay for rounding errors.
    """
    # A row without coarse features has nothing to scale; 1 instead of 0 avoids NaN.
    scale = np.sqrt(coarse_share / np.where(coarse > 0.0, coarse, 1.0))
    whole = coarse * scale**2 + fine
    factor = margin(dimension) / np.sqrt(np.where(whole > 0.0, whole, 1.0))
    return scale * factor, factor


def rescale_dense(rows: Array, dimension: int | None = None) -> None:
    """Divide each row by its norm, in place; zero rows stay zero.

    Pass ``dimension`` where the rows are the stored entries of sparse rows with more columns.
    """
    factor = margin(rows.shape[1] if dimension is None else dimension)
    rows *= (factor / _safe(square_sums(rows)))[:, np.newaxis]


def rescale_sparse(rows: sparse.csr_array) -> None:
    """Divide each row by its norm, in place; zero rows stay zero."""
    squares = row_squares(rows)
    rows.data *= np.repeat(margin(rows.shape[1]) / _safe(squares), np.diff(rows.indptr))


def row_squares(rows: Any) -> Array:
    """Return the squared norm of each row of a CSR matrix."""
    owner = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    squares: Array = np.bincount(owner, rows.data**2, minlength=rows.shape[0]).astype(np.float64)
    return squares


def _safe(squares: Array) -> Array:
    return np.sqrt(np.where(squares > 0.0, squares, 1.0))


def product(*factors: Array | None) -> Array | None:
    """Return the product of the weights that are not ``None``; ``None`` if there are none."""
    result: Array | None = None
    for factor in factors:
        result = factor if result is None else result if factor is None else result * factor
    return result

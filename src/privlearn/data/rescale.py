"""Rows divided by their norm, with a margin that makes the bound hold in exact arithmetic."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse


def margin(dimension: int) -> float:
    """The factor, just below 1, that covers the rounding errors of a computed norm.

    With unit roundoff u = 2^-53, a sum of d squares in any order has relative error at most d u, its root
    half of that, and the division and the product add 2u: together less than 2^-52 d + 2^-51. The
    factor depends on the dimension alone, which is public.
    """
    return 1.0 - max(2.0**-40, dimension * 2.0**-51)


def rescale_dense(rows: NDArray[np.float64]) -> None:
    """Divide each row by its norm, in place; zero rows stay zero."""
    factor = margin(rows.shape[1])
    rows *= (factor / _safe(np.einsum("ij,ij->i", rows, rows)))[:, np.newaxis]


def rescale_sparse(rows: sparse.csr_array) -> None:
    """Divide each row by its norm, in place; zero rows stay zero."""
    squares = row_squares(rows)
    rows.data *= np.repeat(margin(rows.shape[1]) / _safe(squares), np.diff(rows.indptr))


def row_squares(rows: Any) -> NDArray[np.float64]:
    """Squared norm of each row of a CSR matrix."""
    owner = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    squares: NDArray[np.float64] = np.bincount(owner, rows.data**2, minlength=rows.shape[0]).astype(
        np.float64
    )
    return squares


def _safe(squares: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.sqrt(np.where(squares > 0.0, squares, 1.0))

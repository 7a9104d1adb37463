"""Encoded rows of one kind: an encoder writes arrays or sparse arrays, and a test knows which it expects."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse


def dense(rows: NDArray[np.float64] | sparse.csr_array) -> NDArray[np.float64]:
    assert isinstance(rows, np.ndarray)
    return rows


def filled(rows: NDArray[np.float64] | sparse.csr_array) -> NDArray[Any]:
    """Return sparse rows with their zeros written out."""
    assert isinstance(rows, sparse.csr_array)
    return np.asarray(rows.toarray())

"""The base class of feature maps: public, nothing to fit, each row by itself, norms at most 1."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np

from privlearn.arrays import Features, is_sparse, shorten
from privlearn.errors import InvalidParameter, preview
from privlearn.features.kernel import row_count
from privlearn.imports import sparse

# Rows. 512 to 4096 are equally fast on one core, and larger blocks wait less for a busy second core.
BLOCK = 2048

Precision = Literal["float32", "float64"] | type[np.float32] | type[np.float64]


class FeatureMap(ABC):
    """A public map from points to vectors of norm at most 1.

    It is created from public settings only and has nothing to fit, so a record cannot change the features of another
    record, not even by a bit.

    Attributes
    ----------
    dimension : int
        Number of features.
    norm_bound : float
        1.0: the bound of the norms of rows, in exact arithmetic.
    """

    norm_bound = 1.0
    dimension: int

    @abstractmethod
    def _fill(self, X: Any, out: Features) -> None:
        """Write the features of the points X to ``out``; each row depends on its own point only."""

    def transform(self, X: Any, dtype: Precision = np.float64, *, may_be_empty: bool = False) -> Features:
        """Return the features of every point, of shape (n, dimension).

        Parameters
        ----------
        X : array, CSR matrix, or the sequence that the kernel takes
        dtype : float64 or float32
            Type of the features; float32 needs half the memory.
        may_be_empty : bool, default=False
            Whether to accept no points; the kernel is then not called.
        """
        kind, rows = _precision(dtype), _sliceable(X)
        features: Features = np.empty(
            (row_count(rows, may_be_empty=may_be_empty), self.dimension), dtype=kind
        )
        for part in _slices(len(features), BLOCK):
            self._fill(rows[part], features[part])
            shorten(features[part])
        return features

    def blocks(
        self, X: Any, rows: int = BLOCK, dtype: Precision = np.float64
    ) -> Iterator[tuple[slice, Features]]:
        """Yield the features of ``rows`` points at a time, each block with its slice of X."""
        if rows < 1:
            raise InvalidParameter(f"rows must be at least 1, not {preview(rows)}")
        return self._blocks(_sliceable(X), rows, _precision(dtype))

    def _blocks(self, X: Any, rows: int, kind: Any) -> Iterator[tuple[slice, Features]]:
        for part in _slices(row_count(X), rows):
            yield part, self.transform(X[part], kind)


def _precision(dtype: Any) -> Any:
    if dtype not in (np.float32, np.float64, "float32", "float64"):
        raise InvalidParameter("dtype must be 'float32' or 'float64'")
    return np.dtype(dtype)


def _sliceable(X: Any) -> Any:
    return sparse.csr_array(X) if is_sparse(X) else X


def _slices(count: int, size: int) -> Iterator[slice]:
    for start in range(0, count, size):
        yield slice(start, min(start + size, count))

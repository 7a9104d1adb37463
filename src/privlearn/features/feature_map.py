"""The base class of feature maps: public, nothing to fit, each row by itself, norms at most 1.

"Each row by itself" holds bit for bit. A matrix product may add up a row in an order that depends on the number of rows
and on the row's position: the last bits of everybody's features would then change with one record more, which no
theorem covers. So each product gets the same number of rows (the last block is filled up), and matrices with a multiple
of 16 columns. Whether such a block treats all its rows alike is tested on random rows; if it does not, each row is a
block.
"""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal

import numpy as np

from privlearn.arrays import Array, Features, is_sparse, shorten
from privlearn.data.encoding.arrays import blocks
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
        for part in blocks(len(features), BLOCK):
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
        for part in blocks(row_count(X), rows):
            yield part, self.transform(X[part], kind)


def whole_number(name: str, value: Any, minimum: int) -> int:
    """Return a setting that must be a whole number."""
    if not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < minimum:
        raise InvalidParameter(f"{name} must be a whole number, at least {minimum}, not {preview(value)}")
    return int(value)


def _precision(dtype: Any) -> Any:
    if dtype not in (np.float32, np.float64, "float32", "float64"):
        raise InvalidParameter("dtype must be 'float32' or 'float64'")
    return np.dtype(dtype)


def _sliceable(X: Any) -> Any:
    return sparse.csr_array(X) if is_sparse(X) else X


ROWS = 64  # more are hardly faster, and a single point takes as long as a block
COLUMNS = 16  # a multiple of it avoids the edge code of OpenBLAS, which adds up in another order


def block_size(matrices: Iterable[Array]) -> int:
    """Return a number of rows per block for which products with these matrices treat all rows alike."""
    return ROWS if all(map(treats_rows_alike, matrices)) else 1


def with_whole_groups(matrix: Array) -> Array:
    """Return the matrix with columns of zeros up to the next multiple of 16."""
    lacking = -matrix.shape[1] % COLUMNS
    return np.pad(matrix, ((0, 0), (0, lacking))) if lacking else matrix


def treats_rows_alike(matrix: Array) -> bool:
    """Return whether equal rows of a block have equal products with the matrix."""
    row = np.random.default_rng(0).normal(size=(1, len(matrix)))
    products = np.repeat(row, ROWS, axis=0) @ matrix
    return bool(np.all(products == products[0]))


def rows_alike(function: Callable[[Any], Any], row: Any, sizes: Sequence[int]) -> int:
    """Return the first of some numbers of equal rows that a function treats alike; 1 if it treats none so."""
    for size in sizes:
        results = function(np.repeat(row, size, axis=0))
        if np.all(results == results[0]):
            return size
    return 1


def in_equal_blocks(function: Callable[[Any], Array], X: Any, size: int) -> Array:
    """Return ``function(X)``, one row of numbers per point, computed in blocks; sparse products need none."""
    total = row_count(X, may_be_empty=True)
    if total == 0 or is_sparse(X):
        return function(X)
    parts = [function(_block(X, start, size))[: total - start] for start in range(0, total, size)]
    return np.concatenate(parts)


def _block(X: Any, start: int, size: int) -> Any:
    """Return `size` points from `start` on; the last point is repeated if there are fewer. Arrays are C-contiguous."""
    block = X[start : start + size]
    if isinstance(block, np.ndarray) and block.dtype != object:
        block = np.ascontiguousarray(block)
    if len(block) == size:
        return block
    indices = np.minimum(np.arange(size), len(block) - 1)
    if hasattr(block, "shape"):
        return getattr(block, "iloc", block)[indices]  # pandas: by position, not by label
    return [block[index] for index in indices]

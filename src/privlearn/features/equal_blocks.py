"""Multiply matrices in blocks of equal size, so that a row's features depend on that row only, bit for bit.

A matrix product may add up a row in an order that depends on the number of rows and on the row's position: the last
bits of everybody's features would then change with one record more, which no theorem covers. So each product gets the
same number of rows (the last block is filled up), and matrices with a multiple of 16 columns. Whether such a block
treats all its rows alike is tested on random rows; if it does not, each row is a block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from privlearn.arrays import Array, is_sparse
from privlearn.features.kernel import row_count

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

"""Rows in blocks of one size: how a row's features become a function of that row alone, bit for bit.

A matrix product sums a row in an order that may depend on how many rows there are, and at which place among them it
stands: the last bits of everybody's features would then tell of one record more, and no theorem pays for that. So
whatever multiplies matrices gets the same number of rows each time, the last block filled up, and matrices with whole
groups of columns. That all places of such a block are treated alike is tried out on made-up rows; where they are not,
each row is a block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from privlearn.arrays import Array, is_sparse
from privlearn.features.kernel import row_count

ROWS = 64  # more would hardly be quicker, and a single point takes as long as a block
COLUMNS = 16  # of which OpenBLAS leaves none to the code for its edges, whose order of sums is another


def block_size(matrices: Iterable[Array]) -> int:
    """In blocks of so many rows all places are treated alike by products with these matrices."""
    return ROWS if all(map(treats_places_alike, matrices)) else 1


def with_whole_groups(matrix: Array) -> Array:
    """The matrix with columns of zeros up to the next multiple of 16."""
    lacking = -matrix.shape[1] % COLUMNS
    return np.pad(matrix, ((0, 0), (0, lacking))) if lacking else matrix


def treats_places_alike(matrix: Array) -> bool:
    """Whether equal rows have equal products with the matrix, wherever in a block they stand."""
    row = np.random.default_rng(0).normal(size=(1, len(matrix)))
    products = np.repeat(row, ROWS, axis=0) @ matrix
    return bool(np.all(products == products[0]))


def in_equal_blocks(function: Callable[[Any], Array], X: Any, size: int) -> Array:
    """``function`` of the points X, a row of numbers each; sparse ones are multiplied row by row anyhow."""
    total = row_count(X, may_be_empty=True)
    if total == 0 or is_sparse(X):
        return function(X)
    found = [function(_block(X, start, size))[: total - start] for start in range(0, total, size)]
    return np.concatenate(found)


def _block(X: Any, start: int, size: int) -> Any:
    """So many points from there on; where there are fewer, the last one is repeated. Arrays row after row in memory."""
    block = X[start : start + size]
    if isinstance(block, np.ndarray) and block.dtype != object:
        block = np.ascontiguousarray(block)
    if len(block) == size:
        return block
    places = np.minimum(np.arange(size), len(block) - 1)
    if hasattr(block, "shape"):
        return getattr(block, "iloc", block)[places]  # pandas has names for rows beside their places
    return [block[place] for place in places]

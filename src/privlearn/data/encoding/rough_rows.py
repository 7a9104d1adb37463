"""Multiply blocks of centred rows with vectors, up to rounding errors that no certificate covers: for warm starts.

A centred row (layout.py) has no zeros, so expanding it takes much longer than reading its cells. But its features are a
factor times those of its columns' values, of which a block has few distinct ones, and `CentredEncoder` subtracts the
same mean from all rows: a row is ``(a t - b m, c)``, where t are the features of its values, m is the mean, and the
numbers a, b and c are the row's own. So a product is looked up, with one look-up per column:

    x @ w  =  a sum_j (t_j @ w_j)  -  b (m @ w)  +  c w_last

The differences cancel digits, so a solver uses these products only to find a starting point. It then continues with
the rows themselves, and its first pass nearly always certifies that point.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privlearn.arrays import Array, margin
from privlearn.data.encoding.arrays import CentredEncoder
from privlearn.data.encoding.feature_groups import ColumnCells
from privlearn.data.encoding.layout import ColumnLayout, FeatureLayout
from privlearn.data.encoding.lookup_rows import MIN_FEATURES, Transposed, lookup_matrix
from privlearn.data.encoding.packed_cells import PackedCells, distinct_values
from privlearn.data.sources.passes import number_of_rows
from privlearn.data.sources.row_source import UnexpandedRows

UNDERFLOW = 1e-300


def rough_tables(layout: FeatureLayout, cells: PackedCells) -> RoughTables | None:
    """Return the tables of a layout; None where features of distinct values take over a quarter of the rows' memory.

    That depends on the first block, harmlessly: a warm start only saves time.
    """
    if not layout.is_centred or layout.texts or layout.dimension <= MIN_FEATURES:
        return None
    block, columns = next(cells.blocks()), layout.columns()
    numbers = sum(len(distinct_values(block, column.name)[0]) * _width(column) for column in columns)
    per_row = numbers / max(number_of_rows(block), 1)
    row_bytes = int(4 * len(columns) + 8 * per_row) + 32
    return RoughTables(layout, row_bytes) if per_row <= layout.dimension / 4 else None


class RoughTables:
    """Public: how rows of a centred layout without text are looked up; implements `row_source.Tables`.

    Its coordinates are the features. No certificate covers its roundings.

    Parameters
    ----------
    layout : FeatureLayout
    row_bytes : int
        About how much memory a row takes.
    centre : CentredEncoder, optional
        The encoder that lifts the rows.
    """

    max_rows = 1 << 15
    product_depth = sum_depth = 0

    def __init__(self, layout: FeatureLayout, row_bytes: int, centre: CentredEncoder | None = None) -> None:
        self.layout, self.row_bytes, self.centre, self.width = layout, row_bytes, centre, layout.dimension

    def around(self, centre: CentredEncoder) -> RoughTables:
        """Return the tables of the same rows, lifted."""
        return RoughTables(self.layout, self.row_bytes, centre)

    def block(self, cells: Mapping[str, Any]) -> RoughRows:
        """Return the rows with these cells, ready for products."""
        return RoughRows(self, cells)

    def table_coefficients(self, vectors: Array) -> Array:
        return vectors

    def feature_sums(self, sums: Array) -> Array:
        return sums

    def feature_square_sums(self, sums: Array) -> Array:
        return sums


class RoughRows(UnexpandedRows):
    """PRIVATE: a block of n centred rows, ready for products."""

    def __init__(self, tables: RoughTables, cells: Mapping[str, Any]) -> None:
        layout, count = tables.layout, number_of_rows(cells)
        self._width, self._has_constant = layout.dimension, layout.fit_intercept
        columns = layout.columns()
        indices = np.empty((count, len(columns)), dtype=np.int32)
        self._tables: list[tuple[slice, slice, Array]] = []  # of each column: features, values, (v, width)
        end = 0
        for number, column in enumerate(columns):
            values, index = distinct_values(cells, column.name)
            indices[:, number] = end + (np.arange(count) if index is None else index)
            features, table = _features_of(column, values)
            self._tables.append((features, slice(end, end + len(values)), table))
            end += len(values)
        self._lookup = lookup_matrix(indices, end)
        squares = self._lookup @ np.concatenate([np.sum(table**2, axis=1) for *_, table in self._tables])
        lengths = np.sqrt(np.maximum(squares + layout.fit_intercept, UNDERFLOW))
        self._row = self._constant = margin(layout.dimension) / lengths
        self._mean, self._shift = np.zeros(layout.dimension - layout.fit_intercept), np.zeros(count)
        self._squares: Array = self._row**2 * squares
        if tables.centre is not None:
            self._lift(tables.centre)

    def _lift(self, centre: CentredEncoder) -> None:
        """Make the rows those of an encoder that subtracts a mean."""
        across = self._row * self._looked_up(centre.mean)
        squares = np.maximum(self._squares - 2.0 * across + centre.mean @ centre.mean, 0.0)
        self._shift = centre.stretch / np.maximum(np.sqrt(squares), centre.radius)
        self._row = self._row * self._shift
        self._mean, self._constant = centre.mean, np.full(len(squares), centre.constant)
        self._squares = squares * self._shift**2

    @property
    def shape(self) -> tuple[int, int]:
        return len(self._row), self._width

    @property
    def size(self) -> int:
        return len(self._row) * self._width

    @property
    def T(self) -> Transposed:  # noqa: N802 (the name that matrices have)
        return Transposed(self)

    def row_squares(self) -> Array:
        squares: Array = self._squares + self._has_constant * self._constant**2
        return squares

    def __matmul__(self, coefficients: Array) -> Array:
        product: Array = _times(self._row, self._looked_up(coefficients))
        product -= np.multiply.outer(self._shift, self._mean @ coefficients[: len(self._mean)])
        if self._has_constant:
            product += np.multiply.outer(self._constant, coefficients[-1])
        return product

    def _looked_up(self, coefficients: Array) -> Array:
        """Return the product of the values' features with coefficients."""
        parts = [table @ coefficients[features] for features, _, table in self._tables]
        return np.asarray(self._lookup @ np.concatenate(parts))

    def sums(self, weights: Array, power: int = 1) -> Array:
        sums = self._feature_sums(_times(self._row**power, weights), power)
        means = np.multiply.outer(self._mean**power, self._shift**power @ weights)
        if power == 1:
            sums[: len(means)] -= means
        else:
            across = self._feature_sums(_times(self._row * self._shift, weights), 1)[: len(means)]
            sums[: len(means)] += means - 2.0 * _times(self._mean, across)
        if self._has_constant:
            sums[-1] = self._constant**power @ weights
        return sums

    def _feature_sums(self, weights: Array, power: int) -> Array:
        """Return the weighted sums of the values' features, or of their squares."""
        by_value = self._lookup.T @ weights
        sums = np.zeros((self._width, *weights.shape[1:]))
        for features, values, table in self._tables:
            sums[features] = table.T**power @ by_value[values]
        return sums


def _features_of(column: ColumnLayout, values: NDArray[Any]) -> tuple[slice, Array]:
    """Return a column's features, and what they are for some cells, of shape (v, width)."""
    cells = ColumnCells.of(values)
    features = slice(column.coarse[0][0], column.coarse[0][0] + _width(column))
    table = np.empty((len(values), _width(column)))
    for start, group in column.coarse:
        first = start - features.start
        group.write(cells, table[:, first : first + group.width], is_centred=True)
    return features, table


def _width(column: ColumnLayout) -> int:
    return sum(group.width for _, group in column.coarse)


def _times(factors: Array, numbers: Array) -> Array:
    """Return each row of (n,) or (n, k) numbers times its factor."""
    product: Array = (factors * numbers.T).T
    return product

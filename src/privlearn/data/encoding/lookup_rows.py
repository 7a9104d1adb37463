"""Multiply blocks of rows with vectors by looking sums up, without expanding the rows.

A row x of a resolved layout (layout.py) has hundreds of entries, but most products with coefficients w repeat:

- the coarse features and bins of a column depend on its cell, and a block has few distinct cells. Their contribution
  to ``x @ w`` is computed once per distinct cell, and then looked up for each row;
- the features of a pair depend on the bins of two columns. A *table* (table_cover.py) has a cell for each combination
  of bins of three or four columns. The coefficients of all pairs among them are added up in each cell once per
  product, and then one look-up per row replaces three or six.

So rows are multiplied in other coordinates, of length ``width``: the features of single columns, the cells of all
tables, the intercept. `LookupTables` converts between features and coordinates:

    x @ w             =  rows @ tables.table_coefficients(w)       shapes (n,) = (n, width) @ (width,)
    sum_i v_i x_i     =  tables.feature_sums(rows.T @ v)           shapes (d,) = ... (width, n) @ (n,)

Both sides are equal up to rounding: terms are added in another order, which the solver's certificate accounts for
(docs/theory/solver.md, "Rows that are looked up").

Example: two columns with two values each and their pair. There are 4 features of single columns, 4 of the pair and the
intercept, so d = 9. The table of the pair has 3 x 3 cells, because a cell may be missing: width = 4 + 9 + 1.

>>> from privlearn.data import Resolution, Schema, SchemaEncoder
>>> flag = {"type": "category", "values": [0, 1], "missing": "zero"}
>>> schema = Schema.from_dict({"name": "flags", "columns": {"a": flag, "b": flag}, "pairs": [["a", "b"]]})
>>> encoder = SchemaEncoder(schema, resolution=Resolution(grid=2, pair_share=0.5))
>>> tables = LookupTables(encoder.layout)
>>> encoder.dimension, tables.width, tables.cells
(9, 14, slice(4, 13, None))

The first row holds (1, 0), in the second ``b`` is missing. Each row takes one distinct value per column, and one cell
per table: bins (1, 0) are cell 3, bins (1, missing) are cell 5:

>>> cells = encoder.cells({"a": [1, 1], "b": [0, None]})
>>> rows = tables.block(cells)
>>> rows.cell_lookup.indices
array([3, 5], dtype=int32)
>>> w = np.arange(9.0)
>>> (rows @ tables.table_coefficients(w)).round(6), (encoder.expand(cells) @ w).round(6)
(array([8.733372, 6.363961]), array([8.733372, 6.363961]))
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privlearn.arrays import Array, row_factors
from privlearn.data.encoding.arrays import blocks
from privlearn.data.encoding.feature_groups import BinIndicators, ColumnCells
from privlearn.data.encoding.layout import ColumnLayout, FeatureLayout
from privlearn.data.encoding.packed_cells import distinct_values
from privlearn.data.encoding.table_cover import MAX_CELLS, Table, cover_pairs, number_of_cells, stride
from privlearn.data.sources.passes import number_of_rows
from privlearn.data.sources.row_source import UnexpandedRows
from privlearn.imports import sparse

MIN_FEATURES = 256  # up to here solvers build matrices from the vectors, which is faster
MAX_FEATURES = 1 << 18  # each block of rows costs a pass over all features
MAX_DEPTH = 1024  # roundings in a row's product that solvers certify
SMALL_PRODUCT = 1024  # rows at a time: linear algebra libraries start no threads for a product this small

Indices = NDArray[np.int64]


def lookup_tables(layout: FeatureLayout) -> LookupTables | None:
    """Return the tables of a layout, or None where expanded vectors are faster or the layout has text."""
    if layout.is_centred or layout.texts or not MIN_FEATURES < layout.dimension <= MAX_FEATURES:
        return None
    return LookupTables(layout) if _product_depth(layout) <= min(layout.dimension, MAX_DEPTH) else None


def _product_depth(layout: FeatureLayout) -> int:
    """Return the number of roundings in a row's product; there are at most as many tables as pairs."""
    return 2 * layout.entries_per_row + len(layout.pairs) + 24


class LookupTables:
    """Public: the coordinates in which rows are looked up; implements `row_source.Tables`.

    Parameters
    ----------
    layout : FeatureLayout
        Resolved, without text.

    Attributes
    ----------
    layout : FeatureLayout
    columns : list of ColumnLayout
    strides : float32 array of shape (columns + 1, tables)
        Integers. Entry (j, t) is the distance between neighbouring bins of column j in table t; the last row is the
        index of each table's first cell among all cells. A row's bins times this matrix are the indices of its cells.
    cells : slice
        The coordinates of all tables' cells.
    squares : array of shape (width,)
        For each coordinate, the sum of the squared weights of its features.
    width : int
        Number of coordinates.
    max_rows, product_depth, sum_depth : int
        See `row_source.Tables`; roundings in a row's entries are included.
    """

    max_rows = 1 << 15

    def __init__(self, layout: FeatureLayout) -> None:
        self.layout, self.columns = layout, layout.columns()
        covers = cover_pairs([pair for _, pair in layout.pairs])
        tables = list(covers)
        first = layout.pairs[0][0] if layout.pairs else layout.dimension - layout.fit_intercept
        starts = np.cumsum([first, *map(number_of_cells, tables)])
        self.cells = slice(first, int(starts[-1]))
        self.width = self.cells.stop + layout.fit_intercept
        strides = [[stride(table, (column.name, column.grid)) for table in tables] for column in self.columns]
        self.strides = np.array([*strides, starts[:-1] - starts[0]], dtype=np.float32)
        entries = [(np.arange(first), np.arange(first))]  # features of single columns stay as they are
        for start, table in zip(starts, tables, strict=False):
            for cells, features in _pair_features(table, covers[table], layout.pairs):
                entries.append((start + cells, features))
        if layout.fit_intercept:
            entries.append((np.array([self.width - 1]), np.array([layout.dimension - 1])))
        coordinates, features = (np.concatenate(part) for part in zip(*entries, strict=True))
        shape = (self.width, layout.dimension)
        self._to_tables = sparse.csr_array((self._weights()[features], (coordinates, features)), shape=shape)
        self._to_features = sparse.csr_array(self._to_tables.T)
        self.squares: Array = np.asarray(self._to_tables.power(2) @ np.ones(layout.dimension))
        self.product_depth = _product_depth(layout)
        self.sum_depth = self.max_rows + MAX_CELLS + 2 * layout.entries_per_row + 24

    def _weights(self) -> Array:
        """Return the value of each bin's and pair's entry before a row is divided by its norm; 1 for the others."""
        weights = np.ones(self.layout.dimension)
        for groups, weight in (
            (self.layout.bins, self.layout.bin_weight),
            (self.layout.pairs, self.layout.pair_weight),
        ):
            for start, group in groups:
                weights[start : start + group.width] = weight
        return weights

    @property
    def complete_squares(self) -> float:
        """Return the sum of squares of the bins and pairs of a row without missing cells."""
        layout = self.layout
        return len(layout.bins) * layout.bin_weight**2 + len(layout.pairs) * layout.pair_weight**2

    def are_faster(self, rarely_repeated: set[str]) -> bool:
        """Return whether look-ups are faster than vectors, given the columns whose cells hardly ever repeat.

        Nothing is saved on such a column: its contribution is computed for each row.
        """
        computed = sum(column.entries_per_row for column in self.columns if column.name in rarely_repeated)
        return 2 * computed <= self.layout.entries_per_row

    def block(self, cells: Mapping[str, Any]) -> LookupRows:
        """Return the rows with these cells, ready for products."""
        return LookupRows(self, cells)

    def table_coefficients(self, vectors: Array) -> Array:
        """Convert coefficients of shape (d,) or (d, k) from features to coordinates."""
        return np.asarray(self._to_tables @ vectors)

    def feature_sums(self, sums: Array) -> Array:
        """Convert sums over rows of shape (width,) or (width, k) from coordinates to features."""
        return np.asarray(self._to_features @ sums)

    def feature_square_sums(self, sums: Array) -> Array:
        """Convert sums of squares: a feature is in one table, and a row in one cell of each table."""
        return np.asarray(self._to_features.power(2) @ sums)


def _pair_features(
    table: Table, covered: Sequence[BinIndicators], pairs: Sequence[tuple[int, BinIndicators]]
) -> Iterator[tuple[Indices, Indices]]:
    """Yield, for each pair of a table, the cells in which both columns are present, and the feature of each cell."""
    shape = [count + 1 for _, count in table]
    bins = dict(zip(table, np.indices(shape).reshape(len(shape), -1), strict=True))
    for start, pair in pairs:
        if pair in covered:
            present = np.logical_and.reduce([bins[column] < column[1] for column in pair.bins])
            indices = tuple(bins[column][present] for column in pair.bins)
            features = np.ravel_multi_index(indices, [count for _, count in pair.bins])
            yield np.flatnonzero(present), start + features


class LookupRows(UnexpandedRows):
    """PRIVATE: a block of n rows in the coordinates of `LookupTables`.

    Attributes
    ----------
    value_lookup : CSR array of shape (n, distinct values)
        Has a one at the value of each column; the distinct values of all columns are numbered consecutively.
    cell_lookup : CSR array of shape (n, cells)
        Has a one at the cell of each table.
    """

    def __init__(self, tables: LookupTables, cells: Mapping[str, Any]) -> None:
        self._tables, count = tables, number_of_rows(cells)
        self._columns: list[_ColumnValues] = []
        values = np.empty((len(tables.columns), count), dtype=np.int32)
        # Rows are columns' bins; the last row is 1, the factor of the index of each table's first cell.
        # float32 holds every bin number exactly, and the product below is a fast BLAS call.
        bins = np.ones((len(tables.columns) + 1, count), dtype=np.float32)
        end = 0
        for number, layout in enumerate(tables.columns):
            distinct, index = distinct_values(cells, layout.name)
            column = _ColumnValues(layout, distinct, end)
            np.add(np.arange(count) if index is None else index, end, out=values[number], casting="unsafe")
            bins[number] = column.table_bins if index is None else column.table_bins.take(index)
            self._columns.append(column)
            end = column.span.stop
        self.value_lookup = lookup_matrix(np.ascontiguousarray(values.T), end)
        self.cell_lookup = lookup_matrix(_cell_indices(tables, bins), tables.cells.stop - tables.cells.start)
        self._coarse_factor, self._fine_factor = row_factors(
            *self._squares(), tables.layout.coarse_share, tables.layout.dimension
        )

    def _squares(self) -> tuple[Array, Array | float]:
        """Return the sums of squares of coarse and of fine entries, before a row is divided by its norm."""
        fine: Array | float = self._tables.complete_squares
        if not all(column.is_complete for column in self._columns):
            fine = self._fine_product(self._tables.squares)
        return self._coarse_product(self._tables.squares, 2), fine

    def row_squares(self) -> Array:
        """Return the squared norm of each row."""
        coarse, fine = self._squares()
        return coarse * self._coarse_factor**2 + fine * self._fine_factor**2

    @property
    def shape(self) -> tuple[int, int]:
        """Return the number of rows and of coordinates."""
        return len(self._coarse_factor), self._tables.width

    @property
    def size(self) -> int:
        """Return the number of entries that the rows have when they are expanded."""
        return len(self._coarse_factor) * self._tables.layout.entries_per_row

    @property
    def T(self) -> Transposed:  # noqa: N802 (the name that matrices have)
        return Transposed(self)

    def __matmul__(self, coefficients: Array) -> Array:
        if coefficients.ndim == 2:
            return np.stack([self @ vector for vector in coefficients.T], axis=1)
        coarse, fine = self._coarse_product(coefficients), self._fine_product(coefficients)
        return self._coarse_factor * coarse + self._fine_factor * fine

    def _coarse_product(self, coefficients: Array, power: int = 1) -> Array:
        """Return ``sum_j coefficients_j x_ij^power`` over coarse features, before a row is divided by its norm."""
        by_value = [column.coarse_product(coefficients, power) for column in self._columns]
        product: Array = self.value_lookup @ np.concatenate(by_value)
        if self._tables.layout.fit_intercept:
            product += coefficients[-1]
        return product

    def _fine_product(self, coefficients: Array) -> Array:
        """Return the same sum over fine features, which are 0 or 1 here: the tables contain their weights."""
        product: Array = self.cell_lookup @ coefficients[self._tables.cells]
        if self._tables.layout.bins:
            by_value = [column.bin_product(coefficients) for column in self._columns]
            product += self.value_lookup @ np.concatenate(by_value)
        return product

    def sums(self, weights: Array, power: int = 1) -> Array:
        """Return ``sum_i weights_i x_ij^power`` for every coordinate j, of shape (width,) or (width, k)."""
        if weights.ndim == 2:
            return np.stack([self.sums(part, power) for part in weights.T], axis=1)
        coarse, fine = weights * self._coarse_factor**power, weights * self._fine_factor**power
        sums = np.zeros(self._tables.width)
        coarse_by_value, fine_by_value = self.value_lookup.T @ coarse, self.value_lookup.T @ fine
        for column in self._columns:
            column.add_sums(coarse_by_value[column.span], fine_by_value[column.span], power, sums)
        sums[self._tables.cells] = self.cell_lookup.T @ fine
        if self._tables.layout.fit_intercept:
            sums[-1] = coarse.sum()
        return sums


class Transposed:
    """The transpose of unexpanded rows: its product with weights of shape (n,) or (n, k) is their sum over the rows."""

    def __init__(self, rows: UnexpandedRows) -> None:
        self._rows = rows

    def __matmul__(self, weights: Array) -> Array:
        return self._rows.sums(weights)


class _ColumnValues:
    """The features of one column, for each of its v distinct values in a block.

    Attributes
    ----------
    span : slice
        The numbers of its values among those of all columns.
    table_bins : float32 array of shape (v,)
        Their bins in tables; the last one stands for a missing cell.
    """

    def __init__(self, layout: ColumnLayout, values: NDArray[Any], start: int) -> None:
        cells = ColumnCells.of(values)
        self.span = slice(start, start + len(values))
        self.is_complete, self._present = cells.is_complete, cells.present
        self.table_bins = np.where(cells.present, cells.bins(layout.grid), layout.grid).astype(np.float32)
        self._entries = [
            (first + index, value) for first, group in layout.coarse for index, value in group.entries(cells)
        ]
        self._bins = None
        if layout.bins is not None:
            first, group = layout.bins
            self._bins = first + cells.bins(group.width)

    def coarse_product(self, coefficients: Array, power: int) -> Array:
        """Return ``sum_j coefficients_j x_j^power`` over coarse features, of shape (v,)."""
        product = np.zeros(len(self._present))
        for index, value in self._entries:
            product += coefficients.take(index) * _to_power(value, power)
        return product

    def bin_product(self, coefficients: Array) -> Array:
        """Return the coefficient of each value's bin, of shape (v,)."""
        if self._bins is None:
            return np.zeros(len(self._present))
        return coefficients.take(self._bins) * self._present

    def add_sums(self, coarse: Array, fine: Array, power: int, sums: Array) -> None:
        """Add each value's total weight times ``x_j^power`` to the sums of its coordinates."""
        for index, value in self._entries:
            # Not `sums[index] += ...`, which adds once per feature, although several values may share it.
            np.add.at(sums, index, coarse * _to_power(value, power))
        if self._bins is not None:
            np.add.at(sums, self._bins, fine * self._present)


def _to_power(value: NDArray[Any], power: int) -> NDArray[Any]:
    return value if power == 1 or value.dtype == bool else value**power


def _cell_indices(tables: LookupTables, bins: NDArray[np.float32]) -> NDArray[np.int32]:
    """Return each row's cell in each table; the product is exact, since float32 has all integers below 2^24."""
    indices = np.empty((bins.shape[1], tables.strides.shape[1]), dtype=np.int32)
    for rows in blocks(len(indices), SMALL_PRODUCT):
        indices[rows] = bins[:, rows].T @ tables.strides
    return indices


def lookup_matrix(indices: NDArray[np.int32], width: int) -> sparse.csr_array:
    """Return the matrix of shape (n, width) with ones at the indices of each row."""
    rows, per_row = indices.shape
    starts = per_row * np.arange(rows + 1, dtype=np.int32)
    ones = _ones(indices.size.bit_length())[: indices.size]
    return sparse.csr_array((ones, indices.ravel(), starts), shape=(rows, width))


@lru_cache
def _ones(bits: int) -> Array:
    """Return 2^bits ones, shared by all blocks."""
    ones = np.ones(1 << bits)
    ones.flags.writeable = False
    return ones

"""Products with a block of resolved rows whose vectors are never made: everything is looked up.

A column's own features follow from its value, and few values of a block differ: what they add to a product, and what
rows add to them, takes a look-up and a histogram, as in the tables of pairs. What a row's vector is, `ResolvedRows` says;
here its sums are made in another order: docs/theory/solver.md, "Rows that are looked up".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privlearn.arrays import Array, margin
from privlearn.data.encode.joint_tables import ColumnLayout, JointTables
from privlearn.data.encode.packed_cells import Listed, listed
from privlearn.data.encode.slots import cells_of
from privlearn.data.sources.passes import number_of_rows


class TabledRows:
    """Rows in the coordinates of `JointTables`; their products are ``rows @ spread`` and ``rows.T @ weights``."""

    def __init__(self, tables: JointTables, cells: Mapping[str, Any]) -> None:
        layout, count = tables.layout, number_of_rows(cells)
        self._tables = tables
        self._columns = [_Column(column, listed(cells, column.name)) for column in layout.columns]
        bins = np.empty((len(self._columns), count), dtype=np.float32)
        squares = np.full(count, float(layout.fit_intercept))
        for column, bin_of in zip(self._columns, bins, strict=True):
            column.add(column.squares, squares)
            bin_of[:] = column.of_rows(column.bins)
        # the numbers are whole and below 2^24: the product is exact
        self._places: NDArray[np.intp] = (tables.strides @ bins).astype(np.intp)
        scale = np.sqrt(layout.coarse_share / np.where(squares > 0.0, squares, 1.0))
        fine_squares = self._fine_product(tables.fine_squares)
        whole = squares * scale**2 + fine_squares
        self._factor = margin(layout.dimension) / np.sqrt(np.where(whole > 0.0, whole, 1.0))
        self._scale = scale * self._factor
        self.row_squares: Array = squares * self._scale**2 + fine_squares * self._factor**2

    @property
    def shape(self) -> tuple[int, int]:
        return len(self._scale), self._tables.width

    @property
    def T(self) -> _Transposed:
        return _Transposed(self)

    def __matmul__(self, spread: Array) -> Array:
        if spread.ndim == 2:
            return np.stack([self @ vector for vector in spread.T], axis=1)
        product = np.full(len(self._scale), spread[-1] if self._tables.layout.fit_intercept else 0.0)
        for column in self._columns:
            column.add(column.coarse_product(spread), product)
        product *= self._scale
        product += self._factor * self._fine_product(spread)
        return product

    def sums(self, weights: Array, power: int = 1) -> Array:
        """``sum_i weights_i x_ij^power`` for every coordinate j."""
        if weights.ndim == 2:
            return np.stack([self.sums(part, power) for part in weights.T], axis=1)
        coarse, fine = weights * self._scale**power, weights * self._factor**power
        sums = np.zeros(self._tables.width)
        for column in self._columns:
            column.add_sums(coarse, fine, power, sums)
        for table, places in zip(self._tables.tables, self._places, strict=True):
            sums[table] = np.bincount(places, fine, table.stop - table.start)
        if self._tables.layout.fit_intercept:
            sums[-1] = coarse.sum()
        return sums

    def _fine_product(self, spread: Array) -> Array:
        """With bins and tables, before a row is divided by its norm."""
        product = np.zeros(self._places.shape[1])
        for column in self._columns:
            if column.has_fine:
                column.add(column.fine_product(spread), product)
        for table, places in zip(self._tables.tables, self._places, strict=True):
            product += spread[table].take(places)
        return product


class _Transposed:
    def __init__(self, rows: TabledRows) -> None:
        self._rows = rows

    def __matmul__(self, weights: Array) -> Array:
        return self._rows.sums(weights)


class _Column:
    """One column's features, for each of its different values; and which of these each row has."""

    def __init__(self, layout: ColumnLayout, cells: Listed) -> None:
        values, self._places = cells
        told = cells_of(values)
        mapping = {layout.name: told}
        self._slots = [
            (start + place, value) for start, piece in layout.coarse for place, value in piece.slots(mapping)
        ]
        self.squares = sum(np.square(value, dtype=np.float64) for _, value in self._slots)
        self.has_fine = layout.bins is not None
        if layout.bins is not None:
            start, cut = layout.bins
            self._fine, self._present = start + told.bins(cut.width), told.present
        self.bins = np.where(told.present, told.bins(layout.grid), layout.grid)

    def of_rows(self, numbers: NDArray[Any]) -> NDArray[Any]:
        """Each row's, of numbers by value."""
        return numbers if self._places is None else numbers.take(self._places)

    def add(self, numbers: Array, to: Array) -> None:
        to += self.of_rows(numbers)

    def coarse_product(self, spread: Array) -> Array:
        product: Array = sum(spread.take(place) * value for place, value in self._slots)
        return product

    def fine_product(self, spread: Array) -> Array:
        return spread.take(self._fine) * self._present

    def add_sums(self, coarse: Array, fine: Array, power: int, sums: Array) -> None:
        weights = self._by_value(coarse)
        for place, value in self._slots:
            np.add.at(sums, place, weights * value**power)
        if self.has_fine:
            np.add.at(sums, self._fine, self._by_value(fine) * self._present)

    def _by_value(self, weights: Array) -> Array:
        """The rows' sums for each value."""
        return weights if self._places is None else np.bincount(self._places, weights, len(self.squares))

"""Products with a block of resolved rows whose vectors are never made: everything is looked up.

What a column alone adds follows from its value, and few values of a block differ: it is found for each value once. What
pairs add is found in tables. What a row's vector is, `ResolvedRows` says; here its sums are made in another order:
docs/theory/solver.md, "Rows that are looked up".
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privlearn.arrays import Array
from privlearn.data.encode.arrays import blocks
from privlearn.data.encode.joint_tables import ColumnLayout, JointTables
from privlearn.data.encode.packed_cells import listed
from privlearn.data.encode.slots import cells_of, divisors
from privlearn.data.sources.passes import number_of_rows
from privlearn.heavy import sparse

PLACED = 1024  # rows at a time: libraries of linear algebra start no threads for a product so small


class TabledRows:
    """Rows in the coordinates of `JointTables`; their products are ``rows @ spread`` and ``rows.T @ weights``."""

    def __init__(self, tables: JointTables, cells: Mapping[str, Any]) -> None:
        self._tables, layout, count = tables, tables.layout, number_of_rows(cells)
        self._columns: list[_Column] = []
        places = np.empty((len(layout.columns), count), dtype=np.int32)
        bins = np.ones((len(layout.columns) + 1, count), dtype=np.float32)
        values = 0
        for number, column in enumerate(layout.columns):
            different, place_of = listed(cells, column.name)
            told = _Column(column, different, values)
            np.add(
                np.arange(count) if place_of is None else place_of,
                values,
                out=places[number],
                casting="unsafe",
            )
            bins[number] = told.level if place_of is None else told.level.take(place_of)
            self._columns.append(told)
            values = told.span.stop
        self._values = _looked_up(np.ascontiguousarray(places.T), values)
        self._cells = _looked_up(_places_in(tables, bins), tables.cells.stop - tables.cells.start)
        self._scale, self._factor = divisors(*self._squares(), layout.coarse_share, layout.dimension)

    def _squares(self) -> tuple[Array, Array | float]:
        """Of coarse features and of fine ones, before a row is divided by its norm."""
        fine: Array | float = self._tables.most_squares
        if not all(column.is_whole for column in self._columns):
            fine = self._fine_product(self._tables.squares)
        return self._coarse_product(self._tables.squares, 2), fine

    def row_squares(self) -> Array:
        """Squared norm of each row."""
        coarse, fine = self._squares()
        return coarse * self._scale**2 + fine * self._factor**2

    @property
    def shape(self) -> tuple[int, int]:
        return len(self._scale), self._tables.width

    @property
    def size(self) -> int:
        """Number of entries of the rows' vectors."""
        return len(self._scale) * self._tables.layout.slots

    @property
    def T(self) -> _Transposed:  # noqa: N802 (as matrices call it)
        return _Transposed(self)

    def __matmul__(self, spread: Array) -> Array:
        if spread.ndim == 2:
            return np.stack([self @ vector for vector in spread.T], axis=1)
        return self._scale * self._coarse_product(spread) + self._factor * self._fine_product(spread)

    def _coarse_product(self, spread: Array, power: int = 1) -> Array:
        """``sum_j spread_j x_ij^power`` over coarse features, before a row is divided by its norm."""
        product: Array = self._values @ np.concatenate(
            [column.coarse_product(spread, power) for column in self._columns]
        )
        if self._tables.layout.fit_intercept:
            product += spread[-1]
        return product

    def _fine_product(self, spread: Array) -> Array:
        """The same over fine features, which are 0 or 1."""
        product: Array = self._cells @ spread[self._tables.cells]
        if any(column.has_bins for column in self._columns):
            product += self._values @ np.concatenate(
                [column.fine_product(spread) for column in self._columns]
            )
        return product

    def sums(self, weights: Array, power: int = 1) -> Array:
        """``sum_i weights_i x_ij^power`` for every coordinate j."""
        if weights.ndim == 2:
            return np.stack([self.sums(part, power) for part in weights.T], axis=1)
        coarse, fine = weights * self._scale**power, weights * self._factor**power
        sums = np.zeros(self._tables.width)
        coarse_of, fine_of = self._values.T @ coarse, self._values.T @ fine
        for column in self._columns:
            column.add_sums(coarse_of[column.span], fine_of[column.span], power, sums)
        sums[self._tables.cells] = self._cells.T @ fine
        if self._tables.layout.fit_intercept:
            sums[-1] = coarse.sum()
        return sums


class LookUps(JointTables):
    """`row_source.Tables` of resolved rows."""

    def block(self, cells: Mapping[str, Any]) -> TabledRows:
        return TabledRows(self, cells)


class _Transposed:
    def __init__(self, rows: TabledRows) -> None:
        self._rows = rows

    def __matmul__(self, weights: Array) -> Array:
        return self._rows.sums(weights)


class _Column:
    """The features of one column alone, for each of its different values."""

    def __init__(self, layout: ColumnLayout, values: NDArray[Any], start: int) -> None:
        told = cells_of(values)
        self.span = slice(start, start + len(values))
        self.is_whole, self.has_bins = told.whole, layout.bins is not None
        self.level = np.where(told.present, told.bins(layout.grid), layout.grid).astype(np.float32)
        self._slots = [
            (first + place, value)
            for first, piece in layout.coarse
            for place, value in piece.slots({layout.name: told})
        ]
        self._bins = None if layout.bins is None else layout.bins[0] + told.bins(layout.bins[1].width)
        self._present = told.present

    def coarse_product(self, spread: Array, power: int) -> Array:
        """``sum_j spread_j x_j^power`` over its coarse features."""
        product = np.zeros(len(self._present))
        for place, value in self._slots:
            product += spread.take(place) * _power(value, power)
        return product

    def fine_product(self, spread: Array) -> Array:
        """The same over its bins."""
        return np.zeros(len(self._present)) if self._bins is None else spread.take(self._bins) * self._present

    def add_sums(self, coarse: Array, fine: Array, power: int, sums: Array) -> None:
        """Add the values' weights, each times ``x_j^power``, to the sums."""
        for place, value in self._slots:
            np.add.at(sums, place, coarse * _power(value, power))
        if self._bins is not None:
            np.add.at(sums, self._bins, fine * self._present)


def _power(value: NDArray[Any], power: int) -> NDArray[Any]:
    return value if power == 1 or value.dtype == bool else value**power


def _places_in(tables: JointTables, bins: NDArray[np.float32]) -> NDArray[np.int32]:
    """Each row's cell of each table: whole numbers below 2^24, so that the product is exact."""
    places = np.empty((bins.shape[1], tables.strides.shape[1]), dtype=np.int32)
    for rows in blocks(len(places), PLACED):
        places[rows] = bins[:, rows].T @ tables.strides
    return places


def _looked_up(places: NDArray[np.int32], width: int) -> sparse.csr_array:
    """The matrix whose product with a table adds up each row's cells of it."""
    rows, slots = places.shape
    starts = slots * np.arange(rows + 1, dtype=np.int32)
    ones = _ones(places.size.bit_length())[: places.size]
    return sparse.csr_array((ones, places.ravel(), starts), shape=(rows, width))


@lru_cache
def _ones(bits: int) -> Array:
    """More than any number of so many bits, shared by all blocks."""
    ones = np.ones(1 << bits)
    ones.flags.writeable = False
    return ones

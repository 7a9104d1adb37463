"""Other coordinates for resolved rows, of which a row fills few: a cell of a table tells several pairs of columns.

The features of a pair follow from the bins of two columns. A table with a cell for all bins of three or four columns
tells every pair among them: the coefficients of those pairs are added up in it before any row is read, and then a row's
product takes one look-up. The other way round, a sum over rows is a histogram of the table's cells, and the sums of its
pairs follow from that when all rows are in.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privlearn.arrays import Array
from privlearn.data.encode.slots import CoarsePiece, Cut, Level
from privlearn.heavy import sparse

MOST_CELLS = 1 << 13  # of a table for several pairs: all tables together stay in a core's cache


@dataclass(frozen=True)
class ColumnLayout:
    """Public: where the features of one column begin.

    Parameters
    ----------
    name : str
    coarse : list of (int, piece)
    bins : (int, cut), optional
    grid : int
        Its bins in pairs; 0 if it is in none.
    """

    name: str
    coarse: list[tuple[int, CoarsePiece]]
    bins: tuple[int, Cut] | None
    grid: int


@dataclass(frozen=True)
class Layout:
    """Public: the features of resolved rows without words: those of columns alone, of pairs, the intercept.

    Parameters
    ----------
    columns : list of ColumnLayout
    pairs : list of (int, cut)
        Where their features begin.
    bin_weight, pair_weight : float
        What such features are before a row is divided by its norm.
    coarse_share : float
        Part of the squared norm that coarse pieces and intercept share.
    dimension : int
        Number of features.
    fit_intercept : bool
    """

    columns: list[ColumnLayout]
    pairs: list[tuple[int, Cut]]
    bin_weight: float
    pair_weight: float
    coarse_share: float
    dimension: int
    fit_intercept: bool

    @property
    def slots(self) -> int:
        """Number of entries of a row's vector."""
        coarse = sum(piece.count for column in self.columns for _, piece in column.coarse)
        bins = sum(column.bins is not None for column in self.columns)
        return coarse + bins + len(self.pairs) + self.fit_intercept

    @property
    def alone(self) -> int:
        """Number of features of columns alone."""
        return self.pairs[0][0] if self.pairs else self.dimension - self.fit_intercept


class JointTables:
    """The coordinates: the features of columns alone, the cells of tables, the intercept.

    Attributes
    ----------
    layout : Layout
    strides : array of shape (columns + 1, tables)
        Whole numbers: how far a column's next bin is in a table; and where the table begins among all cells. A column
        has one bin more than in pairs, the last: it says nothing.
    cells : slice
        The coordinates of all tables' cells.
    squares : array of shape (width,)
        For each coordinate, the squared weights of the features that it tells.
    width : int
        Number of coordinates.
    most_rows, product_depth, sum_depth : int
        See `row_source.Tables`; roundings in a row's entries are included.
    """

    most_rows = 1 << 15

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        rows = {(column.name, column.grid): number for number, column in enumerate(layout.columns)}
        tables = covering([cut for _, cut in layout.pairs])
        self.strides = np.zeros((len(layout.columns) + 1, len(tables)), dtype=np.float32)
        entries, stop = [_as_they_are(0, 0, layout.alone)], layout.alone
        for number, (table, cuts) in enumerate(tables.items()):
            shape = [size + 1 for _, size in table]
            self.strides[-1, number] = stop - layout.alone
            for place, level in enumerate(table):
                self.strides[rows[level], number] = math.prod(shape[place + 1 :])
            bins = dict(zip(table, np.indices(shape).reshape(len(shape), -1), strict=True))
            for start, cut in layout.pairs:
                if cut in cuts:
                    told, features = _features(cut, bins)
                    entries.append((stop + told, start + features))
            stop += math.prod(shape)
        if layout.fit_intercept:
            entries.append(_as_they_are(stop, layout.dimension - 1, 1))
        self.cells, self.width = slice(layout.alone, stop), stop + layout.fit_intercept
        coordinates, features = (np.concatenate(part) for part in zip(*entries, strict=True))
        weights = self._weights(features)
        self._spread = sparse.csr_array(
            (weights, (coordinates, features)), shape=(self.width, layout.dimension)
        )
        self._gather = sparse.csr_array(self._spread.T)
        self.squares: Array = np.asarray(self._spread.power(2) @ np.ones(layout.dimension))
        self.product_depth = 2 * layout.slots + len(tables) + 24
        self.sum_depth = self.most_rows + MOST_CELLS + 2 * layout.slots + 24

    @property
    def most_squares(self) -> float:
        """Of the fine features of a row in which every column says something."""
        bins = sum(column.bins is not None for column in self.layout.columns)
        return bins * self.layout.bin_weight**2 + len(self.layout.pairs) * self.layout.pair_weight**2

    def _weights(self, features: Places) -> Array:
        weights = np.ones(self.layout.dimension)
        for column in self.layout.columns:
            if column.bins is not None:
                start, cut = column.bins
                weights[start : start + cut.width] = self.layout.bin_weight
        weights[self.layout.alone : self.layout.dimension - self.layout.fit_intercept] = (
            self.layout.pair_weight
        )
        return weights[features]

    def spread(self, vectors: Array) -> Array:
        """What rows in these coordinates are multiplied with, in place of coefficients."""
        return np.asarray(self._spread @ vectors)

    def gathered(self, sums: Array) -> Array:
        """The features' sums over rows, from those in these coordinates."""
        return np.asarray(self._gather @ sums)

    def gathered_squares(self, sums: Array) -> Array:
        """The same where both are of squares: a feature is in one table, and a row in one of the table's cells."""
        return np.asarray(self._gather.power(2) @ sums)

    def block(self, cells: Mapping[str, Any]) -> Any:
        """Some rows in these coordinates."""
        from privlearn.data.encode.tabled_rows import TabledRows

        return TabledRows(self, cells)


Table = tuple[Level, ...]
Places = NDArray[np.int64]


def _as_they_are(coordinate: int, feature: int, count: int) -> tuple[Places, Places]:
    return np.arange(coordinate, coordinate + count), np.arange(feature, feature + count)


def _features(cut: Cut, bins: Mapping[Level, Places]) -> tuple[Places, Places]:
    """The cells in which both columns say something, and which of the pair's features each tells."""
    told = np.logical_and.reduce([bins[level] < level[1] for level in cut.levels])
    places = tuple(bins[level][told] for level in cut.levels)
    return np.flatnonzero(told), np.ravel_multi_index(places, [size for _, size in cut.levels])


def covering(pairs: Sequence[Cut]) -> dict[Table, list[Cut]]:
    """Few tables, each with at most `MOST_CELLS` or for a single pair; and the pairs that each tells."""
    left, tables = list(pairs), {}
    while left:
        table: Table = tuple(left[0].levels)
        while (more := _most_useful(table, left)) is not None:
            table = (*table, more)
        tables[table] = [cut for cut in left if set(cut.levels) <= set(table)]
        left = [cut for cut in left if cut not in tables[table]]
    return tables


def _most_useful(table: Table, pairs: Sequence[Cut]) -> Level | None:
    """The level with which the table would tell the most pairs more, if there is one."""
    room = MOST_CELLS // math.prod(size + 1 for _, size in table)
    gains = Counter(
        level
        for cut in pairs
        for level in cut.levels
        if level not in table and level[1] < room and set(cut.levels) <= {*table, level}
    )
    return max(gains, key=lambda level: gains[level], default=None)

"""Other coordinates for resolved rows, of which a row fills few: a cell of a table tells several pairs of columns.

The features of a pair follow from the bins of two columns. A table with a cell for all bins of three or four columns
tells every pair among them: the coefficients of those pairs are added up in it before any row is read, and then a row's
product takes one look-up. The other way round, a sum over rows is a histogram of the table's cells, and the sums of its
pairs follow from that when all rows are in.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privlearn.arrays import Array
from privlearn.data.encode.slots import CoarsePiece, Cut, Level
from privlearn.heavy import sparse

MOST_CELLS = 1 << 13  # of a table for several pairs: all tables together stay in a core's cache

Table = tuple[Level, ...]
"""Columns, and how many bins each has in pairs."""
Places = NDArray[np.int64]


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

    @property
    def slots(self) -> int:
        """Number of entries of a row's vector for this column alone."""
        return sum(piece.count for _, piece in self.coarse) + (self.bins is not None)


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
        return sum(column.slots for column in self.columns) + len(self.pairs) + self.fit_intercept

    @property
    def product_depth(self) -> int:
        """See `row_source.Tables`; there are no more tables than pairs."""
        return 2 * self.slots + len(self.pairs) + 24

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
        Whole numbers: how far a column's next bin is in a table; and where the table begins among all cells.
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
        tables = covering([cut for _, cut in layout.pairs])
        starts = np.cumsum([layout.alone, *map(_size, tables)])
        self.cells = slice(layout.alone, int(starts[-1]))
        self.width = self.cells.stop + layout.fit_intercept
        self.strides = np.array(
            [
                *([_stride(table, column) for table in tables] for column in layout.columns),
                starts[:-1] - starts[0],
            ],
            dtype=np.float32,
        )
        entries = [_as_they_are(0, 0, layout.alone)]
        for start, table in zip(starts, tables, strict=False):
            entries += (
                (start + cells, features) for cells, features in _told(table, tables[table], layout.pairs)
            )
        if layout.fit_intercept:
            entries.append(_as_they_are(self.width - 1, layout.dimension - 1, 1))
        coordinates, features = (np.concatenate(part) for part in zip(*entries, strict=True))
        weights = self._weights()[features]
        shape = (self.width, layout.dimension)
        self._spread = sparse.csr_array((weights, (coordinates, features)), shape=shape)
        self._gather = sparse.csr_array(self._spread.T)
        self.squares: Array = np.asarray(self._spread.power(2) @ np.ones(layout.dimension))
        self.product_depth = layout.product_depth
        self.sum_depth = self.most_rows + MOST_CELLS + 2 * layout.slots + 24

    @property
    def most_squares(self) -> float:
        """Of the fine features of a row in which every column says something."""
        bins = sum(column.bins is not None for column in self.layout.columns)
        return bins * self.layout.bin_weight**2 + len(self.layout.pairs) * self.layout.pair_weight**2

    def pay_for(self, hardly_repeated: set[str]) -> bool:
        """Whether look-ups are quicker than vectors: what hardly any other row has is looked up once per row."""
        alone = sum(column.slots for column in self.layout.columns if column.name in hardly_repeated)
        return 2 * alone <= self.layout.slots

    def _weights(self) -> Array:
        """What each feature is, before a row is divided by its norm, where it is a bin or a pair."""
        weights = np.ones(self.layout.dimension)
        for column in self.layout.columns:
            if column.bins is not None:
                start, cut = column.bins
                weights[start : start + cut.width] = self.layout.bin_weight
        for start, cut in self.layout.pairs:
            weights[start : start + cut.width] = self.layout.pair_weight
        return weights

    def spread(self, vectors: Array) -> Array:
        """What rows in these coordinates are multiplied with, in place of coefficients."""
        return np.asarray(self._spread @ vectors)

    def gathered(self, sums: Array) -> Array:
        """The features' sums over rows, from those in these coordinates."""
        return np.asarray(self._gather @ sums)

    def gathered_squares(self, sums: Array) -> Array:
        """The same where both are of squares: a feature is in one table, and a row in one of the table's cells."""
        return np.asarray(self._gather.power(2) @ sums)


def _as_they_are(coordinate: int, feature: int, count: int) -> tuple[Places, Places]:
    return np.arange(coordinate, coordinate + count), np.arange(feature, feature + count)


def _told(
    table: Table, cuts: Sequence[Cut], pairs: Sequence[tuple[int, Cut]]
) -> Iterator[tuple[Places, Places]]:
    """For each pair of a table, the cells in which both columns say something, and the feature that each tells."""
    shape = [size + 1 for _, size in table]
    bins = dict(zip(table, np.indices(shape).reshape(len(shape), -1), strict=True))
    for start, cut in pairs:
        if cut in cuts:
            told = np.logical_and.reduce([bins[level] < level[1] for level in cut.levels])
            places = tuple(bins[level][told] for level in cut.levels)
            yield (
                np.flatnonzero(told),
                start + np.ravel_multi_index(places, [size for _, size in cut.levels]),
            )


def _size(table: Table) -> int:
    """Number of cells: a column has one bin more than in pairs, which says that it says nothing."""
    return math.prod(size + 1 for _, size in table)


def _stride(table: Table, column: ColumnLayout) -> int:
    """How far the column's next bin is in the table; 0 if it is not in it."""
    level = column.name, column.grid
    return _size(table[table.index(level) + 1 :]) if level in table else 0


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
    room = MOST_CELLS // _size(table)
    gains = Counter(
        level
        for cut in pairs
        for level in cut.levels
        if level not in table and level[1] < room and set(cut.levels) <= {*table, level}
    )
    return max(gains, key=lambda level: gains[level], default=None)

"""Other coordinates for resolved rows, of which a row fills few: a cell of a table tells several pairs of columns.

The features of a pair follow from the bins of two columns. A table with a cell for all bins of three or four columns
tells every pair among them: the coefficients of those pairs are added up in it before any row is read, and then a row's
product takes one look-up. The other way round, a sum over rows is a histogram of the table's cells, and the sums of its
pairs follow from that when all rows are in.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privlearn.arrays import Array
from privlearn.data.encode.slots import CoarsePiece, Cut, Piece
from privlearn.heavy import sparse

MOST_CELLS = 1 << 13  # of a table with more than two columns: all tables together stay in a core's cache

Pair = tuple[str, ...]
Places = NDArray[np.int64]
Entries = tuple[Places, Places, Array]
"""Coordinates, features, and what a coefficient of the latter counts in the former."""


@dataclass(frozen=True)
class ColumnLayout:
    """Public: the features of one column alone.

    Parameters
    ----------
    name : str
    coarse : list of (int, piece)
        Where its features begin, and the piece.
    bins : (int, cut), optional
    grid : int
        Bins of the column in pairs; 0 if it is in none.
    """

    name: str
    coarse: list[tuple[int, CoarsePiece]]
    bins: tuple[int, Cut] | None
    grid: int


@dataclass(frozen=True)
class Layout:
    """Public: the features of resolved rows without words, in their order: coarse pieces, bins, pairs, the intercept.

    Parameters
    ----------
    columns : list of ColumnLayout
    pairs : list of (int, cut)
    bin_weight, pair_weight : float
        Of each fine feature, before a row is divided by its norm.
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

    @classmethod
    def of(
        cls,
        names: Iterable[str],
        pieces: Sequence[tuple[int, Piece]],
        weights: tuple[float, float],
        coarse_share: float,
        dimension: int,
        fit_intercept: bool,
    ) -> Layout:
        """Of pieces in their order, each with the place where its features begin; weights are of bins and of pairs."""
        cuts = [(start, piece) for start, piece in pieces if isinstance(piece, Cut)]
        bins = {cut.columns: (start, cut) for start, cut in cuts if len(cut.columns) == 1}
        pairs = [(start, cut) for start, cut in cuts if len(cut.columns) == 2]
        grid = {name: size for _, cut in pairs for name, size in cut.levels}
        coarse = [(start, piece) for start, piece in pieces if isinstance(piece, CoarsePiece)]
        columns = [
            ColumnLayout(
                name,
                [(start, piece) for start, piece in coarse if piece.columns == (name,)],
                bins.get((name,)),
                grid.get(name, 0),
            )
            for name in names
        ]
        return cls(columns, pairs, *weights, coarse_share, dimension, fit_intercept)

    @property
    def before_pairs(self) -> int:
        """Number of features that are coordinates, too."""
        return self.pairs[0][0] if self.pairs else self.dimension - self.fit_intercept


class JointTables:
    """The coordinates: coarse pieces and bins as they are, tables instead of pairs, the intercept.

    Attributes
    ----------
    layout : Layout
    tables : list of slice
        The coordinates of each.
    strides : array of shape (tables, columns)
        How far a column's next bin is in a table, whole numbers. The last bin says that the column says nothing.
    width : int
        Number of coordinates.
    depth : int
        Most roundings that a term of a row's product passes through, those in the row's entries included.
    """

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        names = [column.name for column in layout.columns]
        sizes = {column.name: column.grid + 1 for column in layout.columns}
        covers = covering([cut.columns for _, cut in layout.pairs], sizes)
        self.strides = np.zeros((len(covers), len(names)), dtype=np.float32)
        self.tables: list[slice] = []
        entries, stop = list(self._own_entries()), layout.before_pairs
        for (columns, pairs), strides in zip(covers.items(), self.strides, strict=True):
            shape = [sizes[name] for name in columns]
            table = slice(stop, stop + math.prod(shape))
            bins = dict(zip(columns, np.indices(shape).reshape(len(shape), -1), strict=True))
            entries += (self._pair_entries(table, bins, *pair) for pair in layout.pairs if pair[1].columns in pairs)
            for place, name in enumerate(columns):
                strides[names.index(name)] = math.prod(shape[place + 1 :])
            self.tables.append(table)
            stop = table.stop
        if layout.fit_intercept:
            entries.append(_as_they_are(stop, layout.dimension - 1, 1, 1.0))
        self.width = stop + layout.fit_intercept
        coordinates, features, weights = (np.concatenate(part) for part in zip(*entries, strict=True))
        self._spread = sparse.csr_array((weights, (coordinates, features)), shape=(self.width, layout.dimension))
        self._gather = sparse.csr_array(self._spread.T)
        slots = sum(piece.count for column in layout.columns for _, piece in column.coarse)
        self.depth = 2 * slots + len(names) + len(covers) + len(layout.pairs) + 16

    def spread(self, vectors: Array) -> Array:
        """What rows in these coordinates are multiplied with, in place of coefficients."""
        spread: Array = self._spread @ vectors
        return spread

    def gathered(self, sums: Array) -> Array:
        """The features' sums over rows, from those in these coordinates."""
        gathered: Array = self._gather @ sums
        return gathered

    def gathered_squares(self, sums: Array) -> Array:
        """The same where both are of squares: a feature is in one table, and a row in one of the table's cells."""
        gathered: Array = self._gather.power(2) @ sums
        return gathered

    def block(self, cells: Mapping[str, Any]) -> Any:
        """Some rows in these coordinates."""
        from privlearn.data.encode.tabled_rows import TabledRows

        return TabledRows(self, cells)

    @cached_property
    def fine_squares(self) -> Array:
        """For each cell of a bin or table, the squares of the features that it tells, before a row is divided."""
        squares: Array = self._spread.power(2) @ np.ones(self.layout.dimension)
        return squares

    def _own_entries(self) -> Iterator[Entries]:
        for column in self.layout.columns:
            for start, piece in column.coarse:
                yield _as_they_are(start, start, piece.width, 1.0)
            if column.bins is not None:
                start, cut = column.bins
                yield _as_they_are(start, start, cut.width, self.layout.bin_weight)

    def _pair_entries(self, table: slice, bins: Mapping[str, Places], start: int, cut: Cut) -> Entries:
        """Which of the pair's features each cell of the table belongs to, where both columns say something."""
        (one, ones), (other, others) = cut.levels
        told = (bins[one] < ones) & (bins[other] < others)
        features = start + bins[one] * others + bins[other]
        cells = np.arange(table.start, table.stop)
        return cells[told], features[told], np.full(np.count_nonzero(told), self.layout.pair_weight)


def _as_they_are(coordinate: int, feature: int, count: int, weight: float) -> Entries:
    places = np.arange(count)
    return coordinate + places, feature + places, np.full(count, weight)


def covering(pairs: Sequence[Pair], sizes: Mapping[str, int]) -> dict[Pair, list[Pair]]:
    """Few tables, by their columns, with at most `MOST_CELLS` or two columns each; and the pairs that each tells."""
    left, covers = list(pairs), {}
    while left:
        columns = left[0]
        while (more := _most_useful(columns, left, sizes)) is not None:
            columns = (*columns, more)
        covers[columns] = [pair for pair in left if set(pair) <= set(columns)]
        left = [pair for pair in left if not set(pair) <= set(columns)]
    return covers


def _most_useful(columns: Pair, left: Sequence[Pair], sizes: Mapping[str, int]) -> str | None:
    """The column with which the table would tell the most pairs more, if there is one."""
    room = MOST_CELLS // math.prod(sizes[name] for name in columns)
    gains = {
        name: sum(name in pair and set(pair) <= {*columns, name} for pair in left)
        for name, size in sizes.items()
        if name not in columns and size <= room
    }
    best = max(gains, key=lambda name: gains[name], default=None)
    return best if best is not None and gains[best] else None

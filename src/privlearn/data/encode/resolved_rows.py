"""Rows at a chosen resolution: a few non-zeros per column, in exact shares of the row's squared norm."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privlearn.arrays import Array, rescale_sparse, row_squares
from privlearn.data.encode.arrays import blocks
from privlearn.data.encode.column_features import TextGroup
from privlearn.data.encode.joint_tables import ColumnLayout, Layout
from privlearn.data.encode.positions import Ordered
from privlearn.data.encode.resolution import Resolution
from privlearn.data.encode.slots import (
    Cells,
    CoarsePiece,
    Cut,
    Level,
    Piece,
    cells_of,
    coarse_pieces,
    divisors,
)
from privlearn.data.encode.tabled_rows import LookUps
from privlearn.data.schema.columns import CategoryColumn, TextColumn
from privlearn.data.schema.schema import Schema
from privlearn.data.sources.passes import number_of_rows
from privlearn.heavy import sparse

FEWEST_TABLED = 256  # features, up to which solvers make matrices of vectors
MOST_TABLED = 1 << 18  # each block of rows costs a pass over all features
MOST_DEPTH = 1024  # roundings in a row's product, or as many as features: solvers certify no more
FILLED = 4096  # rows at a time
PAD = 24  # so that slots are not a power of two apart, which caches cannot keep together


class ResolvedRows:
    """Lines, splines and lists; fine bins; pairs; words; the intercept.

    Parameters
    ----------
    schema : Schema
    resolution : Resolution
    fit_intercept : bool

    Attributes
    ----------
    dimension : int
        Number of features.
    slots : int
        Entries of a row, words left out.
    shares : tuple of three floats
        Parts of the squared norm of a row of which no cell is missing: of fine bins, of pairs, and of all the rest.
    """

    def __init__(self, schema: Schema, resolution: Resolution, fit_intercept: bool) -> None:
        self._fit_intercept = fit_intercept
        self._columns: dict[str, Ordered | CategoryColumn] = {}
        self._texts: list[TextGroup] = []
        for name, column in schema.columns.items():
            if isinstance(column, TextColumn):
                self._texts.append(TextGroup(name, column))
            else:
                self._columns[name] = column
        coarse = [piece for name, part in self._columns.items() for piece in coarse_pieces(name, part)]
        bins, pairs = self._bins(resolution), self._pairs(resolution, schema)
        fine = resolution.bin_share if bins else 0.0, resolution.pair_share if pairs else 0.0
        self.shares = (*fine, 1.0 - sum(fine))
        weights = math.sqrt(fine[0] / max(len(bins), 1)), math.sqrt(fine[1] / max(len(pairs), 1))
        self._fine_weights = weights
        self._coarse: list[CoarsePiece] = coarse
        self._fine = [*bins, *pairs]
        widths = [piece.width for piece in (*coarse, *bins, *pairs)]
        starts = np.cumsum([0, *widths], dtype=np.int32)
        self._starts: list[int] = starts[:-1].tolist()
        counts = [piece.count for piece in coarse] + [1] * len(self._fine)
        self._slot_starts = np.repeat(starts[:-1], counts)[:, np.newaxis]
        first = sum(piece.count for piece in coarse)
        self._fine_slots = slice(first, first + len(self._fine))
        self.slots = self._fine_slots.stop + fit_intercept
        self._weights = np.zeros(self.slots)  # of the fine slots
        self._weights[self._fine_slots] = np.repeat(weights, [len(bins), len(pairs)])
        self._equal_weights = Counter(self._weights[self._fine_slots].tolist())
        self._first_word = int(starts[-1])
        self.dimension = self._first_word + sum(group.width for group in self._texts) + fit_intercept
        self._levels, self._added, self._strides = self._fine_places()

    def _fine_places(self) -> tuple[list[Level], NDArray[np.intp], NDArray[np.int32]]:
        """The bins that fine places follow from; of each place, which two it adds up, and the stride of the first."""
        levels = list(dict.fromkeys(level for piece in self._fine for level in piece.levels))
        pairs = [(*piece.levels, None)[:2] for piece in self._fine]
        numbers = {None: len(levels)} | {level: number for number, level in enumerate(levels)}
        added = np.array([[numbers[level] for level in pair] for pair in pairs], dtype=np.intp).reshape(-1, 2)
        strides = [1 if second is None else second[1] for _, second in pairs]
        return levels, added.T, np.array(strides, dtype=np.int32)[:, np.newaxis]

    def _bins(self, resolution: Resolution) -> list[Cut]:
        ordered = {name: part for name, part in self._columns.items() if not isinstance(part, CategoryColumn)}
        counts = {name: resolution.bins_of(column) for name, column in ordered.items()}
        return [Cut({name: count}) for name, count in counts.items() if count]

    def _pairs(self, resolution: Resolution, schema: Schema) -> list[Cut]:
        sizes = {name: resolution.grid_of(column) for name, column in self._columns.items()}
        return [Cut({name: sizes[name] for name in pair}) for pair in resolution.pairs_of(schema)]

    @property
    def feature_names(self) -> list[str]:
        names = [name for piece in self._pieces for name in piece.feature_names]
        return [*names, "intercept"] if self._fit_intercept else names

    @property
    def feature_columns(self) -> list[tuple[str, ...]]:
        """The columns that each feature is about: one, two of a pair, none of the intercept."""
        columns = [piece.columns for piece in self._pieces for _ in range(piece.width)]
        return [*columns, ()] if self._fit_intercept else columns

    @property
    def _pieces(self) -> list[Piece | TextGroup]:
        return [*self._coarse, *self._fine, *self._texts]

    def tables(self) -> LookUps | None:
        """How products with the rows are looked up; None where vectors serve better, or there are words."""
        if self._texts or not FEWEST_TABLED < self.dimension <= MOST_TABLED:
            return None
        layout = self.layout()
        return LookUps(layout) if layout.product_depth <= min(self.dimension, MOST_DEPTH) else None

    def layout(self) -> Layout:
        """Public: where features begin, words left out."""
        placed = list(zip(self._starts, [*self._coarse, *self._fine], strict=True))
        cuts = [(start, piece) for start, piece in placed if isinstance(piece, Cut)]
        bins = {cut.columns: (start, cut) for start, cut in cuts if len(cut.columns) == 1}
        pairs = [(start, cut) for start, cut in cuts if len(cut.columns) == 2]
        grid = {name: size for _, cut in pairs for name, size in cut.levels}
        coarse: dict[str, list[tuple[int, CoarsePiece]]] = {name: [] for name in self._columns}
        for start, piece in placed:
            if isinstance(piece, CoarsePiece):
                coarse[piece.columns[0]].append((start, piece))
        columns = [
            ColumnLayout(name, coarse[name], bins.get((name,)), grid.get(name, 0)) for name in self._columns
        ]
        weights = self._fine_weights
        return Layout(columns, pairs, *weights, self.shares[-1], self.dimension, self._fit_intercept)

    def expand(self, cells: Mapping[str, Any]) -> sparse.csr_array:
        """CSR rows of norm at most 1; each has as many entries as there are slots, and one per different word."""
        count = number_of_rows(cells)
        listed = {name: cells_of(cells[name]) for name in self._columns}
        places = np.empty((count, self.slots), dtype=np.int32)
        values = np.empty((count, self.slots))
        if self._texts:
            words = sparse.hstack([cells[group.name] for group in self._texts], format="csr")
            beside = row_squares(words) + self._fit_intercept
        else:
            beside = np.full(count, float(self._fit_intercept))
        scale = np.empty(count)
        room = _Room(self._fine_slots.start, len(self._fine), len(self._levels))
        for rows in blocks(count, FILLED):
            part = {name: column.part(rows) for name, column in listed.items()}
            scale[rows] = self._fill(part, beside[rows], places[rows], values[rows], room)
        shape = (count, self.dimension)
        encoded = sparse.csr_array((values.ravel(), places.ravel(), self._row_starts(count)), shape=shape)
        if self._texts:
            words.data *= np.repeat(scale, np.diff(words.indptr))
            encoded = self._joined(encoded, words)
            rescale_sparse(encoded)
        return encoded

    def _fill(
        self,
        cells: Mapping[str, Cells],
        beside: Array,
        places: NDArray[np.int32],
        values: Array,
        room: _Room,
    ) -> Array:
        """Write the slots of some rows; return the factor of what is beside the coarse part, which shares its norm.

        Slots are written to a room that stays in the cache before they are turned into rows. The bits of a row depend
        on its own cells: the one product of matrices has sums of one term.
        """
        count, coarse = len(beside), self._fine_slots.start
        place_of, value_of, level_of = (part[:, :count] for part in (room.places, room.values, room.levels))
        slot, squares = 0, beside.copy()
        for piece in self._coarse:
            for place, value in piece.slots(cells):
                place_of[slot], value_of[slot] = place, value
                squares += value_of[slot] ** 2
                slot += 1
        for (name, size), level in zip(self._levels, level_of, strict=False):
            level[:] = cells[name].bins(size)
        first, second = (
            np.take(level_of, added, axis=0, out=out[:, :count], mode="clip")
            for added, out in zip(self._added, room.added, strict=True)
        )
        first *= self._strides
        np.add(first, second, out=place_of[self._fine_slots])
        place_of += self._slot_starts
        absent = self._absent(cells)
        scale, factor = divisors(squares, self._fine_squares(absent), self.shares[-1], self.dimension)
        value_of *= scale
        np.dot(factor[:, np.newaxis], self._weights[np.newaxis], out=values)
        places[:, : len(place_of)], values[:, :coarse] = place_of.T, value_of.T
        for slot, rows in absent.items():
            values[rows, slot] = 0.0
        if self._fit_intercept:
            places[:, -1], values[:, -1] = self.dimension - 1, scale
        return scale

    def _absent(self, cells: Mapping[str, Cells]) -> dict[int, NDArray[np.bool_]]:
        """The fine slots that some rows leave empty, and which rows."""
        partial = {name for name, column in cells.items() if not column.whole}
        return {
            slot: np.logical_or.reduce([~cells[name].present for name in partial.intersection(piece.columns)])
            for slot, piece in enumerate(self._fine, self._fine_slots.start)
            if not partial.isdisjoint(piece.columns)
        }

    def _fine_squares(self, absent: Mapping[int, NDArray[np.bool_]]) -> Array | float:
        """Of the fine slots that are filled; equal ones are counted, so what other rows leave empty changes no bit."""
        squares: Array | float = 0.0
        for weight, count in self._equal_weights.items():
            lost = [rows.astype(np.int64) for slot, rows in absent.items() if self._weights[slot] == weight]
            squares = squares + (count - sum(lost)) * weight**2
        return squares

    def _row_starts(self, count: int) -> NDArray[Any]:
        """Where rows begin, in the type of the places if it can be: others would be made of both."""
        starts = np.arange(count + 1) * self.slots
        return starts.astype(np.int32) if starts[-1] < 2**31 else starts

    def _joined(self, encoded: sparse.csr_array, words: sparse.csr_array) -> sparse.csr_array:
        """The rows with their words before the intercept, each joined by itself.

        A sum of the two would not do: scipy chooses by all rows together in which order it leaves the entries of each.
        """
        start = self._first_word
        parts = [encoded[:, :start], words, encoded[:, start + words.shape[1] :]]
        return sparse.csr_array(sparse.hstack(parts, format="csr"))


class _Room:
    """Where slots are written before they are turned into rows: places, coarse values, bins; the last of these is 0."""

    def __init__(self, coarse: int, fine: int, levels: int) -> None:
        self.places = np.empty((coarse + fine, FILLED + PAD), dtype=np.int32)
        self.values = np.empty((coarse, FILLED + PAD))
        self.levels = np.zeros((levels + 1, FILLED), dtype=np.int32)
        self.added = np.empty((2, fine, FILLED), dtype=np.int32)

"""Rows at a chosen resolution: a few non-zeros per column, in exact shares of the row's squared norm."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privlearn.arrays import Array, margin, rescale_sparse, row_squares
from privlearn.data.encode.arrays import blocks
from privlearn.data.encode.column_features import TextGroup
from privlearn.data.encode.positions import Ordered
from privlearn.data.encode.resolution import Resolution
from privlearn.data.encode.slots import Cells, CoarsePiece, Cut, Piece, coarse_pieces
from privlearn.data.schema.columns import CategoryColumn, TextColumn
from privlearn.data.schema.schema import Schema
from privlearn.data.sources.passes import number_of_rows
from privlearn.heavy import sparse

FILLED = 2048  # rows at a time
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
        weights = [
            math.sqrt(share / max(len(part), 1)) for share, part in zip(fine, (bins, pairs), strict=True)
        ]
        self._coarse: list[CoarsePiece] = coarse
        self._fine = [*bins, *pairs]
        widths = [piece.width for piece in (*coarse, *bins, *pairs)]
        self._starts = np.cumsum([0, *widths], dtype=np.int32)
        first = sum(piece.count for piece in coarse)
        self._fine_slots = slice(first, first + len(self._fine))
        self.slots = self._fine_slots.stop + fit_intercept
        self._weights = np.zeros(self.slots)  # of the fine slots
        self._weights[self._fine_slots] = np.repeat(weights, [len(bins), len(pairs)])
        self.dimension = int(self._starts[-1]) + sum(group.width for group in self._texts) + fit_intercept
        self._levels, self._strides = self._linear_places()

    def _linear_places(self) -> tuple[list[tuple[str, int]], NDArray[Any]]:
        """Whose bins the fine places follow from, and the matrix that makes places of bins and a final 1.

        All numbers and sums are whole and no larger than a place, so exact in a type that holds those, in any order.
        """
        levels = list(dict.fromkeys(level for piece in self._fine for level in piece.strides))
        exact = np.float32 if self._starts[-1] < 2**24 else np.float64
        matrix = np.zeros((len(levels) + 1, len(self._fine)), dtype=exact)
        for slot, piece in enumerate(self._fine):
            for level, stride in piece.strides.items():
                matrix[levels.index(level), slot] = stride
        matrix[-1] = self._starts[len(self._coarse) : -1]
        return levels, matrix

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
        room = _Room(self._fine_slots.start, self._strides)
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

        Coarse slots are written one by one to a room that stays in the cache. The places and values of all fine ones are
        two products of matrices, whose sums are of whole numbers or of one term: the bits of a row depend on its own
        cells.
        """
        count, coarse, fine = len(beside), self._fine_slots.start, self._fine_slots
        place_of, value_of, level_of = (part[:, :count] for part in (room.places, room.values, room.levels))
        slot, squares = 0, beside.copy()
        for piece, start in zip(self._coarse, self._starts, strict=False):
            for place, value in piece.slots(cells):
                np.add(place, start, out=place_of[slot], casting="unsafe")
                value_of[slot] = value
                squares += value_of[slot] ** 2
                slot += 1
        scale = np.sqrt(self.shares[-1] / np.where(squares > 0.0, squares, 1.0))
        absent = {slot: piece.absent(cells) for slot, piece in enumerate(self._fine, coarse)}
        whole = squares * scale**2 + self._fine_squares(absent)
        factor = margin(self.dimension) / np.sqrt(np.where(whole > 0.0, whole, 1.0))
        scale *= factor
        value_of *= scale
        for (name, size), level in zip(self._levels, level_of, strict=False):
            level[:] = cells[name].bins(size)
        places[:, :coarse], places[:, fine] = place_of.T, level_of.T @ self._strides
        np.dot(factor[:, np.newaxis], self._weights[np.newaxis], out=values)
        values[:, :coarse] = value_of.T
        for slot, rows in absent.items():
            if rows is not None:
                values[rows, slot] = 0.0
        if self._fit_intercept:
            places[:, -1], values[:, -1] = self.dimension - 1, scale
        return scale

    def _fine_squares(self, absent: Mapping[int, NDArray[np.bool_] | None]) -> Array | float:
        """Squares of the fine slots that are filled, equal ones counted: what is missing elsewhere changes no bit."""
        squares: Array | float = 0.0
        for weight in dict.fromkeys(self._weights[self._fine_slots]):
            lost = [absent[slot] for slot in absent if self._weights[slot] == weight]
            filled = len(lost) - sum((rows.astype(np.int64) for rows in lost if rows is not None), 0)
            squares = squares + filled * weight**2
        return squares

    def _row_starts(self, count: int) -> NDArray[Any]:
        """Where rows begin, in the type of the places if it can be: others would be made of both."""
        starts = np.arange(count + 1) * self.slots
        return starts.astype(np.int32) if starts[-1] < 2**31 else starts

    def _joined(self, encoded: sparse.csr_array, words: sparse.csr_array) -> sparse.csr_array:
        """The rows with their words before the intercept, each joined by itself.

        A sum of the two would not do: scipy chooses by all rows together in which order it leaves the entries of each.
        """
        start = int(self._starts[-1])
        parts = [encoded[:, :start], words, encoded[:, start + words.shape[1] :]]
        return sparse.csr_array(sparse.hstack(parts, format="csr"))


class _Room:
    """Where slots are written before they are turned into rows: a line for each, and one for each bin and a final 1."""

    def __init__(self, coarse: int, strides: NDArray[Any]) -> None:
        self.places = np.empty((coarse, FILLED + PAD), dtype=np.int32)
        self.values = np.empty((coarse, FILLED + PAD))
        self.levels = np.ones((len(strides), FILLED + PAD), dtype=strides.dtype)


def cells_of(column: NDArray[Any]) -> Cells:
    """What a column's cells say, and which of them say anything."""
    present = column >= 0  # NaN is not, and neither is the place of what is not listed
    return Cells(np.where(present, column, 0), present)

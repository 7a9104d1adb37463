"""Expand cells to vectors of norm at most 1.

`RowExpander.expand` takes the cells of n rows, one array of shape (n,) per column (a CSR matrix for text), and returns
n vectors under a `FeatureLayout`: a dense array of shape (n, dimension) if the layout is centred, else a CSR array with
`entries_per_row` entries in each row. In the resolved form each row is scaled in two steps: first its coarse entries,
so that their squares add up to `coarse_share`; then all entries, so that the row has norm 1.

>>> from privlearn.data import Resolution, Schema
>>> schema = Schema.from_dict({"name": "clinic", "columns": {
...     "age": {"type": "number", "lower": 0, "upper": 100, "encoding": "linear", "bins": 4}}})
>>> cells = {"age": np.array([1.0, 0.75, np.nan])}  # positions; NaN is a missing cell
>>> RowExpander(FeatureLayout(schema, Resolution())).expand(cells).round(2)
array([[0.71, 0.71],
       [0.45, 0.89],
       [0.  , 1.  ]])
>>> layout = FeatureLayout(schema, Resolution(bin_share=0.5))
>>> layout.feature_names
['age', 'age bin 0', 'age bin 1', 'age bin 2', 'age bin 3', 'intercept']
>>> RowExpander(layout).expand(cells).toarray().round(2)
array([[0.5 , 0.  , 0.  , 0.  , 0.71, 0.5 ],
       [0.32, 0.  , 0.  , 0.  , 0.71, 0.63],
       [0.  , 0.  , 0.  , 0.  , 0.  , 1.  ]])
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privlearn.arrays import Array, rescale_dense, rescale_sparse, row_factors, row_squares
from privlearn.data.encoding.arrays import blocks
from privlearn.data.encoding.feature_groups import Bins, CoarseFeatures, ColumnCells
from privlearn.data.encoding.layout import FeatureLayout
from privlearn.data.sources.passes import number_of_rows
from privlearn.imports import sparse

Cells = Mapping[str, Any]
"""For each column an array of shape (n,), or a CSR array of hashed words."""

ROWS_AT_A_TIME = 4096
PADDING = 24  # columns: arrays whose rows are a power of two apart compete for the same cache lines


class RowExpander:
    """Expands cells under a layout; each vector depends on its own row only, to the last bit.

    Parameters
    ----------
    layout : FeatureLayout
    """

    def __init__(self, layout: FeatureLayout) -> None:
        self._layout = layout
        self._columns = list(dict.fromkeys(group.name for _, group in layout.coarse))
        self._fine = [group for _, group in (*layout.bins, *layout.pairs)]
        first_fine = sum(group.entries_per_row for _, group in layout.coarse)
        self._fine_entries = slice(first_fine, first_fine + len(self._fine))
        starts = [start for start, group in layout.coarse for _ in range(group.entries_per_row)]
        starts += [start for start, _ in (*layout.bins, *layout.pairs)]
        self._entry_starts = np.array(starts, dtype=np.int32)[:, np.newaxis]
        self._weights = np.zeros(layout.entries_per_row)  # of fine entries; 0 for the others
        counts = [len(layout.bins), len(layout.pairs)]
        self._weights[self._fine_entries] = np.repeat([layout.bin_weight, layout.pair_weight], counts)
        self._entries_by_weight = Counter(self._weights[self._fine_entries].tolist())
        self._bins, self._addends, self._strides = self._fine_indices()

    def _fine_indices(self) -> tuple[list[Bins], NDArray[np.intp], NDArray[np.int32]]:
        """Return what the index of each fine entry is computed from: ``stride * bins[first] + bins[second]``.

        Returns
        -------
        bins : list of (column, number of bins)
            Each combination that occurs. One row of zeros follows them, as the second addend of a single column.
        addends : array of shape (2, fine groups)
            Positions in `bins`.
        strides : array of shape (fine groups, 1)
        """
        bins = list(dict.fromkeys(part for group in self._fine for part in group.bins))
        pairs = [(*group.bins, None)[:2] for group in self._fine]
        number = {None: len(bins)} | {part: index for index, part in enumerate(bins)}
        addends = np.array([[number[part] for part in pair] for pair in pairs], dtype=np.intp).reshape(-1, 2)
        strides = [1 if second is None else second[1] for _, second in pairs]
        return bins, addends.T, np.array(strides, dtype=np.int32)[:, np.newaxis]

    def expand(self, cells: Cells) -> NDArray[np.float64] | sparse.csr_array:
        """Return the vectors of the cells' rows: dense if the layout is centred and has no text, else CSR."""
        columns = {name: ColumnCells.of(cells[name]) for name in self._columns}
        if not self._layout.is_centred:
            return self._expand_resolved(cells, columns)
        expand = self._expand_centred_sparse if self._layout.texts else self._expand_centred
        return expand(cells, columns)

    def _expand_centred(self, cells: Cells, columns: Mapping[str, ColumnCells]) -> NDArray[np.float64]:
        rows = np.empty((number_of_rows(cells), self._layout.dimension))
        if self._layout.fit_intercept:
            rows[:, -1] = 1.0
        for part in blocks(len(rows)):
            inside = {name: column.part(part) for name, column in columns.items()}
            for start, group in self._layout.coarse:
                group.write(inside[group.name], rows[part, start : start + group.width], is_centred=True)
            rescale_dense(rows[part])
        return rows

    def _expand_centred_sparse(self, cells: Cells, columns: Mapping[str, ColumnCells]) -> sparse.csr_array:
        parts, count = [], number_of_rows(cells)
        for _, group in self._layout.groups:
            if isinstance(group, CoarseFeatures):
                features = np.empty((count, group.width))
                group.write(columns[group.name], features, is_centred=True)
                parts.append(sparse.csr_array(features))
            else:
                parts.append(cells[group.columns[0]])
        if self._layout.fit_intercept:
            parts.append(sparse.csr_array(np.ones((count, 1))))
        rows = sparse.csr_array(sparse.hstack(parts, format="csr"))
        rescale_sparse(rows)
        return rows

    def _expand_resolved(self, cells: Cells, columns: Mapping[str, ColumnCells]) -> sparse.csr_array:
        layout, count = self._layout, number_of_rows(cells)
        indices = np.empty((count, layout.entries_per_row), dtype=np.int32)
        values = np.empty((count, layout.entries_per_row))
        other_squares = np.full(count, float(layout.fit_intercept))
        if layout.texts:
            words = sparse.hstack([cells[group.name] for _, group in layout.texts], format="csr")
            other_squares = row_squares(words) + layout.fit_intercept
        coarse_factor = np.empty(count)
        workspace = _Workspace(self._fine_entries.start, len(self._fine), len(self._bins))
        for rows in blocks(count, ROWS_AT_A_TIME):
            part = {name: column.part(rows) for name, column in columns.items()}
            coarse_factor[rows] = self._fill(
                part, other_squares[rows], indices[rows], values[rows], workspace
            )
        starts = np.arange(count + 1) * layout.entries_per_row
        if starts[-1] < 2**31:  # the type of the indices, or scipy converts both
            starts = starts.astype(np.int32)
        encoded = sparse.csr_array((values.ravel(), indices.ravel(), starts), shape=(count, layout.dimension))
        if layout.texts:
            words.data *= np.repeat(coarse_factor, np.diff(words.indptr))
            encoded = self._with_words(encoded, words)
            rescale_sparse(encoded)
        return encoded

    def _fill(
        self,
        cells: Mapping[str, ColumnCells],
        other_squares: Array,
        indices: NDArray[np.int32],
        values: Array,
        workspace: _Workspace,
    ) -> Array:
        """Write the entries of some rows, and return the factor of their coarse entries, which words share.

        Entries are first written side by side, of shape (entries, n), to arrays that stay in the cache, and then
        transposed. The bits of a row depend on its own cells only: the sums of the one matrix product have one term.

        Parameters
        ----------
        cells : dict of str to ColumnCells of n rows
        other_squares : array of shape (n,)
            Sums of squares of words and intercept.
        indices, values : arrays of shape (n, entries_per_row)
            Written to.
        workspace : _Workspace
        """
        count, coarse = len(other_squares), self._fine_entries.start
        index_of, value_of, bin_of = (
            array[:, :count] for array in (workspace.indices, workspace.values, workspace.bins)
        )
        entry, squares = 0, other_squares.copy()
        for _, group in self._layout.coarse:
            for index, value in group.entries(cells[group.name]):
                index_of[entry], value_of[entry] = index, value
                squares += value_of[entry] ** 2
                entry += 1
        for (name, bins), out in zip(self._bins, bin_of, strict=False):
            out[:] = cells[name].bins(bins)
        first, second = (
            np.take(bin_of, addend, axis=0, out=out[:, :count], mode="clip")
            for addend, out in zip(self._addends, workspace.addends, strict=True)
        )
        first *= self._strides
        np.add(first, second, out=index_of[self._fine_entries])
        index_of += self._entry_starts
        missing = self._missing_fine_entries(cells)
        coarse_factor, factor = row_factors(
            squares, self._fine_squares(missing), self._layout.coarse_share, self._layout.dimension
        )
        value_of *= coarse_factor
        # An outer product: each sum has one term, so its bits do not depend on how the library adds.
        np.dot(factor[:, np.newaxis], self._weights[np.newaxis], out=values)
        indices[:, : len(index_of)], values[:, :coarse] = index_of.T, value_of.T
        # Last, since the product above also wrote the weights of entries that a row does not have.
        for entry, rows in missing.items():
            values[rows, entry] = 0.0
        if self._layout.fit_intercept:
            indices[:, -1], values[:, -1] = self._layout.dimension - 1, coarse_factor
        return coarse_factor

    def _missing_fine_entries(self, cells: Mapping[str, ColumnCells]) -> dict[int, NDArray[np.bool_]]:
        """Return the fine entries that some rows do not have, and which rows."""
        partial = {name for name, column in cells.items() if not column.is_complete}
        return {
            entry: np.logical_or.reduce(
                [~cells[name].present for name in partial.intersection(group.columns)]
            )
            for entry, group in enumerate(self._fine, self._fine_entries.start)
            if not partial.isdisjoint(group.columns)
        }

    def _fine_squares(self, missing: Mapping[int, NDArray[np.bool_]]) -> Array | float:
        """Return the sum of squares of each row's fine entries.

        Entries of equal weight are counted, not added: the missing cells of other rows must not change a bit.
        """
        squares: Array | float = 0.0
        for weight, count in self._entries_by_weight.items():
            lost = [
                rows.astype(np.int64) for entry, rows in missing.items() if self._weights[entry] == weight
            ]
            squares = squares + (count - sum(lost)) * weight**2
        return squares

    def _with_words(self, encoded: sparse.csr_array, words: sparse.csr_array) -> sparse.csr_array:
        """Return the rows with their words before the intercept.

        A sum of the two matrices would not do: scipy chooses the order of each row's entries by all rows together.
        """
        start = self._layout.texts[0][0]
        parts = [encoded[:, :start], words, encoded[:, start + words.shape[1] :]]
        return sparse.csr_array(sparse.hstack(parts, format="csr"))


class _Workspace:
    """Arrays in which entries are written side by side, reused for all blocks; the last row of `bins` is 0."""

    def __init__(self, coarse: int, fine: int, bins: int) -> None:
        self.indices = np.empty((coarse + fine, ROWS_AT_A_TIME + PADDING), dtype=np.int32)
        self.values = np.empty((coarse, ROWS_AT_A_TIME + PADDING))
        self.bins = np.zeros((bins + 1, ROWS_AT_A_TIME), dtype=np.int32)
        self.addends = np.empty((2, fine, ROWS_AT_A_TIME), dtype=np.int32)

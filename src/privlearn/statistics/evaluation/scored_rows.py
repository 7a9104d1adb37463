"""The rows of an evaluation: labels, scores and groups, stored in few bytes, then counted in the layout's tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privlearn.arrays import Array
from privlearn.data.encoding.column_cells import codes
from privlearn.data.encoding.encoder import SchemaEncoder, from_unit
from privlearn.data.encoding.packed_cells import PackedCells
from privlearn.data.schema.schema import Schema
from privlearn.data.schema.target import Target
from privlearn.data.sources.passes import number_of_rows
from privlearn.data.sources.read_columns import read_block
from privlearn.mechanisms.statistics.statistic import count
from privlearn.statistics.evaluation.layout import Groups
from privlearn.statistics.evaluation.subject import Subject, check_outputs
from privlearn.statistics.layout import CountsLayout

CellIndices = NDArray[np.int64]
"""The cell of each row in one table, of shape (rows,); -1 for a row that is not counted."""

_ANSWER, _OUTPUT, _GROUP = "answer", "output", "group"


class ScoredRows:
    """PRIVATE: the label or target, the scores and the groups of each row, added block by block."""

    def __init__(self, subject: Subject, schema: Schema, groups: Groups) -> None:
        assert schema.target is not None
        self._subject, self._target, self._groups = subject, schema.target, groups
        self._encoder, self._schema = SchemaEncoder(schema), schema
        self._cells = PackedCells()

    def __len__(self) -> int:
        return len(self._cells)

    def add(self, block: Any) -> None:
        """Touch the data: score some rows with the model and store what will be counted."""
        target, subject = self._target, self._subject
        column = read_block(block, [target.name], self._schema).column(0)
        answers: Any
        if target.classes:
            answers = self._encoder.encode_labels(column)
        else:
            assert target.bounds is not None
            answers = from_unit(self._encoder.encode_targets(column), target.bounds)
        outputs = check_outputs(subject.outputs(block), len(answers), target, probable=subject.is_probability)
        cells = {_ANSWER: answers}
        for index, scores in enumerate(np.atleast_2d(outputs.T)):
            cells[f"{_OUTPUT} {index}"] = scores
        for name, values in self._groups.items():
            group = read_block(block, [name], self._schema).column(0)
            cells[f"{_GROUP} {name}"] = codes(group, values, f"column {name!r}")
        self._cells.add(cells)

    def tables(self, layout: CountsLayout, weights: Array | None, shared: Sequence[int] = ()) -> list[Array]:
        """Return the exact number of rows in each cell of each table, flattened, summed block by block.

        ``shared`` are the groups that all rows belong to, in tables after those of the columns.
        """
        sizes = layout.mechanism.cells
        exact, start = [np.zeros(size) for size in sizes], 0
        for block in self._cells.blocks():
            rows = slice(start, start + number_of_rows(block))
            block_weights = None if weights is None else weights[rows]
            indices = self._scored_block(block, shared).cell_indices(layout)
            for total, index, size in zip(exact, indices, sizes, strict=True):
                total += count(index, size, block_weights)
            start = rows.stop
        return exact

    def _scored_block(self, block: Any, shared: Sequence[int]) -> _ScoredBlock:
        scores = [column for name, column in block.items() if name.startswith(_OUTPUT)]
        outputs = scores[0] if len(scores) == 1 else np.column_stack(scores)
        answers = block[_ANSWER].astype(np.int64) if self._target.classes else block[_ANSWER]
        groups = [block[f"{_GROUP} {name}"].astype(np.int64) for name in self._groups]
        groups += [np.full(len(answers), group) for group in shared]
        return _ScoredBlock(self._target, answers, outputs, groups)


@dataclass(frozen=True, eq=False, repr=False)
class _ScoredBlock:
    """PRIVATE: some rows, unpacked.

    ``answers`` (array of shape (rows,)): indices of classes, negative if unknown; or numbers. ``groups`` (list of
    arrays of shape (rows,)): indices of values, negative if there is none; one array per table of groups.
    """

    target: Target
    answers: Any
    outputs: Array
    groups: list[CellIndices]

    def cell_indices(self, layout: CountsLayout) -> list[CellIndices]:
        """Return the cell of each row in each table; -1 for none."""
        if not self.target.classes:
            main, in_group = self._residuals(layout)
        elif len(self.target.classes) == 2:
            main, in_group = self._scores(layout)
        else:
            main, in_group = self._classes(layout)
        by, sizes = layout.about["by"], layout.mechanism.cells[len(main) :]
        indices = [
            np.where((group < 0) | (in_group < 0), -1, group * (cells // len(by[name])) + in_group)
            for group, name, cells in zip(self.groups, by, sizes, strict=True)
        ]
        return [*main, *indices]

    def _scores(self, layout: CountsLayout) -> tuple[list[CellIndices], CellIndices]:
        bins = len(layout.edges) - 1
        predicted = (self.outputs > layout.about["threshold"]).astype(np.int64)
        known = self.answers >= 0
        score = np.where(known, self.answers * bins + bin_indices(self.outputs, layout.edges), -1)
        return [score], np.where(known, 2 * self.answers + predicted, -1)

    def _classes(self, layout: CountsLayout) -> tuple[list[CellIndices], CellIndices]:
        bins, classes = len(layout.edges) - 1, self.outputs.shape[1]
        predicted, known = np.argmax(self.outputs, axis=1), self.answers >= 0
        confusion = np.where(known, self.answers * classes + predicted, -1)
        curves = [
            np.where(known, (self.answers == label) * bins + bin_indices(scores, layout.edges), -1)
            for label, scores in enumerate(self.outputs.T)
        ]
        return [confusion, *curves], np.where(known, (predicted != self.answers).astype(np.int64), -1)

    def _residuals(self, layout: CountsLayout) -> tuple[list[CellIndices], CellIndices]:
        residual = bin_indices(self.outputs - self.answers, layout.edges)
        return [residual, bin_indices(self.answers, np.array(layout.about["target_edges"]))], residual


def bin_indices(values: Array, edges: Array) -> CellIndices:
    """Return the bin of each number; a number on an edge is in the lower bin, one beyond all edges in an outer bin."""
    return np.searchsorted(edges[1:-1], values, side="left").astype(np.int64)

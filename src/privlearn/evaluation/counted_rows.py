"""What an evaluation counts of the rows: kept in few bytes until the price is planned, then put into cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privlearn.arrays import Array
from privlearn.data.encode.column_cells import codes
from privlearn.data.encode.encoder import SchemaEncoder, from_unit
from privlearn.data.encode.packed_cells import PackedCells
from privlearn.data.schema.columns import Target
from privlearn.data.schema.schema import Schema
from privlearn.data.sources.gaps import read_block
from privlearn.data.sources.passes import number_of_rows
from privlearn.evaluation.plan import EvaluationPlan, Groups
from privlearn.evaluation.subject import Subject, check_outputs
from privlearn.mechanisms.statistics.counts import count

Cell = NDArray[np.int64]

_ANSWER, _OUTPUT, _GROUP = "answer", "output", "group"


class CountedRows:
    """PRIVATE: each row's answer, scores and groups, as they are added."""

    def __init__(self, subject: Subject, schema: Schema, groups: Groups) -> None:
        assert schema.target is not None
        self._subject, self._target, self._groups = subject, schema.target, groups
        self._encoder, self._form = SchemaEncoder(schema), schema.file
        self._kept = PackedCells()

    def __len__(self) -> int:
        return len(self._kept)

    def add(self, block: Any) -> None:
        """Touch the data: ask the model about some rows."""
        target = self._target
        column = read_block(block, [target.name], self._form).column(0)
        answers: Any
        if target.classes:
            answers = self._encoder.encode_labels(column)
        else:
            assert target.bounds is not None
            answers = from_unit(self._encoder.encode_targets(column), target.bounds)
        subject = self._subject
        outputs = check_outputs(subject.outputs(block), len(answers), target, probable=subject.is_probability)
        kept = {_ANSWER: answers}
        for place, scores in enumerate(np.atleast_2d(outputs.T)):
            kept[f"{_OUTPUT} {place}"] = scores
        for name, values in self._groups.items():
            kept[f"{_GROUP} {name}"] = codes(
                read_block(block, [name], self._form).column(0), values, f"column {name!r}"
            )
        self._kept.add(kept)

    def tables(self, plan: EvaluationPlan, weights: Array | None, shared: Sequence[int] = ()) -> list[Array]:
        """How many rows are in each cell of each table: exact, block by block.

        ``shared`` are groups that every row is in, after those of columns.
        """
        sizes = plan.mechanism.cells
        exact, start = [np.zeros(size) for size in sizes], 0
        for kept in self._kept.blocks():
            rows = slice(start, start + number_of_rows(kept))
            each = None if weights is None else weights[rows]
            places = self._counted(kept, shared).cells(plan)
            for total, cell, size in zip(exact, places, sizes, strict=True):
                total += count(cell, size, each)
            start = rows.stop
        return exact

    def _counted(self, kept: Any, shared: Sequence[int]) -> _Counted:
        scores = [column for name, column in kept.items() if name.startswith(_OUTPUT)]
        outputs = scores[0] if len(scores) == 1 else np.column_stack(scores)
        answers = kept[_ANSWER].astype(np.int64) if self._target.classes else kept[_ANSWER]
        groups = [kept[f"{_GROUP} {name}"].astype(np.int64) for name in self._groups]
        groups += [np.full(len(answers), group) for group in shared]
        return _Counted(self._target, answers, outputs, groups)


class _Counted:
    """PRIVATE: what the rows are counted by: labels or targets, scores, and groups; negative where there is none."""

    def __init__(self, target: Target, answers: Any, outputs: Array, groups: list[Cell]) -> None:
        self.target = target
        self.answers = answers
        self.outputs = outputs
        self.groups = groups

    def cells(self, plan: EvaluationPlan) -> list[Cell]:
        """In which cell of each table a row is; -1 for none."""
        if not self.target.classes:
            main, each = self._residuals(plan)
        elif len(self.target.classes) == 2:
            main, each = self._scores(plan)
        else:
            main, each = self._classes(plan)
        size = plan.mechanism.cells[len(main) :]
        places = [
            np.where((group < 0) | (each < 0), -1, group * (cells // len(plan.about["by"][name])) + each)
            for group, name, cells in zip(self.groups, plan.about["by"], size, strict=True)
        ]
        return [*main, *places]

    def _scores(self, plan: EvaluationPlan) -> tuple[list[Cell], Cell]:
        bins = len(plan.edges) - 1
        said = (self.outputs > plan.about["threshold"]).astype(np.int64)
        known = self.answers >= 0
        score = np.where(known, self.answers * bins + binned(self.outputs, plan.edges), -1)
        return [score], np.where(known, 2 * self.answers + said, -1)

    def _classes(self, plan: EvaluationPlan) -> tuple[list[Cell], Cell]:
        bins, count_of = len(plan.edges) - 1, self.outputs.shape[1]
        said, known = np.argmax(self.outputs, axis=1), self.answers >= 0
        confused = np.where(known, self.answers * count_of + said, -1)
        curves = [
            np.where(known, (self.answers == place) * bins + binned(self.outputs[:, place], plan.edges), -1)
            for place in range(count_of)
        ]
        return [confused, *curves], np.where(known, (said != self.answers).astype(np.int64), -1)

    def _residuals(self, plan: EvaluationPlan) -> tuple[list[Cell], Cell]:
        residual = binned(self.outputs - self.answers, plan.edges)
        return [residual, binned(self.answers, np.array(plan.about["target_edges"]))], residual


def binned(values: Array, edges: Array) -> Cell:
    """The bin of each number; one on an edge is in the lower bin, one beyond all edges in the last."""
    return np.searchsorted(edges[1:-1], values, side="left").astype(np.int64)

"""PRIVATE: the rows of a regression, and the exact sums over them; noise comes later."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privlearn.arrays import Array
from privlearn.data.encoding.arrays import blocks
from privlearn.data.encoding.packed_cells import BLOCK, PackedCells
from privlearn.data.encoding.row_weights import WeightColumns
from privlearn.data.schema.schema import Schema
from privlearn.data.sources.files import open_table
from privlearn.data.sources.passes import number_of_rows
from privlearn.data.sources.read_columns import read_block
from privlearn.data.sources.row_source import read_each
from privlearn.mechanisms.statistics.scoring import RegressionSums, pack_symmetric
from privlearn.mechanisms.statistics.statistic import UNIT, count
from privlearn.statistics.description.layout import described_columns
from privlearn.statistics.description.measuring import read_column
from privlearn.statistics.layout import CountsLayout
from privlearn.statistics.regression.design import Levels
from privlearn.statistics.regression.layout import (
    RESIDUAL_EDGES,
    ModelRequest,
    grid_of_outcome,
    grid_of_variable,
)
from privlearn.statistics.regression.progress import Progress

_FACTOR_UNIT = 2.0**13
"""Factors of matrices are cut, towards 0, to multiples of 1 / _FACTOR_UNIT: sums of their products are exact for fewer
than 2^27 rows. Cutting makes no factor longer."""

_SHORTENED = 1.0 - 2.0**-24
"""A factor of every contribution: what rounding in floating point may add to a norm, it takes away. The largest part is
the rounding of sqrt(2) times the sums above a diagonal: for fewer than 2^27 rows, sums differ by 2^-25 more."""


@dataclass(frozen=True, eq=False, repr=False)
class RegressionCells:
    """PRIVATE: the cells of the model's columns, with the weight and the person of each row.

    Attributes
    ----------
    cells : PackedCells
    weights : array of shape (rows,)
        At most 1 for all rows of one person together.
    persons : array of shape (rows,), optional
        Index of each row's person; None if every row is one.
    total : int
        Number of rows, or of persons.
    """

    cells: PackedCells
    weights: Array
    persons: NDArray[np.int64] | None
    total: int


def read_cells(table: Any, schema: Schema, request: ModelRequest) -> RegressionCells:
    """PRIVATE: read the columns of a model. A cell that cannot be read is an error here, before anything is charged."""
    variables = [*request.design.column_variables, *([] if request.exposure is None else [request.exposure])]
    names = list(dict.fromkeys([*(variable.column for variable in variables), request.outcome["name"]]))
    described = {name: described_columns(schema)[name] for name in names}
    cells, weighing = PackedCells(), WeightColumns(schema)
    needed = [*names, *weighing.names]

    def read(block: Any) -> None:
        rows = read_block(block, needed, schema)
        cells.add({name: read_column(name, column, rows.column(name)) for name, column in described.items()})
        weighing.add(rows)

    for _ in read_each(open_table(table, schema, needed), read):
        pass
    weights = weighing.result(len(cells))
    counted = np.ones(len(cells)) if weights.counted is None else weights.counted
    return RegressionCells(cells, counted, weights.persons, weights.count)


@dataclass(frozen=True, eq=False, repr=False)
class _Block:
    """PRIVATE: some rows at the current values: their rows, weights, outcome and offset."""

    atoms: Array
    outcome: Array
    offset: Array
    weights: Array
    persons: NDArray[np.int64] | None
    cells: Any


class RegressionRows(RegressionSums):
    """PRIVATE: computes the sums of a layout over the rows.

    Rows without a value in one of the model's columns have no weight: estimates are of complete records.
    """

    def __init__(self, rows: RegressionCells, layout: CountsLayout) -> None:
        self._rows = rows
        self._about = layout.about
        self._cells = layout.mechanism.cells
        self._progress = Progress(layout.about, layout.mechanism.scales, [])
        self._copies = self._progress.design.rows_per_record
        self._round: dict[str, Array] = {}

    def sums(self, released: Sequence[Array]) -> Array:
        progress = self._progress = self._progress.with_released(released)
        if len(released) < progress.tables:
            return self._tables[len(released)]
        if progress.next_sum == "residuals":
            return self._residuals(progress)
        if progress.next_sum == "score":
            self._round = self._sums_of_round(progress)
        return self._round[progress.next_sum]

    def _blocks(self, progress: Progress) -> Iterator[_Block]:
        start = 0
        for cells in self._parts():
            part = slice(start, start + number_of_rows(cells) // self._copies)
            start = part.stop
            own = np.repeat(self._rows.weights[part] / self._copies, self._copies)
            persons = self._rows.persons
            persons = None if persons is None else np.repeat(persons[part], self._copies)
            atoms, known = progress.design.read(cells)
            outcome, has_outcome = self._outcome(cells)
            offset = np.zeros(len(outcome))
            if progress.exposure is not None:
                values, has_exposure = progress.exposure.read(cells[progress.exposure.column])
                offset, known = values[:, 0], known & has_exposure
            weights = np.where(known & has_outcome, own, 0.0)
            yield _Block(atoms, outcome, offset, weights, persons, cells)

    def _parts(self) -> Iterator[Any]:
        """PRIVATE: yield the cells, each row once for every comparison with a level, the column without a name.

        However many levels there are, a part has about as many rows as a block.
        """
        for cells in self._rows.cells.blocks():
            if self._copies == 1:
                yield cells
                continue
            columns = dict(cells.items())
            for part in blocks(number_of_rows(cells), -(-BLOCK // self._copies)):
                repeated = {name: np.repeat(column[part], self._copies) for name, column in columns.items()}
                yield repeated | {"": np.tile(np.arange(self._copies), part.stop - part.start)}

    def _outcome(self, cells: Any) -> tuple[Array, NDArray[np.bool_]]:
        """PRIVATE: return the outcome of each row, classes as 0 and 1, and which rows have one."""
        about = self._about["outcome"]
        values = np.asarray(cells[about["name"]])
        if "classes" in about:
            known = values >= 0
            classes = np.array(about["classes"], dtype=float)[np.where(known, values, 0)]
            return (classes > cells[""] if "levels" in about else classes).astype(float), known
        known = ~np.isnan(values)
        return np.clip(np.where(known, values, about["lower"]), about["lower"], about["upper"]), known

    @cached_property
    def _tables(self) -> list[Array]:
        """PRIVATE: return all histograms, of variables, outcome and exposure; one pass, as none needs another one."""
        progress = self._progress
        totals = [np.zeros(cells) for cells in self._cells[: progress.tables]]
        for block in self._blocks(progress):
            for index, total in enumerate(totals):
                total += self._count(progress, index, block)
        return totals

    def _count(self, progress: Progress, index: int, block: _Block) -> Array:
        variables = progress.design.column_variables
        if index == len(variables):
            grid = grid_of_outcome(self._about["outcome"])
            if "classes" in self._about["outcome"]:  # all rows of a record count its level
                classes = block.outcome.reshape(-1, self._copies).sum(axis=1).astype(np.int64)
                return count(np.repeat(classes, self._copies), grid.cells, block.weights)
            return grid.count(block.outcome, block.weights)
        if index > len(variables):
            assert progress.exposure is not None
            return grid_of_variable(progress.exposure).count(block.offset, block.weights)
        variable = variables[index]
        if isinstance(variable, Levels):
            indices = variable.index(block.cells[variable.column])
            return count(indices, len(variable.values), block.weights)
        return grid_of_variable(variable).count(
            variable.read(block.cells[variable.column])[0][:, 0], block.weights
        )

    def _at(self, progress: Progress, block: _Block) -> tuple[Array, Array, Array, Array]:
        """PRIVATE: return rows, their weights, linear predictors and residuals.

        Sums over each row alone: the bits of a matrix product may depend on the number of rows.
        """
        rows = progress.standardised.rows(block.atoms)
        lengths = np.einsum("ij,ij->i", rows, rows)
        weights = block.weights * _SHORTENED / np.maximum(lengths, 1.0)
        predictor = np.einsum("ij,j->i", rows, progress.coefficients) + block.offset
        return rows, weights, predictor, progress.family.residuals(predictor, block.outcome, progress.scale)

    def _sums_of_round(self, progress: Progress) -> dict[str, Array]:
        """PRIVATE: return score, information and, in the last round, second moments of scores, in one pass.

        They are at the same values: no sum of a round depends on another one of it. Scores are in units of the bound of
        residuals; their outer products are of records, or of persons.
        """
        dimension, scale = progress.design.dimension, progress.scale
        score, information, moments = np.zeros(dimension), *np.zeros((2, dimension, dimension))
        persons = np.zeros((0 if self._rows.persons is None else self._rows.total, dimension))
        for block in self._blocks(progress):
            rows, weights, predictor, residuals = self._at(progress, block)
            cut = np.clip(residuals / scale.residual_bound, -1.0, 1.0)
            scores = (weights * cut)[:, np.newaxis] * rows
            score += np.trunc(scores * UNIT).sum(axis=0)
            share = progress.family.information(predictor, residuals, scale)
            _add_outer(np.sqrt(weights * share)[:, np.newaxis] * rows, information)
            if not progress.is_last_round:
                continue
            if block.persons is None:
                _add_outer(scores.reshape(-1, self._copies, dimension).sum(axis=1), moments)
            else:
                np.add.at(persons, block.persons, scores)
        _add_outer(persons, moments)
        matrices = {"information": information, "moments": moments}
        packed = {name: pack_symmetric(total / _FACTOR_UNIT**2) for name, total in matrices.items()}
        return {"score": score / UNIT, **packed}

    def _residuals(self, progress: Progress) -> Array:
        total = np.zeros(len(RESIDUAL_EDGES) + 1)
        for block in self._blocks(progress):
            sizes = np.abs(self._at(progress, block)[3]) / progress.residual_unit
            total += count(np.searchsorted(RESIDUAL_EDGES, sizes), len(total), block.weights)
        return total


def _add_outer(vectors: Array, total: Array) -> None:
    """Add z z' of each vector z, cut to the grid."""
    whole = np.trunc(vectors * _FACTOR_UNIT)
    total += whole.T @ whole

"""Rows and targets of a table under its schema: vectors of norm at most 1, numbers in [-1, 1]."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from privlearn.arrays import Array, rescale_dense, rescale_sparse
from privlearn.data.encode.arrays import blocks
from privlearn.data.encode.column_cells import MISSING, UNKNOWN, codes, numbers, owners
from privlearn.data.encode.column_features import DenseGroup, Group, group_of
from privlearn.data.encode.packed_cells import PackedCells
from privlearn.data.encode.plain_cells import single_row
from privlearn.data.encode.resolution import Resolution
from privlearn.data.encode.resolved_rows import ResolvedRows
from privlearn.data.encode.tabled_rows import LookUps
from privlearn.data.schema.columns import Target
from privlearn.data.schema.labels import SPELLINGS_OF_A_CLASS
from privlearn.data.schema.schema import SchemaLike, as_schema
from privlearn.data.sources.gaps import read_block
from privlearn.data.sources.passes import number_of_rows
from privlearn.data.sources.row_source import EncodedRows, Matrix, joined
from privlearn.data.sources.table import as_array, as_source, as_table
from privlearn.errors import ON_DROPPING, DataError, SchemaError
from privlearn.heavy import sparse

Bounds = tuple[float, float]

_in_use: WeakValueDictionary[Any, LookUps] = WeakValueDictionary()
"""By what they follow from, for as long as somebody has them."""


def to_unit(values: Array, bounds: Bounds) -> Array:
    """Clamp to the bounds and scale to [-1, 1]."""
    lower, upper = bounds
    place = (np.clip(values, lower, upper) - lower) / (upper - lower)
    return np.clip(2.0 * place - 1.0, -1.0, 1.0)


def from_unit(units: Array, bounds: Bounds) -> Array:
    """Inverse of `to_unit`; units outside [-1, 1] become the bounds."""
    lower, upper = bounds
    place = (np.clip(units, -1.0, 1.0) + 1.0) / 2.0
    return np.clip(lower + (upper - lower) * place, lower, upper)


class SchemaEncoder:
    """The map from raw rows to vectors that a schema fixes; it has nothing to fit.

    Each column becomes a group of bounded features, in the schema's order; a constant feature 1,
    the last, is the intercept; then each row is divided by its own norm. With a resolution the groups are not centred
    and so sparse, and fine bins and pairs of columns stand beside them (docs/explanation/resolution.md).

    Parameters
    ----------
    schema : Schema
        Bounds, categories and rules.
    fit_intercept : bool, default=True
        Whether to add the constant feature.
    resolution : Resolution, optional
        How finely columns are spread; linear learners choose it from public numbers. Without it the encoding is that of
        version 0.1, which kernels still read.

    Attributes
    ----------
    dimension : int
        Number of features.
    feature_names : list of str
        One name per feature.
    norm_bound : float
        1.0: no row is longer, in exact arithmetic.
    row_bound : float
        1.0: nor is a row without the constant feature.

    Examples
    --------
    >>> schema = {
    ...     "name": "clinic",
    ...     "columns": {"age": {"type": "number", "lower": 0, "upper": 120, "encoding": "linear"}},
    ... }
    >>> SchemaEncoder(schema).encode({"age": [60, 10**9]}).round(4).tolist()
    [[0.0, 1.0], [0.7071, 0.7071]]
    """

    norm_bound = 1.0
    row_bound = 1.0

    def __init__(
        self, schema: SchemaLike, *, fit_intercept: bool = True, resolution: Resolution | None = None
    ) -> None:
        self.schema = schema = as_schema(schema)
        self.fit_intercept = fit_intercept
        self.resolution = resolution
        self._resolved = None if resolution is None else ResolvedRows(schema, resolution, fit_intercept)
        self._groups = [group_of(name, column) for name, column in schema.columns.items()]
        if self._resolved is None:
            self.dimension = sum(group.width for group in self._groups) + fit_intercept
        else:
            self.dimension = self._resolved.dimension

    @cached_property
    def feature_names(self) -> list[str]:
        if self._resolved is not None:
            return self._resolved.feature_names
        names = [name for group in self._groups for name in group.feature_names]
        return [*names, "intercept"] if self.fit_intercept else names

    @property
    def feature_columns(self) -> list[tuple[str, ...]]:
        """The columns that each feature is about: one, two of a pair, none of the intercept."""
        if self._resolved is not None:
            return self._resolved.feature_columns
        columns = [group.columns for group in self._groups for _ in range(group.width)]
        return [*columns, ()] if self.fit_intercept else columns

    def encode(self, data: Any, *, may_be_empty: bool = False) -> Matrix:
        """Encode rows; each result depends on its own row and the schema only.

        Parameters
        ----------
        data : pandas, polars or pyarrow table, dict of arrays, 2-D array, or RowSource of tables
            The rows. Columns that the schema does not list are not read; an array has the
            schema's columns in its order.
        may_be_empty : bool, default=False
            Whether a table without rows is encoded, too.

        Returns
        -------
        array of shape (n, dimension), or CSR array if the schema has text columns or there is a resolution
        """
        coded = any(map(self.schema.file.codes_of, self.schema.columns))  # codes for gaps are no plain cells
        row = None if coded else single_row(data, list(self.schema.columns))
        if row is not None:
            return self.expand({group.name: group.cell(row[group.name]) for group in self._groups})
        rows = self.encoded(data)
        if len(rows) == 0 and not may_be_empty:
            raise DataError("the table has no rows: give at least one")
        return rows.in_memory()

    def no_rows(self) -> Matrix:
        """A matrix of the kind that `encode` returns, without rows."""
        shape = (0, self.dimension)
        return sparse.csr_array(shape) if self.is_sparse else np.empty(shape)

    def encoded(self, data: Any) -> EncodedRows:
        """The same, block by block and only when asked for."""
        source = as_source(data, list(self.schema.columns))
        return EncodedRows(
            source, lambda block: self.expand(self.cells(block)), self.dimension, self.is_sparse
        )

    def expanded(self, cells: PackedCells) -> EncodedRows:
        """The vectors of rows whose cells have been read."""
        tables = self._tables()
        if tables is not None and not tables.pay_for(cells.hardly_repeated()):
            tables = None
        return EncodedRows(cells, self.expand, self.dimension, self.is_sparse, tables)

    def _tables(self) -> LookUps | None:
        """Partitions that a worker has, and folds of a search, share them."""
        if self._resolved is None:
            return None
        key = self.schema.digest, self.resolution, self.fit_intercept
        tables = _in_use.get(key)
        if tables is None and (tables := self._resolved.tables()) is not None:
            _in_use[key] = tables
        return tables

    @property
    def is_sparse(self) -> bool:
        """Whether rows are CSR."""
        return self._resolved is not None or not all(isinstance(group, DenseGroup) for group in self._groups)

    @property
    def row_bytes(self) -> int:
        """About how much memory an encoded row takes."""
        return 12 * self._resolved.slots if self._resolved is not None else 8 * self.dimension

    def cells(self, block: Any) -> dict[str, Any]:
        """Touch the data: each column's cells, checked, in the few numbers that its features follow from."""
        table = read_block(block, list(self.schema.columns), self.schema.file)
        return {group.name: group.cells(table.column(group.name)) for group in self._groups}

    def expand(self, cells: Mapping[str, Any]) -> Matrix:
        """The vectors of some rows' cells; each depends on its own row's."""
        if self._resolved is not None:
            return self._resolved.expand(cells)
        return self._expand_sparse(cells) if self.is_sparse else self._expand_dense(cells, self._groups)

    def _expand_dense(self, cells: Mapping[str, Any], groups: Sequence[Any]) -> NDArray[np.float64]:
        places = np.cumsum([0, *(group.width for group in groups)])
        rows = np.empty((number_of_rows(cells), self.dimension))
        rows[:, places[-1] :] = 1.0  # the intercept, if there is one
        for part in blocks(len(rows)):
            for group, start, stop in zip(groups, places[:-1], places[1:], strict=True):
                group.expand(cells[group.name][part], rows[part, start:stop])
            rescale_dense(rows[part])
        return rows

    def _expand_sparse(self, cells: Mapping[str, Any]) -> sparse.csr_array:
        parts = [_in_sparse_form(group, cells[group.name]) for group in self._groups]
        if self.fit_intercept:
            parts.append(sparse.csr_array(np.ones((number_of_rows(cells), 1))))
        rows = sparse.csr_array(sparse.hstack(parts, format="csr"))
        rescale_sparse(rows)
        return rows

    def encode_labels(self, values: Any) -> NDArray[np.int64]:
        """Position of each label in the schema's classes; UNKNOWN where the schema has ``unknown: zero`` for it."""
        target = self._target()
        label = f"target {target.name!r}"
        if not target.classes:
            raise SchemaError(f"{label} is a number: list classes instead of bounds, or train a regression")
        places = codes(as_array(values, label), target.labels, label)
        if np.any(places == MISSING):
            raise DataError(f"{label} has missing labels: fill them in, or drop those rows ({ON_DROPPING})")
        if target.unknown == "refuse" and np.any(places == UNKNOWN):
            raise DataError(
                f"{label} has labels that the schema does not list: correct the rows or the list, "
                f"{SPELLINGS_OF_A_CLASS}, or set unknown: zero for it in the schema"
            )
        return np.where(places < 0, places, np.array(target.places)[places]) if target.merge else places

    def encode_targets(self, values: Any) -> NDArray[np.float64]:
        """Numbers to predict, clamped to the schema's bounds and scaled to [-1, 1]."""
        target = self._target()
        label = f"target {target.name!r}"
        if target.bounds is None:
            raise SchemaError(
                f"{label} has classes: state lower and upper instead of them, or train a classifier"
            )
        cells = numbers(as_array(values, label), label)
        if np.isnan(cells).any():
            raise DataError(f"{label} has missing cells: fill them in, or drop those rows ({ON_DROPPING})")
        return to_unit(cells, target.bounds)

    def _target(self) -> Target:
        if self.schema.target is None:
            raise SchemaError("the schema has no target: add target: with its name and its classes or bounds")
        return self.schema.target

    def person_weights(self, data: Any) -> tuple[NDArray[np.float64], int]:
        """Weight of each row and the number of persons; without a person column every row is a person."""
        name = self.schema.person
        if name is None:
            count = sum(block.num_rows for block in as_source(data, list(self.schema.columns)).blocks())
            return np.ones(count), count
        persons = joined(as_table(block, [name]) for block in as_source(data, [name]).blocks())
        return weights_of_persons(persons.column(0), name)


def weights_of_persons(column: Any, name: str) -> tuple[NDArray[np.float64], int]:
    """A person's m rows weigh 1/m each, so that every person weighs 1; and how many persons there are."""
    owner = owners(column, f"column {name!r}")
    rows_of = np.bincount(owner)
    return 1.0 / rows_of[owner], len(rows_of)


def _in_sparse_form(group: Group, cells: Any) -> sparse.csr_array:
    if not isinstance(group, DenseGroup):
        return sparse.csr_array(cells)
    features = np.empty((len(cells), group.width))
    group.expand(cells, features)
    return sparse.csr_array(features)

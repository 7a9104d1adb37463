"""Encode the rows and targets of a table under its schema: vectors of norm at most 1, and numbers in [-1, 1]."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from privlearn.arrays import Array
from privlearn.data.encoding.column_cells import MISSING, UNKNOWN, codes, numbers, owners
from privlearn.data.encoding.expansion import RowExpander
from privlearn.data.encoding.layout import FeatureLayout
from privlearn.data.encoding.lookup_rows import LookupTables, lookup_tables
from privlearn.data.encoding.packed_cells import PackedCells
from privlearn.data.encoding.readers import ColumnReader, reader_of, single_row
from privlearn.data.encoding.resolution import Resolution
from privlearn.data.encoding.rough_rows import rough_tables
from privlearn.data.schema.schema import SchemaLike, as_schema
from privlearn.data.schema.target import SPELLINGS_OF_A_CLASS, Target
from privlearn.data.sources.read_columns import read_block, read_column
from privlearn.data.sources.row_source import EncodedRows, Matrix, concatenate_tables
from privlearn.data.sources.schema_columns import rules_of
from privlearn.data.sources.table import as_array, as_source, as_table
from privlearn.errors import ON_DROPPING, DataError, SchemaError
from privlearn.imports import sparse

Bounds = tuple[float, float]

_shared_tables: WeakValueDictionary[Any, LookupTables] = WeakValueDictionary()
"""The look-up tables in use, by schema and settings: partitions of a worker and folds of a search share them."""


def to_unit(values: Array, bounds: Bounds) -> Array:
    """Clamp numbers to the bounds and scale them to [-1, 1]."""
    lower, upper = bounds
    share = (np.clip(values, lower, upper) - lower) / (upper - lower)
    return np.clip(2.0 * share - 1.0, -1.0, 1.0)


def from_unit(units: Array, bounds: Bounds, *, clamp: bool = True) -> Array:
    """Invert `to_unit`; units outside [-1, 1] become the bounds, unless numbers beyond them are requested."""
    lower, upper = bounds
    if not clamp:
        return np.asarray(lower + (upper - lower) * (units + 1.0) / 2.0)
    share = (np.clip(units, -1.0, 1.0) + 1.0) / 2.0
    return np.clip(lower + (upper - lower) * share, lower, upper)


class SchemaEncoder:
    """The map from raw rows to vectors that a schema determines; it has nothing to fit.

    Each column becomes groups of bounded features (feature_groups.py). The last feature is a constant 1, the intercept.
    Then each row is divided by its own norm. A resolution may add fine bins of columns and pairs of columns; rows are
    sparse then (layout.py, docs/explanation/resolution.md).

    Parameters
    ----------
    schema : Schema
        Bounds, categories and rules.
    fit_intercept : bool, default=True
        Whether to add the constant feature.
    resolution : Resolution, optional
        Numbers of knots and bins and shares of the norm, which linear learners choose from public numbers. Without
        bins and pairs, as by default, features are centred: kernels and learners from few records use this form.

    Attributes
    ----------
    layout : FeatureLayout
        The features, in order.
    dimension : int
        Number of features.
    feature_names : list of str
        One name per feature.
    norm_bound : float
        1.0: the bound of the rows' norms, in exact arithmetic.
    row_bound : float
        1.0: the bound without the constant feature.

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
        self.resolution = resolution = Resolution() if resolution is None else resolution
        self.columns = resolution.columns_of(schema)
        self.layout = FeatureLayout(schema, resolution, fit_intercept)
        self.dimension = self.layout.dimension

    @cached_property
    def _readers(self) -> list[ColumnReader]:  # late: a release is verified without reading a cell
        return [reader_of(name, column) for name, column in self.schema.columns.items()]

    @cached_property
    def _expander(self) -> RowExpander:
        return RowExpander(self.layout)

    @cached_property
    def feature_names(self) -> list[str]:
        return self.layout.feature_names

    @property
    def feature_columns(self) -> list[tuple[str, ...]]:
        """Return the columns that each feature depends on: one, two for a pair, none for the intercept."""
        return self.layout.feature_columns

    def encode(self, data: Any, *, may_be_empty: bool = False) -> Matrix:
        """Encode rows; each result depends on its own row and the schema only.

        Parameters
        ----------
        data : pandas, polars or pyarrow table, dict of arrays, 2-D array, or RowSource of tables
            The rows. Columns that are not in the schema are not read; an array must have the schema's columns in
            their order.
        may_be_empty : bool, default=False
            Whether to accept a table without rows.

        Returns
        -------
        array of shape (n, dimension), or CSR array if there are text columns, bins or pairs
        """
        is_plain = self.schema.file.reads_cells_plainly
        row = single_row(data, list(self.schema.columns)) if is_plain else None
        if row is not None:
            return self.expand({reader.name: reader.read_one(row[reader.name]) for reader in self._readers})
        rows = self.encode_lazily(data)
        if len(rows) == 0 and not may_be_empty:
            raise DataError("the table has no rows. Pass at least one.")
        return rows.in_memory()

    def no_rows(self) -> Matrix:
        """Return a matrix of the kind that `encode` returns, without rows."""
        shape = (0, self.dimension)
        return sparse.csr_array(shape) if self.is_sparse else np.empty(shape)

    def encode_lazily(self, data: Any) -> EncodedRows:
        """Return the rows as a source that encodes them block by block, in each pass."""
        source = as_source(data, list(self.schema.columns))
        return EncodedRows(
            source, lambda block: self.expand(self.cells(block)), self.dimension, self.is_sparse
        )

    def expand_lazily(self, cells: PackedCells) -> EncodedRows:
        """Return the rows of cells that have been read, with look-up tables where these make products faster."""
        tables = self._tables()
        if tables is not None and not tables.are_faster(cells.rarely_repeated()):
            tables = None
        rough = rough_tables(self.layout, cells)
        return EncodedRows(cells, self.expand, self.dimension, self.is_sparse, tables, rough)

    def _tables(self) -> LookupTables | None:
        key = self.schema.digest, self.resolution, self.fit_intercept
        tables = _shared_tables.get(key)
        if tables is None and (tables := lookup_tables(self.layout)) is not None:
            _shared_tables[key] = tables
        return tables

    @property
    def is_sparse(self) -> bool:
        """Return whether rows are in CSR form."""
        return self.layout.is_sparse

    @property
    def row_bytes(self) -> int:
        """Return about how much memory an encoded row takes."""
        return 8 * self.dimension if self.layout.is_centred else 12 * self.layout.entries_per_row

    def cells(self, block: Any) -> dict[str, Any]:
        """PRIVATE: read the cells of a block of rows, checked, as the numbers that determine their features."""
        table = read_block(block, list(self.schema.columns), self.schema)
        return {reader.name: reader.read(table.column(reader.name)) for reader in self._readers}

    def expand(self, cells: Mapping[str, Any]) -> Matrix:
        """Return the vectors of some rows' cells; each depends on its own row's cells only."""
        return self._expander.expand(cells)

    def encode_labels(self, values: Any) -> NDArray[np.int64]:
        """Return the index of each label's class; UNKNOWN for other labels if the schema has ``unknown: zero``."""
        target = self._target()
        label = f"target {target.name!r}"
        if not target.classes:
            raise SchemaError(f"{label} is a number. List classes instead of bounds, or train a regression.")
        indices = codes(self._target_cells(values, label), target.labels, label)
        if np.any(indices == MISSING):
            raise DataError(f"{label} has missing labels. Fill them in, or drop those rows ({ON_DROPPING})")
        if target.unknown == "refuse" and np.any(indices == UNKNOWN):
            raise DataError(
                f"{label} has labels that the schema does not list. Correct the rows or the list, "
                f"{SPELLINGS_OF_A_CLASS}, or set unknown: zero for it in the schema"
            )
        return (
            np.where(indices < 0, indices, np.array(target.class_indices)[indices])
            if target.merge
            else indices
        )

    def encode_targets(self, values: Any) -> NDArray[np.float64]:
        """Return the numbers to predict, clamped to the schema's bounds and scaled to [-1, 1]."""
        target = self._target()
        label = f"target {target.name!r}"
        if target.bounds is None:
            raise SchemaError(f"{label} has classes. State lower and upper instead, or train a classifier.")
        cells = numbers(self._target_cells(values, label), label)
        if np.isnan(cells).any():
            raise DataError(f"{label} has missing cells. Fill them in, or drop those rows ({ON_DROPPING})")
        return to_unit(cells, target.bounds)

    def _target_cells(self, values: Any, label: str) -> Any:
        """Return labels or numbers to predict, read by the rules of the schema's target."""
        return read_column(as_array(values, label), rules_of(self.schema, self._target().name), label)

    def _target(self) -> Target:
        if self.schema.target is None:
            raise SchemaError(
                "the schema has no target. Add target: with its name and its classes or bounds."
            )
        return self.schema.target

    def person_weights(self, data: Any) -> tuple[NDArray[np.float64], int]:
        """Return the weight of each row and the number of persons; without a person column each row is a person."""
        name = self.schema.person
        if name is None:
            count = sum(block.num_rows for block in as_source(data, list(self.schema.columns)).blocks())
            return np.ones(count), count
        persons = concatenate_tables(as_table(block, [name]) for block in as_source(data, [name]).blocks())
        return weights_of_persons(persons.column(0), name)


def weights_of_persons(column: Any, name: str) -> tuple[NDArray[np.float64], int]:
    """Return the weight of each row, 1/m for a person with m rows, and the number of persons."""
    owner = owners(column, f"column {name!r}")
    row_counts = np.bincount(owner)
    return 1.0 / row_counts[owner], len(row_counts)

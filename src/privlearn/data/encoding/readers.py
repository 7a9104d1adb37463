"""Read the cells of a schema's columns, check them, and return the few numbers that their features depend on.

A reader returns one array for n rows: positions in [0, 1] of an ordered column, NaN where a cell is missing; indices
into the list of a category's values, negative where there is none; or a CSR array of hashed words.

>>> import pyarrow as pa
>>> from privlearn.data import NumberColumn
>>> reader = reader_of("age", NumberColumn(lower=0, upper=100, missing="zero"))
>>> reader.read(pa.array([50, 120, None]))
array([0.5, 1. , nan])

The points of a session come one by one, and reading a table of one row through Arrow costs almost as much as reading a
thousand. `ColumnReader.read_one` therefore takes a shortcut for a cell of a plain Python type, with the same result.
"""

from __future__ import annotations

import datetime
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privlearn.arrays import Array
from privlearn.data.encoding.arrays import blocks
from privlearn.data.encoding.column_cells import MISSING, UNKNOWN, codes, days, numbers, texts
from privlearn.data.schema.cell_grammar import HOURS
from privlearn.data.schema.columns import (
    AnyColumn,
    CategoryColumn,
    DateColumn,
    NumberColumn,
    Ordered,
    OrdinalColumn,
    TextColumn,
)
from privlearn.data.schema.public import EXACT, Value
from privlearn.data.sources.table import as_array, safely
from privlearn.errors import ON_DROPPING, DataError
from privlearn.imports import pc, sparse

_EPOCH = datetime.date(1970, 1, 1)


class ColumnReader(ABC):
    """Reads one column of the schema.

    Attributes
    ----------
    name : str
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._label = f"column {name!r}"

    @abstractmethod
    def read(self, column: Any) -> Any:
        """PRIVATE: return the column's cells as the numbers that determine its features; refuse unreadable cells."""

    def read_one(self, cell: Any) -> Any:
        """PRIVATE: return what `read` returns for a column of one cell."""
        return self.read(as_array([cell], self._label))

    def _refuse(self, cells: NDArray[np.bool_], setting: str, rule: str) -> None:
        """Raise an error if there are missing or unknown cells and the schema's rule for them is to refuse."""
        if rule == "refuse" and cells.any():
            what = {"missing": "missing cells", "unknown": "values that the schema does not list"}[setting]
            raise DataError(
                f"{self._label} has {what}. "
                f"Correct those rows, or set {setting}: zero for it in the schema ({ON_DROPPING})"
            )


class OrderedReader(ColumnReader):
    """Reads a number, a date or a value of an ordered list as its position between the two ends."""

    def __init__(self, name: str, column: Ordered) -> None:
        super().__init__(name)
        self._column = column
        self._values = ValueIndex(column.values) if isinstance(column, OrdinalColumn) else None

    def read(self, column: Any) -> Array:
        return positions(self._column, self._numbers(column))

    def _numbers(self, cells: Any) -> Array:
        """Return the number, the day or the index of each cell; NaN where it is missing or unknown."""
        match self._column:
            case OrdinalColumn() as column:
                indices = codes(cells, column.values, self._label)
                self._refuse(indices == MISSING, "missing", column.missing)
                self._refuse(indices == UNKNOWN, "unknown", column.unknown)
                return np.where(indices < 0, np.nan, indices)
            case DateColumn():
                values = days(cells, self._label)
            case _:
                values = numbers(cells, self._label, reads_hours=self._column.period == HOURS)
        self._refuse(np.isnan(values), "missing", self._column.missing)
        return values

    def read_one(self, cell: Any) -> Array:
        plain: float | None = None
        if isinstance(self._column, NumberColumn):
            plain = plain_number(cell)
        elif self._values is not None:
            plain = self._values.find(cell)
        if plain is None:
            return np.asarray(super().read_one(cell))
        return positions(self._column, np.array([plain], dtype=np.float64))


class CategoryReader(ColumnReader):
    """Reads a category as its index in the public list; with ``unknown: other`` the last index is all others'."""

    def __init__(self, name: str, column: CategoryColumn) -> None:
        super().__init__(name)
        self._column, self._values = column, ValueIndex(column.values)

    def read(self, column: Any) -> NDArray[np.int64]:
        indices = codes(column, self._column.values, self._label)
        if self._column.unknown == "other":
            indices[indices == UNKNOWN] = len(self._column.values)
        self._refuse(indices == MISSING, "missing", self._column.missing)
        self._refuse(indices == UNKNOWN, "unknown", self._column.unknown)
        return indices

    def read_one(self, cell: Any) -> NDArray[np.int64]:
        index = self._values.find(cell)
        return np.asarray(super().read_one(cell)) if index is None else np.array([index])


class TextReader(ColumnReader):
    """Reads text as hashed words, each row of norm 1 (or 0); the hash is fixed, so nothing is learnt from data."""

    def __init__(self, name: str, column: TextColumn) -> None:
        super().__init__(name)
        self._column = column
        # Imported late: it is slow, and only texts need it.
        from sklearn.feature_extraction.text import HashingVectorizer

        self._hasher = HashingVectorizer(n_features=column.features, norm="l2", alternate_sign=True)

    def read(self, column: Any) -> sparse.csr_array:
        cells = texts(column, self._label)
        self._refuse(np.asarray(cells.is_null().to_numpy()), "missing", self._column.missing)
        if len(cells) == 0:  # the hasher refuses an empty list
            return sparse.csr_array((0, self._column.features))
        documents = pc.fill_null(cells, "")
        return safely(
            lambda: sparse.csr_array(self._hasher.transform(_one_by_one(documents))),
            f"{self._label} holds text that is not UTF-8. Convert it to UTF-8.",
        )


def reader_of(name: str, column: AnyColumn) -> ColumnReader:
    """Return the reader of a column of the schema."""
    match column:
        case CategoryColumn():
            return CategoryReader(name, column)
        case TextColumn():
            return TextReader(name, column)
        case _:
            return OrderedReader(name, column)


def _one_by_one(cells: Any) -> Iterator[str]:
    """Yield the texts, without creating Python objects of all of them at once."""
    for rows in blocks(len(cells)):
        yield from cells.slice(rows.start, rows.stop - rows.start).to_pylist()


def ends_of(column: Ordered) -> tuple[float, float]:
    """Return the two ends of a column's range; of dates in days since 1970, of a list its first and last index."""
    match column:
        case NumberColumn():
            return column.lower, column.upper
        case DateColumn():
            return float((column.lower - _EPOCH).days), float((column.upper - _EPOCH).days)
        case OrdinalColumn():
            return 0.0, float(len(column.values) - 1)


def positions(column: Ordered, values: Array) -> Array:
    """Clamp values to the ends and return where they lie between them: in [0, 1], or [0, 1) of a period; NaN stays."""
    lower, upper = ends_of(column)
    above, width = np.clip(values, lower, upper) - lower, upper - lower
    share: Array = above / width
    if isinstance(column, NumberColumn) and column.scale == "log":
        share = np.log1p(above) / np.log1p(width)
    if isinstance(column, NumberColumn) and column.period is not None:
        share = above / column.period
        share[share >= 1.0] = 0.0
    return np.clip(share, 0.0, 1.0)


def plain_number(cell: Any) -> float | None:
    """Return a number as `column_cells.numbers` reads it; None if it is missing, huge or not a plain number."""
    return float(cell) + 0.0 if type(cell) in (int, float) and -EXACT < cell < EXACT else None


class ValueIndex:
    """Finds a plain cell in a public list of values."""

    def __init__(self, values: Sequence[Value]) -> None:
        self._type = type(values[0])
        self._indices = {value: index for index, value in enumerate(values)}

    def find(self, cell: Any) -> int | None:
        """Return the index as `column_cells.codes` does; None for cells that are not listed in exactly this type."""
        return self._indices.get(cell) if type(cell) is self._type else None


def single_row(data: Any, columns: Sequence[str]) -> dict[str, Any] | None:
    """Return the cells of a mapping from names to lists of one cell each; None for any other table."""
    if not isinstance(data, Mapping) or not all(type(name) is str for name in data):
        return None
    if not all(name in data and type(data[name]) is list and len(data[name]) == 1 for name in columns):
        return None
    return {name: data[name][0] for name in columns}

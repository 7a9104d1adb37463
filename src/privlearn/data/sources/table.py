"""One Arrow table from whatever holds rows: pandas, polars, pyarrow, numpy; each cell read by itself."""

from __future__ import annotations

import datetime
import decimal
import math
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import chain
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from privlearn.data.sources.row_source import BatchRows, RowSource, TableRows
from privlearn.errors import DataError, MissingPart, did_you_mean
from privlearn.heavy import pa, pc

Result = TypeVar("Result")


def safely(convert: Callable[[], Result], message: str) -> Result:
    """Return ``convert()``, or raise ``DataError(message)`` that keeps nothing of the original error.

    The error is raised after the handler has ended, because an error raised inside it would carry the
    original one, quoted cell included, as its ``__context__``.
    """
    try:
        return convert()
    except (MemoryError, MissingPart):
        raise
    except Exception:
        pass  # whatever a reader raises may quote a cell
    raise DataError(message)


NUMBER, WHOLE, TRUTH, TEXT, MISSING_CELL, UNREADABLE, DAY = range(7)


@cache
def _fields() -> list[Any]:
    return [
        pa.field("number", pa.float64()),
        pa.field("whole", pa.int64()),
        pa.field("truth", pa.bool_()),
        pa.field("text", pa.large_string()),
        pa.field("missing", pa.null()),
        pa.field("unreadable", pa.null()),
        pa.field("day", pa.date32()),
    ]


@cache
def _mixed_type() -> Any:
    """One child for each kind of cell, null where a cell is of another kind."""
    return pa.sparse_union(_fields())


def is_mixed(kind: Any) -> bool:
    """Whether it is the type of what `mixed` makes."""
    return bool(kind == _mixed_type())


def mixed(cells: Iterable[Any]) -> Any:
    """Each cell by itself: text, true or false, a whole number or another, a date, missing, or unreadable."""
    read = [_read(cell) for cell in cells]
    kinds = np.array([kind for kind, _ in read], dtype=np.int8)
    children = [
        pa.array([value if kind == place else None for kind, value in read], field.type)
        for place, field in enumerate(_fields())
    ]
    return pa.UnionArray.from_sparse(pa.array(kinds), children, [field.name for field in _fields()])


def kinds_of(column: Any) -> NDArray[np.int8]:
    """The kind of each cell of a mixed array."""
    return np.asarray(column.type_codes.to_numpy(), dtype=np.int8)


def in_one_type(column: Any, kinds: tuple[int, ...]) -> Any:
    """The cells of a mixed array as floats, text or truth values; ``None`` if one is not of those kinds."""
    if not np.isin(kinds_of(column), (*kinds, MISSING_CELL)).all():
        return None
    parts = [column.field(kind) for kind in kinds]
    if len(kinds) > 1:
        parts = [pc.coalesce(*(part.cast(pa.float64(), safe=False) for part in parts))]
    return pa.chunked_array(parts)


def _read(cell: Any) -> tuple[int, Any]:
    match cell:
        case str():
            return (TEXT, cell) if _is_utf8(cell) else (UNREADABLE, None)
        case bool() | np.bool_():
            return TRUTH, bool(cell)
        case int() | np.integer():
            return (WHOLE, int(cell)) if -(2**63) <= cell < 2**63 else (NUMBER, _nearest(cell))
        case float() | np.floating() | decimal.Decimal():
            number = _nearest(cell)
            return (MISSING_CELL, None) if math.isnan(number) else (NUMBER, number)
        case datetime.date() if not _is_missing(cell):  # a time is one, too
            return DAY, datetime.date(cell.year, cell.month, cell.day)
        case np.datetime64() if not np.isnat(cell):
            day = cell.astype("datetime64[D]").astype(object)
            return (DAY, day) if isinstance(day, datetime.date) else (UNREADABLE, None)
    return (MISSING_CELL, None) if _is_missing(cell) else (UNREADABLE, None)


def _nearest(number: Any) -> float:
    """The nearest float; infinity beyond all floats."""
    if isinstance(number, decimal.Decimal) and number.is_nan():
        return math.nan  # a signalling one would raise
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def _is_missing(cell: Any) -> bool:
    pandas = sys.modules.get("pandas")  # if it was never imported, none of its marks can occur
    if isinstance(cell, np.datetime64):
        return bool(np.isnat(cell))
    return cell is None or (pandas is not None and (cell is pandas.NA or cell is pandas.NaT))


def _is_utf8(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def as_table(data: Any, columns: Sequence[str] | None = None) -> pa.Table:
    """Convert pandas, polars, pyarrow, a dict of arrays or a 2-D numpy array to an Arrow table.

    Parameters
    ----------
    data : DataFrame, pyarrow.Table, pyarrow.RecordBatch, mapping or ndarray
        The rows; also anything with ``__arrow_c_stream__``.
    columns : sequence of str, optional
        The columns to keep, in this order. A numpy array has no names: its columns must be these.

    Raises
    ------
    DataError
        If a column is missing, given twice or cannot be converted. The message names the column, no value.
    """
    if isinstance(data, np.ndarray):
        return _from_numpy(data, columns)
    names, read = _columns_of(data)
    _refuse_repeated(names, columns)
    wanted = names if columns is None else list(columns)
    absent = [name for name in wanted if name not in names]
    if absent:
        header = names if any(name in names for name in wanted) else []  # or else they may be cells
        raise DataError(
            f"column {absent[0]!r} is missing from the table: the schema speaks of it, so add it to the table"
            f"{did_you_mean(absent[0], header)}"
        )
    places = {name: place for place, name in enumerate(names)}
    arrays = [_converted(partial(read, places[name]), f"column {name!r}") for name in wanted]
    if len({len(array) for array in arrays}) > 1:
        raise DataError("the columns differ in length: give every column one value per row")
    return pa.table(arrays, names=wanted)


def column_names(data: Any) -> list[str]:
    """The names of a table's columns; an array has none. Those of files were looked at when they were opened."""
    if isinstance(data, TableRows):
        return list(data.table.column_names)
    if isinstance(data, BatchRows):
        return data.column_names
    return [] if isinstance(data, np.ndarray | RowSource) else _columns_of(data)[0]


def as_source(data: Any, columns: Sequence[str] | None = None) -> RowSource[pa.Table]:
    """A source as it is, tables that an iterator hands out (a `pyarrow.RecordBatchReader`), or one table in memory.

    ``columns`` are the ones to keep of a table in memory; whoever reads blocks asks again.
    """
    if isinstance(data, RowSource):
        return data
    if isinstance(
        data, pa.RecordBatchReader
    ):  # is an iterator, too, but knows its columns before its first batch
        return BatchRows(chain([data.schema.empty_table()], map(as_table, data)))
    if isinstance(data, Iterator):
        return BatchRows(map(as_table, data))
    return TableRows(as_table(data, columns))


def as_array(values: Any, label: str) -> Any:
    """Convert one column, or a list of labels, to an Arrow array."""
    return _converted(lambda: values, label)


def _converted(read: Callable[[], Any], label: str) -> Any:
    message = f"{label} has a type that cannot be read: make it numbers, text or true/false"
    return safely(lambda: _arrow(read()), message)


def _arrow(values: Any) -> Any:
    """The cells in one Arrow type if all of them have it on their own, else each in its own."""
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    if isinstance(values, np.ndarray) and values.ndim != 1:
        raise ValueError("not one-dimensional")
    if _holds_objects(values):
        values = np.asarray(values, dtype=object) if hasattr(values, "dtype") else list(values)
        if not _is_uniform(values):
            return mixed(values)
    try:
        # a polars series has to_arrow
        return values.to_arrow() if hasattr(values, "to_arrow") else pa.array(values, from_pandas=True)
    except MemoryError:
        raise
    except Exception:
        pass  # a cell that Arrow cannot keep: an integer beyond its integers, text that is not UTF-8
    return mixed(values)


def _holds_objects(values: Any) -> bool:
    """Whether the cells, or the categories they are kept as, are Python objects, of which each has its own type."""
    kind = getattr(values, "dtype", np.dtype(object))
    return np.dtype(object) in (kind, getattr(getattr(kind, "categories", None), "dtype", None))


def _is_uniform(cells: Any) -> bool:
    """Whether Arrow finds the type that each cell has, or fails: NaN marks missing text, integers and truth values.

    Of times it would not: the first one's time zone would become that of all.
    """
    kinds = {*map(type, cells)} - {type(None)}
    if any(issubclass(kind, datetime.date | np.datetime64) for kind in kinds):
        return False
    return len(kinds) <= 1 or (len(kinds) == 2 and float in kinds and bool(kinds & {str, int, bool}))


def _columns_of(data: Any) -> tuple[list[str], Callable[[int], Any]]:
    """Names of the columns and a function that reads the column at a place."""
    pandas = sys.modules.get("pandas")  # if it was never imported, nobody can have handed us a frame of it
    if pandas is not None and isinstance(data, pandas.DataFrame):
        return [str(name) for name in data.columns], lambda place: data.iloc[:, place]
    polars = sys.modules.get("polars")
    if polars is not None and isinstance(data, polars.DataFrame):
        return list(data.columns), data.to_series
    if isinstance(data, Mapping):
        return [str(name) for name in data], list(data.values()).__getitem__
    if not isinstance(data, pa.Table | pa.RecordBatch):
        if not hasattr(data, "__arrow_c_stream__"):
            raise DataError(
                f"a {type(data).__name__} is not a table: give a pandas, polars or pyarrow table, a dict of "
                "arrays or a 2-D numpy array (arrays without a schema go with norm_bound and classes)"
            )
        data = safely(lambda: pa.table(data), "the table has a column whose type cannot be read")
    return list(data.column_names), data.column


def _from_numpy(data: np.ndarray[Any, Any], columns: Sequence[str] | None) -> pa.Table:
    if columns is None:
        raise DataError("a numpy array has no column names: give a table with named columns")
    if data.ndim != 2 or data.shape[1] != len(columns):
        raise DataError(
            f"the array has shape {data.shape}, the schema has {len(columns)} columns: "
            "give a 2-D array with the schema's columns in its order"
        )
    arrays = [as_array(data[:, place], f"column {name!r}") for place, name in enumerate(columns)]
    return pa.table(arrays, names=list(columns))


def _refuse_repeated(names: list[str], public: Sequence[str] | None) -> None:
    """Refuse equal names; spell out only public ones, for the names of a file without header are cells."""
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if not repeated:
        return
    known = [name for name in repeated if public is not None and name in public]
    if known:
        raise DataError(f"column {known[0]!r} occurs twice: rename or drop one")
    places = [place for place, name in enumerate(names) if name == repeated[0]]
    raise DataError(
        f"columns {places[0]} and {places[1]} (counted from 0) have the same name: rename or drop one"
    )

"""Convert tables in memory (pandas, polars, pyarrow, dicts, numpy) to Arrow tables, each cell by itself.

A column whose cells have several Python types becomes a *mixed* array: an Arrow union with one child per kind of cell
(`NUMBER`, `WHOLE`, ...). What a cell means then never depends on the other cells of its column.
"""

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
from privlearn.imports import pa

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
        pass  # the message of any reader may quote a cell
    raise DataError(message)


_NO_STREAM = (
    "the table cannot be read. Finish other queries of its connection, or convert columns of unusual types."
)

NUMBER, WHOLE, TRUTH, TEXT, MISSING_CELL, UNREADABLE, DAY, ARRAY_TEXT, HOUR = range(9)
"""Kinds of cells: the indices of a mixed array's children."""


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
        pa.field("array text", pa.large_string()),
        pa.field("hour", pa.time64("ns")),
    ]


@cache
def _union_type() -> Any:
    return pa.sparse_union(_fields())


def is_mixed(kind: Any) -> bool:
    """Return whether an Arrow type is that of mixed arrays."""
    return bool(kind == _union_type())


def is_text(kind: Any) -> bool:
    """Return whether an Arrow type is text."""
    types = pa.types
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def is_number(kind: Any) -> bool:
    """Return whether an Arrow type is a number: integer, float or decimal."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def encode_dictionary(column: Any) -> Any:
    """Return a column as one dictionary array: its distinct cells, in order of appearance, and each cell's index."""
    encoded = column.dictionary_encode()
    return encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded


def _mixed_array(cells: Iterable[Any]) -> Any:
    """Return cells by kind: text, true or false, whole number, other number, date, missing or unreadable."""
    values = [_read_cell(cell) for cell in cells]
    kinds = np.array([kind for kind, _ in values], dtype=np.int8)
    children = [
        pa.array([value if kind == child else None for kind, value in values], field.type)
        for child, field in enumerate(_fields())
    ]
    return pa.UnionArray.from_sparse(pa.array(kinds), children, [field.name for field in _fields()])


def _text_of_array(values: NDArray[Any]) -> Any:
    """Return a numpy array of text as mixed cells that are text and nothing else.

    numpy turns numbers into text if one cell is text, and rounds single precision on the way: a number in such an
    array may not be the cell that was given.
    """
    children = [pa.nulls(len(values), field.type) for field in _fields()]
    children[ARRAY_TEXT] = pa.array(values.tolist(), pa.large_string())
    kinds = pa.array(np.full(len(values), ARRAY_TEXT, dtype=np.int8))
    return pa.UnionArray.from_sparse(kinds, children, [field.name for field in _fields()])


def kinds_of(column: Any) -> NDArray[np.int8]:
    """Return the kind of each cell of a mixed array."""
    return np.asarray(column.type_codes.to_numpy(), dtype=np.int8)


def _read_cell(cell: Any) -> tuple[int, Any]:
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
        case datetime.date() if not _is_missing(cell):  # includes times
            return DAY, datetime.date(cell.year, cell.month, cell.day)
        case datetime.time():
            return HOUR, cell
        case np.datetime64() if not np.isnat(cell):
            day = cell.astype("datetime64[D]").astype(object)
            return (DAY, day) if isinstance(day, datetime.date) else (UNREADABLE, None)
    return (MISSING_CELL, None) if _is_missing(cell) else (UNREADABLE, None)


def _nearest(number: Any) -> float:
    """Return the nearest float; infinity beyond the largest one."""
    if isinstance(number, decimal.Decimal) and number.is_nan():
        return math.nan  # float() raises an error for a signalling NaN
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def _is_missing(cell: Any) -> bool:
    pandas = sys.modules.get("pandas")  # not imported: none of its values can occur
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
    """Convert pandas, polars, pyarrow, a dict of arrays, rows as dicts or a 2-D numpy array to an Arrow table.

    Parameters
    ----------
    data : DataFrame, pyarrow.Table, pyarrow.RecordBatch, mapping, list of mappings or ndarray
        The rows; also anything with ``__arrow_c_stream__``, and frames that narwhals supports.
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
    refuse_repeated_names(names, columns)
    requested = names if columns is None else list(columns)
    absent = [name for name in requested if name not in names]
    if absent:
        header = names if any(name in names for name in requested) else []  # otherwise names may be cells
        raise DataError(
            f"column {absent[0]!r} is missing from the table. Add it, or remove it from the schema"
            f"{did_you_mean(absent[0], header)}"
        )
    indices = {name: index for index, name in enumerate(names)}
    arrays = [_to_arrow(partial(read, indices[name]), f"column {name!r}") for name in requested]
    if len({len(array) for array in arrays}) > 1:
        raise DataError("the columns differ in length. Pass one value per row in every column.")
    return pa.table(arrays, names=requested)


def column_names(data: Any) -> list[str]:
    """Return the names of a table's columns; none for arrays, and for files, whose names are checked on opening."""
    if isinstance(data, TableRows):
        return list(data.table.column_names)
    if isinstance(data, BatchRows):
        return data.column_names
    return [] if isinstance(data, np.ndarray | RowSource) else _columns_of(data)[0]


def as_source(data: Any, columns: Sequence[str] | None = None) -> RowSource[pa.Table]:
    """Return a row source for a table, an iterator of tables, a `pyarrow.RecordBatchReader` or a row source.

    ``columns`` selects the columns of a table in memory; readers of blocks select them again.
    """
    if isinstance(data, RowSource):
        return data
    # A reader is an iterator, too, but its columns are known before its first batch.
    if isinstance(data, pa.RecordBatchReader):
        return BatchRows(chain([data.schema.empty_table()], map(as_table, data)))
    if isinstance(data, Iterator):
        return BatchRows(map(as_table, data))
    return TableRows(as_table(data, columns))


def as_array(values: Any, label: str) -> Any:
    """Convert one column, or a list of labels, to an Arrow array."""
    return _to_arrow(lambda: values, label)


def _to_arrow(read: Callable[[], Any], label: str) -> Any:
    message = f"{label} has a type that cannot be read. Convert it to numbers, text or true/false."
    column = safely(lambda: _arrow(read()), message)
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if is_text(kind):  # Arrow and Parquet do not check their text
        safely(
            lambda: column.validate(full=True), f"{label} holds text that is not UTF-8. Convert it to UTF-8."
        )
    return column


def _arrow(values: Any) -> Any:
    """Return one Arrow array if all cells have the same type, else a mixed array."""
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    if isinstance(values, np.ndarray) and values.ndim != 1:
        raise ValueError("not one-dimensional")
    if isinstance(values, str | bytes | set | frozenset | Mapping):
        raise ValueError("one cell, or cells without an order")
    if isinstance(values, np.ma.MaskedArray):
        values = _unmask(values)
    if isinstance(values, np.ndarray) and values.dtype.kind == "U":
        return _text_of_array(values)
    if _holds_objects(values):
        values = np.asarray(values, dtype=object) if hasattr(values, "dtype") else list(values)
        if not _is_uniform(values):
            return _mixed_array(values)
    try:
        # polars series have to_arrow
        return values.to_arrow() if hasattr(values, "to_arrow") else pa.array(values, from_pandas=True)
    except MemoryError:
        raise
    except Exception:
        pass  # a cell that Arrow cannot store: a huge integer, or text that is not UTF-8
    return _mixed_array(values)


def refuse_masked(X: Any) -> None:
    """Refuse an array with masked cells: numpy would return the hidden values, and arrays cannot have gaps."""
    if np.ma.isMaskedArray(X) and np.ma.getmaskarray(X).any():
        raise DataError("X has masked cells. Fill them in, or pass a table and a schema with missing: zero.")


def _unmask(values: Any) -> Any:
    """Return a masked array's cells, null where the mask is set; each cell in its own type."""
    if values.dtype.kind == "U" or not np.ma.getmaskarray(values).any():
        return values
    cells, mask = np.asarray(values.data), np.ma.getmaskarray(values)
    return [None if hidden else cell for cell, hidden in zip(cells, mask, strict=True)]


def _holds_objects(values: Any) -> bool:
    """Return whether the cells, or their categories, are Python objects, each with its own type."""
    kind = getattr(values, "dtype", np.dtype(object))
    return np.dtype(object) in (kind, getattr(getattr(kind, "categories", None), "dtype", None))


def _is_uniform(cells: Any) -> bool:
    """Return whether Arrow can convert the cells at once: one type, or one type and NaN for missing cells.

    Times are excluded, because Arrow would give all of them the time zone of the first.
    """
    kinds = {*map(type, cells)} - {type(None)}
    if any(issubclass(kind, datetime.date | np.datetime64) for kind in kinds):
        return False
    return len(kinds) <= 1 or (len(kinds) == 2 and float in kinds and bool(kinds & {str, int, bool}))


def _columns_of(data: Any) -> tuple[list[str], Callable[[int], Any]]:
    """Return the names of the columns and a function that reads the column at an index."""
    pandas = sys.modules.get("pandas")  # not imported: data cannot be one of its frames
    if pandas is not None and isinstance(data, pandas.DataFrame):
        return [str(name) for name in data.columns], lambda index: data.iloc[:, index]
    polars = sys.modules.get("polars")
    if polars is not None and isinstance(data, polars.DataFrame):
        return list(data.columns), data.to_series
    data = _by_column(data)
    if isinstance(data, Mapping):
        return [str(name) for name in data], list(data.values()).__getitem__
    if not isinstance(data, pa.Table | pa.RecordBatch):
        if not hasattr(data, "__arrow_c_stream__") or type(data).__module__.startswith("narwhals"):
            frame = safely(partial(_frame_of, data), "the rows cannot be fetched. Pass an Arrow table.")
            if frame is not None:
                return _columns_of(frame)
            refuse_lazy(data)
            raise DataError(
                f"a {type(data).__name__} is not a table. Pass a pandas, polars or pyarrow table, a dict of arrays, "
                "a list of dicts, or a 2-D numpy array (for arrays without a schema, set norm_bound and classes)."
            )
        data = safely(lambda: pa.table(data), _NO_STREAM)
    return list(data.column_names), data.column


def _by_column(data: Any) -> Any:
    """Return a list of dicts, one per row, as a dict of columns; a missing key is a missing cell."""
    if not isinstance(data, list) or not data or not all(isinstance(row, Mapping) for row in data):
        return data
    names = dict.fromkeys(chain.from_iterable(data))
    return {name: [row.get(name) for row in data] for name in names}


def refuse_lazy(data: Any) -> None:
    """Refuse frames of polars and Dask that are not computed yet, with the line to type."""
    method = {"LazyFrame": "collect", "DataFrame": "compute"}.get(type(data).__name__)
    if method is not None and hasattr(data, method):
        raise DataError(f"these rows are not computed yet. Pass X.{method}().")


def _frame_of(data: Any) -> Any:
    """Return a frame that narwhals supports (PySpark, Modin, DuckDB, its own) as pandas or Arrow; None for others.

    Frames like pandas stay such, so that each cell is still read by itself. Polars and Dask frames that are not
    computed yet remain the caller's to compute.
    """
    try:
        import narwhals.stable.v2 as narwhals  # scikit-learn requires it
    except ImportError:
        return None
    frame = narwhals.from_native(data, pass_through=True)
    if isinstance(frame, narwhals.LazyFrame):
        if frame.implementation.is_polars() or frame.implementation.is_dask():
            return None
        frame = frame.collect(backend="pyarrow")
    if not isinstance(frame, narwhals.DataFrame):
        return None
    return frame.to_pandas() if frame.implementation.is_pandas_like() else frame.to_arrow()


def _from_numpy(data: np.ndarray[Any, Any], columns: Sequence[str] | None) -> pa.Table:
    if columns is None:
        raise DataError("a numpy array has no column names. Pass a table with named columns.")
    if data.ndim != 2 or data.shape[1] != len(columns):
        raise DataError(
            f"the array has shape {data.shape}, the schema has {len(columns)} columns. "
            "Pass a 2-D array with the schema's columns in their order."
        )
    arrays = [as_array(data[:, index], f"column {name!r}") for index, name in enumerate(columns)]
    return pa.table(arrays, names=list(columns))


def refuse_repeated_names(names: list[str], public: Sequence[str] | None) -> None:
    """Refuse equal column names; quote only public ones, because the names of a file without a header are cells."""
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if not repeated:
        return
    known = [name for name in repeated if public is not None and name in public]
    if known:
        raise DataError(f"column {known[0]!r} occurs twice. Rename or drop one of them.")
    first, second, *_ = (index for index, name in enumerate(names) if name == repeated[0])
    raise DataError(f"columns {first} and {second} (counted from 0) have the same name. Rename one.")

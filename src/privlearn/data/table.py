"""Whatever holds rows and columns, as an Arrow table."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from privlearn.data.mixed import mixed
from privlearn.data.quiet import quietly
from privlearn.errors import DataError


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
        raise DataError(
            f"column {absent[0]!r} is missing from the table: the schema speaks of it, so add it to the table"
        )
    places = {name: place for place, name in enumerate(names)}
    arrays = [_converted(partial(read, places[name]), f"column {name!r}") for name in wanted]
    if len({len(array) for array in arrays}) > 1:
        raise DataError("the columns differ in length: give every column one value a row")
    return pa.table(arrays, names=wanted)


def column_names(data: Any) -> list[str]:
    """The names of a table's columns; an array has none."""
    return [] if isinstance(data, np.ndarray) else _columns_of(data)[0]


def as_array(values: Any, label: str) -> Any:
    """Convert one column, or a list of labels, to an Arrow array."""
    return _converted(lambda: values, label)


def _converted(read: Callable[[], Any], label: str) -> Any:
    message = f"{label} has a type that cannot be read: make it numbers, text or true/false"
    return quietly(lambda: _arrow(read()), message)


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
    """Whether Arrow finds the type that each cell has, or fails: NaN marks missing text, integers and truth values."""
    kinds = {*map(type, cells)} - {type(None)}
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
        data = quietly(lambda: pa.table(data), "the table has a column whose type cannot be read")
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

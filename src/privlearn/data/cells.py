"""One column of cells, whatever its Arrow type, as the plain array an encoder needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from privlearn.data.columns import Value
from privlearn.data.quiet import quietly
from privlearn.errors import DataError

UNKNOWN = -1
MISSING = -2

_KINDS = {str: "text", int: "whole numbers", bool: "true or false"}


def numbers(column: Any, label: str) -> NDArray[np.float64]:
    """Float64 values of a column of booleans, integers, floats or decimals; NaN where a cell is missing."""
    column = _plain(column)
    kind = column.type
    if not (_is_number(kind) or pa.types.is_boolean(kind) or pa.types.is_null(kind)):
        raise DataError(
            f"{label} holds {type_name(kind)} where the schema says number: convert it to numbers"
        )
    values = quietly(
        lambda: column.cast(pa.float64(), safe=False).to_numpy(), f"{label} cannot be converted to numbers"
    )
    return np.asarray(values, dtype=np.float64)


def codes(column: Any, values: Sequence[Value], label: str) -> NDArray[np.int64]:
    """Position of each cell in the public list ``values``; UNKNOWN or MISSING where it has none."""
    column = _widened(_plain(column), type(values[0]), label)
    if pa.types.is_null(column.type):
        return np.full(len(column), MISSING, dtype=np.int64)
    listed = [(place, value) for place, value in enumerate(values) if _fits(value, column.type)]
    places = np.array([place for place, _ in listed], dtype=np.int64)
    lookup = pa.array([value for _, value in listed], type=column.type)
    found = pc.fill_null(pc.index_in(column, value_set=lookup, skip_nulls=True), -1).to_numpy()
    result = np.append(places, UNKNOWN)[found]  # -1 picks the appended UNKNOWN
    result[_missing(column)] = MISSING
    return np.asarray(result, dtype=np.int64)


def value_type(kind: Any) -> type:
    """What a list of a column's values would hold, by the column's Arrow type: text unless it is something else."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    if pa.types.is_boolean(kind):
        return bool
    return int if _is_number(kind) else str


def tally(column: Any, label: str) -> tuple[list[Value], NDArray[np.int64]]:
    """The different values of a column of categories, and the number of cells that hold each.

    Missing cells are not counted. A column of floats counts its whole numbers: pandas stores integers with gaps so.
    """
    column = _whole_numbers(_plain(column))
    if not (_is_text(column.type) or pa.types.is_integer(column.type) or pa.types.is_boolean(column.type)):
        if not pa.types.is_null(column.type):
            raise DataError(
                f"{label} holds {type_name(column.type)}: categories are text, whole numbers or true/false"
            )
        return [], np.zeros(0, dtype=np.int64)
    counted = pc.value_counts(column.drop_null())
    values = quietly(
        lambda: counted.field("values").to_pylist(), f"{label} holds text that is not UTF-8: convert it"
    )
    return values, np.asarray(counted.field("counts").to_numpy(), dtype=np.int64)


def texts(column: Any, label: str) -> Any:
    """The column as large strings, null where a cell is missing."""
    column = _plain(column)
    if not (_is_text(column.type) or pa.types.is_null(column.type)):
        raise DataError(
            f"{label} holds {type_name(column.type)} where the schema says text: convert it to text"
        )
    return quietly(lambda: column.cast(pa.large_string()), f"{label} cannot be read as text")


def owners(column: Any, label: str) -> NDArray[np.int64]:
    """Number of the person, counted from 0, to whom each row belongs."""
    column = _plain(column)
    if not (_is_number(column.type) or _is_text(column.type)):
        raise DataError(f"{label} holds {type_name(column.type)}: persons are told apart by numbers or text")
    if _missing(column).any():
        raise DataError(f"{label} has missing cells: every row needs its person")
    return np.asarray(pc.dictionary_encode(column).combine_chunks().indices.to_numpy(), dtype=np.int64)


def type_name(kind: Any) -> str:
    """Name of an Arrow type; the names of a nested type's fields may be data, so they stay out."""
    return "nested values" if pa.types.is_nested(kind) else str(kind)


def _plain(column: Any) -> Any:
    """A chunked array without dictionary encoding (pandas and polars categoricals).

    A column without a single cell gets the null type: pandas reads it as floats, whatever it was meant to be.
    """
    if column.null_count == len(column):
        return pa.chunked_array([pa.nulls(len(column))])
    if isinstance(column, pa.Array):
        column = pa.chunked_array([column])
    if pa.types.is_dictionary(column.type):
        return pa.chunked_array([_decoded(chunk) for chunk in column.chunks])
    return column


def _decoded(chunk: Any) -> Any:
    """A dictionary array's cells, with polars' string views as the strings that Arrow can pick from."""
    if pa.types.is_string_view(chunk.type.value_type):
        return chunk.dictionary.cast(pa.large_string()).take(chunk.indices)
    return chunk.dictionary_decode()


def _widened(column: Any, wanted: type, label: str) -> Any:
    """The column in the widest type of its kind, if its cells can equal values of type ``wanted``."""
    kind = column.type
    if pa.types.is_null(kind):
        return column
    if wanted is str and _is_text(kind):
        return quietly(lambda: column.cast(pa.large_string()), f"{label} cannot be read as text")
    if wanted is bool and pa.types.is_boolean(kind):
        return column
    if wanted is int and pa.types.is_integer(kind):
        return column.cast(pa.int64() if pa.types.is_signed_integer(kind) else pa.uint64())
    if wanted is int and _is_number(kind):
        return column.cast(pa.float64(), safe=False)  # pandas stores integers with gaps as floats
    raise DataError(
        f"{label} holds {type_name(kind)} where the schema lists {_KINDS[wanted]}: "
        "convert it, or write the schema's list in the column's type (quotes make text of a number)"
    )


def _fits(value: Value, kind: Any) -> bool:
    """True if the value of a public list is exactly representable in the column's (widened) type."""
    if pa.types.is_floating(kind):
        return abs(int(value)) <= 2**53
    if pa.types.is_integer(kind):
        limits = np.iinfo(kind.to_pandas_dtype())
        return bool(limits.min <= int(value) <= limits.max)
    return True


def _whole_numbers(column: Any) -> Any:
    """Floats and decimals as the integers among them; other columns as they are."""
    if not _is_number(column.type) or pa.types.is_integer(column.type):
        return column
    cells = column.cast(pa.float64(), safe=False).to_numpy()
    whole = cells[np.isfinite(cells) & (np.abs(cells) <= 2**53)]
    return pa.chunked_array([pa.array(whole[whole == np.rint(whole)].astype(np.int64))])


def _missing(column: Any) -> NDArray[np.bool_]:
    return np.asarray(column.is_null(nan_is_null=True).to_numpy(), dtype=np.bool_)


def _is_number(kind: Any) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _is_text(kind: Any) -> bool:
    types = pa.types
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))

"""One column of cells, whatever its Arrow type, as the plain array an encoder needs.

A table's type for a column depends on all of its cells: pandas makes floats of integers if one is missing, numpy makes
text of numbers if one is text. So nothing here may depend on the type that a cell came in: equal cells give equal bits,
or the column is refused (docs/theory/encoding.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privlearn.data.schema.public import EXACT, Value
from privlearn.data.sources.table import (
    DAY,
    MISSING_CELL,
    NUMBER,
    TEXT,
    TRUTH,
    WHOLE,
    in_one_type,
    is_mixed,
    kinds_of,
    safely,
)
from privlearn.errors import DataError
from privlearn.heavy import pa, pc

UNKNOWN = -1
MISSING = -2

_IN_WORDS = {str: "text", int: "whole numbers", bool: "true or false"}
_KINDS: dict[type, tuple[int, ...]] = {str: (TEXT,), int: (NUMBER, WHOLE), bool: (TRUTH,)}
_SPELLED_WHOLE = r"^\s*(-?)\+?0*([0-9]+)(\.0*)?\s*$"
_SPELLED_ZERO = r"^-0$"
_SPELLED_DAY = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9:.,+Zz-]*)?$"


def numbers(column: Any, label: str) -> NDArray[np.float64]:
    """Float64 values of a column of booleans, integers, floats or decimals; NaN where a cell is missing.

    Each is the float nearest to its cell, so that the type in which a cell was kept does not show.
    """
    column = _plain(column)
    kind = column.type
    if is_mixed(kind):
        column = in_one_type(column, (NUMBER, WHOLE, TRUTH))
    if column is None or not (_is_number(column.type) or _is_truth(column.type) or _is_null(column.type)):
        raise DataError(
            f"{label} holds {type_name(kind)} where the schema says number: convert it to numbers"
        )
    return _floats(column, label)


def codes(column: Any, values: Sequence[Value], label: str) -> NDArray[np.int64]:
    """Position of each cell in the public list ``values``; UNKNOWN or MISSING where it has none."""
    column = _plain(column)
    if _is_null(column.type):
        return np.full(len(column), MISSING, dtype=np.int64)
    wanted = type(values[0])
    column = _comparable(column, wanted, label)
    # Listed numbers are below 2^53 in magnitude: no other number becomes the same float.
    lookup = pa.array([float(value) if wanted is int else value for value in values], type=column.type)
    found = pc.fill_null(pc.index_in(column, value_set=lookup, skip_nulls=True), UNKNOWN).to_numpy()
    result = np.array(found, dtype=np.int64)
    result[_missing(column)] = MISSING
    return result


def distinct(column: Any, wanted: type, label: str) -> tuple[list[Value], NDArray[np.int64]]:
    """The different values of a column of categories, text or whole numbers, and the place of each cell's among them.

    MISSING is the place of missing cells, and of numbers that no list may hold (fractions, 2^53 and beyond).
    """
    column = _plain(column)
    if _is_null(column.type):
        return [], np.full(len(column), MISSING, dtype=np.int64)
    column = _comparable(column, wanted, label)
    encoded = pc.dictionary_encode(_listable(column) if wanted is int else column)
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    values = safely(encoded.dictionary.to_pylist, f"{label} holds text that is not UTF-8: convert it")
    return values, np.asarray(pc.fill_null(encoded.indices, MISSING).to_numpy(), dtype=np.int64)


def days(column: Any, label: str) -> NDArray[np.float64]:
    """Days since 1970-01-01 of a column of dates, times or text such as 2020-01-31; NaN where a cell is missing.

    Of a time only the day counts, as it is written or, with a time zone, as that zone's clocks have it.
    """
    column = _plain(column)
    kind = column.type
    if is_mixed(kind):
        column = _mixed_days(column)
    elif _is_text(kind):
        column = _spelled_days(column)
    elif pa.types.is_timestamp(kind):
        local = column if kind.tz is None else pc.local_timestamp(column)
        column = pc.floor_temporal(local, unit="day").cast(pa.date32(), safe=False)
    if column is None or not (pa.types.is_date(column.type) or _is_null(column.type)):
        raise DataError(
            f"{label} holds {type_name(kind)} where the schema says date: convert it to dates, or to text such as "
            "2020-01-31"
        )
    if isinstance(column, pa.Array):
        column = pa.chunked_array([column])
    counted = safely(
        lambda: column.cast(pa.date32(), safe=False).cast(pa.int32()).cast(pa.float64()).to_numpy(),
        f"{label} cannot be converted to dates",
    )
    return np.asarray(counted, dtype=np.float64)


def texts(column: Any, label: str) -> Any:
    """The column as large strings, null where a cell is missing."""
    column = _plain(column)
    kind = column.type
    if is_mixed(kind):
        column = in_one_type(column, (TEXT,))
    if column is None or not (_is_text(column.type) or _is_null(column.type)):
        raise DataError(f"{label} holds {type_name(kind)} where the schema says text: convert it to text")
    return safely(lambda: column.cast(pa.large_string()), f"{label} cannot be read as text")


def owners(column: Any, label: str) -> NDArray[np.int64]:
    """Number of the person, counted from 0, to whom each row belongs."""
    return people(column, label)[0]


def people(column: Any, label: str) -> tuple[NDArray[np.int64], list[str]]:
    """Number of each row's person, in the order of their first rows, and each person's identifier as text.

    Whole numbers are one person's if they are equal, however they are kept or spelled: 7, 7.0, "7" and "007". A person
    whose identifier was read in two ways must not weigh twice.
    """
    if len(column) == 0:
        return np.empty(0, dtype=np.int64), []
    column = _plain(column)
    if _missing(column).any():
        raise DataError(f"{label} has missing cells: every row needs its person")
    if pa.types.is_integer(column.type):
        person, numbers = _numbered(column)
        return person, [str(number) for number in numbers.to_pylist()]
    place, spellings = _numbered(_spelled(column, label))
    whole = pc.replace_substring_regex(spellings, _SPELLED_WHOLE, r"\1\2")
    person, names = _numbered(pc.replace_substring_regex(whole, _SPELLED_ZERO, "0"))
    return person[place], names.to_pylist()


def type_name(kind: Any) -> str:
    """Name of an Arrow type; the names of a nested type's fields may be data, so they stay out."""
    if is_mixed(kind):
        return "cells of several types"
    return "nested values" if pa.types.is_nested(kind) else str(kind)


def _plain(column: Any) -> Any:
    """One chunked array without dictionary encoding (pandas and polars categoricals), or one mixed array.

    A column without a single cell gets the null type: pandas reads it as floats, whatever it was meant to be.
    """
    if isinstance(column, pa.Array):
        column = pa.chunked_array([column])
    if is_mixed(column.type):
        return column.combine_chunks()
    if pa.types.is_dictionary(column.type):
        column = pa.chunked_array([_decoded(chunk) for chunk in column.chunks])
    if column.null_count == len(column) or (pa.types.is_floating(column.type) and _missing(column).all()):
        return pa.chunked_array([pa.nulls(len(column))])
    return column


def _decoded(chunk: Any) -> Any:
    """A dictionary array's cells, with polars' string views as the strings that Arrow can pick from."""
    if pa.types.is_string_view(chunk.type.value_type):
        return chunk.dictionary.cast(pa.large_string()).take(chunk.indices)
    return chunk.dictionary_decode()


def _spelled_days(column: Any) -> Any:
    """Text as dates; ``None`` if a cell is no such text."""
    shape = pc.match_substring_regex(column, _SPELLED_DAY)
    if not pc.all(pc.fill_null(shape, True)).as_py():
        return None
    spelled = pc.utf8_slice_codeunits(column, 0, 10)
    found = pc.strptime(spelled, "%Y-%m-%d", "s", error_is_null=True)
    same = pc.equal(pc.strftime(found, "%Y-%m-%d"), spelled.cast(pa.string()))  # there is no 30 February
    if found.null_count != column.null_count or not pc.all(pc.fill_null(same, True)).as_py():
        return None
    return found.cast(pa.date32())


def _mixed_days(column: Any) -> Any:
    """Dates, and text that spells them; ``None`` if a cell is neither."""
    if not np.isin(kinds_of(column), (DAY, TEXT, MISSING_CELL)).all():
        return None
    spelled = _spelled_days(column.field(TEXT))
    return None if spelled is None else pc.coalesce(column.field(DAY), spelled)


def _comparable(column: Any, wanted: type, label: str) -> Any:
    """The column as large strings, truth values or floats, if its cells can equal values of type ``wanted``."""
    kind = column.type
    if is_mixed(kind):
        column = in_one_type(column, _KINDS[wanted])
    if column is not None and wanted is str and _is_text(column.type):
        return safely(lambda: column.cast(pa.large_string()), f"{label} cannot be read as text")
    if column is not None and wanted is bool and _is_truth(column.type):
        return column
    if column is not None and wanted is int and _is_number(column.type):
        return pa.chunked_array([_floats(column, label)])
    raise DataError(
        f"{label} holds {type_name(kind)} where the schema lists {_IN_WORDS[wanted]}: "
        "convert it, or write the schema's list in the column's type (quotes make text of a number; "
        "`buy whole numbers` buys a list of them)"
    )


def _floats(column: Any, label: str) -> NDArray[np.float64]:
    """The nearest floats. Arrow's own way from decimals rounds by the column's scale, the way over text does not."""
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.string())
    values = safely(
        lambda: column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False),
        f"{label} cannot be converted to numbers",
    )
    return np.asarray(values, dtype=np.float64) + 0.0  # only some types know -0.0


def _listable(column: Any) -> Any:
    """The whole numbers below 2^53 in magnitude among floats, as integers; null for the others."""
    cells = column.to_numpy()
    listable = (np.abs(cells) < EXACT) & (cells == np.rint(cells))  # not NaN
    return pa.array(np.where(listable, cells, 0.0).astype(np.int64), mask=~listable)


def _spelled(column: Any, label: str) -> Any:
    """Identifiers of persons as text."""
    kind = column.type
    if _is_text(kind):
        return safely(lambda: column.cast(pa.large_string()), f"{label} cannot be read as text")
    if is_mixed(kind) and np.isin(kinds_of(column), (NUMBER, WHOLE, TEXT)).all():
        parts = (column.field(TEXT), column.field(WHOLE).cast(pa.large_string()))
        return pc.coalesce(*parts, _digits(column.field(NUMBER), label))
    if _is_number(kind):
        return _digits(column, label)
    raise DataError(f"{label} holds {type_name(kind)}: persons are told apart by whole numbers or text")


def _digits(column: Any, label: str) -> Any:
    """Floats or decimals, null where there are none, as the text of whole numbers."""
    values = _floats(column, label)
    given = ~np.isnan(values)
    if not np.all((np.abs(values[given]) < EXACT) & (values[given] == np.rint(values[given]))):
        raise DataError(
            f"{label} holds fractions, or numbers of 2^53 and beyond that are not kept as integers: tell persons "
            "apart by text or by integers"
        )
    whole = pa.array(np.where(given, values, 0.0).astype(np.int64), mask=~given)
    return whole.cast(pa.large_string())


def _numbered(column: Any) -> tuple[NDArray[np.int64], Any]:
    """Number of each cell among the different ones, and these, in the order in which they occur."""
    encoded = pc.dictionary_encode(column)
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    return np.asarray(encoded.indices.to_numpy(), dtype=np.int64), encoded.dictionary


def _missing(column: Any) -> NDArray[np.bool_]:
    if is_mixed(column.type):
        return np.equal(kinds_of(column), MISSING_CELL)
    return np.asarray(column.is_null(nan_is_null=True).to_numpy(zero_copy_only=False), dtype=np.bool_)


def _is_number(kind: Any) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _is_text(kind: Any) -> bool:
    types = pa.types
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _is_truth(kind: Any) -> bool:
    return bool(pa.types.is_boolean(kind))


def _is_null(kind: Any) -> bool:
    return bool(pa.types.is_null(kind))

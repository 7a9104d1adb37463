"""Convert one column of any Arrow type to the plain array that an encoder needs.

The type of a table's column depends on all of its cells: pandas turns integers into floats if one is missing, numpy
turns numbers into text if one is text. Nothing here may depend on that type: equal cells give equal bits, or the column
is refused (docs/theory/encoding.md). `sources.read_columns` reads the cells.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privlearn.data.schema.cell_grammar import CellRules
from privlearn.data.schema.public import EXACT, Value
from privlearn.data.sources.read_columns import floats, read_column, type_name
from privlearn.data.sources.schema_columns import kind_of_list
from privlearn.data.sources.table import (
    MISSING_CELL,
    NUMBER,
    TEXT,
    WHOLE,
    encode_dictionary,
    is_mixed,
    is_number,
    is_text,
    kinds_of,
    safely,
)
from privlearn.errors import DataError
from privlearn.imports import pa, pc

UNKNOWN = -1
MISSING = -2

_SPELLED_WHOLE = r"^\s*(-?)\+?0*([0-9]+)(\.0*)?\s*$"
_SPELLED_ZERO = r"^-0$"
_SPELLED_POWER = r"^\s*[+-]?[0-9]+(\.[0-9]*)?[eE][+-]?[0-9]{1,3}\s*$"


def numbers(column: Any, label: str, reads_hours: bool = False) -> NDArray[np.float64]:
    """Return the nearest float64 of each cell of a column of numbers; NaN where a cell is missing."""
    return _array(read_column(column, CellRules("number", reads_hours=reads_hours), label))


def _array(column: Any) -> NDArray[np.float64]:
    return np.asarray(column.to_numpy(), dtype=np.float64)


def codes(column: Any, values: Sequence[Value], label: str) -> NDArray[np.int64]:
    """Return the index of each cell in the public list ``values``; UNKNOWN or MISSING for other cells."""
    kind = kind_of_list(values[0])
    listed: Any = tuple(values) if kind == "text" else ()
    column = read_column(column, CellRules(kind, listed=listed), label)
    # Listed numbers are below 2^53 in magnitude: no other number becomes the same float.
    is_whole = pa.types.is_floating(column.type)
    lookup = pa.array([float(value) if is_whole else value for value in values], type=column.type)
    indices = pc.fill_null(pc.index_in(column, value_set=lookup, skip_nulls=True), UNKNOWN).to_numpy()
    result = np.array(indices, dtype=np.int64)
    result[np.asarray(column.is_null().to_numpy(zero_copy_only=False), dtype=np.bool_)] = MISSING
    return result


def distinct(column: Any, type_: type, label: str) -> tuple[list[Value], NDArray[np.int64]]:
    """Return the distinct values of a column of text (str) or whole numbers (int), and each cell's index among them.

    MISSING is the index of missing cells, and of numbers that no list may have (fractions, 2^53 and beyond).
    """
    column = read_column(column, CellRules(kind_of_list(type_())), label)
    encoded = encode_dictionary(_listable(column) if type_ is int else column)
    values = safely(
        encoded.dictionary.to_pylist, f"{label} holds text that is not UTF-8. Convert it to UTF-8."
    )
    return values, np.asarray(pc.fill_null(encoded.indices, MISSING).to_numpy(), dtype=np.int64)


def days(column: Any, label: str) -> NDArray[np.float64]:
    """Return the days since 1970-01-01 of dates, times or text such as 2020-01-31; NaN where a cell is missing.

    A time becomes its day, in its own time zone.
    """
    column = read_column(column, CellRules("date"), label)
    return _array(column.cast(pa.int32()).cast(pa.float64()))


def texts(column: Any, label: str) -> Any:
    """Return the column as large strings, null where a cell is missing."""
    return read_column(column, CellRules("text"), label)


def owners(column: Any, label: str) -> NDArray[np.int64]:
    """Return the number of each row's person, counted from 0."""
    return people(column, label)[0]


def people(column: Any, label: str) -> tuple[NDArray[np.int64], list[str]]:
    """Return the number of each row's person, in the order of their first rows, and each person's identifier as text.

    Texts are compared in Unicode's form NFKC, without invisible characters and blanks around them. Equal whole numbers
    are one person, in any type, digits and spelling: 7, 7.0, "7", "007" and "7e0". A person whose identifier is written
    in two ways must not weigh twice. Capital letters do distinguish persons.

    >>> people(pa.array(["1e3", "1000", "a", " 1000.0", "\uff11000"]), "column 'id'")
    (array([0, 0, 1, 0, 0]), ['1000', 'a'])
    """
    if len(column) == 0:
        return np.empty(0, dtype=np.int64), []
    column = read_column(column, CellRules("any"), label)
    if _missing(column).any():
        raise DataError(f"{label} has missing cells. Fill them in: every row needs its person.")
    if pa.types.is_integer(column.type):
        person, numbers = _number_distinct(column)
        return person, [str(number) for number in numbers.to_pylist()]
    spelling, spellings = _number_distinct(_as_text(column, label))
    spellings = _without_powers(_normalised(spellings))
    whole = pc.replace_substring_regex(spellings, _SPELLED_WHOLE, r"\1\2")
    person, names = _number_distinct(pc.replace_substring_regex(whole, _SPELLED_ZERO, "0"))
    return person[spelling], names.to_pylist()


def _normalised(spellings: Any) -> Any:
    """Return texts in Unicode's form NFKC, with ASCII digits, without invisible characters and blanks around them."""
    if not pc.all(pc.string_is_ascii(spellings)).as_py():
        spellings = pa.array([_plain_text(text) for text in spellings.to_pylist()], type=spellings.type)
    return pc.utf8_trim_whitespace(spellings)


def _plain_text(text: str) -> str:
    signs = (sign for sign in unicodedata.normalize("NFKC", text) if unicodedata.category(sign) != "Cf")
    return "".join(str(unicodedata.decimal(sign)) if sign.isdecimal() else sign for sign in signs)


def _without_powers(spellings: Any) -> Any:
    """Return texts with whole numbers in scientific notation written out: "1e3" as "1000"."""
    powers = pc.match_substring_regex(spellings, _SPELLED_POWER).to_numpy(zero_copy_only=False)
    if not powers.any():
        return spellings
    texts = spellings.to_pylist()
    for index in np.flatnonzero(powers):
        # Not a float: 1e23 as a float is a different whole number.
        number = Decimal(texts[index].strip())
        if number == number.to_integral_value():
            texts[index] = str(int(number))
    return pa.array(texts, type=spellings.type)


def _listable(column: Any) -> Any:
    """Return the whole numbers below 2^53 in magnitude among floats as integers; null for the others."""
    cells = column.to_numpy()
    listable = (np.abs(cells) < EXACT) & (cells == np.rint(cells))  # not NaN
    return pa.array(np.where(listable, cells, 0.0).astype(np.int64), mask=~listable)


def _as_text(column: Any, label: str) -> Any:
    """Return identifiers of persons as text."""
    kind = column.type
    if is_text(kind):
        return safely(lambda: column.cast(pa.large_string()), f"{label} cannot be read as text. Convert it.")
    if is_mixed(kind) and np.isin(kinds_of(column), (NUMBER, WHOLE, TEXT)).all():
        parts = (column.field(TEXT), column.field(WHOLE).cast(pa.large_string()))
        return pc.coalesce(*parts, _digits(column.field(NUMBER), label))
    if is_number(kind):
        return _digits(column, label)
    raise DataError(
        f"{label} holds {type_name(kind)}, which cannot identify persons. Use whole numbers or text."
    )


def _digits(column: Any, label: str) -> Any:
    """Return floats or decimals as the text of whole numbers; nulls stay."""
    values = np.asarray(floats(column, label).to_numpy(zero_copy_only=False), dtype=np.float64)
    present = ~np.isnan(values)
    if not np.all((np.abs(values[present]) < EXACT) & (values[present] == np.rint(values[present]))):
        raise DataError(
            f"{label} holds fractions, or numbers of 2^53 and beyond that are not stored as integers. Identify persons "
            "by text or by integers."
        )
    whole = pa.array(np.where(present, values, 0.0).astype(np.int64), mask=~present)
    return whole.cast(pa.large_string())


def _number_distinct(column: Any) -> tuple[NDArray[np.int64], Any]:
    """Return the index of each cell among the distinct ones, and these, in order of appearance."""
    encoded = encode_dictionary(column)
    return np.asarray(encoded.indices.to_numpy(), dtype=np.int64), encoded.dictionary


def _missing(column: Any) -> NDArray[np.bool_]:
    if is_mixed(column.type):
        return np.equal(kinds_of(column), MISSING_CELL)
    return np.asarray(column.is_null(nan_is_null=True).to_numpy(zero_copy_only=False), dtype=np.bool_)

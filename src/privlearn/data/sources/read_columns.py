"""Apply the grammar of cells to whole columns, for every source: files, data frames and arrays.

A column becomes floats, truth values, dates or text, with nulls for gaps. Each cell is read by itself: its value does
not depend on the type of the column (docs/theory/encoding.md). One unreadable cell refuses the whole table.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from privlearn.data.schema import cell_grammar
from privlearn.data.schema.schema import Schema
from privlearn.data.sources.schema_columns import rules_of
from privlearn.data.sources.table import (
    ARRAY_TEXT,
    DAY,
    HOUR,
    MISSING_CELL,
    NUMBER,
    TEXT,
    TRUTH,
    UNREADABLE,
    WHOLE,
    as_table,
    encode_dictionary,
    is_mixed,
    is_number,
    is_text,
    kinds_of,
    safely,
)
from privlearn.errors import DataError
from privlearn.imports import pa, pc

_NAMES = {
    "number": "numbers",
    "whole": "whole numbers",
    "truth": "true or false",
    "date": "dates such as 2020-01-31",
    "text": "text",
}
_EXPECTED = {
    "number": "has numbers. Convert it to numbers",
    "whole": "lists whole numbers. {}",
    "truth": "lists true or false. {}",
    "date": "has dates. Convert it to dates, or to text such as 2020-01-31",
    "text": "has text. {}",
}
_NO_VALUE = (
    "holds cells that cannot be read: errors such as #DIV/0!, formulas that were never computed, merged cells, or "
    "objects other than numbers, dates and text. Correct or empty them"
)
_OTHER_LIST = (
    "Convert it, or write the schema's list in the column's type (quotes make text of a number; "
    "`estimate whole numbers` estimates a list of them)"
)
_INSTEAD = (
    "Correct them, or leave them empty and set missing: zero for the column in the schema. State codes for gaps, such "
    'as ?, there too: file: {missing: ["?"]}'
)


def read_block(data: Any, columns: Sequence[str], schema: Schema) -> pa.Table:
    """Return these columns of a table, each cell read by the rules of its column."""
    table = as_table(data, columns)
    read = [
        read_column(table.column(name), rules_of(schema, name), f"column {name!r}")
        for name in table.column_names
    ]
    return pa.table(read, names=table.column_names)


def read_column(column: Any, rules: cell_grammar.CellRules, label: str) -> Any:
    """Return a column as float64, bool, date32 or text, null where a cell is a gap; ``any`` keeps its type.

    Raises
    ------
    DataError
        If a cell is not a value of the column. The message quotes no cell.
    """
    column = plain_column(column)
    if rules.kind == "any":
        return _without_gaps(column, rules)
    if pa.types.is_null(column.type):
        return column.cast(_types()[rules.kind])
    read = _READERS[rules.kind]
    parts = [read(part, kind, rules, label) for kind, part in _parts(column)]
    if any(part is None for part in parts):
        if is_mixed(column.type) and (kinds_of(column) == UNREADABLE).any():
            raise DataError(f"{label} {_NO_VALUE}")
        raise DataError(_wrong_type(column.type, rules, label))
    cells = pc.coalesce(*parts) if len(parts) > 1 else parts[0]
    return pa.chunked_array([cells]) if isinstance(cells, pa.Array) else cells


@cache
def _types() -> dict[str, Any]:
    numbers = dict.fromkeys(("number", "whole"), pa.float64())
    return numbers | {"truth": pa.bool_(), "date": pa.date32(), "text": pa.large_string()}


def _wrong_type(kind: Any, rules: cell_grammar.CellRules, label: str) -> str:
    expected = _EXPECTED[rules.kind].format(_OTHER_LIST)
    expected = expected.replace("has text", "lists text") if rules.listed else expected
    return f"{label} holds {type_name(kind)} where the schema {expected}"


def plain_column(column: Any) -> Any:
    """Return one chunked array without dictionary encoding (pandas and polars categoricals), or one mixed array.

    A column of missing cells gets the null type, because pandas reads it as floats.
    """
    if isinstance(column, pa.Array):
        column = pa.chunked_array([column])
    if is_mixed(column.type):
        return column.combine_chunks()
    if pa.types.is_dictionary(column.type):
        column = pa.chunked_array([_decode(chunk) for chunk in column.chunks])
    if column.null_count == len(column) or (pa.types.is_floating(column.type) and _all_nan(column)):
        return pa.chunked_array([pa.nulls(len(column))])
    return column


def _all_nan(column: Any) -> bool:
    return bool(np.all(column.is_null(nan_is_null=True).to_numpy(zero_copy_only=False)))


def _decode(chunk: Any) -> Any:
    """Return a dictionary array's cells; polars' string views become strings first, since Arrow cannot take views."""
    if pa.types.is_string_view(chunk.type.value_type):
        return chunk.dictionary.cast(pa.large_string()).take(chunk.indices)
    return chunk.dictionary_decode()


def type_name(kind: Any) -> str:
    """Return the name of an Arrow type; for nested types without the names of fields, which may be data."""
    if is_mixed(kind):
        return "cells of several types"
    return "nested values" if pa.types.is_nested(kind) else str(kind)


def _parts(column: Any) -> list[tuple[int | None, Any]]:
    """Return a column by kinds of cells: each part holds the cells of one kind and nulls elsewhere."""
    type_ = column.type
    if is_mixed(type_):
        present = np.unique(kinds_of(column)).tolist()
        readable = [kind for kind in present if not pa.types.is_null(column.field(kind).type)]
        # As in a column of times alone, only a column of hours reads them.
        parts = [(None if kind == HOUR else kind, column.field(kind)) for kind in readable]
        unreadable = [(None, column)] if UNREADABLE in present else []
        return [*parts, *unreadable] or [(TEXT, pa.nulls(len(column), pa.large_string()))]
    if is_number(type_):
        return [(NUMBER, column)]
    if pa.types.is_boolean(type_):
        return [(TRUTH, column)]
    if pa.types.is_date(type_) or pa.types.is_timestamp(type_):
        return [(DAY, column)]
    return [(TEXT if is_text(type_) else None, column)]


def _numbers(part: Any, kind: int | None, rules: cell_grammar.CellRules, label: str) -> Any:
    """Return the cells of one kind as floats; None if the column cannot have such cells."""
    if kind == TRUTH and rules.kind == "number":
        return part.cast(pa.float64())
    if kind == TEXT:
        return _numbers_from_text(part, rules, label)
    if rules.reads_hours and pa.types.is_time(part.type):
        ticks = part.cast(pa.time64("ns")).cast(pa.int64()).cast(pa.float64())
        return pc.divide(pc.divide(ticks, 1e9), 3600.0)
    if kind not in (NUMBER, WHOLE):
        return None
    return _number_gaps(floats(part, label), rules)


def floats(column: Any, label: str) -> Any:
    """Return the nearest floats; decimals go through text, because Arrow would round them by the column's scale."""
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.string())
    return safely(
        lambda: column.cast(pa.float64(), safe=False),
        f"{label} cannot be converted to numbers. Correct its cells.",
    )


def _number_gaps(column: Any, rules: cell_grammar.CellRules) -> Any:
    """Return floats without NaN, -0 and the numbers that are codes for gaps."""
    # Adding 0 turns -0 into 0: equal numbers must have equal bits.
    column = pc.add(column, 0.0)
    gaps = pc.is_nan(column)
    if rules.gap_numbers:
        gaps = pc.or_(gaps, pc.is_in(column, pa.array(rules.gap_numbers, pa.float64())))
    return _with_nulls(column, gaps)


def _with_nulls(column: Any, gaps: Any) -> Any:
    if not pc.any(gaps).as_py():
        return column
    return pc.if_else(gaps, pa.scalar(None, column.type), column)


def _truths(part: Any, kind: int | None, rules: cell_grammar.CellRules, label: str) -> Any:
    if kind == TRUTH:
        return part
    numbers = _numbers(part, kind, rules, label)
    if numbers is None:
        return None
    if not pc.all(pc.is_in(numbers, pa.array([0.0, 1.0, None]))).as_py():
        raise _unreadable(rules, label)
    return pc.equal(numbers, 1.0)


def _days(part: Any, kind: int | None, rules: cell_grammar.CellRules, label: str) -> Any:
    """Return dates; a time becomes the day in its own time zone."""
    if kind in (TEXT, ARRAY_TEXT):
        return _day_gaps(_days_from_text(part, rules, label), rules)
    if kind != DAY:
        return None
    if pa.types.is_timestamp(part.type):
        part = safely(
            lambda: pc.floor_temporal(part if part.type.tz is None else pc.local_timestamp(part), unit="day"),
            f"{label} has times in an unknown time zone. Convert them to dates or to a known zone.",
        )
    wrong = f"{label} cannot be converted to dates. Correct its cells."
    return _day_gaps(safely(lambda: part.cast(pa.date32(), safe=False), wrong), rules)


def _day_gaps(column: Any, rules: cell_grammar.CellRules) -> Any:
    if not rules.gap_days:
        return column
    return _with_nulls(column, pc.is_in(column, pa.array(rules.gap_days, pa.int32()).cast(pa.date32())))


def _texts(part: Any, kind: int | None, rules: cell_grammar.CellRules, label: str) -> Any:
    return _strip(part, rules, label) if kind in (TEXT, ARRAY_TEXT) else None


def _strip(column: Any, rules: cell_grammar.CellRules, label: str) -> Any:
    """Return texts without gaps, and without blanks around them if the rules ignore blanks."""
    text = safely(lambda: column.cast(pa.large_string()), f"{label} cannot be read as text. Convert it.")
    if rules.strips:
        text = pc.utf8_trim(text, characters=cell_grammar.BLANKS)
    return _with_nulls(text, pc.is_in(text, pa.array(rules.gap_texts, pa.large_string())))


def _numbers_from_text(column: Any, rules: cell_grammar.CellRules, label: str) -> Any:
    """Return the numbers that texts spell; true and false count as 1 and 0, except in lists of whole numbers."""
    text = _strip(column, rules, label)
    numbers = _parse(text, rules)
    if numbers is not None:
        return _number_gaps(numbers, rules)
    gap = pa.scalar(None, pa.float64())
    zeros = pc.if_else(_matches(text, cell_grammar.FALSE), 0.0, gap)
    truths = pc.if_else(_matches(text, cell_grammar.TRUE), 1.0, zeros)
    if rules.reads_hours:
        truths = pc.coalesce(truths, _hours_of_text(text))
    numbers = _parse(_with_nulls(text, pc.is_valid(truths)), rules)
    if numbers is None or rules.kind == "whole":
        raise _unreadable(rules, label)
    return pc.coalesce(truths, _number_gaps(numbers, rules))


def _parse(text: Any, rules: cell_grammar.CellRules) -> Any:
    """Return the texts as floats; None if one is not a number by the grammar, which is stricter than Arrow's."""
    if rules.decimal != ".":
        if pc.any(pc.match_substring(text, ".")).as_py():
            return None
        text = pc.replace_substring(text, rules.decimal, ".")
    try:
        numbers = text.cast(pa.float64())
    except pa.ArrowException:
        return None
    odd = text.filter(pc.is_nan(numbers))  # Arrow reads nan(x) as NaN, too
    return numbers if pc.all(_matches(odd, cell_grammar.NOT_A_NUMBER)).as_py() is not False else None


def _hours_of_text(text: Any) -> Any:
    """Return the hours of times of day, null for other texts; each distinct text is parsed once."""
    encoded = encode_dictionary(text)
    spelled = [
        None if each is None else cell_grammar.parse_hours(each) for each in encoded.dictionary.to_pylist()
    ]
    return pa.array(spelled, pa.float64()).take(encoded.indices)


def _matches(text: Any, pattern: str) -> Any:
    return pc.match_substring_regex(text, f"\\A({pattern})\\z")


def _days_from_text(column: Any, rules: cell_grammar.CellRules, label: str) -> Any:
    """Return the days that texts begin with; each distinct text is parsed once."""
    encoded = encode_dictionary(_strip(column, rules, label))
    return _parse_days(encoded.dictionary, rules, label).take(encoded.indices)


def _parse_days(text: Any, rules: cell_grammar.CellRules, label: str) -> Any:
    for pattern, replacement in cell_grammar.day_steps(rules.days):
        text = pc.replace_substring_regex(text, pattern, replacement)
    day = pc.utf8_slice_codeunits(text, 0, 10)
    parsed = pc.strptime(day, "%Y-%m-%d", "s", error_is_null=True)
    same = pc.equal(pc.strftime(parsed, "%Y-%m-%d").cast(day.type), day)  # there is no 30 February
    same = pc.and_(same, pc.greater_equal(day, "0001"))  # and no year 0
    shaped = pc.and_(_matches(text, cell_grammar.DATE), pc.fill_null(same, False))
    if pc.all(pc.or_(shaped, pc.is_null(text))).as_py() is False:
        raise _unreadable(rules, label)
    return parsed.cast(pa.date32())


def _unreadable(rules: cell_grammar.CellRules, label: str) -> DataError:
    quotes = (
        " In a schema, quote yes and no: YAML reads them as true and false." if rules.kind == "truth" else ""
    )
    return DataError(f"{label} holds cells that are not {_NAMES[rules.kind]}.{quotes} {_INSTEAD}")


_READERS = {"number": _numbers, "whole": _numbers, "truth": _truths, "date": _days, "text": _texts}


def _without_gaps(column: Any, rules: cell_grammar.CellRules) -> Any:
    """Return a column of any type without gaps, in its type."""
    type_ = column.type
    if not is_mixed(type_):
        if pa.types.is_null(type_):
            return column
        ((kind, part),) = _parts(column)
        gaps = _gaps(part, kind, rules)
        if kind == TEXT and rules.strips:
            column = _strip(column, rules, "the column")
        return column if gaps is None else _with_nulls(column, gaps)
    if (kinds_of(column) == ARRAY_TEXT).all():
        return _without_gaps(pa.chunked_array([column.field(ARRAY_TEXT)]), rules)
    parts = [column.field(kind) for kind in range(type_.num_fields)]
    gaps_by_kind = [_gaps(parts[kind], kind, rules) for kind in (NUMBER, WHOLE, TEXT, DAY)]
    gaps = np.any([part.to_numpy(zero_copy_only=False) for part in gaps_by_kind if part is not None], axis=0)
    kinds = np.where(gaps, MISSING_CELL, kinds_of(column)).astype(np.int8)
    retained = [_with_nulls(part, pa.array(gaps)) for part in parts]
    return pa.UnionArray.from_sparse(pa.array(kinds), retained, [field.name for field in type_])


def _gaps(part: Any, kind: int | None, rules: cell_grammar.CellRules) -> Any:
    """Return which cells of one kind are gaps; None for kinds that have no codes."""
    if kind in (NUMBER, WHOLE):
        read = _number_gaps(floats(part, "the column"), rules)
    elif kind == TEXT:
        read = _strip(part, rules, "the column")
    elif kind == DAY and rules.gap_days:
        read = _days(part, kind, rules, "the column")
    else:
        return None
    return pc.and_(pc.is_valid(part), pc.is_null(read))

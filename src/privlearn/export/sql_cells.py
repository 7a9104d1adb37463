"""How raw cells are read in SQL: typed or as text, and what `predict` refuses is seen before a CAST sees it.

SQLite casts 'k.A.' to 0 and '12,9' to 12, and one such cell ends a whole query of PostgreSQL: so the form of a cell's
text is looked at first, with functions that all three databases have.
"""

from __future__ import annotations

from privlearn.data.schema.public import Value
from privlearn.export.scorecard import ListInput, NumberInput
from privlearn.export.sql_expressions import days, identifier, is_a_day, literal, number

UNREADABLE = -2
"""The place of a cell that cannot be one of the listed values: text among whole numbers."""

_DIGITS = "'0123456789'"
_NUMBER_FORMS = [
    f"{sign}{mantissa}{exponent}"
    for sign in ("", "-")
    for mantissa in ("<>", "<>.<>", "<>.", ".<>")
    for exponent in ("", "e<>", "e-<>")
]
_LARGE = 1e308  # beyond every bound, as infinity is: SQLite cannot read that from text


def cell(column: NumberInput | ListInput) -> str:
    """A number, NULL if there is none; or the place of a listed value, -1 if it is not listed, or `UNREADABLE`."""
    name = identifier(column.name)
    if isinstance(column, NumberInput):
        cases = _day(name) if column.type == "date" else _number(column)
        return f"CASE WHEN {is_missing(column)} THEN NULL {cases} END"
    cases = " ".join(f"WHEN {_equals(name, value)} THEN {k}" for k, value in enumerate(column.values))
    other = len(column.values) if column.unknown == "other" else -1
    if type(column.values[0]) is int:
        cases = f"WHEN NOT {_is_number(_text(name))} THEN {UNREADABLE} {cases}"
    return f"CASE WHEN {is_missing(column)} THEN NULL {cases} ELSE {other} END"


def is_missing(column: NumberInput | ListInput) -> str:
    name = identifier(column.name)
    gaps = [gap for gap in ("", "NaN", "nan") if not (isinstance(column, ListInput) and gap in column.values)]
    return (
        f"{name} IS NULL OR {_text(name)} IN ({', '.join(map(literal, gaps))})" if gaps else f"{name} IS NULL"
    )


def _text(name: str) -> str:
    return f"CAST({name} AS TEXT)"


def _number(column: NumberInput) -> str:
    """Cases of a number; of infinity only where bounds clamp it, since `predict` refuses it elsewhere."""
    name = identifier(column.name)
    words = {"true": 1.0, "false": 0.0}
    if column.upper is not None:
        words |= {
            f"{sign}{word}": -_LARGE if sign == "-" else _LARGE
            for sign in ("", "+", "-")
            for word in ("inf", "infinity")
        }
    spelled = " ".join(f"WHEN {literal(word)} THEN {number(value)}" for word, value in words.items())
    read = f"WHEN {_is_number(_text(name))} THEN CAST({name} AS DOUBLE PRECISION)"
    return f"{read} ELSE CASE lower({_text(name)}) {spelled} END"


def _day(name: str) -> str:
    """Cases of 2020-01-31, with or without a time after it."""
    text = _text(name)
    digits = " || ".join(f"substr({text}, {start}, {length})" for start, length in ((1, 4), (6, 2), (9, 2)))
    dashes = f"substr({text}, 1, 10) LIKE '____-__-__' AND substr({text}, 11, 1) IN ('', ' ', 'T')"
    looks = f"{dashes} AND ltrim({digits}, {_DIGITS}) = ''"
    # A case after the other: an AND may look at the calendar before it looks at the form.
    return f"WHEN NOT ({looks}) THEN NULL WHEN NOT {is_a_day(text)} THEN NULL ELSE {days(text)}"


def _is_number(text: str) -> str:
    """What most numbers look like is seen at once; signs and exponents take twelve steps."""
    plain = f"rtrim(ltrim({text}, {_DIGITS}), {_DIGITS}) IN ('', '.') AND {text} <> '.'"
    return f"({plain} OR {_form(text)} IN ({', '.join(map(literal, _NUMBER_FORMS))}))"


def _form(text: str) -> str:
    """A text with <> in place of each run of digits, and - for +: -<>.<>e-<> for -12.5e+20."""
    found = f"replace(lower({text}), '<', '?')"
    for digit in range(10):
        found = f"replace({found}, '{digit}', '<>')"
    return f"replace(replace({found}, '><', ''), '+', '-')"


def _equals(name: str, value: Value) -> str:
    if isinstance(value, bool):
        spelled = ("'true'", "'t'", "'1'") if value else ("'false'", "'f'", "'0'")
        return f"lower({_text(name)}) IN ({', '.join(spelled)})"
    if isinstance(value, int):
        return f"CAST({name} AS DOUBLE PRECISION) = {value}"
    return f"{_text(name)} = {literal(value)}"

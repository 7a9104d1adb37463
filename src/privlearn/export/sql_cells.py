"""Read cells in SQL by the grammar of `privlearn.data.schema.file_format`, typed or as text, in three steps.

One cell that a CAST cannot read aborts a whole query of PostgreSQL, and SQLite casts 'k.A.' to 0. So the form of a text
is compared with the forms of the grammar before it is cast, with functions that SQLite, PostgreSQL and DuckDB share.

    texts     t  the cell as text                  x  its number, where a plain CAST reads it
    forms     f  the form of the other texts: -<>.<>e-<> for -12.5e+20, 9999-99-99t99:99 for a date
    values    v  the number or the days since 1970-01-01; NULL if there is none

A number beyond 10^100 counts as `_LARGE`, one below 10^-100 as 0: bounds are far inside (`_check_bounds`), and no
product in the query underflows, which PostgreSQL would refuse.
"""

from __future__ import annotations

import math

from privlearn.data.schema.cell_grammar import BLANKS, CellRules
from privlearn.errors import InvalidParameter
from privlearn.export.scorecard import ListInput, NumberInput
from privlearn.export.sql_expressions import days, identifier, is_a_day, literal, number

UNREADABLE = -2
"""The position of a cell that cannot be one of the listed values: text among whole numbers."""

_DIGITS = "'0123456789'"
_MANTISSAS = [f"{sign}{digits}" for sign in ("", "-") for digits in ("<>", "<>.<>", "<>.", ".<>")]
_EXPONENTS = [f"{mantissa}e{sign}<>" for mantissa in _MANTISSAS for sign in ("", "-")]
_ZONES = ("", "z", "-99", "-9999", "-99:99")
_TIMES = ("t99:99", *(f"t99:99:99{fraction}" for fraction in ("", *("." + "9" * n for n in range(1, 10)))))
_DAY_FORMS = ["9999-99-99", *(f"9999-99-99{time}{zone}" for time in _TIMES for zone in _ZONES)]
_LARGE = 1e308
_MAX_BOUND, _MIN_WIDTH = 1e49, 1e-40
_MAX_PLAIN, _MAX_MANTISSA = 300, 50  # characters


class SqlCell:
    """The expressions that read one column; ``label`` is the beginning of the names of its steps' columns."""

    def __init__(self, column: NumberInput | ListInput, rules: CellRules, label: str) -> None:
        self._column, self._rules, self._name = column, rules, identifier(column.name)
        self._t, self._x, self._f, self._v = (f"{label}{step}" for step in "txfv")
        self._is_number = rules.kind in ("number", "whole", "truth")
        _check_bounds(column)

    def texts(self) -> dict[str, str]:
        """Return the columns of the first step: the text, and its number where a plain CAST reads it."""
        text = f"CAST({self._name} AS TEXT)"
        stripped = (
            f"ltrim(rtrim({text}, {literal(BLANKS)}), {literal(BLANKS)})" if self._rules.strips else text
        )
        columns = {self._t: stripped}
        if self._rules.kind in ("number", "whole"):
            plain = f"rtrim(ltrim({text}, {_DIGITS}), {_DIGITS}) IN ('', '.', '-') AND length({text}) < {_MAX_PLAIN}"
            is_digits = (
                f"{plain} AND {text} NOT IN ('', '.', '-') AND substr({text}, length({text}), 1) <> '-'"
            )
            columns[self._x] = f"CASE WHEN {is_digits} THEN CAST({self._name} AS DOUBLE PRECISION) END"
        elif self._is_number:
            columns[self._x] = "CAST(NULL AS DOUBLE PRECISION)"  # PostgreSQL casts no truth value to a number
        return columns

    def forms(self) -> dict[str, str]:
        """Return the columns of the second step: those of the first, and the forms of the other texts."""
        columns = {label: label for label in self.texts()}
        if self._is_number:
            columns[self._f] = f"CASE WHEN {self._x} IS NULL THEN {_number_form(self._t)} END"
        elif self._rules.kind == "date":
            columns[self._f] = _day_form(self._t)
        return columns

    def values(self) -> dict[str, str]:
        """Return the columns of the third step: the text, and the number or the days since 1970-01-01."""
        if self._is_number:
            return {self._t: self._t, self._v: self._number()}
        if self._rules.kind == "date":
            return {self._t: self._t, self._v: self._day()}
        return {self._t: self._t}

    def cell(self) -> str:
        """Return a number, NULL if there is none; or the index of a listed value, -1 for others, or `UNREADABLE`."""
        if isinstance(self._column, NumberInput):
            return f"CASE WHEN {self.is_missing()} THEN NULL ELSE {self._v} END"
        compared = self._v if self._is_number else self._t
        cases = " ".join(
            f"WHEN {compared} = {number(float(value)) if self._is_number else literal(value)} THEN {index}"
            for index, value in enumerate(self._column.values)
        )
        unreadable = f"WHEN {self._v} IS NULL THEN {UNREADABLE} " if self._is_number else ""
        if self._rules.kind == "truth":
            unreadable += f"WHEN {self._v} NOT IN (0, 1) THEN {UNREADABLE} "
        other = len(self._column.values) if self._column.unknown == "other" else -1
        return f"CASE WHEN {self.is_missing()} THEN NULL {unreadable}{cases} ELSE {other} END"

    def is_missing(self) -> str:
        """Return the condition that holds for missing cells."""
        conditions = [
            f"{self._t} IS NULL",
            f"{self._t} IN ({', '.join(map(literal, self._rules.gap_texts))})",
        ]
        numbers = self._rules.gap_days if self._rules.kind == "date" else self._rules.gap_numbers
        finite = [number(float(gap)) for gap in numbers if math.isfinite(gap)]
        if self._is_number:
            conditions.append(f"lower({self._t}) IN ('nan', '+nan', '-nan')")
        if finite and self._rules.kind != "text":
            conditions.append(f"COALESCE({self._v} IN ({', '.join(finite)}), FALSE)")
        return f"({' OR '.join(conditions)})"

    def _number(self) -> str:
        words = {} if self._rules.kind == "whole" else {"true": 1.0, "false": 0.0}
        for sign, value in (("", _LARGE), ("+", _LARGE), ("-", -_LARGE)):
            words |= {f"{sign}inf": value, f"{sign}infinity": value}
        spelled = " ".join(f"WHEN {literal(word)} THEN {number(value)}" for word, value in words.items())
        read = (
            f"CASE WHEN {self._x} IS NOT NULL THEN {self._x} "
            f"WHEN {self._f} IN ({_texts(_MANTISSAS)}) THEN {_plain_number(self._t)} "
            f"WHEN {self._f} IN ({_texts(_EXPONENTS)}) THEN {_number_with_exponent(f'lower({self._t})')} "
            f"ELSE CASE lower({self._t}) {spelled} END END"
        )
        if self._rules.kind != "number" or self._bounded:
            return read
        # Without bounds, infinity is refused, and so are numbers whose square overflows in PostgreSQL.
        return f"CASE WHEN abs({read}) < {number(1e100)} THEN {read} END"

    @property
    def _bounded(self) -> bool:
        return isinstance(self._column, NumberInput) and self._column.upper is not None

    def _day(self) -> str:
        text, time = self._t, "substr({}, {}, 2)"
        hours, minutes, seconds = (time.format(text, start) for start in (12, 15, 18))
        clock = (
            f"{hours} <= '23' AND {minutes} <= '59' AND (substr({text}, 17, 1) <> ':' OR {seconds} <= '59')"
        )
        # Separate cases, because a database may evaluate the operands of AND in any order.
        return (
            f"CASE WHEN {self._f} IS NULL OR {self._f} NOT IN ({_texts(_DAY_FORMS)}) THEN NULL "
            f"WHEN length({text}) > 10 AND NOT ({clock}) THEN NULL "
            f"WHEN NOT {is_a_day(text)} THEN NULL ELSE {days(text)} END"
        )


def _check_bounds(column: NumberInput | ListInput) -> None:
    if not isinstance(column, NumberInput) or column.lower is None or column.upper is None:
        return
    if max(abs(column.lower), abs(column.upper)) > _MAX_BOUND or column.upper - column.lower < _MIN_WIDTH:
        raise InvalidParameter(
            f"column {column.name!r} cannot be exported to SQL: its bounds must lie within {_MAX_BOUND:g} and be at "
            f"least {_MIN_WIDTH:g} apart. Use other units."
        )


def _texts(forms: list[str]) -> str:
    return ", ".join(map(literal, forms))


def _number_form(text: str) -> str:
    """Return a text with <> in place of each run of digits, - for +, and small letters."""
    form = f"replace(lower({text}), '<', '?')"
    for digit in range(10):
        form = f"replace({form}, '{digit}', '<>')"
    return f"replace(replace({form}, '><', ''), '+', '-')"


def _day_form(text: str) -> str:
    """Return a text with 9 for each digit, - for +, a point for a comma, t between day and time, and small letters."""
    form = f"lower({text})"
    for digit in range(9):
        form = f"replace({form}, '{digit}', '9')"
    form = f"replace(replace({form}, '+', '-'), ',', '.')"
    return f"CASE WHEN substr({text}, 11, 1) = ' ' THEN replace({form}, ' ', 't') ELSE {form} END"


def _plain_number(text: str) -> str:
    """Return the value of digits with a point or without; digits after the first 300 do not count after a point."""
    digits = f"ltrim(ltrim({text}, '+-'), '0')"
    first = f"substr({digits}, 1, {_MAX_PLAIN})"
    is_large = f"length({digits}) > {_MAX_PLAIN} AND replace({first}, '.', '') = {first}"
    value = f"CASE WHEN {is_large} THEN {number(_LARGE)} ELSE CAST('0' || {first} AS DOUBLE PRECISION) END"
    return _signed(text, value)


def _number_with_exponent(text: str) -> str:
    """Return the value of 1.5e-7; exponents of three digits and more leave the range that a CAST reads safely."""
    before = f"rtrim({text}, {_DIGITS})"
    digits = f"ltrim(substr({text}, length({before}) + 1), '0')"
    mantissa = f"rtrim(rtrim({before}, '+-'), 'e')"
    huge = _signed(
        text, f"CASE WHEN substr({before}, length({before}), 1) = '-' THEN 0 ELSE {number(_LARGE)} END"
    )
    return (
        f"CASE WHEN length({mantissa}) > {_MAX_MANTISSA} THEN NULL "
        f"WHEN ltrim({mantissa}, '+-0.') = '' THEN {number(0.0)} "
        f"WHEN length({digits}) > 2 THEN {huge} ELSE CAST({text} AS DOUBLE PRECISION) END"
    )


def _signed(text: str, value: str) -> str:
    return f"(CASE WHEN substr({text}, 1, 1) = '-' THEN {number(-1.0)} ELSE {number(1.0)} END * {value})"

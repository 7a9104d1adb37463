"""SQL expressions that SQLite, PostgreSQL and DuckDB read alike."""

from __future__ import annotations

from collections.abc import Sequence

from privlearn.data.schema.public import Value
from privlearn.errors import InvalidParameter
from privlearn.export.scorecard import Map

_FARTHEST = 700.0  # of an exponent: PostgreSQL refuses exp() of more, and no probability shows the difference


def between(value: str, lower: float, upper: float) -> str:
    low, high = number(lower), number(upper)
    return f"CASE WHEN {value} < {low} THEN {low} WHEN {value} > {high} THEN {high} ELSE {value} END"


def days(text: str) -> str:
    """Return the days since 1970-01-01 of a text like 2020-01-31, by arithmetic, since date functions differ."""
    year, month, day = _calendar(text)
    years = f"({year} - CASE WHEN {month} <= 2 THEN 1 ELSE 0 END)"
    months = f"({month} + CASE WHEN {month} <= 2 THEN 9 ELSE -3 END)"
    leaps = " ".join(
        f"{sign} floor({years} / {number(by)})" for sign, by in (("+", 4.0), ("-", 100.0), ("+", 400.0))
    )
    return double(f"365 * {years} {leaps} + floor((153 * {months} + 2) / {number(5.0)}) + {day} - 719469")


def is_a_day(text: str) -> str:
    """Return whether the day exists in the calendar, unlike 30 February or the year 0."""
    year, month, day = _calendar(text)
    leap = f"({year} % 4 = 0 AND {year} % 100 <> 0 OR {year} % 400 = 0)"
    february = f"CASE WHEN {leap} THEN 29 ELSE 28 END"
    last = f"CASE WHEN {month} = 2 THEN {february} WHEN {month} IN (4, 6, 9, 11) THEN 30 ELSE 31 END"
    return f"({year} > 0 AND {month} BETWEEN 1 AND 12 AND {day} BETWEEN 1 AND {last})"


def _calendar(text: str) -> list[str]:
    """Return the year, month and day of a text like 2020-01-31."""
    parts = ((1, 4), (6, 2), (9, 2))
    return [f"CAST(substr({text}, {start}, {length}) AS INTEGER)" for start, length in parts]


def logistic(score: str) -> str:
    return f"(1 / (1 + {exp(f'(-{score})')}))"


def exp(power: str) -> str:
    return f"exp({between(power, -_FARTHEST, _FARTHEST)})"


def interpolate(x: str, corners: Map) -> str:
    leaves = [number(corners.y[0])]
    for (a, b), (c, d) in zip(
        zip(corners.x, corners.x[1:], strict=False), zip(corners.y, corners.y[1:], strict=False), strict=True
    ):
        slope = (d - c) / (b - a) if b > a else 0.0
        leaves.append(f"{number(c)} + {number(slope)} * ({x} - {number(a)})")
    return tree(x, corners.x, [*leaves, number(corners.y[-1])])


def tree(value: str, thresholds: Sequence[float], leaves: Sequence[str]) -> str:
    """Return nested CASE expressions for the leaf after the last threshold at or below the value."""
    if len(leaves) == 1:
        return leaves[0]
    half = len(leaves) // 2
    at = thresholds[half - 1]
    left = tree(value, thresholds[: half - 1], leaves[:half])
    right = tree(value, thresholds[half:], leaves[half:])
    return f"CASE WHEN {value} < {at if isinstance(at, int) else number(at)} THEN {left} ELSE {right} END"


def sum_of(terms: Sequence[str]) -> str:
    return " + ".join(terms)


def double(value: str) -> str:
    return f"CAST({value} AS DOUBLE PRECISION)"


def number(value: float) -> str:
    """Return a literal with an exponent: without one DuckDB reads it as a decimal."""
    return f"{value:.17e}" if value >= 0.0 else f"({value:.17e})"


def identifier(name: str) -> str:
    """Return a name in quotes."""
    if "\0" in name:
        raise InvalidParameter("a name contains a zero byte, which SQL cannot express. Rename it.")
    return '"' + name.replace('"', '""') + '"'


def literal(value: Value) -> str:
    """Return a literal: text in quotes, numbers and truth values as they are."""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, int):
        return str(value)
    if "\0" in value:
        raise InvalidParameter("a text has a zero byte, which SQL cannot express. Change it in the schema.")
    return "'" + value.replace("'", "''") + "'"

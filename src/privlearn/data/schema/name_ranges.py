"""Ranges of column names: ``BILL_AMT{1..6}`` declares six columns that have the same description."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any

from privlearn.errors import SchemaError

_RANGE = re.compile(r"\{(\d{1,9})\.\.(\d{1,9})\}")
_NUMBER_AT_END = re.compile(r"(.*?)(0|[1-9]\d{0,8})", re.DOTALL)
_MAX_COLUMNS = 100_000
MIN_RANGE = 4


def expand_ranges(columns: Any) -> Any:
    """Return the columns with each range of names written out, in order; other content is returned as it is.

    >>> list(expand_ranges({"age": 1, "PAY_{08..10}": 2}))
    ['age', 'PAY_08', 'PAY_09', 'PAY_10']
    """
    if not isinstance(columns, Mapping):
        return columns
    expanded: dict[Any, Any] = {}
    for name, column in columns.items():
        for each in _names(name) if isinstance(name, str) else [name]:
            if each in expanded:
                raise SchemaError(f"columns.{each}: occurs twice, alone or in a range. Keep one.")
            expanded[each] = dict(column) if isinstance(column, Mapping) else column
    return expanded


def _names(name: str) -> list[str]:
    match = _RANGE.search(name)
    if match is None:
        return [name]
    first, last = match.groups()
    if not int(first) < int(last) < int(first) + _MAX_COLUMNS:
        raise SchemaError(f"columns.{name}: a range counts upwards, such as {{1..6}}")
    width = len(first) if first.startswith("0") and len(first) > 1 else 0
    numbers = range(int(first), int(last) + 1)
    return [f"{name[: match.start()]}{number:0{width}d}{name[match.end() :]}" for number in numbers]


def compact_names(columns: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    """Yield the columns with runs of at least four numbered names, of the same kind, as one range.

    >>> [name for name, _ in compact_names([(f"PAY_{number}", "number") for number in range(1, 6)])]
    ['PAY_{1..5}']
    """
    numbered = [
        (index, name, kind, _NUMBER_AT_END.fullmatch(name)) for index, (name, kind) in enumerate(columns)
    ]

    def run_of(entry: tuple[int, str, Any, re.Match[str] | None]) -> Any:
        index, name, kind, match = entry
        return (name, str(kind), None) if match is None else (match[1], str(kind), int(match[2]) - index)

    for _, members in groupby(numbered, run_of):
        run = list(members)
        first, last = run[0][3], run[-1][3]
        if first is None or last is None or len(run) < MIN_RANGE:
            yield from ((name, kind) for _, name, kind, _ in run)
        else:
            yield f"{first[1]}{{{first[2]}..{last[2]}}}", run[0][2]

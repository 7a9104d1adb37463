"""Explain the errors of a schema or a settings file: where, what is wrong, and what to type."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from pydantic import ValidationError

from privlearn.errors import did_you_mean

_TAGGED = "columns"  # pydantic puts a column's type between its name and its field
# Names that pydantic appends for a setting that may have several types:
_ALTERNATIVE = re.compile(r"(constrained-)?(bool|int|str|float|none)|.*\[.*\]")
_KINDS = {
    "float": "a number",
    "int": "a whole number",
    "string": "text: put it in quotes",
    "bool": "true or false",
    "date": "a date such as 2000-01-31",
    "tuple": "a list, e.g. [a, b]",
    "list": "a list, e.g. [a, b]",
    "dict": "settings with names, e.g. {name: value}",
    "model": "settings with names, e.g. {name: value}",
}
_LIMITS = {
    "greater_than": ("above", "gt"),
    "greater_than_equal": ("at least", "ge"),
    "less_than": ("below", "lt"),
    "less_than_equal": ("at most", "le"),
}


def plain_problems(error: ValidationError, settings: Iterable[str]) -> Iterator[str]:
    """Yield one line per problem, with its location.

    Parameters
    ----------
    settings : iterable of str
        The known settings, to suggest one for a misspelled name.
    """
    known = list(settings)
    by_location: dict[str, list[str]] = {}
    for item in error.errors(include_url=False):
        messages = by_location.setdefault(_location(item["loc"]), [])
        messages += [line for line in _message(item, known).splitlines() if line not in messages]
    for where, lines in by_location.items():
        if len(lines) > 1 and all(line.startswith("must be ") for line in lines):
            kinds = [line.removeprefix("must be ").partition(", not ")[0] for line in lines]
            lines = [f"must be {' or '.join(kinds)}"]
        yield from (f"{where}: {line}" if where else line for line in lines)


def _location(location: tuple[int | str, ...]) -> str:
    parts = [str(part) for part in location]
    if parts[:1] == [_TAGGED]:
        del parts[2:3]
    while len(parts) > 1 and _ALTERNATIVE.fullmatch(parts[-1]):
        del parts[-1]
    return ".".join(parts)


def _message(item: Any, known: list[str]) -> str:
    kind, value = item["type"], item.get("input")
    match kind:
        case "value_error":
            return str(item["ctx"]["error"])
        case "extra_forbidden":
            return f"unknown setting: remove it or correct its spelling{did_you_mean(str(item['loc'][-1]), known)}"
        case "missing":
            return "missing: fill it in"
        case "union_tag_not_found":
            return "needs a type: number, category, ordinal, date or text"
        case "union_tag_invalid":
            tags = re.findall(r"'(\w+)'", item["ctx"]["expected_tags"])
            return f"type: must be {_either(tags)}, not {item['ctx']['tag']!r}{did_you_mean(item['ctx']['tag'], tags)}"
        case "literal_error":
            choices = re.findall(r"'([^']*)'", item["ctx"]["expected"])
            hint = did_you_mean(value, choices) if isinstance(value, str) else ""
            return f"must be {_either(choices)}{_but_is(value)}{hint}"
        case "too_short" | "string_too_short":
            minimum = item["ctx"]["min_length"]
            return "must not be empty" if minimum == 1 else f"needs at least {minimum}"
        case _ if kind in _LIMITS:
            relation, limit = _LIMITS[kind]
            return f"must be {relation} {item['ctx'][limit]:g}{_but_is(value)}"
    expected = _KINDS.get(kind.split("_")[0])
    if expected is None:
        return str(item["msg"]).replace("Input should be", "must be")
    if isinstance(value, str) and re.fullmatch(r"[-+]?[0-9]+,[0-9]+", value):
        return f"must be a number: write {value.replace(',', '.')}, with a point"
    return f"must be {expected}{_but_is(value)}"


def _either(choices: list[str]) -> str:
    return " or ".join([", ".join(choices[:-1]), choices[-1]] if len(choices) > 1 else choices)


def _but_is(value: Any) -> str:
    """Return the present value, if it is short."""
    return f", not {value!r}" if isinstance(value, bool | int | float | str) and len(str(value)) <= 40 else ""

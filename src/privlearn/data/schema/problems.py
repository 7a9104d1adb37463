"""What is wrong with a schema or a settings file, in words of its reader: where, what was found, what to type."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from pydantic import ValidationError

from privlearn.errors import did_you_mean

_TAGGED = "columns"  # a column's type stands between its name and its field in pydantic's location
_ALTERNATIVE = re.compile(
    r"(constrained-)?(bool|int|str|float|none)|.*\[.*\]"
)  # of a setting that may be of several kinds
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
    """One line per problem; a part's own lines get the part's place put before them.

    Parameters
    ----------
    settings : iterable of str
        What may be set there, for those who misspell it.
    """
    known = list(settings)
    by_place: dict[str, list[str]] = {}
    for item in error.errors(include_url=False):
        told = by_place.setdefault(_place(item["loc"]), [])
        told += [line for line in _message(item, known).splitlines() if line not in told]
    for where, lines in by_place.items():
        if len(lines) > 1 and all(line.startswith("must be ") for line in lines):
            kinds = [line.removeprefix("must be ").partition(", not ")[0] for line in lines]
            lines = [f"must be {' or '.join(kinds)}"]
        yield from (f"{where}: {line}" if where else line for line in lines)


def _place(location: tuple[int | str, ...]) -> str:
    parts = [str(part) for part in location]
    if parts[:1] == [_TAGGED]:
        del parts[2:3]
    while len(parts) > 1 and _ALTERNATIVE.fullmatch(parts[-1]):
        del parts[-1]
    return ".".join(parts)


def _message(item: Any, known: list[str]) -> str:
    kind, found = item["type"], item.get("input")
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
            words = re.findall(r"'([^']*)'", item["ctx"]["expected"])
            meant = did_you_mean(found, words) if isinstance(found, str) else ""
            return f"must be {_either(words)}{_found(found)}{meant}"
        case "too_short" | "string_too_short":
            least = item["ctx"]["min_length"]
            return "must not be empty" if least == 1 else f"needs at least {least}"
        case _ if kind in _LIMITS:
            words_, limit = _LIMITS[kind]
            return f"must be {words_} {item['ctx'][limit]:g}{_found(found)}"
    wanted = _KINDS.get(kind.split("_")[0])
    if wanted is None:
        return str(item["msg"]).replace("Input should be", "must be")
    if isinstance(found, str) and re.fullmatch(r"[-+]?[0-9]+,[0-9]+", found):
        return f"must be a number: write {found.replace(',', '.')}, with a point"
    return f"must be {wanted}{_found(found)}"


def _either(words: list[str]) -> str:
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _found(value: Any) -> str:
    """What stands there, if it is one word or number."""
    return f", not {value!r}" if isinstance(value, bool | int | float | str) and len(str(value)) <= 40 else ""

"""The base classes of schemas and settings, checks of bounds and lists that are stated publicly, and their errors.

An error reports where it is, what is wrong, and what to type.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    SerializerFunctionWrapHandler,
    StrictBool,
    StrictInt,
    StrictStr,
    ValidationError,
    model_serializer,
)

from privlearn.errors import SchemaError, did_you_mean

PARTS = ("train", "test")
"""Names of the parts of a split data set, each with a budget account of its own."""

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

    ``settings``: the known settings, to suggest one for a misspelled name.
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
    kept = 1
    if parts[:1] == [_TAGGED]:
        del parts[2:3]
        kept = 2  # a column may be called "CRP [mg/l]"
    while len(parts) > kept and _ALTERNATIVE.fullmatch(parts[-1]):
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


class PublicModel(BaseModel):
    """Base of schemas and settings: immutable, without unknown fields, with errors that say what to type."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    def __init__(self, **fields: Any) -> None:
        problems: list[str] = []
        try:
            super().__init__(**fields)
        except ValidationError as error:
            problems = list(plain_problems(error, type(self).model_fields))
        if problems:
            raise SchemaError("\n".join(problems))


class CompactModel(PublicModel):
    """A model whose JSON form leaves out certain settings if they have their default.

    Digests of schemas are computed from the JSON form, so the list must not change.
    """

    _omitted: ClassVar[tuple[str, ...]] = ()

    @model_serializer(mode="wrap")
    def _without_defaults(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        content: dict[str, Any] = serialize(self)
        fields = type(self).model_fields
        omitted = {
            name for name in self._omitted if name in fields and getattr(self, name) == fields[name].default
        }
        return {name: value for name, value in content.items() if name not in omitted}


class PublicColumn(CompactModel):
    """Settings of all columns that only readers use; nothing is computed from them.

    Parameters
    ----------
    description : str, optional
        A short description of the column.
    unit : str, optional
        The unit of numbers: years, EUR, mmol/l.
    """

    description: StrictStr | None = None
    unit: StrictStr | None = None

    _omitted: ClassVar[tuple[str, ...]] = ("description", "unit", "knots", "bins", "period")


Value = StrictBool | StrictInt | StrictStr
"""A category or a class label."""

MissingRule = Literal["refuse", "zero", "indicator"]
Rule = Literal["refuse", "zero"]
"""What to do with a missing or an unknown cell.

``refuse``: an error that names the column. ``zero``: the column contributes the zero vector for that row.
"""

EXACT = 2**53
"""Whole numbers below it in magnitude are exact as floats. A missing cell makes pandas store a column of integers as
floats, so lists have no larger numbers: which cells equal a listed value would depend on other people's cells."""

ESTIMATE = "estimate"
"""Marks a bound or a list in a `SchemaDraft` that is not public, and is to be estimated privately."""

ESTIMATE_LISTS: dict[str, type] = {ESTIMATE: str, f"{ESTIMATE} whole numbers": int}
"""Marks of a list, and the type of its values: the type of a column depends on all of its cells."""


def check_filled_bound(bound: Any) -> Any:
    """Return a bound; refuse an empty one, and true or false, which Python would read as 1 or 0."""
    if bound is None:
        raise ValueError("still empty. Fill in a public bound, e.g. lower: 0, upper: 120; or write: estimate")
    if isinstance(bound, bool):
        raise ValueError("must be a number, not true or false")
    return refuse_mark(bound)


def refuse_mark(setting: Any) -> Any:
    """Return a setting; refuse the mark of one that is still to be estimated."""
    if isinstance(setting, str) and setting in ESTIMATE_LISTS:
        raise ValueError(
            "is still to be estimated. Run `privlearn discover` (Python: privlearn.discover) and use its schema"
        )
    return setting


def refuse_mark_of_order(setting: Any) -> Any:
    """Return a date or an ordered list; refuse a mark, since these cannot be estimated privately."""
    if isinstance(setting, str) and setting in ESTIMATE_LISTS:
        raise ValueError("dates and the order of values cannot be estimated privately. State them")
    return setting


Bound = Annotated[float, BeforeValidator(check_filled_bound)]
"""A public bound of numbers."""

OptionalBound = Annotated[float | None, BeforeValidator(check_filled_bound)]
"""A bound that may be absent; one that is present must not be empty."""

Values = Annotated[tuple[Value, ...], BeforeValidator(refuse_mark)]
"""A public list of values."""


def check_bounds(lower: float, upper: float) -> None:
    """Refuse bounds that are not in order, or so far apart that their distance overflows."""
    if not lower < upper:
        raise ValueError(f"lower ({lower:g}) must be below upper ({upper:g}). State wider bounds")
    if not math.isfinite(upper - lower):
        raise ValueError("upper - lower overflows. State narrower bounds, or use smaller units")


def is_unicode(text: str) -> bool:
    """Return whether a text can be written as UTF-8: it has no lone surrogate."""
    return not any("\ud800" <= sign <= "\udfff" for sign in text)


def distinct_values(values: tuple[Value, ...], example: str) -> tuple[Value, ...]:
    """Return a public list of values; refuse an empty list, equal values and values of several types."""
    if not values:
        raise ValueError(f"still empty. List every value that may occur, e.g. {example}; or write: estimate")
    if len({type(value) for value in values}) > 1:
        raise ValueError(
            "must all be of one type (text, whole numbers, or true/false). "
            'Quote text that YAML reads as something else, e.g. "yes", "no", "1"'
        )
    if any(isinstance(value, int) and abs(value) >= EXACT for value in values):
        raise ValueError(
            "whole numbers of 2^53 and beyond are not exact in a column with gaps. "
            "Write them as text, in quotes, and convert the table's column to text"
        )
    if len(set(values)) < len(values):
        repeated = ", ".join(repr(value) for value, count in Counter(values).items() if count > 1)
        raise ValueError(f"must all be different. Remove the repeated ones ({repeated})")
    if "" in values:
        raise ValueError("the empty text is a gap in every table. Remove it, and set missing: zero")
    if not all(is_unicode(value) for value in values if isinstance(value, str)):
        raise ValueError("must be text that can be written as UTF-8. Remove lone surrogates")
    return values

"""The base classes of schemas and settings, and checks of bounds and lists that are stated publicly."""

from __future__ import annotations

import math
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

from privlearn.data.schema.problems import plain_problems
from privlearn.errors import SchemaError


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


Value = StrictBool | StrictInt | StrictStr
"""A category or a class label."""

Rule = Literal["refuse", "zero"]
"""What to do with a missing or an unknown cell.

``refuse``: an error that names the column. ``zero``: the column contributes the zero vector for that row.
"""

EXACT = 2**53
"""Whole numbers below it in magnitude are exact as floats. A missing cell makes pandas store a column of integers as
floats, so lists have no larger numbers: which cells equal a listed value would depend on other people's cells."""

BUY = "buy"
"""Marks a bound or a list in a `SchemaDraft` that is not public, and is to be estimated privately."""

BUY_LISTS: dict[str, type] = {BUY: str, f"{BUY} whole numbers": int}
"""Marks of a list, and the type of its values: the type of a column depends on all of its cells."""


def check_filled_bound(bound: Any) -> Any:
    """Return a bound; refuse an empty one, and true or false, which Python would read as 1 or 0."""
    if bound is None:
        raise ValueError("still empty: fill in a public bound, e.g. lower: 0 and upper: 120; or write: buy")
    if isinstance(bound, bool):
        raise ValueError("must be a number, not true or false")
    return refuse_mark(bound)


def refuse_mark(setting: Any) -> Any:
    """Return a setting; refuse the mark of one that is still to be estimated."""
    if isinstance(setting, str) and setting in BUY_LISTS:
        raise ValueError(
            "is still to be estimated: run `privlearn discover` (Python: privlearn.discover) and use its schema"
        )
    return setting


def refuse_mark_of_order(setting: Any) -> Any:
    """Return a date or an ordered list; refuse a mark, since these cannot be estimated privately."""
    if isinstance(setting, str) and setting in BUY_LISTS:
        raise ValueError("dates and the order of values cannot be estimated privately: state them")
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
        raise ValueError(f"lower ({lower:g}) must be below upper ({upper:g}): state wider bounds")
    if not math.isfinite(upper - lower):
        raise ValueError("upper - lower overflows: state narrower bounds, or use smaller units")


def is_unicode(text: str) -> bool:
    """Return whether a text can be written as UTF-8: it has no lone surrogate."""
    return not any("\ud800" <= sign <= "\udfff" for sign in text)


def distinct_values(values: tuple[Value, ...], example: str) -> tuple[Value, ...]:
    """Return a public list of values; refuse an empty list, equal values and values of several types."""
    if not values:
        raise ValueError(f"still empty: list every value that may occur, e.g. {example}; or write: buy")
    if len({type(value) for value in values}) > 1:
        raise ValueError(
            "must all be of one type (text, whole numbers, or true/false): "
            'quote text that YAML reads as something else, e.g. "yes", "no", "1"'
        )
    if any(isinstance(value, int) and abs(value) >= EXACT for value in values):
        raise ValueError(
            "whole numbers of 2^53 and beyond are not exact in a column with gaps: "
            "write them as text, in quotes, and convert the table's column to text"
        )
    if len(set(values)) < len(values):
        raise ValueError("must all be different: remove the repeated ones")
    if "" in values:
        raise ValueError("the empty text is a gap in every table: remove it, and set missing: zero")
    if not all(is_unicode(value) for value in values if isinstance(value, str)):
        raise ValueError("must be text that can be written as UTF-8: remove lone surrogates")
    return values

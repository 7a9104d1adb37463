"""What the parts of a schema share: refusals a person can act on, and checks of what is stated publicly."""

from __future__ import annotations

import math
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, StrictBool, StrictInt, StrictStr, ValidationError

from privlearn.data.schema.problems import plain_problems
from privlearn.errors import SchemaError


class PublicModel(BaseModel):
    """Base of the schema's parts: immutable, no unknown fields, errors a person can act on."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    def __init__(self, **fields: Any) -> None:
        problems: list[str] = []
        try:
            super().__init__(**fields)
        except ValidationError as error:
            problems = list(plain_problems(error, type(self).model_fields))
        if problems:
            raise SchemaError("\n".join(problems))


Value = StrictBool | StrictInt | StrictStr
"""A category or a class label."""

Rule = Literal["refuse", "zero"]
"""What to do with a missing or an unknown cell.

``refuse``: an error that names the column. ``zero``: the column contributes the zero vector for that row.
"""

EXACT = 2**53
"""Whole numbers below it in magnitude are floats of their own. A missing cell makes pandas keep a column of integers as
floats, so a list may hold no others: which cells equal a listed value would depend on other people's cells."""

BUY = "buy"
"""Stands in a `SchemaDraft` where a bound or a list is not known publicly and shall be bought."""

BUY_LISTS: dict[str, type] = {BUY: str, f"{BUY} whole numbers": int}
"""Stand there for a list, and say what it will hold: a column's own type depends on all of its cells."""


def filled_in_bound(bound: Any) -> Any:
    """Refuse a bound left empty in a template, and true or false, which Python would read as 1 or 0."""
    if bound is None:
        raise ValueError("still empty: fill in a public bound, e.g. lower: 0 and upper: 120; or write: buy")
    if isinstance(bound, bool):
        raise ValueError("must be a number, not true or false")
    return not_to_be_bought(bound)


def not_to_be_bought(part: Any) -> Any:
    """Refuse the mark of what is still to be bought."""
    if isinstance(part, str) and part in BUY_LISTS:
        raise ValueError(
            "is still to be bought: run `privlearn discover` (Python: privlearn.discover) and take its schema"
        )
    return part


def not_for_sale(part: Any) -> Any:
    """Refuse the mark of what is still to be bought, where nothing can be."""
    if isinstance(part, str) and part in BUY_LISTS:
        raise ValueError("dates and the order of values cannot be bought: state them")
    return part


def check_bounds(lower: float, upper: float) -> None:
    """Public bounds: in order, and not so wide that their distance overflows."""
    if not lower < upper:
        raise ValueError(f"lower ({lower:g}) must be below upper ({upper:g}): state wider bounds")
    if not math.isfinite(upper - lower):
        raise ValueError("upper - lower overflows: state narrower bounds, or use smaller units")


def distinct_values(values: tuple[Value, ...], example: str) -> tuple[Value, ...]:
    """Check a public list of values: not empty, all different, all of one type."""
    if not values:
        raise ValueError(f"still empty: list every value that may occur, e.g. {example}; or write: buy")
    if len({type(value) for value in values}) > 1:
        raise ValueError(
            "must all be of one type (text, whole numbers, or true/false): "
            'quote text that YAML reads as something else, e.g. "yes", "no", "1"'
        )
    if any(isinstance(value, int) and abs(value) >= EXACT for value in values):
        raise ValueError(
            "whole numbers of 2^53 and beyond cannot be told apart in a column with gaps: "
            "write them as text, in quotes, and make the table's column text"
        )
    if len(set(values)) < len(values):
        raise ValueError("must all be different: remove the repeated ones")
    return values

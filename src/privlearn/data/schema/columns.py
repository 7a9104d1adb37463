"""The columns that a schema declares, from public knowledge only."""

from __future__ import annotations

import datetime
from typing import Annotated, Any, Literal

from pydantic import Field, StrictInt, field_validator, model_validator

from privlearn.data.schema import public

Encoding = Literal["spline", "linear"]
Knots = Annotated[StrictInt, Field(ge=2, le=4096)] | Literal["auto"]
Bins = Annotated[StrictInt, Field(ge=2, le=2**16)] | Literal["auto", "none"]


class OrderedColumn(public.PublicColumn):
    """Base of columns whose values are ordered: each value has a position between two ends.

    Each subclass lists the settings itself, since their order counts in a schema's digest.

    Parameters
    ----------
    encoding : {"spline", "linear"}, default="spline"
        ``spline`` encodes the position by hat functions between the ends; ``linear`` scales it to [-1, 1].
    knots : int or "auto", default="auto"
        Number of equally spaced knots of the spline. ``auto`` chooses it from the number of records and epsilon
        (docs/explanation/resolution.md).
    bins : int, "auto" or "none", default="auto"
        Fine bins in addition to the spline, for values that stand out. ``auto`` chooses their number from the number of
        records and epsilon (docs/explanation/resolution.md); there are none with ``encoding: linear``.
    missing : {"refuse", "zero", "indicator"}, default="refuse"
        Rule for missing cells (null, NaN): the column contributes nothing, or one feature that they have in common.
    """


class NumberColumn(OrderedColumn):
    """A number between public bounds; cells outside are clamped to them.

    Parameters
    ----------
    lower, upper : float
        Public bounds: from the questionnaire, regulations or common knowledge, never from the data. With a period they
        default to 0 and the period.
    scale : {"linear", "log"}, default="linear"
        ``log`` puts x at position ``log1p(x - lower) / log1p(upper - lower)``: for amounts with a long tail.
    period : float, optional
        Distance after which numbers repeat: 24 for hours, 12 for months, 360 for angles.
    encoding, knots, bins, missing
        As in `OrderedColumn`.
    """

    type: Literal["number"] = "number"
    lower: public.Bound
    upper: public.Bound
    scale: Literal["linear", "log"] = "linear"
    encoding: Encoding = "spline"
    knots: Knots = "auto"
    missing: public.MissingRule = "refuse"
    bins: Bins = "auto"
    period: Annotated[float, Field(gt=0)] | None = None

    @model_validator(mode="before")
    @classmethod
    def _default_to_one_period(cls, content: Any) -> Any:
        if not isinstance(content, dict) or not isinstance(content.get("period"), int | float):
            return content
        lower = content.get("lower", 0.0)
        end = lower + content["period"] if isinstance(lower, int | float) else None
        return content | {"lower": lower, "upper": content.get("upper", end)}

    @model_validator(mode="after")
    def _check_bounds(self) -> NumberColumn:
        public.check_bounds(self.lower, self.upper)
        if self.period is not None and self.scale == "log":
            raise ValueError("scale: remove it. A number with a period has no long tail")
        if self.period is not None and self.upper - self.lower > self.period * (1.0 + 1e-9):
            raise ValueError(
                f"period ({self.period:g}) is shorter than upper - lower. State bounds of one period"
            )
        return self


class OrdinalColumn(OrderedColumn):
    """One of a public list of ordered values, such as grades or answers from never to always.

    Values are equally spaced.

    Parameters
    ----------
    values : tuple of str, int or bool
        All values that may occur, of one type, in ascending order.
    unknown : {"refuse", "zero"}, default="refuse"
        Rule for cells outside the list.
    encoding, knots, bins, missing
        As in `OrderedColumn`; there are never more knots or bins than values.
    """

    type: Literal["ordinal"] = "ordinal"
    values: tuple[public.Value, ...]
    unknown: public.Rule = "refuse"
    encoding: Encoding = "spline"
    knots: Knots = "auto"
    missing: public.MissingRule = "refuse"
    bins: Bins = "auto"

    @field_validator("values", mode="before")
    @classmethod
    def _refuse_a_mark_of_order(cls, values: Any) -> Any:
        return public.refuse_mark_of_order(values)

    @field_validator("values")
    @classmethod
    def _check_distinct(cls, values: tuple[public.Value, ...]) -> tuple[public.Value, ...]:
        if len(public.distinct_values(values, "values: [never, sometimes, always]")) < 2:
            raise ValueError("needs at least two, in their order, e.g. values: [never, sometimes, always]")
        return values


class DateColumn(OrderedColumn):
    """A day between two public dates, encoded like a number of days; the time of day is ignored.

    Parameters
    ----------
    lower, upper : date
        Public bounds such as 2020-01-31; cells outside are clamped to them.
    encoding, knots, bins, missing
        As in `OrderedColumn`.
    """

    type: Literal["date"] = "date"
    lower: datetime.date
    upper: datetime.date
    encoding: Encoding = "spline"
    knots: Knots = "auto"
    missing: public.MissingRule = "refuse"
    bins: Bins = "auto"

    @field_validator("lower", "upper", mode="before")
    @classmethod
    def _check_day(cls, bound: Any) -> Any:
        if public.refuse_mark_of_order(bound) is None:
            raise ValueError("still empty. Fill in a public date, e.g. lower: 2000-01-01")
        if isinstance(bound, datetime.datetime) or not isinstance(bound, str | datetime.date):
            raise ValueError("must be a date such as 2000-01-31")
        return bound

    @model_validator(mode="after")
    def _check_bounds(self) -> DateColumn:
        if not self.lower < self.upper:
            raise ValueError("lower must be before upper. State wider bounds")
        return self


class CategoryColumn(public.PublicColumn):
    """One of a public list of values.

    Parameters
    ----------
    values : tuple of str, int or bool
        All values that may occur, of one type, never read from the data.
    unknown : {"refuse", "zero", "other"}, default="refuse"
        Rule for cells outside the list; ``other`` counts them all as one more value.
    missing : {"refuse", "zero", "indicator"}, default="refuse"
        As in `OrderedColumn`.
    """

    type: Literal["category"] = "category"
    values: public.Values
    unknown: public.Rule | Literal["other"] = "refuse"
    missing: public.MissingRule = "refuse"

    @field_validator("values")
    @classmethod
    def _check_distinct(cls, values: tuple[public.Value, ...]) -> tuple[public.Value, ...]:
        return public.distinct_values(values, "values: [Female, Male]")

    @model_validator(mode="after")
    def _check_two_values(self) -> CategoryColumn:
        if len(self.values) + (self.unknown == "other") < 2:
            raise ValueError(
                "values: needs at least two, e.g. values: [Female, Male]; or one and unknown: other"
            )
        return self


class TextColumn(public.PublicColumn):
    """Free text, encoded as hashed counts of its words.

    Parameters
    ----------
    features : int, default=2**18
        Number of hash buckets.
    missing : {"refuse", "zero"}, default="refuse"
        Rule for missing cells.
    """

    type: Literal["text"] = "text"
    features: Annotated[StrictInt, Field(ge=2, le=2**24)] = 2**18
    missing: public.Rule = "refuse"


Ordered = NumberColumn | OrdinalColumn | DateColumn
"""Every kind of `OrderedColumn`."""

AnyColumn = Ordered | CategoryColumn | TextColumn
"""Every kind of column."""

Column = Annotated[AnyColumn, Field(discriminator="type")]

"""Columns of a table as a schema declares them, from public knowledge alone."""

from __future__ import annotations

import datetime
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    Field,
    SerializerFunctionWrapHandler,
    StrictInt,
    StrictStr,
    ValidationInfo,
    field_validator,
    model_serializer,
    model_validator,
)

from privlearn.data.schema.labels import by_class, check_merged, check_weights
from privlearn.data.schema.public import (
    PublicModel,
    Rule,
    Value,
    check_bounds,
    distinct_values,
    filled_in_bound,
    not_for_sale,
    not_to_be_bought,
)

Encoding = Literal["spline", "linear"]
Knots = Annotated[StrictInt, Field(ge=2, le=4096)]
Bins = Annotated[StrictInt, Field(ge=2, le=2**16)] | Literal["auto", "none"]


class PublicColumn(PublicModel):
    """What all columns may say for people who read about them; nothing is computed from it.

    Parameters
    ----------
    description : str, optional
        What the column is, in a few words.
    unit : str, optional
        Of numbers: years, EUR, mmol/l.
    """

    description: StrictStr | None = None
    unit: StrictStr | None = None

    _unsaid: ClassVar[dict[str, Any]] = {"description": None, "unit": None}

    @model_serializer(mode="wrap")
    def _without_what_is_not_said(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        content: dict[str, Any] = serialize(self)  # digests of version 0.1 stay valid
        return {name: value for name, value in content.items() if value != self._unsaid.get(name, _SAID)}


_SAID = object()


class OrderedColumn(PublicColumn):
    """What columns whose values lie in an order share: each value has a place between two ends.

    Each kind lists the settings itself, since their order counts in a schema's digest.

    Parameters
    ----------
    encoding : {"spline", "linear"}, default="spline"
        ``spline`` spreads the place over functions between the ends; ``linear`` scales it to [-1, 1].
    knots : int, default=16
        Number of equally spaced knots of the spline.
    bins : int, "auto" or "none", default="auto"
        Fine bins beside the spline, for values that stand out; ``auto`` takes as many as the number of records and
        epsilon afford (docs/explanation/resolution.md), and none beside ``encoding: linear``.
    missing : {"refuse", "zero"}, default="refuse"
        Rule for missing cells (null, NaN).
    """

    _unsaid: ClassVar[dict[str, Any]] = PublicColumn._unsaid | {"bins": "auto", "period": None}


class NumberColumn(OrderedColumn):
    """A number between public bounds; what lies outside is clamped to them.

    Parameters
    ----------
    lower, upper : float
        Public bounds: from the questionnaire, the law or common knowledge, never from the data. With a period they may
        be left out: 0 and the period.
    scale : {"linear", "log"}, default="linear"
        ``log`` places x at ``log1p(x - lower) / log1p(upper - lower)``: for amounts with a long tail.
    period : float, optional
        After which numbers mean the same again: 24 for hours, 12 for months, 360 for angles.
    encoding, knots, bins, missing
        As in `OrderedColumn`.
    """

    type: Literal["number"] = "number"
    lower: float
    upper: float
    scale: Literal["linear", "log"] = "linear"
    encoding: Encoding = "spline"
    knots: Knots = 16
    missing: Rule = "refuse"
    bins: Bins = "auto"
    period: Annotated[float, Field(gt=0)] | None = None

    @model_validator(mode="before")
    @classmethod
    def _bounded_by_its_period(cls, content: Any) -> Any:
        if not isinstance(content, dict) or not isinstance(content.get("period"), int | float):
            return content
        lower = content.get("lower", 0.0)
        return content | {
            "lower": lower,
            "upper": content.get("upper", filled_upper(lower, content["period"])),
        }

    @field_validator("lower", "upper", mode="before")
    @classmethod
    def _is_filled_in(cls, bound: Any) -> Any:
        return filled_in_bound(bound)

    @model_validator(mode="after")
    def _bounds_are_ordered(self) -> NumberColumn:
        check_bounds(self.lower, self.upper)
        if self.period is not None and self.scale == "log":
            raise ValueError("scale: remove it: a number with a period has no long tail")
        if self.period is not None and self.upper - self.lower > self.period * (1.0 + 1e-9):
            raise ValueError(
                f"period ({self.period:g}) is shorter than upper - lower: state bounds of one period"
            )
        return self


class OrdinalColumn(OrderedColumn):
    """One of a public list of values that have an order, such as grades or answers from never to always.

    Each value lies at its place in the list, equally far from its neighbours.

    Parameters
    ----------
    values : tuple of str, int or bool
        All values that may occur, of one type, from the least to the greatest.
    unknown : {"refuse", "zero"}, default="refuse"
        Rule for cells outside the list.
    encoding, knots, bins, missing
        As in `OrderedColumn`; there are never more knots or bins than values.
    """

    type: Literal["ordinal"] = "ordinal"
    values: tuple[Value, ...]
    unknown: Rule = "refuse"
    encoding: Encoding = "spline"
    knots: Knots = 16
    missing: Rule = "refuse"
    bins: Bins = "auto"

    @field_validator("values", mode="before")
    @classmethod
    def _are_listed(cls, values: Any) -> Any:
        return not_for_sale(values)

    @field_validator("values")
    @classmethod
    def _are_distinct(cls, values: tuple[Value, ...]) -> tuple[Value, ...]:
        if len(distinct_values(values, "values: [never, sometimes, always]")) < 2:
            raise ValueError("needs at least two, in their order, e.g. values: [never, sometimes, always]")
        return values


class DateColumn(OrderedColumn):
    """A day between two public dates, encoded like a number of days; of a time only its day counts.

    Parameters
    ----------
    lower, upper : date
        Public bounds, as 2020-01-31; what lies outside is clamped to them.
    encoding, knots, bins, missing
        As in `OrderedColumn`.
    """

    type: Literal["date"] = "date"
    lower: datetime.date
    upper: datetime.date
    encoding: Encoding = "spline"
    knots: Knots = 16
    missing: Rule = "refuse"
    bins: Bins = "auto"

    @field_validator("lower", "upper", mode="before")
    @classmethod
    def _is_a_day(cls, bound: Any) -> Any:
        if not_for_sale(bound) is None:
            raise ValueError("still empty: fill in a public date, e.g. lower: 2000-01-01")
        if isinstance(bound, datetime.datetime) or not isinstance(bound, str | datetime.date):
            raise ValueError("must be a date such as 2000-01-31")
        return bound

    @model_validator(mode="after")
    def _bounds_are_ordered(self) -> DateColumn:
        if not self.lower < self.upper:
            raise ValueError("lower must be before upper: state wider bounds")
        return self


class CategoryColumn(PublicColumn):
    """One of a public list of values.

    Parameters
    ----------
    values : tuple of str, int or bool
        All values that may occur, of one type; the list is public, so it is never read from the data.
    unknown : {"refuse", "zero", "other"}, default="refuse"
        Rule for cells outside the list; ``other`` counts them all as one more value.
    missing : {"refuse", "zero"}, default="refuse"
        Rule for missing cells.
    """

    type: Literal["category"] = "category"
    values: tuple[Value, ...]
    unknown: Rule | Literal["other"] = "refuse"
    missing: Rule = "refuse"

    @field_validator("values", mode="before")
    @classmethod
    def _are_listed(cls, values: Any) -> Any:
        return not_to_be_bought(values)

    @field_validator("values")
    @classmethod
    def _are_distinct(cls, values: tuple[Value, ...]) -> tuple[Value, ...]:
        return distinct_values(values, "values: [Female, Male]")

    @model_validator(mode="after")
    def _tell_something_apart(self) -> CategoryColumn:
        if len(self.values) + (self.unknown == "other") < 2:
            raise ValueError(
                "values: needs at least two, e.g. values: [Female, Male]; or one and unknown: other"
            )
        return self


class TextColumn(PublicColumn):
    """Free text, as hashed counts of its words.

    Parameters
    ----------
    features : int, default=2**18
        Number of hash buckets.
    missing : {"refuse", "zero"}, default="refuse"
        Rule for missing cells.
    """

    type: Literal["text"] = "text"
    features: Annotated[StrictInt, Field(ge=2, le=2**24)] = 2**18
    missing: Rule = "refuse"


AnyColumn = NumberColumn | CategoryColumn | TextColumn | OrdinalColumn | DateColumn
"""Every kind of column."""

Column = Annotated[AnyColumn, Field(discriminator="type")]


class Target(PublicColumn):
    """The column to predict: the public list of its classes, or the public bounds of a number.

    Parameters
    ----------
    name : str
    classes : tuple of str, int or bool
        For a classifier: all labels that may occur, of one type.
    unknown : {"refuse", "zero"}, default="refuse"
        Rule for labels outside the list; with ``zero`` a row that has one weighs nothing in training.
    lower, upper : float
        For a regression: public bounds; what lies outside is clamped to them.
    merge : dict of class to labels
        Labels of the table that count as one class: ``{ill: [mild, severe]}``.
    weights : dict of class to float
        Public weights: what an error on a record of the class costs; 1 where nothing is said.
    description, unit : str, optional
    """

    name: Annotated[StrictStr, Field(min_length=1)]
    classes: tuple[Value, ...] = ()
    unknown: Rule = "refuse"
    lower: float | None = None
    upper: float | None = None
    merge: dict[Value, tuple[Value, ...]] = Field(default={})
    weights: dict[Value, float] = Field(default={})

    @field_validator("name", mode="before")
    @classmethod
    def _is_filled_in(cls, name: Any) -> Any:
        if name is None:
            raise ValueError("still empty: fill in the name of the column to predict")
        return name

    @field_validator("classes", mode="before")
    @classmethod
    def _are_listed(cls, classes: Any) -> Any:
        return not_to_be_bought(classes)

    @field_validator("classes")
    @classmethod
    def _are_distinct(cls, classes: tuple[Value, ...]) -> tuple[Value, ...]:
        example = "classes: [healthy, ill]"
        if len(distinct_values(classes, example)) < 2:
            raise ValueError(f"needs at least two, e.g. {example}")
        return classes

    @field_validator("lower", "upper", mode="before")
    @classmethod
    def _bound_is_filled_in(cls, bound: Any) -> Any:
        return filled_in_bound(bound)

    @field_validator("merge", "weights", mode="before")
    @classmethod
    def _speak_of_classes(cls, part: Any, info: ValidationInfo) -> Any:
        classes = info.data.get("classes")
        if not part or not classes:
            return part or {}
        found = by_class(part, classes)
        return check_merged(found, classes) if info.field_name == "merge" else check_weights(found)

    @model_validator(mode="after")
    def _is_of_one_kind(self) -> Target:
        given = [bound for bound in (self.lower, self.upper) if bound is not None]
        if bool(self.classes) == bool(given):
            raise ValueError("needs either classes, or lower and upper for a number: give one of the two")
        if len(given) == 1:
            raise ValueError("a number needs both bounds: fill in lower and upper")
        for setting in ("unknown", "merge", "weights") if given else ():
            if getattr(self, setting) != type(self).model_fields[setting].default:
                raise ValueError(f"{setting}: remove it: it speaks of classes, and the target is a number")
        if given:
            check_bounds(*given)
        return self

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Lower and upper bound of a number; ``None`` for classes."""
        return None if self.lower is None or self.upper is None else (self.lower, self.upper)

    @property
    def labels(self) -> tuple[Value, ...]:
        """All labels that the table may have: the classes, and what counts as one of them."""
        return self.classes + tuple(other for _, other in self._merged)

    @property
    def places(self) -> list[int]:
        """Which class each of the labels is."""
        return [*range(len(self.classes)), *(self.classes.index(label) for label, _ in self._merged)]

    @property
    def _merged(self) -> list[tuple[Value, Value]]:
        return [(label, other) for label, part in self.merge.items() for other in part if other != label]

    @property
    def class_weights(self) -> list[float] | None:
        """The weight of each class, if the schema speaks of any."""
        return [self.weights.get(label, 1.0) for label in self.classes] if self.weights else None

    @model_serializer
    def _of_its_kind(self) -> dict[str, Any]:
        """Without the other kind's empty settings."""
        about = {name: getattr(self, name) for name in ("description", "unit") if getattr(self, name)}
        if self.bounds is not None:
            return {"name": self.name, "lower": self.lower, "upper": self.upper} | about
        rule = {} if self.unknown == "refuse" else {"unknown": self.unknown}
        merge = {str(label): list(part) for label, part in self.merge.items()}
        weights = {str(label): weight for label, weight in self.weights.items()}
        said = {name: part for name, part in (("merge", merge), ("weights", weights)) if part}
        return {"name": self.name, "classes": list(self.classes)} | rule | said | about


def filled_upper(lower: Any, period: float) -> Any:
    """The end of one period, unless what it begins with is no number."""
    return lower + period if isinstance(lower, int | float) else None

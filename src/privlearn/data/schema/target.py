"""Columns with a role: the one to predict (classes or bounds, class weights), and the one of row weights (`Weight`)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, cast

from pydantic import Field, StrictStr, ValidationInfo, field_validator, model_serializer, model_validator

from privlearn.data.schema import public

SPELLINGS_OF_A_CLASS = 'write other spellings of a class under merge, as in merge: {"yes": ["Yes", "YES"]}'


class Target(public.PublicColumn):
    """The column to predict: the public list of its classes, or the public bounds of a number.

    Parameters
    ----------
    name : str
    classes : tuple of str, int or bool
        For a classifier: all labels that may occur, of one type.
    unknown : {"refuse", "zero"}, default="refuse"
        Rule for labels outside the list; with ``zero`` rows with such a label have no weight in training.
    lower, upper : float
        For a regression: public bounds; numbers outside are clamped to them.
    merge : dict of class to labels
        Labels of the table that count as one class: ``{ill: [mild, severe]}``.
    weights : dict of class to float
        Public weights of errors on records of a class; 1 by default.
    rate : float, optional
        Public share of records of the second of two classes, from earlier tables or the literature. Without it,
        logistic models estimate it privately.
    rates : dict of class to float
        The same for several classes: a share for each; they are divided by their sum.
    typical, spread : float, optional
        Public centre and spread of a number. Without them, regressions estimate both privately.
    description, unit : str, optional
    """

    name: Annotated[StrictStr, Field(min_length=1)]
    classes: public.Values = ()
    unknown: public.Rule = "refuse"
    lower: public.OptionalBound = None
    upper: public.OptionalBound = None
    merge: dict[public.Value, tuple[public.Value, ...]] = Field(default={})
    weights: dict[public.Value, float] = Field(default={})
    rate: float | None = Field(default=None, gt=0.0, lt=1.0)
    rates: dict[public.Value, float] = Field(default={})
    typical: float | None = Field(default=None, allow_inf_nan=False)
    spread: float | None = Field(default=None, gt=0.0, allow_inf_nan=False)

    @field_validator("name", mode="before")
    @classmethod
    def _is_filled_in(cls, name: Any) -> Any:
        if name is None:
            raise ValueError("still empty. Fill in the name of the column to predict")
        return name

    @field_validator("classes")
    @classmethod
    def _check_distinct(cls, classes: tuple[public.Value, ...]) -> tuple[public.Value, ...]:
        example = "classes: [healthy, ill]"
        if len(public.distinct_values(classes, example)) < 2:
            raise ValueError(f"needs at least two, e.g. {example}")
        return classes

    @field_validator("merge", "weights", "rates", mode="before")
    @classmethod
    def _have_classes_as_keys(cls, part: Any, info: ValidationInfo) -> Any:
        classes = info.data.get("classes")
        if not part or not classes:
            return part or {}
        settings = by_class(part, classes)
        return check_merged(settings, classes) if info.field_name == "merge" else check_weights(settings)

    @model_validator(mode="after")
    def _is_of_one_kind(self) -> Target:
        given = [bound for bound in (self.lower, self.upper) if bound is not None]
        if bool(self.classes) == bool(given):
            raise ValueError("needs either classes, or lower and upper for a number. State one of the two")
        if len(given) == 1:
            raise ValueError("a number needs both bounds. Fill in lower and upper")
        own, other = ("unknown", "merge", "weights", "rate", "rates"), ("typical", "spread")
        kinds = ("classes", "a number") if given else ("a number", "classes")
        for setting in own if given else other:
            if getattr(self, setting) != type(self).model_fields[setting].default:
                raise ValueError(f"{setting}: remove it. It is for {kinds[0]}, and the target has {kinds[1]}")
        if given:
            public.check_bounds(*given)
        if self.typical is not None and not given[0] <= self.typical <= given[1]:
            raise ValueError("typical: must lie between lower and upper")
        self._check_rates()
        return self

    def _check_rates(self) -> None:
        if self.rate is not None and (self.rates or len(self.classes) != 2):
            raise ValueError("rate: is for two classes; write rates: with a share for each class")
        if self.rates and len(self.rates) != len(self.classes):
            raise ValueError("rates: state a share for each class")
        if self.rates and not all(0.0 < share < 1.0 for share in cast(list[float], self.shares)):
            raise ValueError("rates: must be above 0, and not too far apart")

    @property
    def shares(self) -> list[float] | None:
        """Return the public share of each class; None if the schema states none."""
        if self.rate is not None:
            return [1.0 - self.rate, self.rate]
        return (
            [self.rates[label] / sum(self.rates.values()) for label in self.classes] if self.rates else None
        )

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Return the lower and upper bound of a number; None for classes."""
        return None if self.lower is None or self.upper is None else (self.lower, self.upper)

    @property
    def labels(self) -> tuple[public.Value, ...]:
        """Return all labels that the table may have: the classes, and the labels merged into them."""
        return self.classes + tuple(other for _, other in self._merged_labels)

    @property
    def class_indices(self) -> list[int]:
        """Return the index of each label's class."""
        return [*range(len(self.classes)), *(self.classes.index(label) for label, _ in self._merged_labels)]

    @property
    def _merged_labels(self) -> list[tuple[public.Value, public.Value]]:
        return [(label, other) for label, part in self.merge.items() for other in part if other != label]

    @property
    def class_weights(self) -> list[float] | None:
        """Return the weight of each class; None if the schema states none."""
        return [self.weights.get(label, 1.0) for label in self.classes] if self.weights else None

    @model_serializer
    def _serialize(self) -> dict[str, Any]:
        """Return the settings without those of the other kind of target."""
        about = {name: getattr(self, name) for name in ("description", "unit") if getattr(self, name)}
        if self.bounds is not None:
            known: dict[str, Any] = {"typical": self.typical, "spread": self.spread}
            known = {name: value for name, value in known.items() if value is not None}
            return {"name": self.name, "lower": self.lower, "upper": self.upper} | known | about
        rule = {} if self.unknown == "refuse" else {"unknown": self.unknown}
        merge = {str(label): list(part) for label, part in self.merge.items()}
        weights = {str(label): weight for label, weight in self.weights.items()}
        rates = {str(label): rate for label, rate in self.rates.items()}
        parts: dict[str, Any] = {"merge": merge, "weights": weights, "rate": self.rate, "rates": rates}
        stated: dict[str, Any] = {name: part for name, part in parts.items() if part}
        return {"name": self.name, "classes": list(self.classes)} | rule | stated | about


def by_class(part: Any, classes: Sequence[public.Value]) -> dict[public.Value, Any]:
    """Return a mapping with classes as keys; JSON stores keys as text, so 1 may be written "1"."""
    if not isinstance(part, Mapping):
        raise ValueError(f"must be a mapping of classes, e.g. {{{classes[-1]}: ...}}")
    spelled = {str(label): label for label in classes}
    unknown = [key for key in part if str(key) not in spelled]
    if unknown:
        hint = (
            ': quote "yes" and "no", which YAML reads as true and false'
            if isinstance(unknown[0], bool)
            else ""
        )
        raise ValueError(f"{unknown[0]} is not one of the classes, {', '.join(spelled)}{hint}")
    return {spelled[str(key)]: value for key, value in part.items()}


def check_merged(
    merge: Mapping[public.Value, Any], classes: Sequence[public.Value]
) -> dict[public.Value, tuple[public.Value, ...]]:
    """Return the labels that count as each class, in addition to the class itself."""
    merged = {
        label: tuple(part) if isinstance(part, list | tuple) else (part,) for label, part in merge.items()
    }
    every = [*classes, *(other for label, part in merged.items() for other in part if other != label)]
    if not all(isinstance(label, bool | int | str) for label in every):
        raise ValueError("labels are text, whole numbers, or true and false. Write lists of them")
    public.distinct_values(tuple(every), "merge: {ill: [mild, severe]}")
    return merged


def check_weights(weights: Mapping[public.Value, Any]) -> dict[public.Value, float]:
    """Return the weights as floats; refuse those that are not above 0."""
    for label, weight in weights.items():
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 < weight < math.inf:
            raise ValueError(f"{label}: must be a number above 0")
    return {label: float(weight) for label, weight in weights.items()}


_LIKELY_MEAN = 50.0
"""An upper limit beyond this many times the default mean is taken for one of expansion weights."""

Positive = Annotated[float, Field(gt=0)]


class Weight(public.CompactModel):
    """Row weights as survey statisticians mean them: a row of weight 2 counts like two rows of weight 1.

    Each weight is clipped to [0, ``upper``], row by row. One person's weight is bounded by ``upper``, so the noise
    grows with ``upper / mean``.

    Parameters
    ----------
    column : str
    upper : float, optional
        Public cap. Only with ``person`` it may be left out: then the weights of a person's rows are divided by their
        sum, each person counts 1, and the weights cost nothing.
    mean : float, default=1
        Public, approximate mean of the weights; it need not be exact. Training divides the weights by it, so that
        regularization and forecasts refer to records of mean weight.
    missing : {"refuse", "zero"}, default="refuse"
        Rule for missing cells; ``zero`` gives such rows the weight 0.
    """

    column: Annotated[StrictStr, Field(min_length=1)]
    upper: Positive | None = None
    mean: Positive = 1.0
    missing: public.Rule = "refuse"

    _omitted: ClassVar[tuple[str, ...]] = ("upper", "mean", "missing")

    @model_validator(mode="after")
    def _mean_is_below_upper(self) -> Weight:
        if self.upper is None:
            if self.mean != 1.0:
                raise ValueError("mean: remove it. Without upper, weights only divide each person's rows")
            return self
        if self.mean > self.upper:
            raise ValueError(f"mean ({self.mean:g}) must not exceed upper ({self.upper:g}). State their mean")
        if "mean" not in self.model_fields_set and self.upper > _LIKELY_MEAN:
            raise ValueError(
                f"upper ({self.upper:g}) is far above 1. State the approximate mean of the weights too, from public "
                "knowledge, such as mean: 1500 (population / records)"
            )
        return self

    @property
    def bound(self) -> float:
        """Return the largest weight of a record, or person, in units of the mean."""
        return 1.0 if self.upper is None else self.upper / self.mean

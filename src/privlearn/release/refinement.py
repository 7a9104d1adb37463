"""Steps that change a released model afterwards, from the file alone: post-processing, at no privacy cost.

A refined release carries the original coefficients and the steps, so that a reader can repeat them and find the same
bits on every machine: all sums are rounded once (`math.fsum`), and everything else is done number by number.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from privlearn.arrays import Array
from privlearn.data.encoding.encoder import SchemaEncoder
from privlearn.data.encoding.feature_groups import is_cyclic, knots_of
from privlearn.data.schema.columns import CategoryColumn, TextColumn
from privlearn.errors import InvalidParameter, VerificationError, did_you_mean, preview
from privlearn.release.encoders import Encoder, base_of, feature_columns

Indices = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Curve:
    """Coefficients of the values of one column, in order: its list, its knots, its bins, or a line in a pair.

    ``line`` is the index of a straight part in addition to the knots, which they can take over.
    """

    indices: Indices
    line: int | None = None


class Step(ABC):
    """One change of the coefficients."""

    name: ClassVar[str]

    @abstractmethod
    def apply(self, encoder: Encoder, coefficients: Array) -> Array:
        """Return the new coefficients, one row per score; raise InvalidParameter if the step does not fit."""

    def to_dict(self) -> dict[str, Any]:
        return {"step": self.name} | asdict(self)  # type: ignore[call-overload, no-any-return]

    @property
    def description(self) -> str:
        """Return the step as text."""
        return " ".join([self.name, *map(str, asdict(self).values())])  # type: ignore[call-overload]


@dataclass(frozen=True)
class _ColumnStep(Step):
    """A step that replaces each curve of one column."""

    column: str

    def apply(self, encoder: Encoder, coefficients: Array) -> Array:
        refined = coefficients.copy()
        for curve in curves(encoder, self.column):
            for row in refined:
                self._replace(encoder, row, curve)
        return refined

    def _replace(self, encoder: Encoder, row: Array, curve: Curve) -> None:
        values = row[curve.indices]
        if curve.line is not None:
            values = values + row[curve.line] * np.linspace(-1.0, 1.0, len(values))
            row[curve.line] = 0.0
        row[curve.indices] = self.reshape(values.tolist())

    @abstractmethod
    def reshape(self, values: list[float]) -> list[float]:
        """Return the new values of a curve."""


@dataclass(frozen=True)
class Flatten(_ColumnStep):
    """Remove a column's effect: each of its values, also in pairs, gets the mean over typical rows."""

    name: ClassVar[str] = "flatten"

    def reshape(self, values: list[float]) -> list[float]:
        return [typical_value(values)] * len(values)


@dataclass(frozen=True)
class Smooth(_ColumnStep):
    """Replace each value of an ordered column by the mean of its neighbours up to ``reach`` positions away."""

    reach: int
    name: ClassVar[str] = "smooth"

    def apply(self, encoder: Encoder, coefficients: Array) -> Array:
        _refuse_unordered(encoder, self.column, "smoothed")
        if not isinstance(self.reach, int) or self.reach < 1:
            raise InvalidParameter(f"smooth over 1 place or more to either side, not {preview(self.reach)}")
        return super().apply(encoder, coefficients)

    def reshape(self, values: list[float]) -> list[float]:
        return [
            _mean(values[max(index - self.reach, 0) : index + self.reach + 1]) for index in range(len(values))
        ]


@dataclass(frozen=True)
class Monotone(_ColumnStep):
    """Replace each part of a column's effect by the nearest monotone curve (least squares)."""

    direction: str
    name: ClassVar[str] = "monotone"

    def apply(self, encoder: Encoder, coefficients: Array) -> Array:
        _refuse_unordered(encoder, self.column, "made monotone")
        if self.direction not in ("increasing", "decreasing"):
            raise InvalidParameter(f"say increasing or decreasing, not {preview(self.direction)}")
        if len(coefficients) > 1:
            raise InvalidParameter("only one score can be monotone, and this model has one for each class")
        return super().apply(encoder, coefficients)

    def reshape(self, values: list[float]) -> list[float]:
        sign = 1.0 if self.direction == "increasing" else -1.0
        if len(values) == 1:  # the slope of a line
            return [sign * max(sign * values[0], 0.0)]
        return [sign * value for value in isotonic([sign * value for value in values])]


@dataclass(frozen=True)
class Merge(Step):
    """Give several values of a list the same coefficient: their mean.

    Centred rows beyond the radius are still divided by their own norm, in which the values' shares of the mean differ.
    """

    column: str
    values: tuple[str, ...]
    name: ClassVar[str] = "merge"

    def apply(self, encoder: Encoder, coefficients: Array) -> Array:
        column = _column(encoder, self.column)
        known = list(map(str, column.values)) if isinstance(column, CategoryColumn) else []
        if len(set(self.values)) < 2 or not set(self.values) <= set(known):
            raise InvalidParameter(
                f"merge two or more listed values of a category, such as a+b; {self.column!r} has "
                f"{', '.join(known) or 'none'}"
            )
        merged = [known.index(value) for value in self.values]
        refined = coefficients.copy()
        for curve in curves(encoder, self.column):
            for row in refined:
                row[curve.indices[merged]] = _mean(row[curve.indices[merged]].tolist())
        return refined


@dataclass(frozen=True)
class Round(Step):
    """Round coefficients to ``digits`` digits after the point."""

    digits: int
    name: ClassVar[str] = "round"

    def apply(self, encoder: Encoder, coefficients: Array) -> Array:
        if not isinstance(self.digits, int) or not 0 <= self.digits <= 15:
            raise InvalidParameter(f"round to 0 to 15 digits after the point, not {preview(self.digits)}")
        return np.round(coefficients, self.digits) + 0.0  # no -0.0


STEPS: dict[str, type[Step]] = {kind.name: kind for kind in (Merge, Smooth, Monotone, Flatten, Round)}


@dataclass(frozen=True, eq=False)
class Refinement:
    """The steps, and the coefficients that they were applied to."""

    steps: tuple[Step, ...]
    origin: Array

    def apply(self, encoder: Encoder) -> Array:
        """Return the refined coefficients."""
        coefficients = self.origin
        for step in self.steps:
            coefficients = step.apply(encoder, coefficients)
        return coefficients

    def to_dict(self, origin_digest: str) -> dict[str, Any]:
        return {
            "origin_sha256": origin_digest,
            "steps": [step.to_dict() for step in self.steps],
            "cost": COST,
        }

    @property
    def description(self) -> str:
        return ", ".join(step.description for step in self.steps)


COST = (
    "nothing: computed from the release of that digest and public parameters alone (post-processing); its "
    "guarantee is this file's"
)


def refinement_from_dict(record: Mapping[str, Any], origin: Array) -> Refinement:
    """Read the JSON form of `Refinement.to_dict`."""
    steps = []
    for entry in record["steps"]:
        fields = {name: value for name, value in entry.items() if name != "step"}
        if isinstance(fields.get("values"), list):
            fields["values"] = tuple(fields["values"])
        steps.append(STEPS[entry["step"]](**fields))
    if not steps:
        raise VerificationError("a refinement has at least one step")
    return Refinement(tuple(steps), origin)


def curves(encoder: Encoder, name: str) -> list[Curve]:
    """Return all curves of a column: its knots or its list, its fine bins, and its lines through each pair's grid.

    The indicator of missing cells is no part of them, so no step changes it.
    """
    column = _column(encoder, name)
    owners = feature_columns(encoder)
    own = np.flatnonzero([columns == (name,) for columns in owners])
    if isinstance(column, TextColumn):
        return [Curve(own[[index]]) for index in range(len(own))]
    width = _coarse_width(column)
    coarse, bins = own[:width], own[width + (column.missing == "indicator") :]
    has_line = not isinstance(column, CategoryColumn) and width > 1
    result = [Curve(coarse[:-1], int(coarse[-1])) if has_line else Curve(coarse)]
    if len(bins):
        result.append(Curve(bins))
    for pair in dict.fromkeys(columns for columns in owners if len(columns) == 2 and name in columns):
        result += _through_grid(encoder, owners, pair, name)
    return result


def isotonic(values: Sequence[float]) -> list[float]:
    """Return the nearest non-decreasing sequence, by pooling neighbours that decrease.

    Examples
    --------
    >>> isotonic([1.0, 3.0, 2.0, 4.0])
    [1.0, 2.5, 2.5, 4.0]
    """
    pools: list[tuple[float, list[float]]] = []
    for value in values:
        pools.append((value, [value]))
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            (_, last), (_, before) = pools.pop(), pools.pop()
            pools.append((_mean(before + last), before + last))
    return [mean for mean, pooled in pools for _ in pooled]


def _through_grid(
    encoder: Encoder, owners: Sequence[tuple[str, ...]], pair: tuple[str, ...], name: str
) -> list[Curve]:
    base: Any = base_of(encoder)
    sizes = [base.resolution.grid_of(base.schema.columns[column]) for column in pair]
    grid = np.flatnonzero([columns == pair for columns in owners]).reshape(sizes)
    return [Curve(line) for line in (grid.T if pair[0] == name else grid)]


def _coarse_width(column: Any) -> int:
    """Return the number of features of a column without its fine bins."""
    if isinstance(column, CategoryColumn):
        return len(column.values) + (column.unknown == "other")
    trend = 2 if is_cyclic(column) else 1
    return trend if column.encoding == "linear" else knots_of(column) + trend


def _column(encoder: Encoder, name: str) -> Any:
    base = base_of(encoder)
    if not isinstance(base, SchemaEncoder):
        raise InvalidParameter("only a model over a schema's columns can be refined, rounding aside")
    if name not in base.schema.columns:
        raise InvalidParameter(
            f"the schema has no column {preview(name)}: it has {', '.join(base.schema.columns)}"
            f"{did_you_mean(name, base.schema.columns)}"
        )
    return base.columns[name]


def _refuse_unordered(encoder: Encoder, name: str, what: str) -> None:
    column = _column(encoder, name)
    if isinstance(column, CategoryColumn | TextColumn) or is_cyclic(column):
        raise InvalidParameter(f"column {name!r} has no order along which it could be {what}")


def typical_value(values: Sequence[float]) -> float:
    """Return the mean over simulated rows, most of which have small numbers or one of the first values."""
    count = len(values)
    shares = [
        (1.0 - index / count) ** _CROWDING - (1.0 - (index + 1) / count) ** _CROWDING
        for index in range(count)
    ]
    return math.fsum(value * share for value, share in zip(values, shares, strict=True))


_CROWDING = 4
"""Exponent with which `privlearn.estimators.forecast.stand_ins` simulates rows."""


def _mean(values: Iterable[float]) -> float:
    numbers = list(values)
    return math.fsum(numbers) / len(numbers)

"""What is done to a released model afterwards, from the file alone: it costs nothing, and can be done again.

Post-processing: whatever is computed from a release without looking at a record keeps its promise. A refined release
carries the coefficients it came from and the steps, so that whoever reads it repeats them: all sums are rounded once
(`math.fsum`), all else is done number by number, and so every machine finds the same bits.
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
from privlearn.data.encode.encoder import SchemaEncoder
from privlearn.data.encode.positions import is_cyclic, knots_of
from privlearn.data.schema.columns import CategoryColumn, TextColumn
from privlearn.errors import InvalidParameter, VerificationError, did_you_mean, shown
from privlearn.release.encoders import Encoder, base_of, feature_columns

Places = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Curve:
    """Coefficients that follow one column's values, all else equal: of its list, its knots, its bins, or in a pair.

    ``line`` is the place of a straight part beside the knots, which they can take over.
    """

    places: Places
    line: int | None = None


class Step(ABC):
    """One thing that is done to coefficients."""

    name: ClassVar[str]

    @abstractmethod
    def apply(self, encoder: Encoder, coefficients: Array) -> Array:
        """The new coefficients, one row per score; refuses what does not fit."""

    def to_dict(self) -> dict[str, Any]:
        return {"step": self.name} | asdict(self)  # type: ignore[call-overload, no-any-return]

    @property
    def told(self) -> str:
        """In words."""
        return " ".join([self.name, *map(str, asdict(self).values())])  # type: ignore[call-overload]


@dataclass(frozen=True)
class _OfColumn(Step):
    """Replaces each curve of one column."""

    column: str

    def apply(self, encoder: Encoder, coefficients: Array) -> Array:
        refined = coefficients.copy()
        for curve in curves(encoder, self.column):
            for row in refined:
                self._replace(encoder, row, curve)
        return refined

    def _replace(self, encoder: Encoder, row: Array, curve: Curve) -> None:
        values = row[curve.places]
        if curve.line is not None:
            values = values + row[curve.line] * np.linspace(-1.0, 1.0, len(values))
            row[curve.line] = 0.0
        row[curve.places] = self.reshaped(values.tolist())

    @abstractmethod
    def reshaped(self, values: list[float]) -> list[float]:
        """A curve's new values."""


@dataclass(frozen=True)
class Flatten(_OfColumn):
    """A column that says nothing more: every value gets what a usual row has, and so do those of its pairs."""

    name: ClassVar[str] = "flatten"

    def reshaped(self, values: list[float]) -> list[float]:
        return [usual(values)] * len(values)


@dataclass(frozen=True)
class Smooth(_OfColumn):
    """Each value of an ordered column becomes the mean of those up to ``reach`` places beside it."""

    reach: int
    name: ClassVar[str] = "smooth"

    def apply(self, encoder: Encoder, coefficients: Array) -> Array:
        _refuse_unordered(encoder, self.column, "smoothed")
        if not isinstance(self.reach, int) or self.reach < 1:
            raise InvalidParameter(f"smooth over 1 place or more to either side, not {shown(self.reach)}")
        return super().apply(encoder, coefficients)

    def reshaped(self, values: list[float]) -> list[float]:
        return [
            _mean(values[max(place - self.reach, 0) : place + self.reach + 1]) for place in range(len(values))
        ]


@dataclass(frozen=True)
class Monotone(_OfColumn):
    """The nearest curve that never turns back (least squares); of each part that the column's effect is a sum of."""

    direction: str
    name: ClassVar[str] = "monotone"

    def apply(self, encoder: Encoder, coefficients: Array) -> Array:
        _refuse_unordered(encoder, self.column, "made monotone")
        if self.direction not in ("increasing", "decreasing"):
            raise InvalidParameter(f"say increasing or decreasing, not {shown(self.direction)}")
        if len(coefficients) > 1:
            raise InvalidParameter("only one score can be monotone, and this model has one for each class")
        return super().apply(encoder, coefficients)

    def reshaped(self, values: list[float]) -> list[float]:
        sign = 1.0 if self.direction == "increasing" else -1.0
        if len(values) == 1:  # the slope of a line
            return [sign * max(sign * values[0], 0.0)]
        return [sign * value for value in isotonic([sign * value for value in values])]


@dataclass(frozen=True)
class Merge(Step):
    """Values of a list that count as one: each gets their mean.

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
                row[curve.places[merged]] = _mean(row[curve.places[merged]].tolist())
        return refined


@dataclass(frozen=True)
class Round(Step):
    """So many digits after the point."""

    digits: int
    name: ClassVar[str] = "round"

    def apply(self, encoder: Encoder, coefficients: Array) -> Array:
        if not isinstance(self.digits, int) or not 0 <= self.digits <= 15:
            raise InvalidParameter(f"round to 0 to 15 digits after the point, not {shown(self.digits)}")
        return np.round(coefficients, self.digits) + 0.0  # no -0.0


STEPS: dict[str, type[Step]] = {kind.name: kind for kind in (Merge, Smooth, Monotone, Flatten, Round)}


@dataclass(frozen=True, eq=False)
class Refinement:
    """The steps, and the coefficients that they were applied to."""

    steps: tuple[Step, ...]
    origin: Array

    def apply(self, encoder: Encoder) -> Array:
        """The refined coefficients."""
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
    def told(self) -> str:
        return ", ".join(step.told for step in self.steps)


COST = (
    "nothing: computed from the release of that digest and public facts alone (post-processing); its promise is this "
    "file's"
)


def refinement_from_dict(record: Mapping[str, Any], origin: Array) -> Refinement:
    """Inverse of `Refinement.to_dict`."""
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
    """All curves of a column: its knots or its list, its fine bins, and its lines through each pair's grid."""
    column = _column(encoder, name)
    owners = feature_columns(encoder)
    own = np.flatnonzero([columns == (name,) for columns in owners])
    found = []
    if isinstance(column, TextColumn):
        return [Curve(own[[place]]) for place in range(len(own))]
    width = _coarse_width(column)
    coarse, bins = own[:width], own[width:]
    has_line = not isinstance(column, CategoryColumn) and width > 1
    found.append(Curve(coarse[:-1], int(coarse[-1])) if has_line else Curve(coarse))
    if len(bins):
        found.append(Curve(bins))
    for pair in dict.fromkeys(columns for columns in owners if len(columns) == 2 and name in columns):
        found += _through_grid(encoder, owners, pair, name)
    return found


def isotonic(values: Sequence[float]) -> list[float]:
    """The nearest sequence that does not fall, by pooling neighbours that do."""
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
    """Features of a column without its fine bins."""
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
            f"the schema has no column {shown(name)}: it has {', '.join(base.schema.columns)}"
            f"{did_you_mean(name, base.schema.columns)}"
        )
    return base.schema.columns[name]


def _refuse_unordered(encoder: Encoder, name: str, what: str) -> None:
    column = _column(encoder, name)
    if isinstance(column, CategoryColumn | TextColumn) or is_cyclic(column):
        raise InvalidParameter(f"column {name!r} has no order along which it could be {what}")


def usual(values: Sequence[float]) -> float:
    """The mean by the law of made-up rows: most people are at a column's lower end, or have one of the first values."""
    count = len(values)
    shares = [
        (1.0 - place / count) ** _CROWDED - (1.0 - (place + 1) / count) ** _CROWDED for place in range(count)
    ]
    return math.fsum(value * share for value, share in zip(values, shares, strict=True))


_CROWDED = 4
"""As `privlearn.planning.stand_in` makes rows up."""


def _mean(values: Iterable[float]) -> float:
    listed = list(values)
    return math.fsum(listed) / len(listed)

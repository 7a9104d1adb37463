"""Public: which tables an evaluation counts, and the noise that they get. No row is looked at."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from privlearn.arrays import Array
from privlearn.data.schema.columns import CategoryColumn, OrdinalColumn, Target
from privlearn.data.schema.public import Value
from privlearn.data.schema.schema import Schema
from privlearn.errors import InvalidParameter, did_you_mean, shown
from privlearn.evaluation.bins import bins_for, even_edges, probability_edges, residual_edges
from privlearn.evaluation.subject import Subject
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.statistics.counts import NoisyCounts

MAIN_WEIGHT = 2.0
"""Of the table that most numbers come from; each group's table, which has few cells, weighs 1."""
_REACH = 0.5
"""Residuals are clipped to half of the target's range: noise in cells far out would drown the squares."""


Groups = Mapping[str, tuple[Value, ...]]
"""The values of each column that errors are told by."""


@dataclass(frozen=True, eq=False)
class EvaluationPlan:
    """What will be counted, with the calibrated mechanism.

    Attributes
    ----------
    about : dict
        Plain JSON values, for the file.
    mechanism : NoisyCounts
    """

    about: dict[str, Any]
    mechanism: NoisyCounts

    @property
    def edges(self) -> Array:
        return np.array(self.about["edges"])

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        return [tuple(shape) for shape in self.about["shapes"]]


def plan_evaluation(
    subject: Subject,
    schema: Schema,
    groups: Groups,
    guarantee: Guarantee,
    records: int,
    *,
    calibrate: Callable[..., NoisyCounts] = NoisyCounts.calibrate,
) -> EvaluationPlan:
    """The tables for so many records, or persons, and the noise that keeps the promise: of ``calibrate``."""
    target = schema.target
    assert target is not None
    tables = _Tables(target, groups)
    facts: dict[str, Any] = {
        "records": records,
        "rows_per_person": schema.rows_per_person,
        "weights": tables.weights,
    }
    rough = calibrate(guarantee, cells=[1] * len(tables.weights), **facts)
    scale = _scale(subject, target, records, rough.deviations[0])
    shapes = tables.shapes(scale)
    mechanism = calibrate(guarantee, cells=[int(np.prod(shape)) for shape in shapes], **facts)
    about = {
        "kind": "evaluation",
        "of": subject.title,
        "release_sha256": subject.release_sha256,
        "dataset": schema.name,
        "schema_sha256": schema.digest,
        "target": target.name,
        **tables.described,
        **scale,
        "by": {name: list(values) for name, values in groups.items()},
        "shapes": [list(shape) for shape in shapes],
        "complete": target.unknown != "zero",
    }
    return EvaluationPlan(about, mechanism)


@dataclass(frozen=True)
class _Tables:
    """Which there are, by what is predicted."""

    target: Target
    groups: Groups

    @property
    def main(self) -> int:
        """How many before those of the groups."""
        classes = len(self.target.classes or ())
        return 2 if not classes else 1 if classes == 2 else 1 + classes

    @property
    def weights(self) -> list[float]:
        return [MAIN_WEIGHT] * self.main + [1.0] * len(self.groups)

    @property
    def described(self) -> dict[str, Any]:
        if self.target.classes:
            return {"classes": list(self.target.classes)}
        assert self.target.bounds is not None
        return {"bounds": list(self.target.bounds)}

    def shapes(self, scale: Mapping[str, Any]) -> list[tuple[int, ...]]:
        bins = len(scale["edges"]) - 1
        classes = len(self.target.classes or ())
        main: list[tuple[int, ...]]
        each: tuple[int, ...]
        if not classes:
            main, each = [(bins,), (len(scale["target_edges"]) - 1,)], (bins,)
        elif classes == 2:
            main, each = [(2, bins)], (2, 2)
        else:
            main, each = [(classes, classes), *[(2, bins)] * classes], (2,)
        return [*main, *((len(values), *each) for values in self.groups.values())]


def _scale(subject: Subject, target: Target, records: int, deviation: float) -> dict[str, Any]:
    """Edges of the bins of scores or residuals, for noise of a deviation; the threshold is one of them."""
    bins = bins_for(records, deviation)
    if target.bounds is not None:
        lower, upper = target.bounds
        return {
            "scale": "residual",
            "edges": residual_edges(_REACH * (upper - lower), records, deviation).tolist(),
            "target_edges": even_edges(lower, upper, bins).tolist(),
        }
    edges = (
        probability_edges(bins) if subject.is_probability else even_edges(-subject.bound, subject.bound, bins)
    )
    scale = "probability" if subject.is_probability else "score"
    if len(target.classes or ()) > 2:
        return {"scale": scale, "edges": edges.tolist()}
    nearest = 1 + int(np.argmin(np.abs(edges[1:-1] - subject.threshold)))
    edges[nearest] = np.clip(subject.threshold, edges[0], edges[-1])
    return {"scale": scale, "edges": edges.tolist(), "threshold": float(edges[nearest])}


def groups_of(schema: Schema, by: str | Sequence[str] | None) -> Groups:
    """The groups that the schema lists; refuses columns that have none."""
    names = [] if by is None else [by] if isinstance(by, str) else list(by)
    if len(set(names)) < len(names):
        raise InvalidParameter("a column is named twice in `by`: name each once")
    return {name: _values(schema, name) for name in names}


def _values(schema: Schema, name: str) -> tuple[Value, ...]:
    column = schema.columns.get(name)
    if not isinstance(column, CategoryColumn | OrdinalColumn):
        listed = [
            key for key, one in schema.columns.items() if isinstance(one, CategoryColumn | OrdinalColumn)
        ]
        raise InvalidParameter(
            f"by={shown(name)} is no column whose groups the schema lists: take one of {', '.join(listed) or 'none'}"
            f"{did_you_mean(name, listed)}"
        )
    return column.values

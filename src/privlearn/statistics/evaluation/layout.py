"""Public: the tables that an evaluation counts, and their bins. No row is read here.

For two classes, ten bins and one column of three groups the shapes are [(2, 10), (3, 2, 2)]: scores by true class and
bin, then each group by true and predicted class. For K > 2 classes the first table is the confusion matrix (K, K),
followed by one table (2, bins) per class. For a number the tables are residuals (bins,) and targets (bins,).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from privlearn.arrays import Array
from privlearn.data.schema.columns import CategoryColumn, OrdinalColumn
from privlearn.data.schema.public import Value
from privlearn.data.schema.schema import Schema
from privlearn.data.schema.target import Target
from privlearn.errors import InvalidParameter, did_you_mean, preview
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.statistics.counts import NoisyCounts
from privlearn.statistics.evaluation.subject import Subject
from privlearn.statistics.layout import CountsLayout, counted_records, weight_of

MAIN_WEIGHT = 2.0
"""Weight of a table that most numbers come from; each group's table, which has few cells, has weight 1."""
_REACH = 0.5
"""Residuals are clipped to half of the target's range: noise in outer cells would dominate the mean of squares."""

Groups = Mapping[str, tuple[Value, ...]]
"""The values of each column by which errors are reported."""


def evaluation_layout(
    subject: Subject,
    schema: Schema,
    groups: Groups,
    guarantee: Guarantee,
    records: int,
    *,
    calibrate: Callable[..., NoisyCounts] = NoisyCounts.calibrate,
) -> CountsLayout:
    """Return the layout of an evaluation of ``records`` records or persons.

    ``calibrate`` returns the mechanism with the smallest noise that satisfies the guarantee.
    """
    target = schema.target
    assert target is not None
    tables = _Tables(target, groups)
    public: dict[str, Any] = {
        "records": records,
        "rows_per_person": schema.rows_per_person,
        "weights": tables.weights,
    }
    # The noise hardly depends on the number of cells, so one cell per table is enough to choose the bins.
    rough = calibrate(guarantee, cells=[1] * len(tables.weights), **public)
    scale = _scale(subject, target, counted_records(schema, records), rough.deviations[0])
    shapes = tables.shapes(scale)
    about = {
        "kind": "evaluation",
        "of": subject.title,
        "release_sha256": subject.release_sha256,
        "dataset": schema.name,
        "schema_sha256": schema.digest,
        "target": target.name,
        **tables.target_range,
        **scale,
        "by": {name: list(values) for name, values in groups.items()},
        "shapes": [list(shape) for shape in shapes],
        "complete": target.unknown != "zero" and schema.weight is None,
        **weight_of(schema),
    }
    return CountsLayout(
        about, calibrate(guarantee, cells=[int(np.prod(shape)) for shape in shapes], **public)
    )


@dataclass(frozen=True)
class _Tables:
    """The tables of a target and some groups: their weights and shapes."""

    target: Target
    groups: Groups

    @property
    def weights(self) -> list[float]:
        classes = len(self.target.classes or ())
        main = 2 if not classes else 1 if classes == 2 else 1 + classes
        return [MAIN_WEIGHT] * main + [1.0] * len(self.groups)

    @property
    def target_range(self) -> dict[str, Any]:
        if self.target.classes:
            return {"classes": list(self.target.classes)}
        assert self.target.bounds is not None
        return {"bounds": list(self.target.bounds)}

    def shapes(self, scale: Mapping[str, Any]) -> list[tuple[int, ...]]:
        bins = len(scale["edges"]) - 1
        classes = len(self.target.classes or ())
        main: list[tuple[int, ...]]
        each_group: tuple[int, ...]
        if not classes:
            main, each_group = [(bins,), (len(scale["target_edges"]) - 1,)], (bins,)
        elif classes == 2:
            main, each_group = [(2, bins)], (2, 2)
        else:
            main, each_group = [(classes, classes), *[(2, bins)] * classes], (2,)
        return [*main, *((len(values), *each_group) for values in self.groups.values())]


def _scale(subject: Subject, target: Target, records: float, deviation: float) -> dict[str, Any]:
    """Return the edges of the bins of scores or residuals; the threshold of two classes is one of them."""
    bins = number_of_bins(records, deviation)
    if target.bounds is not None:
        lower, upper = target.bounds
        return {
            "scale": "residual",
            "edges": residual_edges(_REACH * (upper - lower), records, deviation).tolist(),
            "target_edges": np.linspace(lower, upper, bins + 1).tolist(),
        }
    if subject.is_probability:
        scale, edges = "probability", probability_edges(bins)
    else:
        scale, edges = "score", np.linspace(-subject.bound, subject.bound, bins + 1)
    if len(target.classes or ()) > 2:
        return {"scale": scale, "edges": edges.tolist()}
    nearest = 1 + int(np.argmin(np.abs(edges[1:-1] - subject.threshold)))
    edges[nearest] = np.clip(subject.threshold, edges[0], edges[-1])
    return {"scale": scale, "edges": edges.tolist(), "threshold": float(edges[nearest])}


def number_of_bins(records: float, deviation: float) -> int:
    """Return an even number of bins that balances their width against their noise in the area under the curve.

    Bins lose about 1 / bins^2 of the area; the noise grows like sqrt(bins) deviation / records.
    """
    ratio = records / max(deviation, 1.0)
    return 2 * int(np.clip(round(0.45 * ratio**0.4), 4, 32))


def probability_edges(bins: int) -> Array:
    """Return edges that are even in arcsin(sqrt(p)): finer near 0 and 1, where a probability is known better."""
    edges = np.sin(np.pi / 2.0 * np.arange(bins + 1) / bins) ** 2
    edges[bins // 2], edges[-1] = 0.5, 1.0
    return edges


def residual_edges(bound: float, records: float, deviation: float) -> Array:
    """Return edges of residuals: even around 0, in geometric progression further out.

    The number of bins is a multiple of 4, and 0 is an edge. The noise of a mean residual comes from the few outermost
    bins, so narrow bins around 0 cost nothing. They are as narrow as that noise can resolve; neighbours differ by an
    eighth to a quarter, less if there are more records.
    """
    ratio = max(records / max(deviation, 1.0), 10.0)
    scale, step = np.arcsinh(ratio), np.clip(0.9 * ratio**-0.2, 0.14, 0.22)
    half = 2 * int(np.ceil(scale / step / 2.0))
    return np.asarray(bound * np.sinh(scale * np.arange(-half, half + 1) / half) / ratio)


def groups_of(schema: Schema, by: str | Sequence[str] | None) -> Groups:
    """Return the listed values of the columns in ``by``; refuse columns without a list."""
    names = [] if by is None else [by] if isinstance(by, str) else list(by)
    if len(set(names)) < len(names):
        raise InvalidParameter("a column occurs twice in `by`. Name each column once.")
    return {name: _values(schema, name) for name in names}


def _values(schema: Schema, name: str) -> tuple[Value, ...]:
    lists = {
        key: column.values
        for key, column in schema.columns.items()
        if isinstance(column, CategoryColumn | OrdinalColumn)
    }
    if name not in lists:
        raise InvalidParameter(
            f"by={preview(name)} is not a column with a list of values in the schema. "
            f"Use one of: {', '.join(lists) or 'none'}{did_you_mean(name, list(lists))}"
        )
    return lists[name]

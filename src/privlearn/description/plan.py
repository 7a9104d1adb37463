"""Public: which tables a description counts, and the noise that they get. No row is looked at."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

import numpy as np

from privlearn.arrays import Array
from privlearn.data.schema.columns import (
    CategoryColumn,
    DateColumn,
    NumberColumn,
    OrdinalColumn,
    Target,
    TextColumn,
)
from privlearn.data.schema.schema import Schema
from privlearn.errors import InvalidParameter
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.statistics.counts import NoisyCounts

Described = NumberColumn | DateColumn | OrdinalColumn | CategoryColumn

MOST_PAIRS = 2_000
"""Of columns, those of 63: each pair is a table of its own, in the plan and in the certificate."""

_LEAST_BINS, _MOST_BINS = 5, 40
_FEWEST_NOISES = 8.0
"""In a bin of an even histogram the count is so many times its noise, as long as the table has records for it."""


@dataclass(frozen=True, eq=False)
class DescriptionPlan:
    """What will be counted, with the calibrated mechanism.

    Attributes
    ----------
    about : dict
        Plain JSON values, for the file.
    mechanism : NoisyCounts
    """

    about: dict[str, Any]
    mechanism: NoisyCounts


def plan_description(
    schema: Schema, guarantee: Guarantee, records: int, *, correlations: bool
) -> DescriptionPlan:
    """One table per column; and two cells per pair of columns that have an order.

    Half of the budget is for the columns, half for all pairs.
    """
    columns = described_columns(schema)
    pairs = _pairs(columns) if correlations else []
    weights = (
        [1.0] * len(columns) + [len(columns) / len(pairs)] * len(pairs) if pairs else [1.0] * len(columns)
    )
    facts: dict[str, Any] = {
        "records": records,
        "rows_per_person": schema.rows_per_person,
        "weights": weights,
    }
    rough = NoisyCounts.calibrate(guarantee, cells=[1] * len(weights), **facts)
    bins = _bins(records, rough.deviations[0])
    told = {name: _described(column, bins) for name, column in columns.items()}
    shapes = [[_cells(column)] for column in told.values()] + [[2]] * len(pairs)
    mechanism = NoisyCounts.calibrate(guarantee, cells=[shape[0] for shape in shapes], **facts)
    about = {
        "kind": "description",
        "dataset": schema.name,
        "schema_sha256": schema.digest,
        "columns": told,
        "pairs": [list(pair) for pair in pairs],
        "shapes": shapes,
    }
    return DescriptionPlan(about, mechanism)


def described_columns(schema: Schema) -> dict[str, Described]:
    """The schema's columns and its target; free text has nothing that could be counted without reading it."""
    target = {} if schema.target is None else {schema.target.name: _as_column(schema.target)}
    every = {**schema.columns, **target}
    found = {name: column for name, column in every.items() if not isinstance(column, TextColumn)}
    if not found:
        raise InvalidParameter("the schema has columns of free text only, of which there is nothing to count")
    return found


def _as_column(target: Target) -> NumberColumn | CategoryColumn:
    if target.bounds is None:
        return CategoryColumn(values=target.labels or ())
    lower, upper = target.bounds
    return NumberColumn(lower=lower, upper=upper)


def _pairs(columns: dict[str, Described]) -> list[tuple[str, str]]:
    ordered = [name for name, column in columns.items() if _has_order(column)]
    count = math.comb(len(ordered), 2)
    if count > MOST_PAIRS:
        raise InvalidParameter(
            f"{len(ordered)} columns have {count:,} correlations, more than the {MOST_PAIRS:,} allowed at a time: "
            "say correlations: false (in the shell --no-correlations), or describe fewer columns"
        )
    return list(itertools.combinations(ordered, 2))


def _has_order(column: Described) -> bool:
    return not isinstance(column, CategoryColumn) or len(column.values) == 2


def _bins(records: int, deviation: float) -> int:
    """Public: as many as an even histogram fills well beyond its noise."""
    return int(np.clip(records / (_FEWEST_NOISES * max(deviation, 1.0)), _LEAST_BINS, _MOST_BINS))


def _described(column: Described, bins: int) -> dict[str, Any]:
    """What a column's cells are; missing ones have the last, values that no list has the one before."""
    if isinstance(column, CategoryColumn | OrdinalColumn):
        return {"type": column.type, "values": list(column.values)}
    if isinstance(column, DateColumn):
        days = (column.upper - column.lower).days
        places = sorted({round(days * place / bins) for place in range(bins + 1)})
        return {"type": "date", "edges": [(column.lower + timedelta(day)).isoformat() for day in places]}
    assert isinstance(column, NumberColumn)
    shares: Array = np.arange(bins + 1.0) / bins
    width = column.upper - column.lower
    above = np.expm1(shares * np.log1p(width)) if column.scale == "log" else shares * width
    edges = [*(column.lower + above[:-1]).tolist(), column.upper]
    return {"type": "number", "scale": column.scale, "edges": edges}


def edges_of(told: dict[str, Any]) -> Array:
    """Edges of a histogram as numbers; those of dates in days since the first."""
    if told["type"] != "date":
        return np.array(told["edges"], dtype=float)
    days = [date.fromisoformat(day) for day in told["edges"]]
    return np.array([float((day - days[0]).days) for day in days])


def middles_of(told: dict[str, Any]) -> Array:
    """Where each cell lies on the column's scale, from -1 to 1: what correlations are computed with."""
    if "values" in told:
        return np.linspace(-1.0, 1.0, len(told["values"]))
    bins = len(told["edges"]) - 1
    return np.asarray((2.0 * np.arange(bins) + 1.0) / bins - 1.0)


def _cells(told: dict[str, Any]) -> int:
    """Its values or bins, one for values that are not listed, one for missing cells."""
    return len(middles_of(told)) + 2

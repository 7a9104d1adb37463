"""Public: the tables that a description counts, and their bins. No row is read here.

Each column has one table: a cell per listed value or bin, then one for values that are not listed, then one for
missing cells. A column with values ("a", "b") therefore has 4 cells. Each pair of ordered columns has a table of two
cells, for the positive and the negative products of their values. Each requested cross table has a cell for each
combination of two columns' values or bins; records without both are not in it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from datetime import date, timedelta
from typing import Any

import numpy as np

from privlearn.arrays import Array
from privlearn.data.schema.columns import CategoryColumn, DateColumn, NumberColumn, OrdinalColumn, TextColumn
from privlearn.data.schema.schema import Schema
from privlearn.data.schema.target import Target
from privlearn.errors import InvalidParameter, did_you_mean
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.statistics.counts import NoisyCounts
from privlearn.statistics.layout import CountsLayout, counted_records, weight_of

DescribedColumn = NumberColumn | DateColumn | OrdinalColumn | CategoryColumn

MAX_CROSS_CELLS = 400
"""Of one cross table: beyond, most cells hold noise alone, and its test takes long."""

MAX_PAIRS = 2_000
"""Enough for 63 columns. Each pair is one more table, in the layout and in the certificate."""

_MIN_BINS, _MAX_BINS = 5, 40
_MIN_SIGNAL = 8.0
"""Number of bins: the mean count of a bin is about this many times its noise, if there are enough records."""


def description_layout(
    schema: Schema,
    guarantee: Guarantee,
    records: int,
    *,
    correlations: bool,
    crosses: Sequence[tuple[str, str]] = (),
) -> CountsLayout:
    """Return the layout of a description: equal parts of the budget for columns, for pairs and for cross tables."""
    columns = described_columns(schema)
    pairs = _pairs(columns) if correlations else []
    check_crosses(schema, crosses)
    parts = [[1.0] * len(columns)]
    parts += [[len(columns) / len(tables)] * len(tables) for tables in (pairs, crosses) if tables]
    weights = list(itertools.chain(*parts))
    public: dict[str, Any] = {
        "records": records,
        "rows_per_person": schema.rows_per_person,
        "weights": weights,
    }
    # The noise hardly depends on the number of cells, so one cell per table is enough to choose the bins.
    rough = NoisyCounts.calibrate(guarantee, cells=[1] * len(weights), **public)
    bins = _number_of_bins(counted_records(schema, records), rough.deviations[0])
    described = {name: _describe_cells(column, bins) for name, column in columns.items()}
    shapes = [[len(middles_of(column)) + 2] for column in described.values()] + [[2]] * len(pairs)
    shapes += [[len(middles_of(described[name])) for name in cross] for cross in crosses]
    _check_sizes(crosses, shapes[len(shapes) - len(crosses) :])
    about = {
        "kind": "description",
        "dataset": schema.name,
        "schema_sha256": schema.digest,
        "columns": described,
        "pairs": [list(pair) for pair in pairs],
        "crosses": [list(cross) for cross in crosses],
        "shapes": shapes,
        **weight_of(schema),
    }
    cells = [math.prod(shape) for shape in shapes]
    return CountsLayout(about, NoisyCounts.calibrate(guarantee, cells=cells, **public))


def described_columns(schema: Schema) -> dict[str, DescribedColumn]:
    """Return the schema's columns and its target, without columns of free text, which have no public cells."""
    target = {} if schema.target is None else {schema.target.name: _as_column(schema.target)}
    columns = {**schema.columns, **target}
    described = {name: column for name, column in columns.items() if not isinstance(column, TextColumn)}
    if not described:
        raise InvalidParameter(
            "the schema has only columns of free text, which cannot be counted. Add a column of another type"
        )
    return described


def _as_column(target: Target) -> NumberColumn | CategoryColumn:
    if target.bounds is None:
        return CategoryColumn(values=target.labels or ())
    lower, upper = target.bounds
    return NumberColumn(lower=lower, upper=upper)


def _pairs(columns: dict[str, DescribedColumn]) -> list[tuple[str, str]]:
    ordered = [name for name, column in columns.items() if _has_order(column)]
    count = math.comb(len(ordered), 2)
    if count > MAX_PAIRS:
        raise InvalidParameter(
            f"{len(ordered)} columns have {count:,} correlations, and at most {MAX_PAIRS:,} are allowed. "
            "Set correlations=False (in the shell: --no-correlations), or describe fewer columns"
        )
    return list(itertools.combinations(ordered, 2))


def check_crosses(schema: Schema, crosses: Sequence[tuple[str, str]]) -> None:
    """Raise InvalidParameter for cross tables that the schema does not offer."""
    columns = described_columns(schema)
    for cross in crosses:
        if len(cross) != 2 or cross[0] == cross[1]:
            raise InvalidParameter("a cross table has two different columns, such as ('smoker', 'ill')")
        for name in cross:
            if name not in columns:
                raise InvalidParameter(f"the schema has no column {name!r}{did_you_mean(name, columns)}")
    if len(set(map(frozenset, crosses))) < len(crosses):
        raise InvalidParameter("the same cross table is requested twice. Leave one out.")


def _check_sizes(crosses: Sequence[tuple[str, str]], shapes: Sequence[Sequence[int]]) -> None:
    for (one, other), shape in zip(crosses, shapes, strict=True):
        if math.prod(shape) > MAX_CROSS_CELLS:
            raise InvalidParameter(
                f"the cross table of {one} and {other} has {math.prod(shape):,} cells, and at most {MAX_CROSS_CELLS} "
                "are allowed. Merge categories in the schema (merge: {...})."
            )


def _has_order(column: DescribedColumn) -> bool:
    return not isinstance(column, CategoryColumn) or len(column.values) == 2


def _number_of_bins(records: float, deviation: float) -> int:
    return int(np.clip(records / (_MIN_SIGNAL * max(deviation, 1.0)), _MIN_BINS, _MAX_BINS))


def _describe_cells(column: DescribedColumn, bins: int) -> dict[str, Any]:
    """Return a column's values or the edges of its bins, as plain JSON values."""
    if isinstance(column, CategoryColumn | OrdinalColumn):
        return {"type": column.type, "values": list(column.values)}
    if isinstance(column, DateColumn):
        days = (column.upper - column.lower).days
        offsets = sorted({round(days * index / bins) for index in range(bins + 1)})
        return {"type": "date", "edges": [(column.lower + timedelta(day)).isoformat() for day in offsets]}
    assert isinstance(column, NumberColumn)
    shares: Array = np.arange(bins + 1.0) / bins
    width = column.upper - column.lower
    above = np.expm1(shares * np.log1p(width)) if column.scale == "log" else shares * width
    edges = [*(column.lower + above[:-1]).tolist(), column.upper]
    return {"type": "number", "scale": column.scale, "edges": edges}


def edges_of(cells: dict[str, Any]) -> Array:
    """Return the edges of a histogram, of shape (bins + 1,); those of dates in days since the first edge."""
    if cells["type"] != "date":
        return np.array(cells["edges"], dtype=float)
    days = [date.fromisoformat(day) for day in cells["edges"]]
    return np.array([float((day - days[0]).days) for day in days])


def middles_of(cells: dict[str, Any]) -> Array:
    """Return the position of each value or bin on a scale from -1 to 1; correlations are computed with these."""
    if "values" in cells:
        return np.linspace(-1.0, 1.0, len(cells["values"]))
    bins = len(cells["edges"]) - 1
    return np.asarray((2.0 * np.arange(bins) + 1.0) / bins - 1.0)


def has_numbers(cells: dict[str, Any]) -> bool:
    """Return whether a mean of the column has a meaning: numbers, ordered values, or two values."""
    return cells["type"] in ("number", "ordinal") or len(cells.get("values", ())) == 2


def numbers_of(cells: dict[str, Any]) -> Array:
    """Return the number that each value or bin stands for: 0, 1, ... for values, and the middle of a bin."""
    if "values" in cells:
        return np.arange(float(len(cells["values"])))
    edges = edges_of(cells)
    return np.asarray((edges[1:] + edges[:-1]) / 2.0)

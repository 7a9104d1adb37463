"""Where the cells of an ordered column lie between its two ends: numbers, dates and values of an ordered list alike."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privlearn.arrays import Array
from privlearn.data.encode.column_cells import MISSING, UNKNOWN, codes, days, numbers
from privlearn.data.schema.columns import DateColumn, NumberColumn, OrdinalColumn
from privlearn.errors import ON_DROPPING, DataError

Ordered = NumberColumn | OrdinalColumn | DateColumn
Places = NDArray[np.int64]

_EPOCH = datetime.date(1970, 1, 1)


def ordered_cells(name: str, column: Ordered, cells: Any) -> Array:
    """The column's cells, checked, as one number each; NaN where the column says nothing about a row."""
    label = f"column {name!r}"
    found: Array
    match column:
        case NumberColumn():
            found = numbers(cells, label)
        case DateColumn():
            found = days(cells, label)
        case OrdinalColumn():
            places = codes(cells, column.values, label)
            refuse_missing(places == MISSING, column.missing, name)
            refuse_unknown(places == UNKNOWN, column.unknown, name)
            found = places.astype(np.float64)
            found[places < 0] = np.nan
            return found
    refuse_missing(np.isnan(found), column.missing, name)
    return found


def positions(column: Ordered, cells: Array) -> Array:
    """Where clamped cells lie between the ends, in [0, 1]; in [0, 1) along a period. NaN stays NaN."""
    lower, upper = ends_of(column)
    above, width = np.clip(cells, lower, upper) - lower, upper - lower
    share: Array = above / width
    if isinstance(column, NumberColumn) and column.scale == "log":
        share = np.log1p(above) / np.log1p(width)
    if isinstance(column, NumberColumn) and column.period is not None:
        share = above / column.period
        share[share >= 1.0] = 0.0
    return np.clip(share, 0.0, 1.0)


def between_knots(position: Array, knots: int, cyclic: bool) -> tuple[Places, Places, Array]:
    """The knots to the left and to the right of each position, and how far it is on the way between them."""
    intervals = knots if cyclic else knots - 1
    along = position * intervals
    left = np.minimum(along.astype(np.int64), intervals - 1)
    right = left + 1
    if cyclic:
        right[right == knots] = 0
    return left, right, along - left


def is_cyclic(column: Ordered) -> bool:
    """Whether the two ends are one."""
    return isinstance(column, NumberColumn) and column.period is not None


def knots_of(column: Ordered) -> int:
    """Knots of the spline; a list needs no more than one for each of its values."""
    return min(column.knots, len(column.values)) if isinstance(column, OrdinalColumn) else column.knots


def refuse_missing(cells: NDArray[np.bool_], rule: str, name: str) -> None:
    _refuse(cells, rule, name, "missing", "missing cells")


def refuse_unknown(cells: NDArray[np.bool_], rule: str, name: str) -> None:
    _refuse(cells, rule, name, "unknown", "values that the schema does not list")


def _refuse(cells: NDArray[np.bool_], rule: str, name: str, setting: str, what: str) -> None:
    if rule == "refuse" and cells.any():
        raise DataError(
            f"column {name!r} has {what}: "
            f"correct those rows, or set {setting}: zero for it in the schema ({ON_DROPPING})"
        )


def ends_of(column: Ordered) -> tuple[float, float]:
    match column:
        case NumberColumn():
            return column.lower, column.upper
        case DateColumn():
            return float((column.lower - _EPOCH).days), float((column.upper - _EPOCH).days)
        case OrdinalColumn():
            return 0.0, float(len(column.values) - 1)

"""Draw synthetic rows and points from public information and a public seed."""

from __future__ import annotations

import datetime
import math
from typing import Any, Final

import numpy as np
import pyarrow as pa

from privlearn.arrays import Array
from privlearn.data.schema.columns import (
    AnyColumn,
    CategoryColumn,
    DateColumn,
    NumberColumn,
    OrdinalColumn,
    TextColumn,
)
from privlearn.data.schema.schema import Schema
from privlearn.errors import InvalidParameter

FROM_SCHEMA: Final = "schema"
"""Parameter value for public points that are drawn uniformly within the schema's ranges and lists."""


def uniform_table(schema: Schema, rows: int, seed: int) -> pa.Table:
    """Return a table whose cells are uniform within the ranges and lists of a schema; none is missing.

    The first rows do not depend on the number of rows.
    """
    positions = np.random.default_rng(seed).random((rows, len(schema.columns)))
    columns = zip(schema.columns.items(), positions.T, strict=True)
    return pa.table({name: cells_at(name, column, values) for (name, column), values in columns})


def uniform_ball(columns: int, radius: float, rows: int, seed: int) -> Array:
    """Return points that are uniform in a ball, of shape (rows, columns)."""
    # d of the d + 2 coordinates of a uniform point on a sphere are uniform in a ball.
    normals = np.random.default_rng(seed).standard_normal((rows, columns + 2))
    norms = np.linalg.norm(normals, axis=1, keepdims=True)
    return np.asarray(radius * normals[:, :columns] / norms, dtype=np.float64)


def cells_at(name: str, column: AnyColumn, positions: Array) -> Any:
    """Return the cells of a column at positions between 0 and 1 of its range or list."""
    match column:
        case NumberColumn():
            width = column.upper - column.lower
            if column.scale == "log":
                return column.lower + np.expm1(positions * math.log1p(width))
            return column.lower + positions * width
        case CategoryColumn() | OrdinalColumn():
            indices = np.minimum((positions * len(column.values)).astype(int), len(column.values) - 1)
            return np.array(column.values)[indices]
        case DateColumn():
            days = np.rint(positions * (column.upper - column.lower).days).astype(int)
            return [column.lower + datetime.timedelta(int(count)) for count in days]
        case TextColumn():
            raise InvalidParameter(
                f"{name!r} is text, which cannot be drawn from a range. Pass public points with similar texts."
            )

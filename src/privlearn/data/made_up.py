"""Rows made up from what is declared public, by a public seed: about nobody."""

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
"""The word that stands for public points: they are made up, uniformly within what is declared public."""


def uniform_table(schema: Schema, rows: int, seed: int) -> pa.Table:
    """Cells that are uniform within the ranges and lists of a schema; none is missing.

    The first rows are the same however many there are.
    """
    random = np.random.default_rng(seed)
    places = random.random((rows, len(schema.columns)))
    columns = zip(schema.columns.items(), places.T, strict=True)
    return pa.table({name: cells_at(name, column, place) for (name, column), place in columns})


def uniform_ball(columns: int, radius: float, rows: int, seed: int) -> Array:
    """Points that are uniform in a ball, where nothing but the bound of their norm is public."""
    random = np.random.default_rng(seed)
    normals = random.standard_normal(
        (rows, columns + 2)
    )  # d of the d + 2 coordinates on a sphere fill a ball
    return np.asarray(
        radius * normals[:, :columns] / np.linalg.norm(normals, axis=1, keepdims=True), dtype=np.float64
    )


def cells_at(name: str, column: AnyColumn, places: Array) -> Any:
    """The cells of a column at places between 0 and 1 of its range or list."""
    match column:
        case NumberColumn():
            width = column.upper - column.lower
            if column.scale == "log":
                return column.lower + np.expm1(places * math.log1p(width))
            return column.lower + places * width
        case CategoryColumn() | OrdinalColumn():
            chosen = np.minimum((places * len(column.values)).astype(int), len(column.values) - 1)
            return np.array(column.values)[chosen]
        case DateColumn():
            days = np.rint(places * (column.upper - column.lower).days).astype(int)
            return [column.lower + datetime.timedelta(int(count)) for count in days]
        case TextColumn():
            raise InvalidParameter(
                f"{name!r} is text, which no range describes: bring public points with texts like those to be read"
            )

"""What a column does to a model's score: features of made-up rows in which only that column changes."""

from __future__ import annotations

import datetime
import math
from typing import Any

import numpy as np
import pyarrow as pa
from scipy import sparse

from privlearn.arrays import Array
from privlearn.data.encode.centred import CentredEncoder, distances
from privlearn.data.encode.encoder import SchemaEncoder
from privlearn.data.encode.positions import Ordered
from privlearn.data.encode.resolution import Pair
from privlearn.data.encode.slots import coarse_pieces
from privlearn.data.schema.columns import (
    AnyColumn,
    CategoryColumn,
    DateColumn,
    NumberColumn,
    OrdinalColumn,
    TextColumn,
)
from privlearn.data.schema.schema import Schema
from privlearn.errors import InvalidParameter, shown
from privlearn.planning.stand_in import stand_in_table
from privlearn.release.encoders import Encoder, base_of, feature_columns

POINTS = 21
"""Of a number's or a date's curve."""

_ROWS = 100


def schema_of(encoder: Encoder) -> Schema:
    """The schema, by whose columns effects are named."""
    base = base_of(encoder)
    if not isinstance(base, SchemaEncoder):
        raise InvalidParameter(
            "effects are of a schema's columns, and this model reads plain arrays: its coefficients say it all"
        )
    return base.schema


def effect_directions(encoder: Encoder, name: str) -> tuple[list[Any], Array]:
    """Values of a column, and for each the features it adds on average to a row, less their mean over all values.

    The mean is over made-up rows of the schema, which are public: a partial dependence. Only the column's own features
    count, and those of its pairs. Features that mix all columns (Fourier's) belong to none and count as they are.
    """
    schema = _checked(encoder, name)
    values, table = _changing(schema, name)
    match encoder:
        case SchemaEncoder():
            means = _own_features(encoder, name, table)
        case CentredEncoder(base=SchemaEncoder() as base):
            means = _own_features(base, name, table) * _usual_factor(encoder, base.encode(table))
        case _:
            means = _means(encoder.encode(table))
    return values, means - means.mean(axis=0)


def norm_shift(encoder: Encoder, name: str, coefficients: Array) -> Array:
    """What a column does to the other columns' part of made-up rows' scores, through the norm that rows are divided by.

    Of shape (values, rows, scores), less the mean over the values.
    """
    _, table = _changing(_checked(encoder, name), name)
    others = [name not in columns for columns in feature_columns(encoder)]
    scores = np.asarray(encoder.encode(table) @ np.where(others, coefficients, 0.0).T)
    shifts = scores.reshape(-1, _ROWS, len(coefficients))
    return np.asarray(shifts - shifts.mean(axis=0))


def pair_directions(encoder: SchemaEncoder, pair: Pair) -> tuple[list[Any], list[Any], Array]:
    """The values of both columns, and for each cell of their grid what the pair adds beside a sum of two curves.

    Cells run through the second column's values first.
    """
    resolution = encoder.resolution
    assert resolution is not None
    columns: Any = [encoder.schema.columns[name] for name in pair]
    sizes = [resolution.grid_of(column) for column in columns]
    own = np.flatnonzero([found == pair for found in encoder.feature_columns])
    weight = math.sqrt(resolution.pair_share / len(resolution.pairs_of(encoder.schema)))
    first, second = (np.eye(size) - 1.0 / size for size in sizes)
    directions = np.zeros((len(own), encoder.dimension))
    directions[:, own] = weight * np.kron(first, second)
    labels = [cell_labels(column, size) for column, size in zip(columns, sizes, strict=True)]
    return labels[0], labels[1], directions


def cell_labels(column: Ordered | CategoryColumn, size: int) -> list[Any]:
    """The middle of each of so many bins of an ordered column; a list's values, and what is not among them."""
    if isinstance(column, CategoryColumn):
        return [*column.values, "other"][:size]
    return _at_places(column, (np.arange(size) + 0.5) / size)


def _checked(encoder: Encoder, name: str) -> Schema:
    schema = schema_of(encoder)
    if name not in schema.columns:
        raise InvalidParameter(f"the schema has no column {shown(name)}: it has {', '.join(schema.columns)}")
    return schema


def _changing(schema: Schema, name: str) -> tuple[list[Any], pa.Table]:
    """The values, and the same made-up rows for each of them, value after value.

    A value of a number stands for all around it: the rows are spread evenly over them.
    """
    values, cells = column_values(name, schema.columns[name])
    table = stand_in_table(schema, _ROWS)
    repeated = table.take(np.tile(np.arange(_ROWS), len(values)))
    return values, repeated.set_column(repeated.schema.get_field_index(name), name, pa.array(cells))


def _own_features(encoder: SchemaEncoder, name: str, table: pa.Table) -> Array:
    """The mean features of each value, those of other columns left out and with a usual row's norm throughout.

    Rows are divided by their norms, so that a column also rescales what the others say: not an effect of its own.
    """
    with_constant = SchemaEncoder(encoder.schema, resolution=encoder.resolution)
    cells = with_constant.cells(table)
    rows = sparse.csr_array(with_constant.expand(cells))
    own = np.array([name in columns for columns in encoder.feature_columns])
    means = np.where(own, _means(encoder.expand(cells)), 0.0)
    scaled = own & (np.arange(len(own)) < _scaled_features(encoder))
    undivided = _means(sparse.diags_array(1.0 / rows[:, [-1]].toarray().ravel()) @ rows)[:, : len(own)]
    usual = np.abs(means[:, scaled]).sum() / np.abs(undivided[:, scaled]).sum()
    return np.where(scaled, usual * undivided, means)


def _scaled_features(encoder: SchemaEncoder) -> int:
    """How many, from the first, are divided by a norm that varies; fine bins and pairs have a fixed share of it."""
    if encoder.resolution is None:
        return encoder.dimension
    columns = encoder.schema.columns.items()
    listed = [(name, column) for name, column in columns if not isinstance(column, TextColumn)]
    return sum(piece.width for name, column in listed for piece in coarse_pieces(name, column))


def _usual_factor(encoder: CentredEncoder, rows: Any) -> float:
    """What centring multiplies differences between rows by."""
    return float(np.mean(encoder.stretch / np.maximum(distances(rows, encoder.mean), encoder.radius)))


def _means(rows: Any) -> Array:
    """Over the made-up rows of each value; sparse features stay sparse until they are averaged."""
    values = rows.shape[0] // _ROWS
    averaging = sparse.kron(sparse.eye_array(values), np.full((1, _ROWS), 1.0 / _ROWS), format="csr")
    return _dense(averaging @ rows)


def _dense(rows: Any) -> Array:
    return rows if isinstance(rows, np.ndarray) else np.asarray(rows.toarray())


def column_values(name: str, column: AnyColumn) -> tuple[list[Any], list[Any]]:
    """Public: the values at which an effect is shown, and the cells of the made-up rows at each, value after value."""
    match column:
        case CategoryColumn() | OrdinalColumn():
            return list(column.values), [value for value in column.values for _ in range(_ROWS)]
        case NumberColumn() | DateColumn():
            cells = _at_places(column, (np.arange(POINTS * _ROWS) + 0.5) / (POINTS * _ROWS))
            return _at_places(column, (np.arange(POINTS) + 0.5) / POINTS), cells
    raise InvalidParameter(f"column {name!r} is text, which has no curve of values")


def _at_places(column: Ordered, places: Array) -> list[Any]:
    """The values at places between 0 and 1 on the column's own scale."""
    match column:
        case NumberColumn():
            width = column.upper - column.lower
            steps = np.expm1(places * np.log1p(width)) if column.scale == "log" else places * width
            return [float(value) for value in np.clip(column.lower + steps, column.lower, column.upper)]
        case DateColumn():
            days = np.rint(places * (column.upper - column.lower).days)
            return [column.lower + datetime.timedelta(int(count)) for count in days]
        case OrdinalColumn():
            return [column.values[int(place * len(column.values))] for place in places]

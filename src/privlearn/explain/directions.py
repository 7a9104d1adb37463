"""Effects as directions: features of synthetic rows in which only one column changes, as functions of coefficients.

A linear model's score is features @ coefficients, so the effect of a column's value on the score is linear in the
coefficients. For a column with 3 values and a model with d features:

1. `_vary` takes 100 synthetic rows and gives all of them the first value, then the second, then the third: 300 rows.
2. The encoder turns them into features of shape (300, d); the mean over each value's rows has shape (3, d).
3. Less the mean over the values, these are the directions D. The effects are D @ coefficients, of shape (3,), and the
   covariance of their noise is D C D', C being that of the coefficients: intervals need nothing but D.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from scipy import sparse

from privlearn.arrays import Array
from privlearn.data.encoding.arrays import CentredEncoder, distances
from privlearn.data.encoding.encoder import SchemaEncoder
from privlearn.data.encoding.feature_groups import coarse_features
from privlearn.data.encoding.resolution import Pair
from privlearn.data.schema.columns import (
    AnyColumn,
    CategoryColumn,
    DateColumn,
    NumberColumn,
    Ordered,
    OrdinalColumn,
    TextColumn,
)
from privlearn.data.schema.schema import Schema
from privlearn.errors import InvalidParameter, preview
from privlearn.estimators.forecast.stand_ins import stand_in_table
from privlearn.features.map_encoder import MapEncoder
from privlearn.features.texts import TextFeatures
from privlearn.release.encoders import Encoder, base_of, feature_columns

POINTS = 21
"""Points of a number's or a date's curve."""

_ROWS = 100  # synthetic rows per value


def schema_of(encoder: Encoder) -> Schema:
    """Return the schema whose columns have effects; refuse plain arrays."""
    base = base_of(encoder)
    if not isinstance(base, SchemaEncoder):
        raise InvalidParameter(
            "effects are for a schema's columns, and this model reads plain arrays. Use its coefficients"
        )
    return base.schema


def effect_directions(encoder: Encoder, name: str) -> tuple[list[Any], Array]:
    """Return values of a column, and for each the features it adds on average to a row, less their mean.

    The average is over synthetic rows of the schema, which are public: a partial dependence, of shape (values,
    features). Only the column's own features count, and those of its pairs. Fourier features mix all columns and count
    as they are.
    """
    schema = _check_column(encoder, name)
    values, table = _vary(schema, name)
    match encoder:
        case SchemaEncoder():
            means = _own_features(encoder, name, table)
        case CentredEncoder(base=SchemaEncoder() as base):
            means = _own_features(base, name, table) * _typical_factor(encoder, base.encode(table))
        case _:
            means = _means(encoder.encode(table))
    return values, means - means.mean(axis=0)


def word_direction(encoder: Encoder, word: str, column: str | None = None) -> Array:
    """Return the features that a text of this word alone adds on average to a row, of shape (1, features)."""
    base = base_of(encoder)
    if isinstance(base, MapEncoder) and base.features.name == TextFeatures.name:
        return np.asarray(encoder.encode([word]) - encoder.encode([""]), dtype=np.float64)
    schema = schema_of(encoder)
    texts = [name for name, kind in schema.columns.items() if isinstance(kind, TextColumn)]
    name = texts[0] if column is None and len(texts) == 1 else column
    if name not in texts or not isinstance(encoder, SchemaEncoder):
        raise InvalidParameter(
            f"words have effects in linear models with columns of text. Of these, this model has {texts or 'none'}"
        )
    return _own_features(encoder, name, _repeat(schema, name, [word] * _ROWS))


def norm_shift(encoder: Encoder, name: str, coefficients: Array) -> Array:
    """Return how a column changes the other columns' part of the scores, through the norm that rows are divided by.

    The array has the shape (values, synthetic rows, scores); the mean over the values is subtracted.
    """
    _, table = _vary(_check_column(encoder, name), name)
    others = [name not in columns for columns in feature_columns(encoder)]
    scores = np.asarray(encoder.encode(table) @ np.where(others, coefficients, 0.0).T)
    shifts = scores.reshape(-1, _ROWS, len(coefficients))
    return np.asarray(shifts - shifts.mean(axis=0))


def pair_directions(encoder: SchemaEncoder, pair: Pair) -> tuple[list[Any], list[Any], Array]:
    """Return the values of both columns, and for each cell of their grid the joint effect, without the two curves.

    The second column's value changes fastest.
    """
    resolution = encoder.resolution
    columns: Any = [encoder.schema.columns[name] for name in pair]
    sizes = [resolution.grid_of(column) for column in columns]
    own = np.flatnonzero([columns == pair for columns in encoder.feature_columns])
    weight = math.sqrt(resolution.pair_share / len(resolution.pairs_of(encoder.schema)))
    first, second = (np.eye(size) - 1.0 / size for size in sizes)
    directions = np.zeros((len(own), encoder.dimension))
    directions[:, own] = weight * np.kron(first, second)
    labels = [cell_labels(column, size) for column, size in zip(columns, sizes, strict=True)]
    return labels[0], labels[1], directions


def cell_labels(column: Ordered | CategoryColumn, size: int) -> list[Any]:
    """Return the middles of ``size`` bins of an ordered column; or a list's values and "other"."""
    if isinstance(column, CategoryColumn):
        return [*column.values, "other"][:size]
    return _values_at(column, (np.arange(size) + 0.5) / size)


def _check_column(encoder: Encoder, name: str) -> Schema:
    """Return the schema; refuse an unknown column."""
    schema = schema_of(encoder)
    if name not in schema.columns:
        raise InvalidParameter(
            f"the schema has no column {preview(name)}: it has {', '.join(schema.columns)}"
        )
    return schema


def _vary(schema: Schema, name: str) -> tuple[list[Any], pa.Table]:
    """Return the values, and the same synthetic rows for each of them, value by value.

    A value of a number represents an interval: its rows are distributed evenly over that.
    """
    values, cells = column_values(name, schema.columns[name])
    return values, _repeat(schema, name, cells)


def _repeat(schema: Schema, name: str, cells: Sequence[Any]) -> pa.Table:
    """Return the same synthetic rows once for every `_ROWS` cells, with these cells in one column."""
    repeated = stand_in_table(schema, _ROWS).take(np.arange(len(cells)) % _ROWS)
    return repeated.set_column(repeated.schema.get_field_index(name), name, pa.array(cells))


def _own_features(encoder: SchemaEncoder, name: str, table: pa.Table) -> Array:
    """Return the mean features of each value, without those of other columns, for the norm of a typical row.

    Rows are divided by their norms, so a column also rescales the others; that is not an effect of this column.
    """
    with_constant = SchemaEncoder(encoder.schema, resolution=encoder.resolution)
    cells = with_constant.cells(table)
    rows = sparse.csr_array(with_constant.expand(cells))
    own = np.array([name in columns for columns in encoder.feature_columns])
    means = np.where(own, _means(encoder.expand(cells)), 0.0)
    scaled = own & (np.arange(len(own)) < _count_normalized(encoder))
    undivided = _means(sparse.diags_array(1.0 / rows[:, [-1]].toarray().ravel()) @ rows)[:, : len(own)]
    usual = np.abs(means[:, scaled]).sum() / np.abs(undivided[:, scaled]).sum()
    return np.where(scaled, usual * undivided, means)


def _count_normalized(encoder: SchemaEncoder) -> int:
    """Return how many of the first features are divided by a varying norm; fine bins and pairs have a fixed share."""
    if encoder.resolution.is_centred:
        return encoder.dimension
    return sum(
        group.width
        for name, column in encoder.columns.items()
        if not isinstance(column, TextColumn)
        for group in coarse_features(name, column)
    )


def _typical_factor(encoder: CentredEncoder, rows: Any) -> float:
    """Return the typical factor by which centring multiplies differences between rows."""
    return float(np.mean(encoder.stretch / np.maximum(distances(rows, encoder.mean), encoder.radius)))


def _means(rows: Any) -> Array:
    """Return the mean over the synthetic rows of each value; sparse features stay sparse until they are averaged."""
    values = rows.shape[0] // _ROWS
    averaging = sparse.kron(sparse.eye_array(values), np.full((1, _ROWS), 1.0 / _ROWS), format="csr")
    return _dense(averaging @ rows)


def _dense(rows: Any) -> Array:
    return rows if isinstance(rows, np.ndarray) else np.asarray(rows.toarray())


def column_values(name: str, column: AnyColumn) -> tuple[list[Any], list[Any]]:
    """Public: return the values at which an effect is shown, and the cells of the synthetic rows, value by value."""
    match column:
        case CategoryColumn() | OrdinalColumn():
            return list(column.values), [value for value in column.values for _ in range(_ROWS)]
        case NumberColumn() | DateColumn():
            cells = _values_at(column, (np.arange(POINTS * _ROWS) + 0.5) / (POINTS * _ROWS))
            return _values_at(column, (np.arange(POINTS) + 0.5) / POINTS), cells
    raise InvalidParameter(f"column {name!r} is text, which has no curve of values")


def _values_at(column: Ordered, positions: Array) -> list[Any]:
    """Return the values at positions between 0 and 1 on the column's scale."""
    match column:
        case NumberColumn():
            width = column.upper - column.lower
            steps = np.expm1(positions * np.log1p(width)) if column.scale == "log" else positions * width
            return [float(value) for value in np.clip(column.lower + steps, column.lower, column.upper)]
        case DateColumn():
            days = np.rint(positions * (column.upper - column.lower).days)
            return [column.lower + datetime.timedelta(int(count)) for count in days]
        case OrdinalColumn():
            return [column.values[int(position * len(column.values))] for position in positions]

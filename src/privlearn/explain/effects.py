"""What a column does to a model's score: features of made-up rows in which only that column changes."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy import sparse

from privlearn.arrays import Array
from privlearn.data.encode.centred import CentredEncoder, distances
from privlearn.data.encode.encoder import SchemaEncoder
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
from privlearn.release.model import Encoder, base_of

POINTS = 21
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
    schema = schema_of(encoder)
    if name not in schema.columns:
        raise InvalidParameter(f"the schema has no column {shown(name)}: it has {', '.join(schema.columns)}")
    values = column_values(name, schema.columns[name])
    table = _changing(schema, name, values)
    match encoder:
        case SchemaEncoder():
            means = _own_features(encoder, name, table)
        case CentredEncoder(base=SchemaEncoder() as base):
            means = _own_features(base, name, table) * _usual_factor(encoder, base.encode(table))
        case _:
            means = _means(encoder.encode(table))
    return values, means - means.mean(axis=0)


def _changing(schema: Schema, name: str, values: list[Any]) -> pa.Table:
    """The same made-up rows for each value of the column, value after value."""
    table = stand_in_table(schema, _ROWS)
    repeated = table.take(np.tile(np.arange(_ROWS), len(values)))
    cells = pa.array([value for value in values for _ in range(_ROWS)])
    return repeated.set_column(repeated.schema.get_field_index(name), name, cells)


def _own_features(encoder: SchemaEncoder, name: str, table: pa.Table) -> Array:
    """The mean features of each value, those of other columns left out and with a usual row's norm throughout.

    Rows are divided by their norms, so that a column also rescales what the others say: not an effect of its own.
    """
    with_constant = SchemaEncoder(encoder.schema, resolution=encoder.resolution)
    cells = with_constant.cells(table)
    nothing = np.nan if cells[name].dtype.kind == "f" else -1
    rows = _sparse(with_constant.expand(cells))
    silent = _sparse(with_constant.expand(cells | {name: np.full_like(cells[name], nothing)}))
    features = slice(encoder.dimension)
    own = (_occurs(rows) & ~_occurs(silent))[features]
    means = np.where(own, _means(encoder.expand(cells)), 0.0)
    scaled = own & (np.arange(len(own)) < _scaled_features(encoder))
    undivided = _means(sparse.diags_array(1.0 / rows[:, [-1]].toarray().ravel()) @ rows)[:, features]
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
    means: Any = averaging @ rows
    return means if isinstance(means, np.ndarray) else np.asarray(means.toarray())


def _occurs(rows: sparse.csr_array) -> NDArray[np.bool_]:
    """Which features are not always 0."""
    return np.asarray(abs(rows).sum(axis=0)).ravel() > 0.0


def _sparse(rows: Any) -> sparse.csr_array:
    return sparse.csr_array(rows)


def column_values(name: str, column: AnyColumn) -> list[Any]:
    """Public: the values at which an effect is shown."""
    places = np.linspace(0.0, 1.0, POINTS)
    match column:
        case NumberColumn():
            width = column.upper - column.lower
            steps = np.expm1(places * np.log1p(width)) if column.scale == "log" else places * width
            return [float(value) for value in np.clip(column.lower + steps, column.lower, column.upper)]
        case CategoryColumn() | OrdinalColumn():
            return list(column.values)
        case DateColumn():
            days = np.rint(places * (column.upper - column.lower).days)
            return [column.lower + datetime.timedelta(int(count)) for count in np.unique(days)]
    raise InvalidParameter(f"column {name!r} is text, which has no curve of values")

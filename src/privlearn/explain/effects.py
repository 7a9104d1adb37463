"""What a column does to a model's score: features of made-up rows in which only that column changes."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pyarrow as pa
from scipy import sparse

from privlearn.arrays import Array
from privlearn.data.encode.encoder import SchemaEncoder
from privlearn.data.schema.columns import AnyColumn, CategoryColumn, DateColumn, NumberColumn, OrdinalColumn
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

    The mean is over made-up rows of the schema, which are public: a partial dependence.
    """
    schema = schema_of(encoder)
    if name not in schema.columns:
        raise InvalidParameter(f"the schema has no column {shown(name)}: it has {', '.join(schema.columns)}")
    values = column_values(name, schema.columns[name])
    table = stand_in_table(schema, _ROWS)
    repeated = table.take(np.tile(np.arange(_ROWS), len(values)))
    cells = pa.array([value for value in values for _ in range(_ROWS)])
    changed = repeated.set_column(repeated.schema.get_field_index(name), name, cells)
    averaging = sparse.kron(sparse.eye_array(len(values)), np.full((1, _ROWS), 1.0 / _ROWS), format="csr")
    means: Any = averaging @ encoder.encode(changed)  # sparse features stay sparse until they are averaged
    dense = means if isinstance(means, np.ndarray) else means.toarray()
    return values, dense - dense.mean(axis=0)


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

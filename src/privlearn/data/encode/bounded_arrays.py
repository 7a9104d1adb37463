"""Arrays whose caller states bounds per column: tables of number columns without a schema file."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privlearn.data.schema.columns import AnyColumn, NumberColumn
from privlearn.data.schema.schema import Schema
from privlearn.data.sources.table import safely
from privlearn.errors import DataError, InvalidParameter, SchemaError
from privlearn.heavy import sparse

_EXAMPLE = "column_bounds=[(0, 120), (0, 1)]"


def schema_of_bounds(bounds: Any) -> Schema:
    """Public: the schema of number columns x[0], x[1], ... with those bounds."""
    try:
        pairs = [(lower, upper) for lower, upper in bounds]
    except (TypeError, ValueError):
        pairs = []
    real = all(isinstance(end, numbers.Real) and not isinstance(end, bool) for pair in pairs for end in pair)
    if not pairs or not real:
        raise InvalidParameter(
            f"column_bounds must list a lower and an upper number for each column, from public knowledge: {_EXAMPLE}"
        )
    try:
        columns: dict[str, AnyColumn] = {
            f"x[{place}]": NumberColumn(lower=float(lower), upper=float(upper))
            for place, (lower, upper) in enumerate(pairs)
        }
    except SchemaError as error:
        raise InvalidParameter(f"column_bounds: {error}") from None
    return Schema(name="array", columns=columns)


def bounded_array(X: Any, schema: Schema) -> NDArray[Any]:
    """A dense array with a column for each of the schema's."""
    if sparse.issparse(X):
        raise DataError("column_bounds are for dense arrays: call .toarray(), or declare norm_bound instead")
    array = safely(lambda: np.asarray(X), "X cannot be read as numbers: give a 2-D array of numbers")
    if array.ndim != 2 or array.shape[1] != len(schema.columns):
        raise DataError(f"X has shape {array.shape}: column_bounds lists {len(schema.columns)} columns")
    return array

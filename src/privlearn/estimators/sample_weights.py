"""``sample_weight`` of plain arrays, under the public cap ``max_weight``; a table has its weights in its schema."""

from __future__ import annotations

import dataclasses
import math
import numbers
from typing import Any

import numpy as np

from privlearn.arrays import Array
from privlearn.data.encoding.column_cells import numbers as cell_numbers
from privlearn.data.encoding.row_weights import relative_weights
from privlearn.data.sources.table import as_array, safely
from privlearn.errors import DataError, InvalidParameter, preview
from privlearn.estimators.target_readers import as_answers
from privlearn.estimators.training_rows import TrainingRows

_IN_SCHEMA = (
    "the weights of a table are a column of its schema: write weight: {column: NAME, upper: 8} there, and leave out "
    "sample_weight and max_weight"
)


def refuse_weights(sample_weight: Any, max_weight: Any) -> None:
    """Refuse weights next to a schema, which declares them itself."""
    if sample_weight is not None or max_weight is not None:
        raise InvalidParameter(_IN_SCHEMA)


def weigh_rows(rows: TrainingRows, sample_weight: Any, max_weight: Any, private: bool) -> TrainingRows:
    """Touch the data: return rows with their weights, clipped to [0, max_weight].

    ``private=False``, for epsilon = inf, lets the cap be read from the weights.
    """
    if sample_weight is None and max_weight is None:
        return rows
    if sample_weight is None:
        raise InvalidParameter(
            "max_weight is for sample_weight: pass sample_weight to fit, or leave max_weight out"
        )
    if max_weight is None and private:
        raise InvalidParameter(
            "sample_weight needs a public cap of the weights, whose size multiplies the noise: state max_weight=..., "
            "for weights whose mean is about 1. For weights of classes take class_weight={label: weight}"
        )
    weights = _read_weights(sample_weight, len(rows.targets.answers))
    cap = float(weights.max(initial=0.0)) or 1.0 if max_weight is None else check_max_weight(max_weight)
    return dataclasses.replace(rows, relative_weights=relative_weights(weights, cap), row_weight_bound=cap)


def check_max_weight(value: Any) -> float:
    """Return the cap; refuse anything but a finite number above 0."""
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not is_number or not 0 < float(value) < math.inf:
        raise InvalidParameter(f"max_weight must be a finite number above 0, not {preview(value)}")
    return float(value)


def _read_weights(sample_weight: Any, rows: int) -> Array:
    weights = safely(
        lambda: (
            np.full(rows, float(sample_weight))
            if isinstance(sample_weight, numbers.Real)
            else cell_numbers(as_array(as_answers(sample_weight), "sample_weight"), "sample_weight")
        ),
        "sample_weight cannot be read as one number per row: give a 1-D array of numbers",
    )
    if len(weights) != rows:
        raise DataError("sample_weight needs one number for each row of X")
    if np.isnan(weights).any():
        raise DataError(
            "sample_weight has NaN or missing cells: fill them in, or give such rows the weight 0"
        )
    return weights

"""From what the caller hands over to vectors and numbers to predict, using only what was declared public."""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass
from typing import Any

import numpy as np

from privlearn.arrays import Array
from privlearn.data import Schema, SchemaEncoder
from privlearn.data.encode.column_cells import numbers as cell_numbers
from privlearn.data.encode.encoder import Bounds, to_unit
from privlearn.data.sources.table import as_array, safely
from privlearn.errors import ON_DROPPING, DataError, InvalidParameter
from privlearn.estimators.inputs import (
    EncodedRows,
    as_answers,
    check_arrays,
    check_has_target,
    check_same_length,
    encode_arrays,
    encode_table,
    target_column,
)


@dataclass(frozen=True, eq=False, kw_only=True)
class RegressionSet(EncodedRows):
    """Rows with the number to predict for each, scaled from its public bounds to [-1, 1]."""

    targets: Array
    target_bounds: Bounds


def read_target_table(schema: Schema, X: Any, y: Any, fit_intercept: bool) -> RegressionSet:
    """A raw table under a schema; ``y=None`` takes the schema's target column."""
    encoder = SchemaEncoder(schema, fit_intercept=fit_intercept)
    target, answers = target_column(schema, X, y)
    targets = encoder.encode_targets(answers)
    bounds: Any = target.bounds
    return RegressionSet(targets=targets, target_bounds=bounds, **encode_table(encoder, X, len(targets)))


def read_target_arrays(estimator: Any, X: Any, y: Any, *, private: bool) -> RegressionSet:
    """Plain arrays: the caller declares ``norm_bound`` and ``target_bounds``, unless nothing is promised."""
    check_arrays(estimator, X, y, private)
    targets, bounds = _read_targets(estimator, X, y, private)
    return RegressionSet(targets=targets, target_bounds=bounds, **encode_arrays(estimator, X))


def read_target_objects(estimator: Any, X: Any, y: Any, *, private: bool) -> RegressionSet:
    """Objects that only the user's kernel can read; its declared bound takes the place of ``norm_bound``."""
    check_has_target(estimator, y)
    targets, bounds = _read_targets(estimator, X, y, private)
    return RegressionSet(encoder=None, features=X, total=len(targets), targets=targets, target_bounds=bounds)


def _read_targets(estimator: Any, X: Any, y: Any, private: bool) -> tuple[Array, Bounds]:
    if private and estimator.target_bounds is None:
        raise InvalidParameter(
            "say between which numbers the target lies, from public knowledge: "
            f"{type(estimator).__name__}(target_bounds=(0, 100)); what lies outside is clamped. "
            "Reading them off the data would publish its extremes"
        )
    declared = None if estimator.target_bounds is None else _check_target_bounds(estimator.target_bounds)
    answers = as_answers(y)
    values = safely(
        lambda: cell_numbers(as_array(answers, "y"), "y"),
        "y cannot be read as one number per row: give a 1-D array of numbers",
    )
    if not np.isfinite(values).all():
        raise DataError(f"y has NaN or infinite targets: fill them in, or drop those rows ({ON_DROPPING})")
    check_same_length(X, values)
    bounds = _bounds_of(values) if declared is None else declared
    return to_unit(values, bounds), bounds


def _check_target_bounds(bounds: Any) -> Bounds:
    try:
        lower, upper = bounds
    except (TypeError, ValueError):
        lower, upper = math.nan, math.nan
    real = all(isinstance(bound, numbers.Real) and not isinstance(bound, bool) for bound in (lower, upper))
    if not (real and lower < upper and math.isfinite(upper - lower)):
        raise InvalidParameter(
            "target_bounds must be two finite numbers, the lower one first, e.g. target_bounds=(0, 100)"
        )
    return float(lower), float(upper)


def _bounds_of(values: Array) -> Bounds:
    """For epsilon = inf only, where nothing is promised: the bounds that clamp nothing."""
    lower, upper = float(values.min()), float(values.max())
    margin = 0.0 if lower < upper else max(abs(lower), 1.0)
    return lower - margin, upper + margin

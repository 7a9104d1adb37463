"""From what the caller hands over to vectors and numbers to predict, using only what was declared public."""

from __future__ import annotations

import math
import numbers
from typing import Any, cast

import numpy as np

from privlearn.arrays import Array
from privlearn.data.encode.column_cells import numbers as cell_numbers
from privlearn.data.encode.encoder import Bounds, SchemaEncoder, to_unit
from privlearn.data.sources.table import as_array, safely
from privlearn.errors import ON_DROPPING, DataError, InvalidParameter
from privlearn.estimators.goal import NumberGoal, TrainingRows
from privlearn.estimators.inputs import as_answers, check_same_length, encode_table, target_column
from privlearn.estimators.learner import Learner


class NumberLearner(Learner):
    """A learner of a number, whose bounds a schema or ``target_bounds`` declares."""

    target_bounds: tuple[float, float] | None

    def _read_numbers(self, X: Any, y: Any, private: bool) -> TrainingRows:
        """Rows with the number to predict for each; ``private=False`` lets bounds be those that occur."""
        if self.schema is None:
            self._check_arrays(X, y, private)
            goal = self._read_targets(X, y, private)
            return self._encode_arrays(X, goal, len(goal.targets))
        encoder = SchemaEncoder(self.schema, fit_intercept=self.fit_intercept)
        target, answers = target_column(self.schema, X, y)
        targets = encoder.encode_targets(answers)
        return encode_table(encoder, X, NumberGoal(targets, cast(Bounds, target.bounds)), len(targets))

    def _read_targets(self, X: Any, y: Any, private: bool) -> NumberGoal:
        """Numbers scaled from their bounds to [-1, 1]."""
        if private and self.target_bounds is None:
            raise InvalidParameter(
                "say between which numbers the target lies, from public knowledge: "
                f"{type(self).__name__}(target_bounds=(0, 100)); what lies outside is clamped. "
                "Reading them off the data would publish its extremes"
            )
        declared = None if self.target_bounds is None else _check_target_bounds(self.target_bounds)
        answers = as_answers(y)
        values = safely(
            lambda: cell_numbers(as_array(answers, "y"), "y"),
            "y cannot be read as one number per row: give a 1-D array of numbers",
        )
        if not np.isfinite(values).all():
            raise DataError(
                f"y has NaN or infinite targets: fill them in, or drop those rows ({ON_DROPPING})"
            )
        check_same_length(X, values)
        bounds = _bounds_of(values) if declared is None else declared
        return NumberGoal(to_unit(values, bounds), bounds)


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

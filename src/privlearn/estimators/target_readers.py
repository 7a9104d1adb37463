"""Readers of what is to be predicted: `ClassReader` for labels, `NumberReader` for numbers between public bounds.

A learner is composed with one of them. Labels are compared with the declared classes cell by cell, so that one
person's cell never decides how the cells of others are read.
"""

from __future__ import annotations

import dataclasses
import math
import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privlearn.arrays import Array
from privlearn.data.encoding.column_cells import MISSING, UNKNOWN, codes
from privlearn.data.encoding.column_cells import numbers as cell_numbers
from privlearn.data.encoding.encoder import Bounds, to_unit
from privlearn.data.schema.public import EXACT
from privlearn.data.schema.schema import Schema
from privlearn.data.sources.table import as_array, safely
from privlearn.errors import ON_DROPPING, DataError, InvalidParameter
from privlearn.estimators.reading import (
    Resolve,
    as_answers,
    class_weights_of,
    read_number_table,
    read_table,
    target_of,
)
from privlearn.estimators.training_rows import ClassTargets, NumberTargets, TrainingRows

TargetBounds = tuple[float, float] | Sequence[tuple[float, float]]
"""Bounds of one number, or of each of several."""

_NO_LABEL = f"y has NaN or missing labels. Fill them in, or drop those rows ({ON_DROPPING})"


@dataclass(frozen=True)
class ClassReader:
    """Reads labels as one of the declared classes.

    Parameters
    ----------
    learner : str
        Name of the learner's class, for messages.
    classes : sequence, optional
        Declared labels; a table's are in its schema.
    class_weight : dict, optional
    """

    learner: str
    classes: Sequence[Any] | None
    class_weight: Mapping[Any, float] | None

    def read_table(
        self, schema: Schema, X: Any, y: Any, fit_intercept: bool, resolve: Resolve
    ) -> TrainingRows:
        """Touch the data: return the encoded rows of a table with their classes."""
        return read_table(schema, X, y, fit_intercept, resolve)

    def read_array(self, X: Any, y: Any, private: bool) -> ClassTargets:
        """Touch the data: return the class of each row; ``private=False`` takes the labels that occur as classes."""
        if private and self.classes is None:
            raise InvalidParameter(
                f"list the labels that may occur, from public knowledge: {self.learner}(classes=[0, 1]). "
                "Reading them off the data would publish whether a rare label is present"
            )
        answers = as_answers(y)
        check_same_length(X, answers)
        classes = _classes_of(answers) if self.classes is None else check_classes(self.classes)
        return ClassTargets(_label_numbers(answers, classes), classes)

    def apply_weights(self, rows: TrainingRows, schema: Schema | None) -> TrainingRows:
        """Return the rows with the weights of ``class_weight``, or the schema's.

        Weights that the rows had before are replaced: the candidates of a search share rows, not weights.
        """
        targets = rows.targets
        if not isinstance(targets, ClassTargets):
            return rows
        weights = check_class_weight(self.class_weight, targets.classes)
        if weights is None and schema is not None:
            weights = class_weights_of(target_of(schema))
        return dataclasses.replace(rows, targets=dataclasses.replace(targets, class_weights=weights))


@dataclass(frozen=True)
class NumberReader:
    """Reads numbers, clamped to declared bounds and scaled from them to [-1, 1].

    Parameters
    ----------
    learner : str
        Name of the learner's class, for messages.
    target_bounds : tuple of two floats, or sequence of such tuples, optional
        A table's are in its schema.
    """

    learner: str
    target_bounds: TargetBounds | None

    def read_table(
        self, schema: Schema, X: Any, y: Any, fit_intercept: bool, resolve: Resolve
    ) -> TrainingRows:
        """Touch the data: return the encoded rows of a table with their numbers."""
        return read_number_table(schema, X, y, fit_intercept, resolve)

    def read_array(self, X: Any, y: Any, private: bool) -> NumberTargets:
        """Touch the data: return the numbers of each row; ``private=False`` takes their extremes as bounds."""
        if private and self.target_bounds is None:
            raise InvalidParameter(
                "say between which numbers the target lies, from public knowledge: "
                f"{self.learner}(target_bounds=(0, 100)); what lies outside is clamped. "
                "Reading them off the data would publish its extremes"
            )
        if _are_of_several(self.target_bounds):
            return self._read_several(X, y)
        declared = None if self.target_bounds is None else _check_target_bounds(self.target_bounds)
        answers = as_answers(y)
        values = safely(
            lambda: cell_numbers(as_array(answers, "y"), "y"),
            "y cannot be read as one number per row. Give a 1-D array of numbers",
        )
        _check_targets(X, values)
        bounds = _bounds_of(values) if declared is None else declared
        return NumberTargets(to_unit(values, bounds), bounds)

    def apply_weights(self, rows: TrainingRows, schema: Schema | None) -> TrainingRows:
        """Return the rows as they are: numbers have no class weights."""
        return rows

    def _read_several(self, X: Any, y: Any) -> NumberTargets:
        """Touch the data: return a column of numbers for each pair of bounds."""
        bounds = tuple(map(_check_target_bounds, cast(Sequence[Any], self.target_bounds)))
        values = safely(
            lambda: np.asarray(y, dtype=np.float64),
            "y cannot be read as several numbers per row. Give a 2-D array of numbers",
        )
        if values.ndim != 2 or values.shape[1] != len(bounds):
            raise DataError(
                f"y needs {len(bounds)} columns, as many as target_bounds has pairs. Give a 2-D array"
            )
        _check_targets(X, values)
        scaled = [to_unit(column, pair) for column, pair in zip(values.T, bounds, strict=True)]
        return NumberTargets(np.column_stack(scaled), bounds)


def check_same_length(X: Any, y: Any) -> None:
    """Raise DataError unless there is one answer for each row."""
    if _count(X) != _count(y):
        raise DataError("X and y have inconsistent numbers of samples. Give one label or number for each row")


def _count(rows: Any) -> int:
    """Return the number of rows of an array, matrix, table or list."""
    if getattr(rows, "shape", ()):
        return int(rows.shape[0])
    return len(rows) if hasattr(rows, "__len__") else len(np.asarray(rows))


def check_classes(classes: Any) -> NDArray[Any]:
    """Return declared labels: at least two, distinct, of one type, and no number beyond float64's whole numbers."""
    array = np.asarray(list(classes))
    if array.ndim != 1 or array.dtype == object or len(array) < 2 or len(np.unique(array)) < len(array):
        raise InvalidParameter(
            "classes must list at least two distinct labels of one type, e.g. classes=[0, 1]"
        )
    if not _are_labels(array):
        raise InvalidParameter(
            "classes must be text, true and false, or whole numbers below 2^53 in magnitude. Write others as text"
        )
    return array


def check_class_weight(class_weight: Any, classes: NDArray[Any]) -> Array | None:
    """Return the public weight of each class, or ``None``."""
    if class_weight is None:
        return None
    if not isinstance(class_weight, Mapping):
        raise InvalidParameter(
            "class_weight must be a dict such as {0: 1.0, 1: 3.0}: 'balanced' would read the classes' frequencies "
            "from the records and publish them unprotected"
        )
    labels = classes.tolist()
    if unknown := [label for label in class_weight if label not in labels]:
        raise InvalidParameter(
            f"class_weight has {len(unknown)} keys that classes does not list. Correct them"
        )
    weights = np.array([float(class_weight.get(label, 1.0)) for label in labels])
    if not (np.isfinite(weights).all() and (weights > 0).all()):
        raise InvalidParameter("class_weight must be finite and above 0")
    return weights


def _are_labels(array: NDArray[Any]) -> bool:
    if array.dtype.kind in "iuf":
        return bool(np.all((array == np.rint(array)) & (array > -EXACT) & (array < EXACT)))
    return array.dtype.kind in "bU"


def _classes_of(y: Any) -> NDArray[Any]:
    """Return the labels that occur; for epsilon = inf only, where nothing is guaranteed."""
    labels = np.asarray(y)
    labels = np.array(labels.tolist()) if labels.dtype == object else labels
    classes = safely(lambda: np.unique(labels), "y mixes labels of several types. Convert them to one")
    if classes.dtype.kind == "f" and not np.isfinite(classes).all():
        raise DataError(_NO_LABEL)
    if not _are_labels(classes):
        raise DataError("Unknown label type: y must hold text, true and false, or whole numbers below 2^53")
    if len(classes) < 2:
        raise DataError("there is only one class in y: a classifier needs at least two classes")
    return classes


def _label_numbers(y: Any, classes: NDArray[Any]) -> NDArray[np.int64]:
    """Return the index of each label among the classes; equal numbers are equal labels, of any type."""
    indices = safely(
        lambda: _find_labels(as_array(y, "y"), classes.tolist()),
        "y and classes are of different types. Convert one of them",
    )
    if np.any(indices == MISSING):
        raise DataError(_NO_LABEL)
    if np.any(indices == UNKNOWN):
        raise DataError(
            "Unknown label type: y has labels that classes does not list. Correct the rows, or the list"
        )
    return indices


def _find_labels(column: Any, classes: list[Any]) -> NDArray[np.int64]:
    if isinstance(classes[0], str):
        return codes(column, classes, "y")
    return codes(pa.array(cell_numbers(column, "y")), [int(value) for value in classes], "y")


def _are_of_several(bounds: Any) -> bool:
    """Return whether the bounds are a list of pairs; `_check_target_bounds` refuses anything else but a pair."""
    return (
        isinstance(bounds, Sequence) and bool(bounds) and all(isinstance(pair, Sequence) for pair in bounds)
    )


def _check_targets(X: Any, values: Array) -> None:
    if not np.isfinite(values).all():
        raise DataError(f"y has NaN or infinite targets. Fill them in, or drop those rows ({ON_DROPPING})")
    check_same_length(X, values)


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
    """Return bounds that clamp nothing; for epsilon = inf only, where nothing is guaranteed."""
    lower, upper = float(values.min()), float(values.max())
    margin = 0.0 if lower < upper else max(abs(lower), 1.0)
    return lower - margin, upper + margin

"""From what the caller hands over to rows with classes or numbers, using only what was declared public."""

from __future__ import annotations

import dataclasses
import math
import numbers
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sklearn.utils import check_consistent_length, column_or_1d

from privlearn.arrays import Array
from privlearn.data.encode.column_cells import MISSING, UNKNOWN, codes, owners
from privlearn.data.encode.column_cells import numbers as cell_numbers
from privlearn.data.encode.encoder import Bounds, SchemaEncoder, to_unit, weights_of_persons
from privlearn.data.encode.packed_cells import PackedCells
from privlearn.data.encode.resolution import Resolution
from privlearn.data.schema.columns import Target
from privlearn.data.schema.public import EXACT
from privlearn.data.schema.schema import Schema
from privlearn.data.sources.files import open_table
from privlearn.data.sources.gaps import read_block
from privlearn.data.sources.row_source import joined, read_each
from privlearn.data.sources.table import as_array, as_table, safely
from privlearn.erm.problem import at_hand
from privlearn.errors import ON_DROPPING, DataError, InvalidParameter
from privlearn.estimators.goal import ClassGoal, Goal, NumberGoal, TrainingRows
from privlearn.estimators.learner import Learner


class ClassLearner(Learner):
    """A learner of classes, which a schema or ``classes`` declares."""

    classes: Sequence[Any] | None
    class_weight: Mapping[Any, float] | None

    def _read_classes(self, X: Any, y: Any, private: bool) -> TrainingRows:
        """Rows with the number of each one's class; ``private=False`` lets classes be those that occur."""
        if self.schema is not None:
            return read_table(self.schema, X, y, self.fit_intercept, self.resolution)
        self._check_arrays(X, y, private)
        goal = self._read_labels(X, y, private)
        return self._encode_arrays(X, goal, len(goal.labels))

    def weighted(self, rows: TrainingRows) -> TrainingRows:
        """By ``class_weight``, else by the schema; never by what a search's other candidate gave the same rows."""
        if not isinstance(rows.goal, ClassGoal):
            return rows
        weights = check_class_weight(self.class_weight, rows.goal.classes)
        if weights is None and self.schema is not None:
            weights = _declared_weights(target_of(self.schema))
        return dataclasses.replace(rows, goal=dataclasses.replace(rows.goal, class_weights=weights))

    def _read_labels(self, X: Any, y: Any, private: bool) -> ClassGoal:
        """The declared classes and the number of each row's class."""
        if private and self.classes is None:
            raise InvalidParameter(
                f"list the labels that may occur, from public knowledge: {type(self).__name__}(classes=[0, 1]). "
                "Reading them off the data would publish whether a rare label is present"
            )
        answers = as_answers(y)
        check_same_length(X, answers)
        classes = _classes_of(answers) if self.classes is None else check_classes(self.classes)
        return ClassGoal(_label_numbers(answers, classes), classes)


Resolve = Callable[[Schema, int], Resolution | None]
"""Public: the resolution for so many records or persons."""


def read_table(
    schema: Schema, X: Any, y: Any, fit_intercept: bool, resolve: Resolve = lambda schema, persons: None
) -> TrainingRows:
    """A raw table under a schema with classes; ``y=None`` takes the schema's target column."""
    encoder = SchemaEncoder(schema, fit_intercept=fit_intercept)
    target = target_of(schema)

    def places_of(values: Any) -> NDArray[np.integer[Any]]:
        labels = encoder.encode_labels(values)
        return labels.astype(np.min_scalar_type(-len(target.classes)))

    labels, read = read_columns(encoder, X, y, places_of)
    return read.rows(class_goal(target, labels), resolve)


def class_goal(target: Target, labels: NDArray[np.integer[Any]]) -> ClassGoal:
    """The declared classes, of labels as `SchemaEncoder.encode_labels` numbers them."""
    ignored = labels == UNKNOWN if target.unknown == "zero" else None
    return ClassGoal(np.maximum(labels, 0), np.array(target.classes), ignored, _declared_weights(target))


def _declared_weights(target: Target) -> Array | None:
    return None if target.class_weights is None else np.array(target.class_weights)


def read_number_table(
    schema: Schema, X: Any, y: Any, fit_intercept: bool, resolve: Resolve = lambda schema, persons: None
) -> TrainingRows:
    """The same under a schema whose target is a number."""
    encoder = SchemaEncoder(schema, fit_intercept=fit_intercept)
    targets, read = read_columns(encoder, X, y, encoder.encode_targets)
    return read.rows(NumberGoal(targets, cast(Bounds, target_of(schema).bounds)), resolve)


def target_of(schema: Schema) -> Target:
    if schema.target is None:
        raise InvalidParameter("the schema has no target: add `target:` with its name and classes")
    return schema.target


def target_column(schema: Schema, X: Any, y: Any) -> tuple[Target, Any]:
    """The schema's target, and ``y`` or else the table's column of that name."""
    target = target_of(schema)
    return target, read_block(X, [target.name], schema.file).column(0) if y is None else y


@dataclasses.dataclass(frozen=True, eq=False)
class ReadColumns:
    """PRIVATE: a table's cells, read once and checked; vectors follow when the resolution is known."""

    encoder: SchemaEncoder
    cells: PackedCells
    person: Any

    def rows(self, goal: Goal, resolve: Resolve) -> TrainingRows:
        """At the resolution that the number of persons affords."""
        schema, encoder = self.encoder.schema, self.encoder
        weights, persons = None, len(self.cells)
        if schema.person is not None:
            weights, persons = weights_of_persons(self.person, schema.person)
        resolution = resolve(schema, persons)
        if resolution is not None:
            encoder = SchemaEncoder(schema, fit_intercept=encoder.fit_intercept, resolution=resolution)
        features: Any = encoder.expanded(self.cells)
        if len(features) * encoder.row_bytes <= IN_MEMORY:
            features = at_hand(features)
        return TrainingRows(features, encoder, goal, persons, weights, schema.rows_per_person)


IN_MEMORY = 1 << 27  # bytes of vectors; more are expanded from their cells in each pass


def read_columns(
    encoder: SchemaEncoder, X: Any, y: Any, read_answers: Callable[[Any], NDArray[Any]]
) -> tuple[NDArray[Any], ReadColumns]:
    """Touch the data, once and block by block: answers and cells, whatever would not fit refused."""
    schema = encoder.schema
    wanted = [target_of(schema).name] if y is None else []
    persons = [] if schema.person is None else [schema.person]
    answers: list[NDArray[Any]] = []
    owner: list[Any] = []
    cells = PackedCells()

    def read(block: Any) -> None:
        table = read_block(block, [*wanted, *persons, *schema.columns], schema.file)
        answers.extend(read_answers(table.column(name)) for name in wanted)
        owner.extend(table.column(name) for name in persons)
        cells.add(encoder.cells(table))

    for _ in read_each(open_table(X, schema, [*wanted, *persons, *schema.columns]), read):
        pass
    found = read_answers(y) if y is not None else np.concatenate(answers)
    if len(found) != len(cells):
        raise DataError("the table has more or fewer rows than there are labels: give one label for each row")
    person = joined(pa.table({"person": column}) for column in owner).column(0) if owner else None
    return found, ReadColumns(encoder, cells, person)


def first_rows_of_persons(schema: Schema | None, X: Any, y: Any, most: int) -> tuple[Any, Any]:
    """Table and labels with so many rows of each person that all persons together have at most ``most``.

    Which rows of a person stay depends on that person's rows and the public number of persons alone.
    """
    if schema is None or schema.person is None:
        return X, y
    answers = [schema.target.name] if y is None and schema.target is not None else []
    table = as_table(X, [*schema.columns, schema.person, *answers])
    person = owners(table.column(schema.person), f"column {schema.person!r}")
    each = max(most // (int(person.max()) + 1), 1)
    order = np.argsort(person, kind="stable")
    starts = np.flatnonzero(np.diff(person[order], prepend=-1))
    rank = np.empty(len(person), dtype=np.int64)
    rank[order] = np.arange(len(person)) - np.repeat(starts, np.diff(starts, append=len(person)))
    kept = rank < each
    return table.filter(pa.array(kept)), None if y is None else np.asarray(y, dtype=object)[kept]


def as_answers(y: Any) -> Any:
    """One label or number per row; a list is not made an array of one type, which one cell could decide for all."""
    if isinstance(y, list | tuple):
        y = safely(lambda: np.asarray(y, dtype=object), "y is no list of one label or number per row")
    one_dimensional = isinstance(y, pa.Array | pa.ChunkedArray) or len(getattr(y, "shape", ())) == 1
    return y if one_dimensional else column_or_1d(y, warn=True)


def check_same_length(X: Any, y: Any) -> None:
    safely(
        lambda: check_consistent_length(X, y),
        "X and y have inconsistent numbers of samples: give one label or number for each row",
    )


def check_classes(classes: Any) -> NDArray[Any]:
    """Declared labels: at least two, distinct, of one type, and no number that a float cannot tell apart."""
    array = np.asarray(list(classes))
    if array.ndim != 1 or array.dtype == object or len(array) < 2 or len(np.unique(array)) < len(array):
        raise InvalidParameter(
            "classes must list at least two distinct labels of one type, e.g. classes=[0, 1]"
        )
    if not _are_labels(array):
        raise InvalidParameter(
            "classes must be text, true and false, or whole numbers below 2^53 in magnitude: write others as text"
        )
    return array


def _are_labels(array: NDArray[Any]) -> bool:
    if array.dtype.kind in "iuf":
        return bool(np.all((array == np.rint(array)) & (array > -EXACT) & (array < EXACT)))
    return array.dtype.kind in "bU"


def check_class_weight(class_weight: Any, classes: NDArray[Any]) -> Array | None:
    """Public weight of each class, or ``None``."""
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
            f"class_weight has {len(unknown)} keys that classes does not list: correct them"
        )
    weights = np.array([float(class_weight.get(label, 1.0)) for label in labels])
    if not (np.isfinite(weights).all() and (weights > 0).all()):
        raise InvalidParameter("class_weight must be finite and above 0")
    return weights


def _classes_of(y: Any) -> NDArray[Any]:
    """For epsilon = inf only, where nothing is promised: the labels that occur."""
    labels = np.asarray(y)
    labels = np.array(labels.tolist()) if labels.dtype == object else labels
    classes = safely(lambda: np.unique(labels), "y mixes labels of several types: convert them to one")
    if classes.dtype.kind == "f" and not np.isfinite(classes).all():
        raise DataError(_NO_LABEL)
    if not _are_labels(classes):
        raise DataError("Unknown label type: y must hold text, true and false, or whole numbers below 2^53")
    if len(classes) < 2:
        raise DataError("there is only one class in y: a classifier needs at least two classes")
    return classes


def _label_numbers(y: Any, classes: NDArray[Any]) -> NDArray[np.int64]:
    """Number of each label among the classes; equal numbers are equal labels, whatever type they are kept in."""
    places = safely(
        lambda: _places(as_array(y, "y"), classes.tolist()),
        "y and classes are of different types: convert one of them",
    )
    if np.any(places == MISSING):
        raise DataError(_NO_LABEL)
    if np.any(places == UNKNOWN):
        raise DataError(
            "Unknown label type: y has labels that classes does not list: correct the rows, or the list"
        )
    return places


_NO_LABEL = f"y has NaN or missing labels: fill them in, or drop those rows ({ON_DROPPING})"


def _places(column: Any, classes: list[Any]) -> NDArray[np.int64]:
    if isinstance(classes[0], str):
        return codes(column, classes, "y")
    return codes(pa.array(cell_numbers(column, "y")), [int(value) for value in classes], "y")


TargetBounds = tuple[float, float] | Sequence[tuple[float, float]]
"""Of one number, or of each of several."""


class NumberLearner(Learner):
    """A learner of a number, whose bounds a schema or ``target_bounds`` declares; or of several numbers."""

    target_bounds: TargetBounds | None

    def _read_numbers(self, X: Any, y: Any, private: bool) -> TrainingRows:
        """Rows with the number to predict for each; ``private=False`` lets bounds be those that occur."""
        if self.schema is None:
            self._check_arrays(X, y, private)
            goal = self._read_targets(X, y, private)
            return self._encode_arrays(X, goal, len(goal.targets))
        return read_number_table(self.schema, X, y, self.fit_intercept, self.resolution)

    def _read_targets(self, X: Any, y: Any, private: bool) -> NumberGoal:
        """Numbers scaled from their bounds to [-1, 1]."""
        if private and self.target_bounds is None:
            raise InvalidParameter(
                "say between which numbers the target lies, from public knowledge: "
                f"{type(self).__name__}(target_bounds=(0, 100)); what lies outside is clamped. "
                "Reading them off the data would publish its extremes"
            )
        if _are_of_several(self.target_bounds):
            return self._read_several(X, y)
        declared = None if self.target_bounds is None else _check_target_bounds(self.target_bounds)
        answers = as_answers(y)
        values = safely(
            lambda: cell_numbers(as_array(answers, "y"), "y"),
            "y cannot be read as one number per row: give a 1-D array of numbers",
        )
        _check_targets(X, values)
        bounds = _bounds_of(values) if declared is None else declared
        return NumberGoal(to_unit(values, bounds), bounds)

    def _read_several(self, X: Any, y: Any) -> NumberGoal:
        """A column of numbers for each pair of bounds."""
        bounds = tuple(map(_check_target_bounds, cast(Sequence[Any], self.target_bounds)))
        values = safely(
            lambda: np.asarray(y, dtype=np.float64),
            "y cannot be read as several numbers per row: give a 2-D array of numbers",
        )
        if values.ndim != 2 or values.shape[1] != len(bounds):
            raise DataError(
                f"y needs {len(bounds)} columns, as many as target_bounds has pairs: give a 2-D array"
            )
        _check_targets(X, values)
        scaled = [to_unit(column, pair) for column, pair in zip(values.T, bounds, strict=True)]
        return NumberGoal(np.column_stack(scaled), bounds)


def _are_of_several(bounds: Any) -> bool:
    """Whether they are a list of pairs; what is neither that nor a pair is refused as the latter."""
    return (
        isinstance(bounds, Sequence) and bool(bounds) and all(isinstance(pair, Sequence) for pair in bounds)
    )


def _check_targets(X: Any, values: Array) -> None:
    if not np.isfinite(values).all():
        raise DataError(f"y has NaN or infinite targets: fill them in, or drop those rows ({ON_DROPPING})")
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
    """For epsilon = inf only, where nothing is promised: the bounds that clamp nothing."""
    lower, upper = float(values.min()), float(values.max())
    margin = 0.0 if lower < upper else max(abs(lower), 1.0)
    return lower - margin, upper + margin

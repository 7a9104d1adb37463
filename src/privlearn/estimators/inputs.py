"""From what the caller hands over to vectors and label numbers, using only what was declared public."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_consistent_length, column_or_1d
from sklearn.utils.validation import validate_data

from privlearn.arrays import Array
from privlearn.data import ArrayEncoder, Schema, SchemaEncoder, Target, as_table
from privlearn.data.encode.column_cells import MISSING, UNKNOWN, codes, owners
from privlearn.data.encode.column_cells import numbers as cell_numbers
from privlearn.data.schema.columns import EXACT
from privlearn.data.sources.files import refuse_unclear_persons
from privlearn.data.sources.table import as_array, column_names, safely
from privlearn.errors import ON_DROPPING, DataError, InvalidParameter
from privlearn.release.encoders import Encoder


@dataclass(frozen=True, eq=False, kw_only=True)
class EncodedRows:
    """Private rows as features of norm at most 1, with the public facts about them.

    ``total`` counts records, or persons where their rows are averaged, until `PrivateLinearModel.prepare` puts the
    public number there; ``person_weights`` is then 1/m for each of a person's m rows. ``encoder`` is ``None`` for
    objects that only a kernel can read. ``probes`` are the features of the public points, where there are any.
    """

    encoder: Encoder | None
    features: Any
    total: int
    person_weights: Array | None = None
    rows_per_person: int = 1
    probes: Array | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class TrainingSet(EncodedRows):
    """Rows with the number of each one's class among the declared ones.

    ``ignored`` marks rows whose label is not declared, where the schema lets them pass: they weigh nothing.
    """

    labels: NDArray[np.int64]
    classes: NDArray[Any]
    ignored: NDArray[np.bool_] | None = None


def read_table(schema: Schema, X: Any, y: Any, fit_intercept: bool) -> TrainingSet:
    """A raw table under a schema; ``y=None`` takes the schema's target column."""
    encoder = SchemaEncoder(schema, fit_intercept=fit_intercept)
    target, answers = target_column(schema, X, y)
    labels = encoder.encode_labels(answers)
    return TrainingSet(
        labels=np.maximum(labels, 0),
        classes=np.array(target.classes),
        ignored=labels == UNKNOWN if target.unknown == "zero" else None,
        **encode_table(encoder, X, len(labels)),
    )


def read_arrays(estimator: Any, X: Any, y: Any, *, private: bool) -> TrainingSet:
    """Plain arrays: the caller declares ``norm_bound`` and ``classes``, unless nothing is promised."""
    check_arrays(estimator, X, y, private)
    classes, labels = _read_labels(estimator, X, y, private)
    return TrainingSet(labels=labels, classes=classes, **encode_arrays(estimator, X))


def read_objects(estimator: Any, X: Any, y: Any, *, private: bool) -> TrainingSet:
    """Objects that only the user's kernel can read; its declared bound takes the place of ``norm_bound``."""
    check_has_target(estimator, y)
    classes, labels = _read_labels(estimator, X, y, private)
    return TrainingSet(encoder=None, features=X, labels=labels, classes=classes, total=len(labels))


def target_column(schema: Schema, X: Any, y: Any) -> tuple[Target, Any]:
    """The schema's target, and ``y`` or else the table's column of that name."""
    if schema.target is None:
        raise InvalidParameter("the schema has no target: add `target:` with its name and classes")
    return schema.target, as_table(X, [schema.target.name]).column(0) if y is None else y


def encode_table(encoder: SchemaEncoder, X: Any, answers: int) -> dict[str, Any]:
    """The fields of `EncodedRows` for a table with so many labels or target values."""
    refuse_unclear_persons(encoder.schema, column_names(X))
    features = encoder.encode(X, may_be_empty=True)
    if features.shape[0] != answers:
        raise DataError("the table has more or fewer rows than there are labels: give one label for each row")
    fields = {"encoder": encoder, "features": features}
    if encoder.schema.person is None:
        return fields | {"total": answers, "rows_per_person": encoder.schema.rows_per_person}
    weights, persons = encoder.person_weights(X)
    return fields | {"total": persons, "person_weights": weights}


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


def check_arrays(estimator: Any, X: Any, y: Any, private: bool) -> None:
    """What must hold before any cell is looked at."""
    check_has_target(estimator, y)
    check_array_shape(X, may_be_empty=True)
    _check_norm_bound(estimator, private)


def encode_arrays(estimator: Any, X: Any) -> dict[str, Any]:
    """The fields of `EncodedRows` for plain arrays."""
    norm_bound = _largest_norm(X) if estimator.norm_bound is None else estimator.norm_bound
    columns = check_array_shape(X, may_be_empty=True)
    encoder = ArrayEncoder(norm_bound, columns, fit_intercept=estimator.fit_intercept)
    features = encoder.encode(X, may_be_empty=True)
    validate_data(estimator, X, reset=True, skip_check_array=True)
    return {"encoder": encoder, "features": features, "total": features.shape[0]}


def check_has_target(estimator: Any, y: Any) -> None:
    if y is None:
        raise InvalidParameter(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None"
        )


def _read_labels(estimator: Any, X: Any, y: Any, private: bool) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The declared classes and the number of each row's class."""
    if private and estimator.classes is None:
        raise InvalidParameter(
            f"list the labels that may occur, from public knowledge: {type(estimator).__name__}(classes=[0, 1]). "
            "Reading them off the data would publish whether a rare label is present"
        )
    answers = as_answers(y)
    check_same_length(X, answers)
    classes = _classes_of(answers) if estimator.classes is None else check_classes(estimator.classes)
    return classes, _label_numbers(answers, classes)


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


def check_array_shape(X: Any, *, may_be_empty: bool = False) -> int:
    """Number of columns of what must be a matrix, with the messages that scikit-learn's users know."""
    matrix: Any = X if sparse.issparse(X) else np.asarray(X)
    shape = matrix.shape
    if len(shape) != 2:
        raise DataError(
            f"Expected 2D array, got {len(shape)}D array instead. Reshape your data either using "
            "X.reshape(-1, 1) for a single feature or X.reshape(1, -1) for a single sample."
        )
    if matrix.dtype.kind == "c":  # their imaginary part would be dropped without a word
        raise DataError("Complex data not supported: give real numbers.")
    if shape[1] == 0:
        raise DataError(f"0 feature(s) (shape={shape}) while a minimum of 1 is required.")
    if shape[0] == 0 and not may_be_empty:
        raise DataError(f"0 sample(s) (shape={shape}) while a minimum of 1 is required.")
    return int(shape[1])


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


def _check_norm_bound(estimator: Any, private: bool) -> None:
    if private and estimator.norm_bound is None:
        raise InvalidParameter(
            "say how long a row may be, from public knowledge: "
            f"{type(estimator).__name__}(norm_bound=...); longer rows are shortened. Or describe the table: "
            "schema=Schema.load(...). Reading it off the data would publish the data"
        )


def _largest_norm(X: Any) -> float:
    """For epsilon = inf only, where nothing is promised: the bound that clips no row."""
    rows = safely(lambda: sparse.csr_array(X, dtype=float), _NOT_NUMBERS)
    if not np.isfinite(rows.data).all():
        raise DataError(f"X has NaN or infinite entries: fill them in, or drop those rows ({ON_DROPPING})")
    return float(np.sqrt(np.max(rows.multiply(rows).sum(axis=1)))) or 1.0


_NOT_NUMBERS = "X cannot be read as numbers: give a 2-D array of numbers, or a schema for a table"


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

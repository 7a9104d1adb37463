"""The subject of an evaluation: a release, a scikit-learn model or a column of scores, all in one form."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from privlearn.arrays import Array
from privlearn.data.encoding.arrays import CentredEncoder
from privlearn.data.encoding.column_cells import numbers
from privlearn.data.schema.schema import Schema, SchemaLike, as_schema
from privlearn.data.schema.target import Target
from privlearn.data.sources.table import as_array, as_table, safely
from privlearn.errors import DataError, InvalidParameter, SchemaError, check_positive
from privlearn.release.artifact import Release
from privlearn.release.encoders import RawEncoder, base_of
from privlearn.release.model import LinearModel
from privlearn.sessions.interactive import InteractivePredictor

MANY_ROWS = 10_000  # less than a minute for most models
WIDE = 2.0
"""Default bound of scores that are not probabilities: margins are trained to be about 1, so nearly all lie in 2."""


@dataclass(frozen=True, eq=False)
class Subject:
    """Public: the properties of something that predicts, and the function that scores rows.

    Parameters
    ----------
    title : str
        Name for the certificate and the page.
    outputs : callable
        Returns for each row the score of the second of two classes, the scores of several classes, or a number.
    is_probability : bool
        Whether scores are probabilities.
    threshold : float
        The second of two classes is predicted for scores above it.
    bound : float
        Scores that are not probabilities are clipped to this size.
    release_sha256 : str, optional
        Digest of the release before a threshold or calibration was chosen.
    """

    title: str
    outputs: Callable[[Any], Any]
    is_probability: bool = True
    threshold: float = 0.5
    bound: float = WIDE
    release_sha256: str | None = None


def subject_of(model: Any, scores: Any, target: Target, score_bound: float | None) -> Subject:
    """Return the subject for a model or a column of scores; refuse one that cannot predict this target."""
    if (model is None) == (scores is None):
        raise InvalidParameter("pass either a model or scores. For scores: evaluate(None, table, scores=...)")
    if score_bound is not None:
        check_positive(score_bound=score_bound)
    if scores is not None:
        probable = score_bound is None
        threshold = 0.5 if probable else 0.0
        subject = Subject("a column of scores", lambda rows: _column(rows, scores), probable, threshold)
    elif isinstance(model, Release):
        subject = _release(model, target)
    elif isinstance(model, InteractivePredictor):
        raise InvalidParameter(
            "a session cannot be evaluated, because it would store the private records and its later answers could "
            "depend on them. Evaluate a release instead."
        )
    else:
        subject = _scikit_learn(model, target)
    return subject if score_bound is None else dataclasses.replace(subject, bound=score_bound)


def release_of(model: Any) -> Any:
    """Return the release of a fitted privlearn estimator, which has a schema; return other models unchanged."""
    release = getattr(model, "release_", None)
    return release if isinstance(release, Release) else model


def schema_of(model: Any, schema: SchemaLike | None) -> Schema:
    """Return the given schema, or else the release's own; refuse a schema without a target."""
    own = getattr(base_of(model.model.encoder), "schema", None) if isinstance(model, Release) else None
    chosen = own if schema is None else as_schema(schema)
    if schema is None and isinstance(model, Release) and (own is None or own.target is None):
        raise InvalidParameter(
            "the model was trained on arrays, whose columns have no names. Pass its scores, and a schema whose target "
            "lists the classes or bounds of y: evaluate(None, {'y': y}, scores=model.predict_proba(X), schema=..., "
            "epsilon=...), with [:, 1] for two classes"
        )
    if chosen is None:
        raise InvalidParameter(
            "schema is missing. Pass schema=Schema.load('census.schema.yaml') with the classes or bounds of the target."
        )
    if chosen.target is None:
        raise SchemaError("the schema has no target. Add `target:` with its name and its classes or bounds.")
    return chosen


def check_outputs(outputs: Any, rows: int, target: Target, *, probable: bool) -> Array:
    """Return the scores as finite numbers, of shape (rows,) or (rows, classes); refuse others."""
    shape = _shape(rows, target)
    values = safely(
        lambda: np.asarray(outputs, dtype=np.float64),
        "the scores are not numbers. Pass one number for each row.",
    )
    if values.shape != shape:
        raise DataError(f"there must be one score for each row{' and class' if len(shape) > 1 else ''}")
    if not np.isfinite(values).all():
        raise DataError("some scores are not finite. Pass a finite number for each row.")
    if probable and target.classes and not ((values >= 0.0) & (values <= 1.0)).all():
        raise DataError("some scores are not probabilities. Pass a bound for them, such as score_bound=3.0.")
    return values


def _release(release: Release, target: Target) -> Subject:
    # The digest before a decision: the counts do not depend on a threshold or calibration that was chosen before.
    model, digest = release.model, release.undecided.digest
    is_linear = isinstance(model.encoder, RawEncoder | CentredEncoder)
    in_rows: Callable[[Any], Any] = (lambda score: score) if is_linear else partial(_row_by_row, target)
    if not isinstance(model, LinearModel):
        _check_kind(target, has_classes=False)
        return Subject("a release", in_rows(model.predict), release_sha256=digest)
    _check_classes(model.classes.tolist(), target)
    probable = model.link != "none"
    if len(model.classes) == 2:
        scores = in_rows(model.own_scores)
        return Subject("a release", scores, probable, model.threshold, release_sha256=digest)
    outputs = model.predict_proba if probable else model.decision_function
    return Subject("a release", in_rows(outputs), probable, release_sha256=digest)


def _shape(rows: int, target: Target) -> tuple[int, ...]:
    """Return the shape of the scores of some rows: one per row, or one per row and class."""
    return (rows, len(target.classes)) if len(target.classes or ()) > 2 else (rows,)


def _row_by_row(target: Target, score: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a function that scores one row at a time, so that no bit of a score depends on the other rows.

    Matrix products may round a row differently depending on the number of rows, so one record could move others across
    the edge of a bin. A block without rows returns no scores: an error would reveal that it is empty.
    """

    def score_rows(rows: Any) -> Any:
        rows = rows if hasattr(rows, "shape") else as_table(rows)
        if rows.shape[0] > MANY_ROWS:
            warnings.warn(
                "each row is scored alone, which takes some milliseconds each. If no score depends on other rows, "
                "pass scores=model.predict_proba(X)[:, 1] in place of the model, or all columns for more classes",
                stacklevel=2,
            )
        outputs = [np.asarray(score(_row(rows, index))) for index in range(rows.shape[0])]
        return np.concatenate(outputs) if outputs else np.empty(_shape(0, target))

    return score_rows


def _row(rows: Any, index: int) -> Any:
    if isinstance(rows, pa.Table | pa.RecordBatch):
        return rows.slice(index, 1)
    return rows.iloc[index : index + 1] if hasattr(rows, "iloc") else rows[index : index + 1]


def _scikit_learn(model: Any, target: Target) -> Subject:
    title = type(model).__name__
    if not hasattr(model, "predict"):
        raise InvalidParameter(f"{title} has no predict method. Pass a release or a fitted model.")
    if not target.classes:
        from sklearn.base import is_regressor  # slow to import

        _check_kind(target, has_classes=not is_regressor(model))
        return Subject(title, _row_by_row(target, model.predict))
    order = _check_classes(list(getattr(model, "classes_", ())), target)
    if hasattr(model, "predict_proba"):
        columns = order[1] if len(order) == 2 else order
        return Subject(title, _row_by_row(target, lambda rows: model.predict_proba(rows)[:, columns]))
    if not hasattr(model, "decision_function"):
        raise InvalidParameter(f"{title} needs predict_proba or decision_function. Pass another model.")
    if len(order) == 2:
        sign = 1.0 if order[1] == 1 else -1.0
        scores = _row_by_row(target, lambda rows: sign * model.decision_function(rows))
        return Subject(title, scores, False, 0.0)
    return Subject(title, _row_by_row(target, lambda rows: model.decision_function(rows)[:, order]), False)


def _column(rows: Any, scores: Any) -> Array:
    """Return one number per row; or one per row and class, in the order of the schema's classes."""
    if not isinstance(scores, str) and np.ndim(scores) == 2:
        return safely(
            lambda: np.asarray(scores, dtype=np.float64),
            "the scores are not numbers. Pass one number for each row and class.",
        )
    column = as_table(rows, [scores]).column(0) if isinstance(scores, str) else as_array(scores, "scores")
    return numbers(column, "scores")


def _check_kind(target: Target, *, has_classes: bool) -> None:
    if bool(target.classes) != has_classes:
        kinds = ("classes", "numbers") if has_classes else ("numbers", "classes")
        raise InvalidParameter(
            f"the model predicts {kinds[0]}, but the schema's target has {kinds[1]}. Pass the schema of the model."
        )


def _check_classes(classes: Sequence[Any], target: Target) -> list[int]:
    """Return the index of each of the target's classes among the model's."""
    _check_kind(target, has_classes=True)
    plain = np.asarray(classes).tolist()
    if sorted(map(repr, plain)) != sorted(map(repr, target.classes)):
        raise InvalidParameter(
            "the model's classes differ from those of the schema's target. Pass the schema of the model."
        )
    return [plain.index(label) for label in target.classes]

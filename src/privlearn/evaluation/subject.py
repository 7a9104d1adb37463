"""What is evaluated: releases, models of scikit-learn and columns of scores, seen alike."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from sklearn.base import is_regressor

from privlearn.arrays import Array
from privlearn.data.encode.arrays import ArrayEncoder
from privlearn.data.encode.centred import CentredEncoder
from privlearn.data.encode.column_cells import numbers
from privlearn.data.encode.encoder import SchemaEncoder
from privlearn.data.schema.columns import Target
from privlearn.data.schema.schema import Schema, SchemaLike, as_schema
from privlearn.data.sources.table import as_array, as_table, safely
from privlearn.errors import DataError, InvalidParameter, SchemaError, check_positive
from privlearn.release.artifact import Release
from privlearn.release.encoders import base_of
from privlearn.release.model import LinearModel
from privlearn.sessions.interactive import InteractivePredictor

WIDE = 2.0
"""Where scores are no probabilities: margins are made to be about 1, so nearly all of them lie within 2 of 0."""


@dataclass(frozen=True, eq=False)
class Subject:
    """Public facts of something that predicts, and how it is asked.

    Parameters
    ----------
    title : str
        For certificate and page.
    outputs : callable
        From rows to one score each for two classes (the second's), one for each of several classes, or a number.
    is_probability : bool
        Whether scores are probabilities.
    threshold : float
        Of two classes: above it the second is said.
    bound : float
        Largest score that is told from larger ones, where scores are no probabilities.
    release_sha256 : str, optional
        Digest of the release, as it was before a threshold or calibration was chosen.
    """

    title: str
    outputs: Callable[[Any], Any]
    is_probability: bool = True
    threshold: float = 0.5
    bound: float = WIDE
    release_sha256: str | None = None


def subject_of(model: Any, scores: Any, target: Target, score_bound: float | None) -> Subject:
    """What was handed over; refuses what cannot predict this target."""
    if (model is None) == (scores is None):
        raise InvalidParameter(
            "give a model, or None and a column of scores: evaluate(None, table, scores=...)"
        )
    if score_bound is not None:
        check_positive(score_bound=score_bound)
    if scores is not None:
        probable = score_bound is None
        found = Subject(
            "a column of scores", lambda rows: _column(rows, scores), probable, 0.5 if probable else 0.0
        )
    elif isinstance(model, Release):
        found = _release(model, target)
    elif isinstance(model, InteractivePredictor):
        raise InvalidParameter(
            "a session cannot be evaluated: it would be asked about the private records, they would stay in its state, "
            "and its later answers could depend on them. Evaluate a release"
        )
    else:
        found = _scikit_learn(model, target)
    return found if score_bound is None else dataclasses.replace(found, bound=score_bound)


def released(model: Any) -> Any:
    """The release of a fitted model of ours, which knows its schema; everything else as it is."""
    found = getattr(model, "release_", None)
    return found if isinstance(found, Release) else model


def schema_of(model: Any, schema: SchemaLike | None) -> Schema:
    """The one given, or the release's own; it must have a target."""
    own = getattr(base_of(model.model.encoder), "schema", None) if isinstance(model, Release) else None
    chosen = own if schema is None else as_schema(schema)
    if schema is None and isinstance(model, Release) and (own is None or own.target is None):
        raise InvalidParameter(
            "the model learnt from arrays, whose columns have no names: give its scores, and a schema whose target "
            "lists the classes or bounds of y: evaluate(None, {'y': y}, scores=model.predict_proba(X)[:, 1], "
            "schema=..., epsilon=...)"
        )
    if chosen is None:
        raise InvalidParameter(
            "say what is public about the table: schema=Schema.load('census.schema.yaml'). It lists the classes of "
            "the target, or its bounds"
        )
    if chosen.target is None:
        raise SchemaError("the schema has no target: add target: with its name and its classes or bounds")
    return chosen


def check_outputs(found: Any, rows: int, target: Target, *, probable: bool) -> Array:
    """Finite numbers, one per row, or one per row and class."""
    shape = (rows, len(target.classes)) if len(target.classes or ()) > 2 else (rows,)
    values = safely(
        lambda: np.asarray(found, dtype=np.float64), "the scores are no numbers: give one number for each row"
    )
    if values.shape != shape:
        raise DataError(f"there must be one score for each row{' and class' if len(shape) > 1 else ''}")
    if not np.isfinite(values).all():
        raise DataError("some scores are not finite: every row needs a number")
    if probable and target.classes and not ((values >= 0.0) & (values <= 1.0)).all():
        raise DataError(
            "some scores are no probabilities: say between which numbers they lie, score_bound=3.0"
        )
    return values


def _release(release: Release, target: Target) -> Subject:
    # What is counted does not depend on a threshold or calibration that was chosen for the model before.
    model, digest = release.model, release.undecided.digest
    together = isinstance(model.encoder, SchemaEncoder | ArrayEncoder | CentredEncoder)
    asked: Callable[[Any], Any] = (lambda ask: ask) if together else _each
    if not isinstance(model, LinearModel):
        _check_kind(target, has_classes=False)
        return Subject("a release", asked(model.predict), release_sha256=digest)
    _check_classes(model.classes.tolist(), target)
    probable = model.link != "none"
    if len(model.classes) == 2:
        return Subject("a release", asked(model.own_scores), probable, model.threshold, release_sha256=digest)
    outputs = model.predict_proba if probable else model.decision_function
    return Subject("a release", asked(outputs), probable, release_sha256=digest)


def _each(ask: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The same, asked about one row at a time: then no bit of a score depends on the other rows.

    Matrix products may round a row by how many others there are, and one record would move others across a bin's edge.
    """

    def ask_each(rows: Any) -> Any:
        rows = rows if hasattr(rows, "shape") else as_table(rows)
        return np.concatenate([np.asarray(ask(_row(rows, place))) for place in range(rows.shape[0])])

    return ask_each


def _row(rows: Any, place: int) -> Any:
    if isinstance(rows, pa.Table | pa.RecordBatch):
        return rows.slice(place, 1)
    return rows.iloc[place : place + 1] if hasattr(rows, "iloc") else rows[place : place + 1]


def _scikit_learn(model: Any, target: Target) -> Subject:
    title = type(model).__name__
    if not hasattr(model, "predict"):
        raise InvalidParameter(f"a {title} does not predict: give a release or a fitted model")
    if not target.classes:
        _check_kind(target, has_classes=not is_regressor(model))
        return Subject(title, _each(model.predict))
    order = _check_classes(list(getattr(model, "classes_", ())), target)
    if hasattr(model, "predict_proba"):
        wanted = order[1] if len(order) == 2 else order
        return Subject(title, _each(lambda rows: model.predict_proba(rows)[:, wanted]))
    if not hasattr(model, "decision_function"):
        raise InvalidParameter(
            f"a {title} has neither predict_proba nor decision_function: there is no score to count"
        )
    if len(order) == 2:
        sign = 1.0 if order[1] == 1 else -1.0
        return Subject(title, _each(lambda rows: sign * model.decision_function(rows)), False, 0.0)
    return Subject(title, _each(lambda rows: model.decision_function(rows)[:, order]), False)


def _column(rows: Any, scores: Any) -> Array:
    column = as_table(rows, [scores]).column(0) if isinstance(scores, str) else as_array(scores, "scores")
    return numbers(column, "scores")


def _check_kind(target: Target, *, has_classes: bool) -> None:
    if bool(target.classes) != has_classes:
        kinds = ("classes", "numbers") if has_classes else ("numbers", "classes")
        raise InvalidParameter(
            f"the model predicts {kinds[0]}, the schema's target has {kinds[1]}: they must agree"
        )


def _check_classes(classes: Sequence[Any], target: Target) -> list[int]:
    """Where each of the target's classes is among the model's."""
    _check_kind(target, has_classes=True)
    plain = np.asarray(classes).tolist()
    if sorted(map(repr, plain)) != sorted(map(repr, target.classes)):
        raise InvalidParameter(
            "the model's classes are not those of the schema's target: they must be the same"
        )
    return [plain.index(label) for label in target.classes]

"""Buy the curvature of a release: read the table it was learnt from, pay, sum with noise."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from privlearn.data.encode.centred import CentredEncoder
from privlearn.data.encode.encoder import SchemaEncoder
from privlearn.data.schema.purchases import with_purchases
from privlearn.data.schema.schema import Schema
from privlearn.data.sources.row_source import in_memory
from privlearn.errors import DataError, InvalidParameter
from privlearn.estimators.curvature_rows import CurvatureRows
from privlearn.estimators.goal import ClassGoal, NumberGoal, TrainingRows
from privlearn.estimators.inputs import check_class_weight, read_columns, read_table
from privlearn.estimators.linear import PrivateLogisticRegression
from privlearn.estimators.regression import PrivateRegressor
from privlearn.explain.sold import why_not_sold
from privlearn.guarantee import Guarantee
from privlearn.ledger.charge import Budget, Charge
from privlearn.ledger.composition import Cost
from privlearn.mechanisms.statistics.curvature import NoisyCurvature
from privlearn.mechanisms.task import Task
from privlearn.randomness import randomness_from
from privlearn.release.artifact import Release
from privlearn.release.curvature_file import Curvature, CurvatureCertificate
from privlearn.release.encoders import RawEncoder, base_of
from privlearn.release.model import LinearModel, Model


def curvature(
    release: Release,
    X: Any,
    y: Any = None,
    *,
    epsilon: float,
    delta: float,
    class_weight: Mapping[Any, float] | None = None,
    ledger: Budget | None = None,
    accept_weak_privacy: bool = False,
    random_state: int | np.random.Generator | None = None,
) -> Curvature:
    """Buy what intervals need: the loss's curvature at a released model, and its gradients' spread, with noise.

    It is a second release about the same records, for the same neighbours as the first, and has its own price.

    Parameters
    ----------
    release : Release
        By objective or output perturbation, linear, of at most 256 coefficients, with one row per person.
    X : table or array
        The rows that the release was learnt from, as `fit` took them.
    y : array, optional
        As `fit` took it; with a schema the target column is taken.
    epsilon, delta : float
        The price; the noise is Gaussian, so delta is above 0.
    class_weight : dict, optional
        That of the fit, if it had one; by default what the release says of it, which version 0.1 did not.
    ledger : Ledger, optional
    accept_weak_privacy : bool, default=False
    random_state : None, int or numpy generator, default=None
        ``None`` draws secure bits. Anything else is for tests, and the certificate says so.

    Returns
    -------
    Curvature
        For `privlearn.intervals`; ``save(path)`` writes a file that `privlearn.verify` recomputes.
    """
    task = _task_of(release)
    guarantee, randomness = Guarantee(epsilon, delta, task.neighbours), randomness_from(random_state)
    mechanism = NoisyCurvature.calibrate(task, guarantee)
    rows = _rows_of(release, X, y, class_weight)
    schema = _schema_of(release)
    charge = Charge(
        ledger=ledger,
        cost=Cost(guarantee, mechanism.renyi),
        promise=with_purchases(guarantee, () if schema is None else schema.bought),
        records=task.total,
        purpose="curvature",
        schema_digest="" if schema is None else schema.digest,
        secure=randomness.secure,
        accept_weak_privacy=accept_weak_privacy,
    )
    oracle = CurvatureRows(rows, mechanism)
    coefficients = release.model.coefficients
    matrices = charge.pay_for(lambda: mechanism.run(oracle, coefficients, randomness))
    about = {"release_sha256": release.digest, "encoding": dict(release.certificate.encoding)}
    return Curvature(CurvatureCertificate.issue(mechanism, randomness, about), *matrices)


def _task_of(release: Release) -> Task:
    """Public: what the release was calibrated by; refuses one whose curvature is not sold."""
    reason = why_not_sold(release)
    if reason is not None:
        raise InvalidParameter(
            f"no curvature is sold for this release: {reason}. Privacy intervals need none: "
            "intervals(release, kind='privacy'), in the shell privlearn inspect MODEL --effects"
        )
    return dataclasses.replace(release.certificate.task, centring=None, score_counts=None, tolerance=1.0)


def _schema_of(release: Release) -> Schema | None:
    return getattr(base_of(release.model.encoder), "schema", None)


def _rows_of(release: Release, X: Any, y: Any, class_weight: Mapping[Any, float] | None) -> TrainingRows:
    """Touch the data: rows as the release encodes them, checked; nothing has been paid."""
    task, encoder = release.certificate.task, release.model.encoder
    rows = _read(release.model, cast(RawEncoder, base_of(encoder)), X, y)
    rows = dataclasses.replace(rows, features=in_memory(rows.features))
    if isinstance(rows.goal, ClassGoal):
        weights = check_class_weight(class_weight, rows.goal.classes)
        stated = getattr(release.model, "class_weights", None)
        if weights is None and stated is not None:
            weights = np.array(stated)
        if weights is not None:
            rows = dataclasses.replace(rows, goal=dataclasses.replace(rows.goal, class_weights=weights))
    if task.relation.count_is_public and rows.total != task.total:
        raise DataError(
            f"the release was learnt from {task.total} records, a public number, and this table has {rows.total}: "
            "give the table it was learnt from"
        )
    if rows.goal.weight_bound != task.weight_bound:
        raise InvalidParameter("class_weight is not that of the fit: give the same")
    if isinstance(encoder, CentredEncoder):
        rows = dataclasses.replace(rows, encoder=encoder, features=encoder.lift(rows.features))
    return rows


def _read(model: Model, base: RawEncoder, X: Any, y: Any) -> TrainingRows:
    """Rows and answers as the model's encoder, classes and bounds say; all of them are public."""
    if isinstance(base, SchemaEncoder) and base.schema.target is not None:
        if isinstance(model, LinearModel):
            return read_table(base.schema, X, y, base.fit_intercept, lambda *_: base.resolution)
        targets, read = read_columns(base, X, y, base.encode_targets)
        return read.rows(NumberGoal(targets, model.target_bounds), lambda *_: base.resolution)
    reader: Any = (
        PrivateLogisticRegression(norm_bound=1.0, classes=model.classes.tolist())
        if isinstance(model, LinearModel)
        else PrivateRegressor(norm_bound=1.0, target_bounds=model.target_bounds)
    )
    answered: TrainingRows = reader.read_rows(
        X, y, True
    )  # encoded anew: the release may be of another version
    return dataclasses.replace(answered, encoder=base, features=base.encode(X, may_be_empty=True))

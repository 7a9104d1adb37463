"""`curvature`: estimate a release's Hessian privately, from the table that it was learnt from, for intervals.

The table is read and checked, the ledger is charged, and sums over its rows are released with noise.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from privlearn.budget.charge import Budget, Charge
from privlearn.budget.composition import Cost
from privlearn.data.encoding.arrays import CentredEncoder
from privlearn.data.encoding.encoder import SchemaEncoder
from privlearn.data.parts import part_of, without_part
from privlearn.data.schema.schema import Schema
from privlearn.data.sources.row_source import in_memory
from privlearn.errors import DataError, InvalidParameter
from privlearn.estimators.curvature_rows import CurvatureRows
from privlearn.estimators.reading import (
    check_array_shape,
    read_columns,
    read_table,
    refuse_weights,
    weigh_rows,
)
from privlearn.estimators.target_readers import ClassReader, NumberReader, check_class_weight
from privlearn.estimators.training_rows import ClassTargets, NumberTargets, TrainingRows
from privlearn.explain.uncertainty import explain_missing_curvature
from privlearn.guarantee import Guarantee
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
    sample_weight: Any = None,
    ledger: Budget | None = None,
    accept_weak_privacy: bool = False,
    random_state: int | np.random.Generator | None = None,
) -> Curvature:
    """Estimate privately what intervals need: the loss's Hessian at a released model, and its gradients' covariance.

    It is a second release about the same records, with the neighbours of the first and its own epsilon and delta.

    Parameters
    ----------
    release : Release
        By objective or output perturbation, linear, of at most 256 coefficients, with one row per person.
    X : table or array
        The rows that the release was learnt from, as `fit` took them.
    y : array, optional
        As `fit` took it; with a schema the target column is taken.
    epsilon, delta : float
        Charged in addition to the release's; the noise is Gaussian, so delta must be above 0.
    class_weight : dict, optional
        That of the fit, if it had one; by default that of the release.
    sample_weight : array, optional
        That of the fit, for arrays; a table's weights are in its schema.
    ledger : Ledger, optional
    accept_weak_privacy : bool, default=False
    random_state : None, int or numpy generator, default=None
        ``None`` draws secure bits. Anything else is for tests, and is written into the certificate.

    Returns
    -------
    Curvature
        For `privlearn.intervals`; ``save(path)`` writes a file that `privlearn.verify` recomputes.
    """
    task = _task_of(release)
    guarantee, randomness = Guarantee(epsilon, delta, task.neighbours), randomness_from(random_state)
    mechanism = NoisyCurvature.calibrate(task, guarantee)
    rows = _rows_of(release, without_part(X, y), y, class_weight, sample_weight)
    charge = Charge(
        ledger=ledger,
        cost=Cost(guarantee, mechanism.renyi),
        schema=_schema_of(release),
        part=part_of(X),
        records=task.total,
        purpose="curvature",
        secure=randomness.secure,
        accept_weak_privacy=accept_weak_privacy,
    )
    oracle = CurvatureRows(rows, mechanism)
    coefficients = release.model.coefficients
    matrices = charge.pay_for(lambda: mechanism.run(oracle, coefficients, randomness))
    about = {"release_sha256": release.digest, "encoding": dict(release.certificate.encoding)}
    return Curvature(CurvatureCertificate.issue(mechanism, randomness, about), *matrices)


def _task_of(release: Release) -> Task:
    """Public: return the release's task; refuse a release whose curvature cannot be estimated."""
    reason = explain_missing_curvature(release)
    if reason is not None:
        raise InvalidParameter(
            f"this release can have no curvature: {reason}. Privacy intervals need none: "
            "intervals(release, kind='privacy'), in the shell privlearn inspect MODEL --effects"
        )
    return dataclasses.replace(release.certificate.task.without_statistics(), tolerance=1.0)


def _schema_of(release: Release) -> Schema | None:
    return getattr(base_of(release.model.encoder), "schema", None)


def _rows_of(
    release: Release, X: Any, y: Any, class_weight: Mapping[Any, float] | None, sample_weight: Any
) -> TrainingRows:
    """Touch the data: return rows as the release encodes them, checked; nothing is charged yet."""
    task, encoder = release.certificate.task, release.model.encoder
    base = cast(RawEncoder, base_of(encoder))
    rows = _read(release.model, base, X, y)
    if isinstance(base, SchemaEncoder) and base.schema.target is not None:
        refuse_weights(sample_weight, None)
    else:
        is_weighted = sample_weight is not None or task.row_weight_bound != 1.0
        rows = weigh_rows(rows, sample_weight, task.row_weight_bound if is_weighted else None, private=True)
    rows = dataclasses.replace(rows, features=in_memory(rows.features))
    if isinstance(rows.targets, ClassTargets):
        weights = check_class_weight(class_weight, rows.targets.classes)
        recorded = getattr(release.model, "class_weights", None)
        if weights is None and recorded is not None:
            weights = np.array(recorded)
        if weights is not None:
            rows = dataclasses.replace(rows, targets=dataclasses.replace(rows.targets, class_weights=weights))
    rows = rows.with_score_map(release.model.score_map)
    if task.relation.count_is_public and rows.total != task.total:
        raise DataError(
            f"the release was learnt from {task.total} {release.certificate.count_noun}, a public number, and "
            f"this table has {rows.total}. "
            "Give the table it was learnt from"
        )
    if rows.targets.weight_bound != task.weight_bound:
        raise InvalidParameter("class_weight differs from that of the fit. Give the same")
    if isinstance(encoder, CentredEncoder):
        rows = dataclasses.replace(rows, encoder=encoder, features=encoder.lift(rows.features))
    return rows


def _read(model: Model, base: RawEncoder, X: Any, y: Any) -> TrainingRows:
    """Touch the data: return rows and answers by the model's encoder, classes and bounds, which are public."""
    if isinstance(base, SchemaEncoder) and base.schema.target is not None:
        if isinstance(model, LinearModel):
            return read_table(base.schema, X, y, base.fit_intercept, lambda *_: base.resolution)
        targets, read = read_columns(base, X, y, base.encode_targets)
        return read.rows(NumberTargets(targets, model.target_bounds), lambda *_: base.resolution)
    if y is None:
        raise InvalidParameter("y is missing. Pass the answers that the release was learnt from")
    check_array_shape(X, may_be_empty=True)
    reader = (
        ClassReader("curvature", model.classes.tolist(), None)
        if isinstance(model, LinearModel)
        else NumberReader("curvature", model.target_bounds)
    )
    features = base.encode(X, may_be_empty=True)
    return TrainingRows(features, base, reader.read_array(X, y, private=True), features.shape[0])

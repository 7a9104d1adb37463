"""`curvature`: estimate a release's Hessian privately, from the table that it was learnt from, for intervals.

The table is read and checked, the ledger is charged, and sums over its rows are released with noise. `CurvatureRows`
computes those sums exactly, in any order of the rows.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any, cast

import numpy as np

from privlearn.arrays import Array
from privlearn.budget.charge import Budget, Charge
from privlearn.budget.composition import Cost
from privlearn.data.encoding.arrays import CentredEncoder, blocks
from privlearn.data.encoding.encoder import SchemaEncoder
from privlearn.data.parts import part_of, without_part
from privlearn.data.schema.schema import Schema
from privlearn.data.sources.row_source import in_memory
from privlearn.errors import DataError, InvalidParameter
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
from privlearn.mechanisms.statistics.curvature import Curvatures, NoisyCurvature
from privlearn.mechanisms.task import Task
from privlearn.randomness import randomness_from
from privlearn.release.artifact import Release
from privlearn.release.curvature_file import Curvature, CurvatureCertificate
from privlearn.release.encoders import RawEncoder, base_of
from privlearn.release.model import LinearModel, Model
from privlearn.solvers.losses import Loss


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


UNIT = 2.0**13
"""Factors are cut, towards 0, to multiples of 1 / UNIT: products are whole multiples of 1 / UNIT^2, and so are their
sums, which floating point holds exactly for fewer than 2^27 rows. Cutting makes no factor longer."""


class CurvatureRows(Curvatures):
    """PRIVATE: rows under a release's task.

    A record's Hessian, and its gradient's outer product, are sums of products z z' of factors z that follow from that
    record alone; their squared lengths add up to at most 1 once they are divided by the mechanism's bounds. The same
    holds for a person whose rows are averaged: the Hessian is the mean of theirs, and the gradient, whose outer product
    is taken, is the sum of their weighted gradients, which makes intervals robust against clusters.
    """

    def __init__(self, rows: TrainingRows, mechanism: NoisyCurvature) -> None:
        self._features: Any = rows.features
        self._task = mechanism.task
        self._bounds = np.sqrt([mechanism.hessian_bound, mechanism.gradient_bound])
        count = rows.features.shape[0]
        self._weights = np.ones(count) if rows.weights is None else rows.weights
        self._persons = rows.persons
        if self._task.classes:
            targets = cast(ClassTargets, rows.targets)
            self._labels = targets.labels
            self._base = 0.0 if targets.base is None else targets.base
        else:
            self._signs = rows.targets.signs[0]
            offsets = rows.targets.offsets[0]
            self._offsets = np.zeros(count) if offsets is None else offsets

    def sums(self, coefficients: Array) -> tuple[Array, Array]:
        hessian, gradients = np.zeros((2, self._task.dimension, self._task.dimension))
        factors_of = self._of_classes if self._task.classes else self._of_margin
        persons = None if self._persons is None else int(self._persons.max(initial=-1)) + 1
        of_persons = np.zeros((persons or 0, self._task.dimension))
        for part in blocks(len(self._weights)):
            block = self._features[part]
            features = block if isinstance(block, np.ndarray) else block.toarray()
            # a sum over each row alone: the bits of a matrix product may depend on the number of rows
            scores = np.einsum("ij,kj->ik", features, coefficients)
            first, *seconds = factors_of(part, scores)
            for factor in seconds:
                _add_outer(_join_factors(factor / self._bounds[0], features), hessian)
            rows = _join_factors(first / self._bounds[1], features)
            if self._persons is None:
                _add_outer(rows, gradients)
            else:
                np.add.at(of_persons, self._persons[part], rows)
        # Rounding must not make a person's gradient longer than its bound.
        _add_outer(of_persons / np.maximum(np.linalg.norm(of_persons, axis=1, keepdims=True), 1.0), gradients)
        return hessian / UNIT**2, gradients / UNIT**2

    def _of_margin(self, part: slice, scores: Array) -> Iterator[Array]:
        """Yield the factor of each row in its gradient, then those of its Hessian, of shape (rows, 1)."""
        loss, weights = cast(Loss, self._task.loss), self._weights[part]
        margins = self._signs[part] * scores[:, 0] - self._offsets[part]
        yield (weights * np.clip(loss.first_derivative(margins), -loss.lipschitz, loss.lipschitz))[
            :, np.newaxis
        ]
        yield np.sqrt(weights * np.minimum(loss.second_derivative(margins), loss.smoothness))[:, np.newaxis]

    def _of_classes(self, part: slice, scores: Array) -> Iterator[Array]:
        """Yield the same for softmax, of shape (rows, classes): diag(p) - p p' = sum_k p_k (e_k - p) (e_k - p)'."""
        weights, scores = self._weights[part, np.newaxis], scores + self._base
        powers = np.exp(scores - np.max(scores, axis=1, keepdims=True))
        chances = powers / np.einsum("ik->i", powers)[:, np.newaxis]
        yield weights * (chances - np.eye(self._task.classes)[self._labels[part]])
        for number, corner in enumerate(np.eye(self._task.classes)):
            yield np.sqrt(weights * chances[:, number, np.newaxis]) * (corner - chances)


def _join_factors(factors: Array, features: Array) -> Array:
    """Return each row times its factors, of shape (rows, classes * features)."""
    return np.asarray(np.einsum("ik,ij->ikj", factors, features).reshape(len(features), -1))


def _add_outer(vectors: Array, total: Array) -> None:
    """Add z z' of each vector z, cut to the grid."""
    whole = np.trunc(vectors * UNIT)
    total += whole.T @ whole

"""`Fit`: an estimator's rows, read and lifted, and the steps that follow: calibrate, charge, solve, release.

A search runs several fits on the same rows; a forecast calibrates one without any rows.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np

from privlearn.arrays import Array
from privlearn.budget.charge import Budget, Charge
from privlearn.budget.composition import Cost
from privlearn.data.encoding.arrays import CentredEncoder
from privlearn.data.encoding.encoder import SchemaEncoder
from privlearn.data.parts import Part
from privlearn.data.schema.schema import Schema, as_schema
from privlearn.data.schema.target import Target
from privlearn.data.sources.row_source import EncodedRows
from privlearn.errors import InvalidParameter, preview
from privlearn.estimators.calibration import calibrate_mechanism, check_tolerance
from privlearn.estimators.fit_statistics import Centrable, Requests
from privlearn.estimators.memory_oracle import MemoryOracle
from privlearn.estimators.training_rows import (
    ClassTargets,
    NumberTargets,
    RowIndices,
    TrainingRows,
    progress_display,
)
from privlearn.guarantee import Guarantee, get_relation
from privlearn.mechanisms.mechanism import ReleaseMechanism, mechanisms_of, takes_statistics
from privlearn.mechanisms.release.output import OutputPerturbation
from privlearn.mechanisms.search.search import Search
from privlearn.mechanisms.statistics.score_counts import log_odds_from_counts
from privlearn.mechanisms.task import Task
from privlearn.randomness import Randomness
from privlearn.release.artifact import Release
from privlearn.release.certificate import Certificate
from privlearn.release.encoders import RawEncoder, describe_encoding
from privlearn.release.model import LinearModel, Model
from privlearn.release.score_map import ScoreMap, map_of_locations, map_of_target, offsets_of_shares

if TYPE_CHECKING:
    from privlearn.estimators.estimator import PrivateEstimator


@dataclass(frozen=True, eq=False)
class Fit:
    """The steps of an estimator's `fit` after reading.

    Parameters
    ----------
    estimator : PrivateEstimator
        Its parameters decide what is learnt and how; the guarantee is an argument of `calibrate`.
    rows : TrainingRows
        In the space where the model is linear.
    """

    estimator: PrivateEstimator
    rows: TrainingRows

    @property
    def task(self) -> Task:
        """Return the public properties of the problem; the regularization is a placeholder."""
        estimator = self.estimator
        tolerance = check_tolerance(estimator.tolerance)
        return estimator.task_of(self.rows, self.rows.dimension, tolerance, estimator.neighbours)

    def calibrate(self, guarantee: Guarantee) -> ReleaseMechanism:
        """Return the calibrated mechanism, from public properties only."""
        estimator, points = self.estimator, self.rows.points
        kind, noise = estimator.select_mechanism()
        mechanism = calibrate_mechanism(
            self.task,
            guarantee,
            mechanism=kind,
            noise=noise,
            calibration=estimator.calibration,
            regularization=estimator.regularization_for(self.rows.total),
            points=None if points is None else len(points),
            requests=self._requests(),
        )
        if estimator.centre is True and guarantee.is_private and mechanism.task.centring is None:
            raise InvalidParameter(
                "centre=True needs dense rows, Gaussian noise (delta above 0), tight calibration, one "
                "problem (a number, two classes, or softmax) and the plain regularizer. Leave centre out"
            )
        return mechanism

    def _centrable(self) -> Centrable | None:
        """Public: return the size of the rows if the estimator's parameters allow centring them, else ``None``."""
        encoder, centre = self.rows.encoder, self.estimator.centre
        if centre != "auto" and not isinstance(centre, bool):
            raise InvalidParameter(f"centre must be 'auto', True or False, not {preview(centre)}")
        if centre is False or not isinstance(encoder, RawEncoder):
            return None
        if self.rows.prior is not None or self.rows.scales is not None:
            return None  # coefficients and weights belong to the rows as they are
        if centre == "auto" and not encoder.fit_intercept:
            return None  # the rows may contain a constant column, which centring would remove
        features = self.rows.features
        if features.is_sparse if isinstance(features, EncodedRows) else not isinstance(features, np.ndarray):
            return None  # sparse rows would not be sparse around a mean
        return Centrable(self.rows.dimension - encoder.fit_intercept, encoder.row_bound, centre is True)

    def _requests(self) -> Requests:
        """Public: return the statistics that may be released with the model."""
        targets = self.rows.targets
        requests = Requests(self._centrable(), self._is_scored())
        if not self._may_have_offsets():
            return requests
        is_default = self.estimator.loss is None and isinstance(targets, NumberTargets)
        if targets.score_map is not None:
            return dataclasses.replace(requests, chooses_width=is_default)
        if not self.estimator.releases_statistics:
            return requests
        if isinstance(targets, ClassTargets):
            weights = targets.class_weights
            ratio = 1.0 if weights is None else float(weights.max() / weights.min())
            return dataclasses.replace(requests, classes=len(targets.classes), weight_ratio=ratio)
        typical = None if self._target is None else self._target.typical
        bounds = np.atleast_2d(cast(NumberTargets, targets).target_bounds).tolist()
        ranges = tuple((lower, upper, typical) for lower, upper in bounds)
        return dataclasses.replace(requests, targets=ranges, chooses_width=is_default)

    @property
    def _target(self) -> Target | None:
        """Public: return the schema's target, if there is a schema that states one."""
        schema = self.estimator.schema
        return None if schema is None else as_schema(schema).target

    def _may_have_offsets(self) -> bool:
        """Public: return whether scores may have offsets and units, from public numbers or released ones.

        Not around a public model, with weights of the regularizer, without an intercept, in the papers' calibrations
        and mechanisms, which are as printed, and for losses of classes without probabilities.
        """
        estimator, rows = self.estimator, self.rows
        kind, _ = estimator.select_mechanism()
        known = mechanisms_of(ReleaseMechanism)
        covered = takes_statistics(known.get(kind, OutputPerturbation), estimator.calibration)
        plain = estimator.fit_intercept and rows.prior is None and rows.scales is None
        loss = estimator.loss_for(rows.targets)
        return covered and plain and (loss.argument == "residual" or loss.link != "none")

    def with_public_offsets(self) -> Fit:
        """Public: return the fit with the offsets or the unit of a public model, or else of the schema's target."""
        public = self.estimator.regularize_towards
        if isinstance(public, Release):
            # Verification accepts its offsets where the certificate states its norm.
            return self.on(self.rows.with_score_map(public.model.score_map if self.rows.prior_norm else None))
        targets, target = self.rows.targets, self._target
        if target is None or not self._may_have_offsets():
            return self
        weights = targets.class_weights if isinstance(targets, ClassTargets) else None
        score_map = map_of_target(target, weights, self.estimator.loss_for(targets))
        return self.on(self.rows.with_score_map(score_map))

    def _is_scored(self) -> bool:
        """Public: return whether to estimate probabilities that the loss does not have itself."""
        probability = self.estimator.probability
        if not isinstance(probability, bool):
            raise InvalidParameter(f"probability must be True or False, not {preview(probability)}")
        return probability and self.estimator.loss_for(self.rows.targets).link == "none"

    def oracle(self, task: Task) -> MemoryOracle:
        """Return what mechanisms of that task may query: rows in memory, or on a cluster."""
        kind: type[MemoryOracle] = MemoryOracle
        if self.rows.on_cluster:
            from privlearn.estimators.cluster.oracle import ClusterOracle  # late: few fits need it

            kind = ClusterOracle

        return kind(self.rows, task, progress_display(self.estimator.progress))

    def run(self, mechanism: ReleaseMechanism, randomness: Randomness) -> Array:
        """Touch the data: return what the mechanism releases, its noise included; see `model`."""
        if (mechanism.task.centring is not None) != isinstance(self.rows.encoder, CentredEncoder):
            raise InvalidParameter(
                "this mechanism is for centred rows. Run it on `apply_statistics(mechanism, randomness)`"
            )
        return mechanism.run(self.oracle(mechanism.task), randomness)

    def model(self, released: Array, mechanism: ReleaseMechanism) -> Model:
        """Public: return the model of what the mechanism released, around a public model if there is one."""
        return self.rows.model(
            released, self.estimator.loss_for(self.rows.targets), mechanism.coefficient_step
        )

    def _score_coefficients(self, released: Array) -> Array:
        """Public: return coefficients over the rows' features."""
        return released if self.rows.prior is None else released + self.rows.prior

    def apply_statistics(self, mechanism: ReleaseMechanism, randomness: Randomness) -> Fit:
        """Touch the data: return the fit with the offsets, targets and rows that follow from released statistics."""
        task, rows, oracle = mechanism.task, self.rows, self.oracle(mechanism.task)
        if task.class_counts is not None:
            targets = cast(ClassTargets, rows.targets)
            shares = task.class_counts.run(oracle, task.total, randomness, self._counts_add_up())
            offsets = offsets_of_shares(shares, targets.class_weights, task.loss.argument == "classes")
            rows = rows.with_score_map(ScoreMap(offsets))
        if task.target_locations is not None:
            bounds = cast(NumberTargets, rows.targets).target_bounds
            total = task.total if task.row_weight_bound == 1.0 else None
            locations = task.target_locations.run(oracle, total, randomness)
            pairs = [(location.centre, location.spread) for location in locations]
            rows = rows.with_score_map(map_of_locations(bounds, pairs))
        return self.on(rows)._centre_rows(mechanism, randomness)

    def _counts_add_up(self) -> bool:
        """Public: return whether counts of the classes add up to the task's number of records or persons."""
        rows, relation = self.rows, get_relation(self.estimator.neighbours)
        has_all = cast(ClassTargets, rows.targets).ignored is None and rows.row_weight_bound == 1.0
        return relation.count_is_public and has_all and rows.rows_per_person == 1

    def _centre_rows(self, mechanism: ReleaseMechanism, randomness: Randomness) -> Fit:
        """Touch the data: return the fit on centred rows, if the mechanism centres them; their centre is released."""
        task, rows = mechanism.task, self.rows
        if task.centring is None:
            return self
        centre = task.centring.run(self.oracle(task), task.total, randomness)
        encoder = CentredEncoder(cast(RawEncoder, rows.encoder), centre.mean, centre.radius)
        features = rows.features
        features = features.centre(encoder) if isinstance(features, EncodedRows) else encoder.lift(features)
        return self.on(dataclasses.replace(rows, encoder=encoder, features=features))

    def release(self, mechanism: ReleaseMechanism, randomness: Randomness) -> Release:
        """Touch the data: return the release; call it after the ledger is charged."""
        try:
            work = self.apply_statistics(mechanism, randomness)
            released = work.run(mechanism, randomness)
            model = work._add_probabilities(work.model(released, mechanism), mechanism, released, randomness)
        finally:
            if self.rows.on_cluster:
                cast(Any, self.rows.features).remote.release_rows()
        return Release(model, Certificate.issue(mechanism, randomness, describe_encoding(model.encoder)))

    def _add_probabilities(
        self, model: Model, mechanism: ReleaseMechanism, released: Array, randomness: Randomness
    ) -> Model:
        """Touch the data: return the model with log-odds from noisy counts of its scores, if the mechanism has them."""
        counts = mechanism.task.score_counts
        if counts is None:
            return model
        noisy = counts.run(self.oracle(mechanism.task), self._score_coefficients(released), randomness)
        return dataclasses.replace(
            cast(LinearModel, model), log_odds=log_odds_from_counts(noisy, counts.noise_scale)
        )

    def mistakes(self, released: Array) -> float:
        """Touch the data: return how many rows are predicted wrongly by what a mechanism released."""
        return self.oracle(self.task).mistakes(self._score_coefficients(released))

    def on(self, rows: TrainingRows) -> Fit:
        """Return the same fit on other rows of the same space."""
        return dataclasses.replace(self, rows=rows)

    def at_size(self, records: int, guarantee: Guarantee) -> Fit:
        """Public: return the fit of this many records under a guarantee, to be calibrated; it has no rows."""
        rows = dataclasses.replace(self.rows, total=records)
        encoder = rows.encoder
        if isinstance(encoder, SchemaEncoder):
            resolution = self.estimator.resolution(encoder.schema, records, guarantee)
            encoder = SchemaEncoder(
                encoder.schema, fit_intercept=encoder.fit_intercept, resolution=resolution
            )
            rows = dataclasses.replace(rows, features=encoder.no_rows(), encoder=encoder)
        return self.on(rows)

    def take(self, indices: RowIndices, expected: int | None = None) -> Fit:
        """Return the same fit on some of its rows; see `TrainingRows.take`."""
        return self.on(self.rows.take(indices, expected))

    def of(self, estimator: PrivateEstimator) -> Fit:
        """Return the fit of another estimator, which reads and lifts rows alike, on the same rows."""
        # Offsets follow from the loss, the calibration and the weights of classes, which candidates of a search vary.
        rows = estimator.apply_weights(self.rows.with_score_map(None))
        return Fit(estimator, rows).with_public_offsets()


class Payer(Protocol):
    """An estimator or a search, with the parameters of its charge."""

    @property
    def schema(self) -> Schema | None: ...

    @property
    def ledger(self) -> Budget | None: ...

    @property
    def accept_weak_privacy(self) -> bool: ...


def charge_of(
    owner: Payer,
    mechanism: ReleaseMechanism | Search,
    records: int,
    randomness: Randomness,
    part: Part | None,
) -> Charge:
    """Return the charge of an estimator's or a search's `fit`."""
    return Charge(
        ledger=owner.ledger,
        cost=Cost(mechanism.guarantee, mechanism.renyi),
        schema=owner.schema,
        part=part,
        records=records,
        purpose=f"{type(owner).__name__}.fit",
        secure=randomness.secure,
        accept_weak_privacy=owner.accept_weak_privacy,
    )

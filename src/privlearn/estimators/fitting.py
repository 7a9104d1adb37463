"""An estimator's rows, read and lifted: planned for a promise and solved, once or in several trials."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Protocol, cast

import numpy as np

from privlearn.arrays import Array
from privlearn.data.encode.arrays import ArrayEncoder
from privlearn.data.encode.centred import CentredEncoder
from privlearn.data.encode.encoder import SchemaEncoder
from privlearn.data.schema.purchases import with_purchases
from privlearn.data.schema.schema import Schema
from privlearn.data.sources.row_source import EncodedRows
from privlearn.errors import InvalidParameter, shown
from privlearn.estimators.cluster.oracle import ClusterOracle
from privlearn.estimators.cluster.rows import FeaturesOnCluster
from privlearn.estimators.goal import Places, TrainingRows
from privlearn.estimators.learner import ReleasingLearner
from privlearn.estimators.memory_oracle import MemoryOracle
from privlearn.estimators.plan import Centrable, asked_tolerance, plan_mechanism
from privlearn.guarantee import Guarantee
from privlearn.ledger.charge import Budget, Charge
from privlearn.ledger.composition import Cost
from privlearn.mechanisms.mechanism import ReleaseMechanism
from privlearn.mechanisms.search.search import Search
from privlearn.mechanisms.statistics.score_odds import log_odds_from_counts
from privlearn.mechanisms.task import Task
from privlearn.randomness import Randomness
from privlearn.release.artifact import Release
from privlearn.release.certificate import Certificate
from privlearn.release.encoders import RawEncoder, describe_encoding
from privlearn.release.model import LinearModel, Model


@dataclass(frozen=True, eq=False)
class Fitting:
    """What `fit` does after reading, step by step.

    Parameters
    ----------
    estimator : ReleasingLearner
        Whose parameters say what is learnt and how; the promise is given to `plan`.
    rows : TrainingRows
        In the space where the model is linear.
    """

    estimator: ReleasingLearner
    rows: TrainingRows

    @property
    def task(self) -> Task:
        """Public facts; the regularization is still a placeholder."""
        estimator = self.estimator
        tolerance = asked_tolerance(estimator.tolerance)
        return estimator.task_of(self.rows, self.rows.dimension, tolerance, estimator.neighbours)

    def plan(self, guarantee: Guarantee) -> ReleaseMechanism:
        """The calibrated mechanism; it looks at public facts only."""
        estimator, points = self.estimator, self.rows.points
        kind, noise = estimator.chosen_mechanism()
        planned = plan_mechanism(
            self.task,
            guarantee,
            mechanism=kind,
            noise=noise,
            calibration=estimator.calibration,
            regularization=estimator.regularization,
            points=None if points is None else len(points),
            rows=self._centrable(),
            scored=self._is_scored(),
        )
        if estimator.centre is True and guarantee.is_private and planned.task.centring is None:
            raise InvalidParameter(
                "centre=True needs dense rows, one per person, Gaussian noise (delta above 0), tight calibration and "
                "one problem (a number, two classes, or softmax): leave centre out"
            )
        return planned

    def _centrable(self) -> Centrable | None:
        """Public: the rows, if the estimator lets them be centred and they have a mean that could be taken off."""
        encoder, asked = self.rows.encoder, self.estimator.centre
        if asked != "auto" and not isinstance(asked, bool):
            raise InvalidParameter(f"centre must be 'auto', True or False, not {shown(asked)}")
        if asked is False or not isinstance(encoder, ArrayEncoder | SchemaEncoder):
            return None
        if asked == "auto" and not encoder.fit_intercept:
            return None  # rows may bring a constant of their own, which would go with the mean
        features = self.rows.features
        if features.is_sparse if isinstance(features, EncodedRows) else not isinstance(features, np.ndarray):
            return None  # sparse rows would not be sparse around a mean
        return Centrable(self.rows.dimension - encoder.fit_intercept, encoder.row_bound, asked is True)

    def _is_scored(self) -> bool:
        """Public: whether probabilities were asked for that the loss does not have itself."""
        asked = self.estimator.probability
        if not isinstance(asked, bool):
            raise InvalidParameter(f"probability must be True or False, not {shown(asked)}")
        return asked and self.estimator.loss_for(self.rows.goal).link == "none"

    def oracle(self, task: Task) -> MemoryOracle:
        """What mechanisms of that task may ask of the rows, wherever they are."""
        kind = ClusterOracle if isinstance(self.rows.features, FeaturesOnCluster) else MemoryOracle
        return kind(self.rows, task, self.estimator.progress)

    def run(self, mechanism: ReleaseMechanism, randomness: Randomness) -> Array:
        """Touch the data: coefficients in the rows' space, with the mechanism's noise."""
        if (mechanism.task.centring is not None) != isinstance(self.rows.encoder, CentredEncoder):
            raise InvalidParameter(
                "this plan is about centred rows: run it on `centred(mechanism, randomness)`"
            )
        return mechanism.run(self.oracle(mechanism.task), randomness)

    def model(self, coefficients: Array) -> Model:
        """What is released."""
        return self.rows.model(coefficients, self.estimator.loss_for(self.rows.goal))

    def centred(self, mechanism: ReleaseMechanism, randomness: Randomness) -> Fitting:
        """Touch the data: the same work on the rows that the mechanism learns from, with their centre released."""
        task, rows = mechanism.task, self.rows
        if task.centring is None:
            return self
        centre = task.centring.run(self.oracle(task), task.total, randomness)
        encoder = CentredEncoder(cast(RawEncoder, rows.encoder), centre.mean, centre.radius)
        features = rows.features
        if isinstance(features, EncodedRows):
            features = features.lifted(encoder.lift, encoder.dimension)
        else:
            features = encoder.lift(features)
        return self.on(dataclasses.replace(rows, encoder=encoder, features=features))

    def release(self, mechanism: ReleaseMechanism, randomness: Randomness) -> Release:
        """Touch the data: what may leave, once it is paid for."""
        try:
            work = self.centred(mechanism, randomness)
            coefficients = work.run(mechanism, randomness)
            model = work._with_probabilities(work.model(coefficients), mechanism, coefficients, randomness)
        finally:
            if isinstance(self.rows.features, FeaturesOnCluster):
                self.rows.features.held.let_go()
        return Release(model, Certificate.issue(mechanism, randomness, describe_encoding(model.encoder)))

    def _with_probabilities(
        self, model: Model, mechanism: ReleaseMechanism, coefficients: Array, randomness: Randomness
    ) -> Model:
        """Touch the data: the model, with what counts of its scores say, if they are paid for."""
        counts = mechanism.task.score_counts
        if counts is None:
            return model
        noisy = counts.run(self.oracle(mechanism.task), coefficients, randomness)
        return dataclasses.replace(
            cast(LinearModel, model), log_odds=log_odds_from_counts(noisy, counts.noise_scale)
        )

    def mistakes(self, coefficients: Array) -> float:
        """Touch the data: how many rows the coefficients predict wrongly."""
        return self.oracle(self.task).mistakes(coefficients)

    def on(self, rows: TrainingRows) -> Fitting:
        """The same work on other rows of the same space."""
        return dataclasses.replace(self, rows=rows)

    def foreseen(self, records: int, promise: Guarantee) -> Fitting:
        """Public: what `fit` would plan for so many records under that promise; it has no rows to run on."""
        rows = dataclasses.replace(self.rows, total=records)
        encoder = rows.encoder
        if isinstance(encoder, SchemaEncoder):
            chosen = self.estimator.resolution(encoder.schema, records, promise)
            encoder = SchemaEncoder(encoder.schema, fit_intercept=encoder.fit_intercept, resolution=chosen)
            rows = dataclasses.replace(rows, features=encoder.no_rows(), encoder=encoder)
        return self.on(rows)

    def take(self, places: Places, expected: int | None = None) -> Fitting:
        """The same work on some of its rows; see `TrainingRows.take`."""
        return self.on(self.rows.take(places, expected))

    def of(self, estimator: ReleasingLearner) -> Fitting:
        """The work of another estimator, one that reads and lifts rows alike, on the same rows."""
        return Fitting(estimator, estimator.weighted(self.rows))


class Payer(Protocol):
    """An estimator or a search: whose parameters say where its cost is written down."""

    @property
    def schema(self) -> Schema | None: ...

    @property
    def ledger(self) -> Budget | None: ...

    @property
    def accept_weak_privacy(self) -> bool: ...


def charge_of(
    owner: Payer, mechanism: ReleaseMechanism | Search, records: int, randomness: Randomness
) -> Charge:
    """What an estimator's or a search's `fit` costs, by its parameters."""
    schema = owner.schema
    return Charge(
        ledger=owner.ledger,
        cost=Cost(mechanism.guarantee, mechanism.renyi),
        promise=with_purchases(mechanism.guarantee, () if schema is None else schema.bought),
        records=records,
        purpose=f"{type(owner).__name__}.fit",
        schema_digest="" if schema is None else schema.digest,
        secure=randomness.secure,
        accept_weak_privacy=owner.accept_weak_privacy,
    )

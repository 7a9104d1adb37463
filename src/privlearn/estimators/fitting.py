"""An estimator's rows, read and lifted: planned for a promise and solved, once or in several trials."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Protocol

from scipy import sparse

from privlearn.arrays import Array
from privlearn.data.encode.encoder import SchemaEncoder
from privlearn.data.schema.schema import Schema, with_purchases
from privlearn.estimators.goal import Places, TrainingRows
from privlearn.estimators.learner import ReleasingLearner
from privlearn.estimators.memory_oracle import MemoryOracle
from privlearn.estimators.plan import plan_mechanism
from privlearn.guarantee import Guarantee
from privlearn.ledger.charge import Budget, Charge
from privlearn.ledger.composition import Cost
from privlearn.mechanisms.mechanism import ReleaseMechanism
from privlearn.mechanisms.search.search import Search
from privlearn.mechanisms.task import Task
from privlearn.randomness import Randomness
from privlearn.release.artifact import Release
from privlearn.release.certificate import Certificate
from privlearn.release.model import Model, describe_encoding


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
        return estimator.task_of(self.rows, self.rows.dimension, estimator.tolerance, estimator.neighbours)

    def plan(self, guarantee: Guarantee) -> ReleaseMechanism:
        """The calibrated mechanism; it looks at public facts only."""
        estimator, points = self.estimator, self.rows.points
        kind, noise = estimator.chosen_mechanism()
        return plan_mechanism(
            self.task,
            guarantee,
            mechanism=kind,
            noise=noise,
            calibration=estimator.calibration,
            regularization=estimator.regularization,
            points=None if points is None else len(points),
        )

    def oracle(self, task: Task) -> MemoryOracle:
        """What mechanisms of that task may ask of the rows."""
        return MemoryOracle(self.rows, task, self.estimator.progress)

    def run(self, mechanism: ReleaseMechanism, randomness: Randomness) -> Array:
        """Touch the data: coefficients in the rows' space, with the mechanism's noise."""
        return mechanism.run(self.oracle(mechanism.task), randomness)

    def model(self, coefficients: Array) -> Model:
        """What is released."""
        return self.rows.model(coefficients, self.estimator.chosen_loss())

    def release(self, mechanism: ReleaseMechanism, randomness: Randomness) -> Release:
        """Touch the data: what may leave, once it is paid for."""
        model = self.model(self.run(mechanism, randomness))
        return Release(model, Certificate.issue(mechanism, randomness, describe_encoding(model.encoder)))

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
            rows = dataclasses.replace(
                rows, features=sparse.csr_array((0, encoder.dimension)), encoder=encoder
            )
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

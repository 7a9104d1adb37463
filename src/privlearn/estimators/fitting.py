"""An estimator's rows, read and lifted: planned for a promise and solved, once or in several trials."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, cast

import numpy as np

from privlearn.arrays import Array
from privlearn.data import Schema
from privlearn.data.schema.schema import with_purchases
from privlearn.erm import Loss, Problem, minimise, minimise_multinomial
from privlearn.erm.problem import Rows
from privlearn.estimators.goal import ClassGoal, Places, TrainingRows
from privlearn.estimators.learner import ReleasingLearner
from privlearn.estimators.plan import plan_mechanism
from privlearn.guarantee import Guarantee
from privlearn.ledger import Budget, Charge, Cost
from privlearn.mechanisms import ReleaseMechanism, Task
from privlearn.mechanisms.oracle import DataOracle
from privlearn.mechanisms.search.search import Search
from privlearn.mechanisms.task import Task
from privlearn.randomness import Randomness
from privlearn.release import Certificate, Model, Release
from privlearn.release.encoders import describe_encoding

Progress = Callable[[int, int, int], None]
"""Called with (problem, number of problems, iteration); shown on the trusted side only."""

_UNIT = 2.0**20


class MemoryOracle(DataOracle):
    """Rows in this process, under a task.

    Parameters
    ----------
    rows : TrainingRows
    task : Task
        Its loss, and what the solver has to certify.
    progress : callable, optional
    """

    def __init__(self, rows: TrainingRows, task: Task, progress: Progress | None = None) -> None:
        self._rows = rows
        self._task = task
        self._progress = progress

    @property
    def total(self) -> int:
        return self._rows.total

    @property
    def points(self) -> Array | None:
        return self._rows.points

    def minimise(self, linear: Array | None, regularization: float) -> Array:
        if self._task.loss.sees == "classes":
            return self._minimise_together(regularization)
        signs = self._rows.goal.signs
        return np.array(
            [
                self._minimiser(signs, number, None if linear is None else linear[number], regularization)
                for number in range(len(signs))
            ]
        )

    def gradients(self, coefficients: Array) -> Array:
        problems = zip(self._rows.goal.signs, coefficients, strict=True)
        return np.array([self._gradient(signs, point) for signs, point in problems])

    def second_moments(self) -> Array:
        return self._blocks.gram(self._weights)

    def mistakes(self, coefficients: Array) -> float:
        """Rows whose class is predicted wrongly; for a regression, absolute errors as parts of the target's range.

        A record counts at most 1; where a person's rows are averaged, all of them together do. Each row's part is
        cut to a multiple of 2^-20, so that the sum is exact in any order: sums of whole numbers, below 2^53 for all
        tables of fewer than 2^33 rows.
        """
        scores = np.asarray(self._rows.features @ coefficients.T, dtype=np.float64)
        parts = self._rows.goal.errors(scores)
        if self._rows.person_weights is not None:
            parts = parts * self._rows.person_weights
        return float(np.floor(parts * _UNIT).astype(np.int64).sum()) / _UNIT

    @cached_property
    def _blocks(self) -> Rows:
        return Rows(self._rows.features, 1.0)

    @cached_property
    def _weights(self) -> Array:
        weights = self._rows.weights
        return np.ones(self._blocks.count) if weights is None else weights

    @property
    def _loss(self) -> Loss:
        return cast(Loss, self._task.loss)

    def _gradient(self, signs: Array, point: Array) -> Array:
        slopes = self._loss.derivative(signs * self._blocks.times(point))
        return self._blocks.transposed_times(signs * self._weights * slopes)

    def _minimiser(
        self, signs: list[Array], number: int, linear: Array | None, regularization: float
    ) -> Array:
        rows, task = self._rows, self._task
        problem = Problem(
            rows.features,
            signs[number],
            self._loss,
            regularization,
            rows.total,
            rows.weights,
            linear,
            offsets=rows.goal.offsets,
        )
        progress = self._counted(number, len(signs))
        return minimise(problem, tolerance=task.tolerance, gap=task.gap, progress=progress).coefficients

    def _minimise_together(self, regularization: float) -> Array:
        rows, goal = self._rows, cast(ClassGoal, self._rows.goal)
        return minimise_multinomial(
            rows.features,
            goal.labels,
            len(goal.classes),
            regularization=regularization,
            total=rows.total,
            row_weights=rows.weights,
            tolerance=self._task.tolerance,
            progress=self._counted(0, 1),
        ).coefficients

    def _counted(self, problem: int, problems: int) -> Callable[[int, float], None] | None:
        progress = self._progress
        if progress is None:
            return None
        return lambda iteration, _: progress(problem, problems, iteration)


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

    def take(self, places: Places) -> Fitting:
        """The same work on some of its rows."""
        return self.on(self.rows.take(places))

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

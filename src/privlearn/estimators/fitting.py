"""An estimator's rows, read and lifted: planned for a promise and solved, once or in several trials."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import numpy as np

from privlearn.arrays import Array
from privlearn.data import Schema
from privlearn.data.schema.schema import with_purchases
from privlearn.erm import Loss, LossFacts, Problem, minimise, minimise_multinomial
from privlearn.erm.problem import Features
from privlearn.estimators.inputs import EncodedRows, TrainingSet
from privlearn.estimators.plan import plan_mechanism
from privlearn.estimators.targets import RegressionSet
from privlearn.guarantee import Guarantee
from privlearn.ledger import Charge, Cost
from privlearn.mechanisms import DataOracle, ReleaseMechanism
from privlearn.mechanisms.mechanism import Minimise
from privlearn.mechanisms.task import Task
from privlearn.randomness import Randomness
from privlearn.release import Certificate, Model, Release
from privlearn.release.encoders import Encoder, describe_encoding

Progress = Callable[[int, int, int], None]
"""Called with (problem, number of problems, iteration); shown on the trusted side only."""


def solver(
    rows: TrainingSet,
    loss: LossFacts,
    class_weights: Array | None,
    task: Task,
    progress: Progress | None,
) -> Minimise:
    """What a mechanism calls with a perturbation for each problem and the regularization it settled on."""
    weights = row_weights(rows, class_weights)

    def solve_multinomial(linear: Array | None, regularization: float) -> Array:
        mass = _mass(rows.features, weights, rows.total)
        return minimise_multinomial(
            rows.features,
            rows.labels,
            len(rows.classes),
            regularization=regularization,
            total=rows.total,
            row_weights=weights,
            tolerance=_within_reach(task, mass, regularization, linear).tolerance,
            progress=_counted(progress, 0, 1),
        ).coefficients

    def solve_margins(linear: Array | None, regularization: float) -> Array:
        problems, found = class_signs(rows), []
        for index, signs in enumerate(problems):
            problem = Problem(
                rows.features,
                signs,
                cast(Loss, loss),
                regularization,
                rows.total,
                weights,
                None if linear is None else linear[index],
            )
            counted = _counted(progress, index, len(problems))
            found.append(minimiser(problem, task, counted))
        return np.array(found)

    return solve_multinomial if loss.sees == "classes" else solve_margins


def regression_solver(
    rows: RegressionSet, loss: LossFacts, task: Task, progress: Progress | None
) -> Minimise:
    """The same for the single problem of a regression, whose loss sees residuals."""

    def solve(linear: Array | None, regularization: float) -> Array:
        problem = Problem(
            rows.features,
            np.ones(len(rows.targets)),
            cast(Loss, loss),
            regularization,
            rows.total,
            rows.person_weights,
            None if linear is None else linear[0],
            offsets=rows.targets,
        )
        return minimiser(problem, task, _counted(progress, 0, 1))[np.newaxis]

    return solve


def class_signs(rows: TrainingSet) -> list[Array]:
    """+1 for one class and -1 for the rest: once for two classes, else for each."""
    positives = [1] if len(rows.classes) == 2 else range(len(rows.classes))
    return [np.where(rows.labels == positive, 1.0, -1.0) for positive in positives]


def row_weights(rows: TrainingSet, class_weights: Array | None) -> Array | None:
    """What each row counts: its class's weight times its share of its person; nothing if its label is not listed."""
    factors = [
        None if class_weights is None else class_weights[rows.labels],
        rows.person_weights,
        None if rows.ignored is None else (~rows.ignored).astype(np.float64),
    ]
    given = [factor for factor in factors if factor is not None]
    return np.asarray(np.prod(given, axis=0)) if given else None


def minimiser(problem: Problem, task: Task, progress: Callable[[int, float], None] | None = None) -> Array:
    """Solve one problem to what the task states; on a table larger than it speaks of, to what rounding leaves."""
    mass = _mass(problem.features, problem.row_weights, problem.total)
    task = _within_reach(task, mass, problem.regularization, problem.linear)
    return minimise(problem, tolerance=task.tolerance, gap=task.gap, progress=progress).coefficients


def _mass(features: Features, weights: Array | None, total: int) -> float:
    """PRIVATE: the rows' weights, over N."""
    return float(features.shape[0] if weights is None else weights.sum()) / total


def _within_reach(task: Task, mass: float, regularization: float, linear: Array | None) -> Task:
    """PRIVATE where the number of records is: a solver that gave up on so many rows would tell how many there are."""
    if mass <= task.mass_bound:
        return task
    longest = 0.0 if linear is None else float(np.linalg.norm(linear))
    return task.certifiable(regularization=regularization, linear_norm=longest, mass=mass)


def _counted(progress: Progress | None, index: int, count: int) -> Callable[[int, float], None] | None:
    if progress is None:
        return None
    return lambda iteration, _: progress(index, count, iteration)


Result = TypeVar("Result")


@dataclass(frozen=True, eq=False)
class Fitting:
    """What `fit` does after reading, step by step.

    Parameters
    ----------
    estimator : PrivateLinearModel
        Whose parameters say what is learnt and how; the promise is given to `plan`.
    loss : LossFacts
    rows : EncodedRows
        In the space where the model is linear.
    released_form : callable
        From coefficients in that space to those that a release holds.
    """

    estimator: Any
    loss: LossFacts
    rows: EncodedRows
    released_form: Callable[[Array], Array]

    def plan(self, guarantee: Guarantee) -> ReleaseMechanism:
        """The calibrated mechanism; it looks at public facts only."""
        estimator, rows = self.estimator, self.rows
        kind, noise = estimator._chosen_mechanism()
        return plan_mechanism(
            estimator._task(self.loss, rows),
            guarantee,
            mechanism=kind,
            noise=noise,
            calibration=estimator.calibration,
            regularization=estimator.regularization,
            points=None if rows.probes is None else len(rows.probes),
        )

    def run(self, mechanism: ReleaseMechanism, randomness: Randomness) -> Array:
        """Touch the data: coefficients in the rows' space, with the mechanism's noise."""
        solve = self.estimator._solver(self.loss, self.rows, mechanism.task)
        return mechanism.run(DataOracle(solve, self.rows.probes), randomness)

    def model(self, coefficients: Array) -> Model:
        """What is released."""
        encoder = cast(Encoder, self.rows.encoder)
        model: Model = self.estimator._model_of(
            self.loss, self.rows, encoder, self.released_form(coefficients)
        )
        return model

    def release(self, mechanism: ReleaseMechanism, randomness: Randomness) -> Release:
        """Touch the data: what may leave, once it is paid for."""
        model = self.model(self.run(mechanism, randomness))
        return Release(model, Certificate.issue(mechanism, randomness, describe_encoding(model.encoder)))

    def on(self, rows: EncodedRows) -> Fitting:
        """The same work on other rows of the same space."""
        return dataclasses.replace(self, rows=rows)

    def of(self, estimator: Any) -> Fitting:
        """The work of another estimator, one that reads and lifts rows alike, on the same rows."""
        return dataclasses.replace(self, estimator=estimator, loss=estimator._chosen_loss())


def charge_of(owner: Any, mechanism: Any, records: int, randomness: Randomness) -> Charge:
    """What an estimator's or a search's `fit` costs, by its parameters."""
    schema: Schema | None = owner.schema
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

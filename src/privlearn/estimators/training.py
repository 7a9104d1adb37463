"""The step that touches the data: solve each problem of a task to its certified tolerance."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np
from numpy.typing import NDArray

from privlearn.erm import Loss, LossFacts, Problem, minimise, minimise_multinomial
from privlearn.estimators.inputs import TrainingSet
from privlearn.estimators.targets import RegressionSet
from privlearn.mechanisms.mechanism import Minimise
from privlearn.mechanisms.task import Task

Array = NDArray[np.float64]

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
        return minimise_multinomial(
            rows.features,
            rows.labels,
            len(rows.classes),
            regularization=regularization,
            total=rows.total,
            row_weights=weights,
            tolerance=task.tolerance,
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
            found.append(_minimiser(problem, task, counted))
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
        return _minimiser(problem, task, _counted(progress, 0, 1))[np.newaxis]

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


def _minimiser(problem: Problem, task: Task, progress: Callable[[int, float], None] | None) -> Array:
    return minimise(problem, tolerance=task.tolerance, gap=task.gap, progress=progress).coefficients


def _counted(progress: Progress | None, index: int, count: int) -> Callable[[int, float], None] | None:
    if progress is None:
        return None
    return lambda iteration, _: progress(index, count, iteration)

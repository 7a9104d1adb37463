"""The public task of a session's learner, and its exact solution.

The task fixes the regularization and the distance to the minimiser that the solver certifies; `exact_functions` solves
the kernel machine with that certificate, and what it returns is PRIVATE.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from privlearn.arrays import Array
from privlearn.errors import InvalidParameter, SolverError
from privlearn.estimators.calibration import check_regularization, session_regularization
from privlearn.estimators.training_rows import ClassTargets, TrainingRows
from privlearn.features.kernel import Kernel
from privlearn.features.kernels import VectorKernel
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.session.task import MAX_SUM_TERMS, KernelTask, kernel_rounding, refuse_private_count
from privlearn.mechanisms.task import Task
from privlearn.solvers.kernel.dual import certified_kernel_distance, default_gap, minimise_kernel
from privlearn.solvers.kernel.gap import min_kernel_gap
from privlearn.solvers.kernel.multinomial import minimise_kernel_multinomial
from privlearn.solvers.kernel.problem import KernelProblem, make_symmetric
from privlearn.solvers.losses import Loss

if TYPE_CHECKING:
    from privlearn.estimators.learner import Learner


def session_task(learner: Learner, rows: TrainingRows, guarantee: Guarantee | None, kernel: Kernel) -> Task:
    """Return what the session's mechanism is calibrated by; ``regularization="auto"`` depends on the guarantee.

    It is doubled until rounding errors cannot keep the solver from proving its result on any table.
    """
    neighbours = guarantee.neighbours if isinstance(guarantee, Guarantee) else "replace_one"
    task = learner.task_of(rows, features=1, tolerance=1.0, neighbours=neighbours)
    requested = learner.regularization_for(task.total)
    if isinstance(requested, str) and requested == "auto":
        task = dataclasses.replace(task, regularization=session_regularization(task, guarantee))
        while math.isinf(_min_gap(task, kernel, rows.dimension)):
            task = dataclasses.replace(task, regularization=2.0 * task.regularization)
        return task
    return dataclasses.replace(task, regularization=check_regularization(requested))


def exact_kernel_task(task: Task, kernel: Kernel, dimension: int) -> KernelTask:
    """Return the task of an exact kernel machine, with the distance that `session_gap` certifies."""
    refuse_private_count(task.relation)
    gap = session_gap(task, kernel, dimension)
    return KernelTask(task, certified_kernel_distance(task.regularization, gap))


def landmark_kernel_task(task: Task, dimension: int) -> KernelTask:
    """Return the task of functions that are linear in ``dimension`` landmark features."""
    return KernelTask(task, landmark_task(task, dimension).solver_distance)


def landmark_task(task: Task, dimension: int) -> Task:
    """Return what the linear solver has to certify: one tolerance for all relations with a public number of records.

    Where that number is private the solver certifies tables of up to `Relation.max_table_ratio` times the expected one.
    """
    coefficients = dimension * max(task.classes, 1)
    neighbours = "replace_one" if task.relation.count_is_public else task.neighbours
    task = dataclasses.replace(task, dimension=coefficients, tolerance=0.0, neighbours=neighbours)
    return task.certifiable()


def session_gap(task: Task, kernel: Kernel, dimension: int) -> float:
    """Return the gap that the solver has to certify on points of ``dimension`` features, for any records.

    Raises
    ------
    InvalidParameter
        If rounding errors could keep it from that on some tables.
    """
    min_gap = _min_gap(task, kernel, dimension)
    if math.isinf(min_gap):
        raise InvalidParameter(
            f"regularization = {task.regularization:g} is too small for this kernel: rounding errors would keep the "
            "solver from proving its result on some tables. Use regularization='auto', a larger number, or a smaller C"
        )
    return max(default_gap(task.regularization), min_gap)


def _min_gap(task: Task, kernel: Kernel, dimension: int) -> float:
    return min_kernel_gap(
        task.loss,
        task.regularization,
        rows=MAX_SUM_TERMS if task.averaged else task.total,
        weight_bound=task.mass_bound,
        gram_error=kernel_rounding(kernel, dimension),
        classes=task.classes,
    )


BLOCK_ROWS = 512  # rows of the matrix that are computed at once


def exact_functions(rows: TrainingRows, features: Any, kernel: Kernel, kernel_task: KernelTask) -> Array:
    """PRIVATE: return the coefficients at the records, within the public bounds that the noise is calibrated by."""
    gap = session_gap(kernel_task.task, kernel, rows.dimension)
    kernel.check(features)
    gram = symmetric_gram(kernel, features)
    problems = (
        KernelProblem(
            gram,
            signs,
            cast(Loss, kernel_task.task.loss),
            kernel_task.task.regularization,
            kernel_task.task.total,
            row_weights=rows.weights,
            offsets=offsets,
            gram_error=kernel_rounding(kernel, rows.dimension),
            symmetric=True,
        )
        for signs, offsets in zip(rows.targets.signs, rows.targets.offsets, strict=True)
    )
    if kernel_task.task.classes:
        labels = cast(ClassTargets, rows.targets).labels
        dual = minimise_kernel_multinomial(next(problems), labels, kernel_task.functions, gap=gap).dual
    else:
        dual = np.array([minimise_kernel(problem, gap=gap).dual for problem in problems])
    if float(np.max(np.sum(np.abs(dual), axis=1))) > kernel_task.max_dual_sum * (1.0 + 1e-6):
        raise SolverError("the solver's coefficients exceed their bound. Use a stronger regularization")
    return dual


def symmetric_gram(kernel: Kernel, points: Any) -> Array:
    """Return the matrix k(x, z) divided by the kernel's bound: exactly symmetric, finite, and a copy."""
    if isinstance(kernel, VectorKernel):
        gram = _from_upper_half(kernel, points)
    else:
        gram = kernel(points, points).copy()  # the user's function may keep a reference to what it returned
        make_symmetric(gram)
    if kernel.bound != 1.0:
        gram /= kernel.bound
    return gram


def _from_upper_half(kernel: VectorKernel, points: Array) -> Array:
    """Return the symmetric matrix, computing each pair of points once."""
    gram = np.empty((len(points), len(points)))
    for start in range(0, len(points), BLOCK_ROWS):
        stop = min(start + BLOCK_ROWS, len(points))
        values = kernel(points[start:stop], points[start:])
        corner = values[:, : stop - start]
        below = np.tril_indices(stop - start, -1)
        corner[below] = corner.T[below]
        gram[start:stop, start:] = values
        gram[stop:, start:stop] = values[:, stop - start :].T
    return gram

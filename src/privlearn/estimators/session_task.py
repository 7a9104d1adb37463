"""What a session's learner predicts, and the public facts of its kernel machine."""

from __future__ import annotations

import dataclasses
import math

from privlearn.erm.kernel.dual import certified_kernel_distance, default_gap
from privlearn.erm.kernel.gap import least_kernel_gap
from privlearn.errors import InvalidParameter
from privlearn.estimators.goal import TrainingRows
from privlearn.estimators.learner import Learner
from privlearn.estimators.plan import check_regularization, session_regularization
from privlearn.features.kernel import Kernel
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.session.task import LARGEST_SUM, KernelTask, kernel_rounding
from privlearn.mechanisms.task import Task


def session_task(learner: Learner, rows: TrainingRows, guarantee: Guarantee | None, kernel: Kernel) -> Task:
    """What the session's mechanism is calibrated by; ``regularization="auto"`` depends on the guarantee.

    Where rounding errors would keep the solver from proving its result on some tables it is doubled until they do not.
    """
    neighbours = guarantee.neighbours if isinstance(guarantee, Guarantee) else "replace_one"
    task = learner.task_of(rows, features=1, tolerance=1.0, neighbours=neighbours)
    if isinstance(learner.regularization, str) and learner.regularization == "auto":
        task = dataclasses.replace(task, regularization=session_regularization(task, guarantee))
        while math.isinf(_least_gap(task, kernel, rows.dimension)):
            task = dataclasses.replace(task, regularization=2.0 * task.regularization)
        return task
    return dataclasses.replace(task, regularization=check_regularization(learner.regularization))


def session_facts(task: Task, kernel: Kernel, dimension: int) -> KernelTask:
    """The same with the solver's distance, which `session_gap` gives."""
    gap = session_gap(task, kernel, dimension)
    return KernelTask(task, certified_kernel_distance(task.regularization, gap))


def span_facts(task: Task, dimension: int) -> KernelTask:
    """The same where the functions are linear in so many features."""
    return KernelTask(task, span_task(task, dimension).solver_distance)


def span_task(task: Task, dimension: int) -> Task:
    """What the linear solver has to certify; one tolerance, whatever neighbours the session will promise for."""
    coefficients = dimension * max(task.classes, 1)
    asked = dataclasses.replace(task, dimension=coefficients, tolerance=0.0, neighbours="replace_one")
    return asked.certifiable()


def session_gap(task: Task, kernel: Kernel, dimension: int) -> float:
    """What the solver has to certify on points of so many features, whatever the records are.

    Raises
    ------
    InvalidParameter
        If rounding errors would keep it from that on some tables.
    """
    least = _least_gap(task, kernel, dimension)
    if math.isinf(least):
        raise InvalidParameter(
            f"regularization = {task.regularization:g} is too small for this kernel: rounding errors would keep the "
            "solver from proving its result on some tables. Take regularization='auto', or a larger number"
        )
    return max(default_gap(task.regularization), least)


def _least_gap(task: Task, kernel: Kernel, dimension: int) -> float:
    return least_kernel_gap(
        task.loss,
        task.regularization,
        rows=LARGEST_SUM if task.averaged else task.total,
        weight_bound=task.mass_bound,
        gram_error=kernel_rounding(kernel, dimension),
        classes=task.classes,
    )

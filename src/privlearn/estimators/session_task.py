"""The public facts of a session's learner."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from privlearn.erm import Loss, certified_kernel_distance, default_gap, least_kernel_gap
from privlearn.errors import InvalidParameter
from privlearn.estimators.default_regularization import session_regularization
from privlearn.estimators.plan import check_regularization
from privlearn.estimators.session_goal import Goal
from privlearn.features import Kernel
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.kernel_rounding import kernel_rounding
from privlearn.mechanisms.kernel_task import LARGEST_SUM, KernelTask
from privlearn.mechanisms.task import Task


def session_task(
    goal: Goal, loss: Loss, regularization: Any, guarantee: Guarantee | None, kernel: Kernel
) -> Task:
    """What the session's mechanism is calibrated by; ``regularization="auto"`` depends on the guarantee.

    Where rounding errors would keep the solver from proving its result on some tables it is doubled until they do not.
    """
    rows = goal.rows
    task = Task(
        loss=loss,
        total=rows.total,
        dimension=1,
        problems=len(goal.signs),
        regularization=1.0,
        tolerance=1.0,
        neighbours=getattr(guarantee, "neighbours", "replace_one"),
        weight_bound=goal.weight_bound,
        rows_per_person=rows.rows_per_person,
        averaged=rows.person_weights is not None,
    )
    if isinstance(regularization, str) and regularization == "auto":
        task = dataclasses.replace(task, regularization=session_regularization(task, guarantee))
        while math.isinf(_least_gap(task, kernel, rows.features.shape[1])):
            task = dataclasses.replace(task, regularization=2.0 * task.regularization)
        return task
    return dataclasses.replace(task, regularization=check_regularization(regularization))


def session_facts(task: Task, kernel: Kernel, dimension: int) -> KernelTask:
    """The same with the solver's distance, which `session_gap` gives."""
    gap = session_gap(task, kernel, dimension)
    return KernelTask(task, certified_kernel_distance(task.regularization, gap))


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
        weight_bound=task.weight_bound,
        gram_error=kernel_rounding(kernel, dimension),
    )

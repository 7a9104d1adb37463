"""The public facts of a session's learner."""

from __future__ import annotations

import dataclasses
from typing import Any

from privlearn.erm import Loss
from privlearn.estimators.default_regularization import session_regularization
from privlearn.estimators.plan import check_regularization
from privlearn.estimators.session_goal import Goal
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.task import Task


def session_task(goal: Goal, loss: Loss, regularization: Any, guarantee: Guarantee | None) -> Task:
    """What the session's mechanism is calibrated by; ``regularization="auto"`` depends on the guarantee."""
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
        return dataclasses.replace(task, regularization=session_regularization(task, guarantee))
    return dataclasses.replace(task, regularization=check_regularization(regularization))

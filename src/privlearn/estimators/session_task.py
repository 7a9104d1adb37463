"""The public facts of a session's learner, and a regularization that is good without tuning."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from privlearn.accounting import gaussian_ratio
from privlearn.erm import Loss
from privlearn.erm.losses import RESIDUAL_LOSSES
from privlearn.errors import InvalidParameter
from privlearn.estimators.plan import check_regularization
from privlearn.estimators.session_goal import Goal
from privlearn.guarantee import Guarantee, check_guarantee
from privlearn.mechanisms.task import Task

_PLAIN = 0.25  # N Lambda without noise, as for linear models
_CLASSES = 2.5  # best of 1 to 5 on Adult, epsilon 0.1 to 4
_NUMBERS = 0.4  # about the best of 0.02 to 1.6 on two simulated tables and Adult's hours, 1000 and 4000 rows


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
        return dataclasses.replace(task, regularization=_balanced(task, guarantee))
    return dataclasses.replace(task, regularization=check_regularization(regularization))


def _balanced(task: Task, guarantee: Guarantee | None) -> float:
    """Lambda at which noise and shrinkage balance.

    Let B be the noise in the sum of gradients: an answer has noise B / (N Lambda). A label needs its sign only, and
    N Lambda = 2.5 B leaves a noise of 0.4. A number needs its size: shrinkage, about Lambda / c where the loss has
    curvature c, costs as much as the noise at N Lambda proportional to sqrt(B N c).
    """
    if guarantee is None:
        raise InvalidParameter(
            "regularization='auto' depends on the promise: pass guarantee=Guarantee(epsilon, delta), the same "
            "as for the session, or a number"
        )
    check_guarantee(guarantee)
    if guarantee.is_private and guarantee.delta == 0:
        raise InvalidParameter("a session needs delta > 0: pass guarantee=Guarantee(epsilon, 1e-6)")
    if not guarantee.is_private:
        return _PLAIN / task.total
    ratio = gaussian_ratio(guarantee.epsilon, guarantee.delta)
    noise = math.sqrt(task.problems) * task.gradient_sensitivity / ratio
    if task.loss.name in RESIDUAL_LOSSES:
        balance = _NUMBERS * math.sqrt(noise * task.total * task.loss.smoothness)
    else:
        balance = _CLASSES * noise
    return max(balance, _PLAIN) / task.total

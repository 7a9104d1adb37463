"""What a session's learner predicts, and the public facts of its kernel machine."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from privlearn.arrays import Array
from privlearn.data.encode.encoder import from_unit
from privlearn.erm import Loss, certified_kernel_distance, default_gap, least_kernel_gap
from privlearn.erm.losses import choose_loss
from privlearn.errors import InvalidParameter
from privlearn.estimators.fitting import class_signs, row_weights
from privlearn.estimators.inputs import EncodedRows, TrainingSet, check_class_weight, read_arrays, read_table
from privlearn.estimators.plan import check_regularization, session_regularization
from privlearn.estimators.targets import RegressionSet, read_target_arrays, read_target_table
from privlearn.features import Kernel
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.session.task import LARGEST_SUM, KernelTask, kernel_rounding
from privlearn.mechanisms.task import Task


class Goal(Protocol):
    """Rows with what is to be learnt from them: a function for each of ``signs``."""

    @property
    def rows(self) -> EncodedRows:
        """PRIVATE: the encoded rows."""

    @property
    def signs(self) -> Sequence[Array]:
        """PRIVATE: +1 or -1 for each row, for each function."""

    @property
    def offsets(self) -> Array | None:
        """PRIVATE: what the loss subtracts from the margins."""

    @property
    def weights(self) -> Array | None:
        """PRIVATE: what each row counts."""

    @property
    def answers(self) -> NDArray[Any]:
        """PRIVATE: a label's place or a scaled number for each row."""

    @property
    def weight_bound(self) -> float:
        """Public: the most that a row counts."""

    def describe(self) -> dict[str, Any]:
        """Public: what may be predicted."""

    def predicted(self, scores: Array) -> NDArray[Any]:
        """Public: what scores stand for; a row a point, a column a function."""


@dataclass(frozen=True, eq=False)
class ClassGoal:
    """Two classes make one function, K of them K, each one against the rest."""

    rows: TrainingSet
    class_weights: Array | None
    offsets: ClassVar[None] = None

    @property
    def signs(self) -> Sequence[Array]:
        return class_signs(self.rows)

    @property
    def weights(self) -> Array | None:
        return row_weights(self.rows, self.class_weights)

    @property
    def answers(self) -> NDArray[Any]:
        return self.rows.labels.astype("<i8")

    @property
    def weight_bound(self) -> float:
        return 1.0 if self.class_weights is None else float(self.class_weights.max())

    def describe(self) -> dict[str, Any]:
        return {"classes": self.rows.classes.tolist()}

    def predicted(self, scores: Array) -> NDArray[Any]:
        one_function = scores.shape[1] == 1
        places = (scores[:, 0] > 0).astype(np.intp) if one_function else np.argmax(scores, axis=1)
        return np.asarray(self.rows.classes[places])


@dataclass(frozen=True, eq=False)
class NumberGoal:
    """One function, of the target scaled from its bounds to [-1, 1]."""

    rows: RegressionSet
    weight_bound: ClassVar[float] = 1.0

    @property
    def signs(self) -> Sequence[Array]:
        return [np.ones(len(self.rows.targets))]

    @property
    def offsets(self) -> Array:
        return self.rows.targets

    @property
    def weights(self) -> Array | None:
        return self.rows.person_weights

    @property
    def answers(self) -> NDArray[Any]:
        return self.rows.targets.astype("<f8")

    def describe(self) -> dict[str, Any]:
        return {"target_bounds": list(self.rows.target_bounds)}

    def predicted(self, scores: Array) -> NDArray[Any]:
        return from_unit(scores[:, 0], self.rows.target_bounds)


def predicts_numbers(learner: Any) -> bool:
    """Whether a learner's parameters speak of a number."""
    if learner.schema is None:
        return learner.target_bounds is not None
    return learner.schema.target is not None and learner.schema.target.bounds is not None


def loss_of(learner: Any) -> Loss:
    """The loss asked for, one of the listed."""
    sees, default = ("residual", "huber") if predicts_numbers(learner) else ("margin", "huber_hinge")
    chosen: Loss = choose_loss(learner.loss, lambda kind: kind.sees == sees, default)
    return chosen


def read_goal(learner: Any, X: Any, y: Any) -> Goal:
    """Read the rows by what the learner's parameters declare public."""
    _check_declared(learner)
    if predicts_numbers(learner):
        if learner.class_weight is not None:
            raise InvalidParameter("a number has no classes: leave class_weight out")
        if learner.schema is None:
            return NumberGoal(read_target_arrays(learner, X, y, private=True))
        return NumberGoal(read_target_table(learner.schema, X, y, learner.fit_intercept))
    if learner.schema is None:
        rows = read_arrays(learner, X, y, private=True)
    else:
        rows = read_table(learner.schema, X, y, learner.fit_intercept)
    return ClassGoal(rows, check_class_weight(learner.class_weight, rows.classes))


def _check_declared(learner: Any) -> None:
    declared = (learner.norm_bound, learner.classes, learner.target_bounds)
    if learner.schema is not None and any(value is not None for value in declared):
        raise InvalidParameter(
            "the schema says it all: leave out norm_bound, classes and target_bounds, or leave out schema"
        )
    if learner.classes is not None and learner.target_bounds is not None:
        raise InvalidParameter("classes are for labels, target_bounds for a number: leave one of them out")
    if learner.schema is None and learner.classes is None and learner.target_bounds is None:
        raise InvalidParameter(
            "say what may be predicted, from public knowledge: KernelLearner(classes=[0, 1]), or "
            "target_bounds=(0, 100) for a number. Reading it off the data would publish the data"
        )


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
        weight_bound=task.mass_bound,
        gram_error=kernel_rounding(kernel, dimension),
    )

"""Answers <w, psi(z)> of a minimiser w at public points z: how far one person moves them, and back to a model.

JT13's learners never release w itself, only answers about it. Arguments: docs/theory/tddl.md.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from privlearn.accounting.functions import root
from privlearn.arrays import Array, shorten
from privlearn.errors import DataError
from privlearn.mechanisms.mechanism import ReleaseMechanism
from privlearn.mechanisms.task import Task

_LONGEST = 1.0 + 1e-6  # norm of a probe that rounding, of float32 features too, can explain


def refuse_joint(task: Task) -> str | None:
    """JT13's learners ask one number per point; a loss of all classes has one per class, and one w over all of them."""
    return f"it has no proof for the {task.loss.name} loss" if task.loss.sees == "classes" else None


def answer_sensitivity(task: Task) -> float:
    """S: how far one person moves an answer at a point of norm at most 1, as computed in floating point.

    The product of z with w, or with w minus a vector of the ball, is computed to within (d + 2) 2^-53 of the lengths'
    product, at most 2 (C + t), whatever the order of summation.
    """
    distance = task.solver_distance
    rounding = (task.dimension + 2) * 2.0**-52 * (task.ball_radius + distance)
    return task.minimiser_sensitivity + 2.0 * (distance + rounding)


class AnsweringMechanism(ReleaseMechanism):
    """JT13's learners: they release noisy answers of the minimiser, and a model that follows from those."""

    answers_questions: ClassVar[bool] = True
    __test__: ClassVar[bool] = False  # pytest: their names begin with Test, the classes are none

    @classmethod
    def explain_refusal(cls, task: Task, noise: str) -> str | None:
        """Why the theorem does not cover this task; ``None`` if it does."""
        return refuse_joint(task)

    @property
    def effective_regularization(self) -> float:
        return self.task.regularization

    @property
    def sensitivity(self) -> float:
        """S: how far one person moves one answer."""
        return answer_sensitivity(self.task)


def check_probes(probes: Any, dimension: int) -> Array:
    """The public points' features, one per row, copied; rows that rounding made longer than 1 are shortened."""
    points = np.array(probes, dtype=np.float64)
    if points.ndim != 2 or points.shape[1] != dimension or not len(points):
        raise DataError(f"probes must be a matrix with {dimension} columns and at least one row")
    if not np.all(np.linalg.norm(points, axis=1) <= _LONGEST):
        raise DataError("every probe must be finite and of norm at most 1: encode the public points first")
    shorten(points)
    return points


def least_squares_in_ball(points: Array, answers: Array, radius: float) -> Array:
    """For each row a of ``answers``: the shortest w among those that minimise |points w - a| over |w| <= radius."""
    left, singular, right = np.linalg.svd(points, full_matrices=False)
    kept = singular > singular[0] * max(points.shape) * np.finfo(float).eps
    pulls = (answers @ left[:, kept]) * singular[kept]
    return np.asarray([_shrunk(pull, singular[kept] ** 2, radius) for pull in pulls] @ right[kept])


def _shrunk(pull: Array, squares: Array, radius: float) -> Array:
    """pull / (squares + m) for the least m >= 0 that brings its norm to the radius: the secular equation."""

    def length(multiplier: float) -> float:
        return float(np.linalg.norm(pull / (squares + multiplier)))

    if length(0.0) <= radius:
        return np.asarray(pull / squares)
    # the length is at most |pull| / m, and its reciprocal is nearly linear in m
    most = float(np.linalg.norm(pull)) / radius
    found = root(
        lambda multiplier: 1.0 / radius - 1.0 / length(multiplier), 0.0, most, xtol=1e-300, rtol=1e-15
    )
    solution = pull / (squares + found)
    return np.asarray(solution * min(1.0, radius / float(np.linalg.norm(solution))))

"""Answers <w, psi(z)> of a minimiser w at public points z: their sensitivity, and the model that fits them.

JT13's learners never release w itself, only such answers. Arguments: docs/theory/tddl.md.
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
    """Return why JT13's learners, which ask one number per point, refuse a loss of all classes; else ``None``."""
    return f"it has no proof for the {task.loss.name} loss" if task.loss.argument == "classes" else None


def answer_sensitivity(task: Task) -> float:
    """Return S: how far one person moves a computed answer at a point of norm at most 1.

    The product of z with w, or with w minus a vector of the ball, is computed to within (d + 2) 2^-53 of the lengths'
    product, at most 2 (C + t), in any order of summation.
    """
    distance = task.solver_distance
    rounding = (task.dimension + 2) * 2.0**-52 * (task.ball_radius + distance)
    return task.minimiser_sensitivity + 2.0 * (distance + rounding)


class AnsweringMechanism(ReleaseMechanism):
    """JT13's learners: they release noisy answers of the minimiser, and a model computed from those."""

    answers_questions = True
    __test__: ClassVar[bool] = False  # pytest: not tests, although their names begin with Test

    @classmethod
    def explain_refusal(cls, task: Task, noise: str) -> str | None:
        return refuse_joint(task)

    @property
    def effective_regularization(self) -> float:
        return self.task.regularization

    @property
    def sensitivity(self) -> float:
        """S: maximal change of one answer by one person."""
        return answer_sensitivity(self.task)


def check_probes(probes: Any, dimension: int) -> Array:
    """Return a copy of the public points' features, one per row; rows longer than 1 by rounding are shortened."""
    points = np.array(probes, dtype=np.float64)
    if points.ndim != 2 or points.shape[1] != dimension or not len(points):
        raise DataError(f"probes must be a matrix with {dimension} columns and at least one row")
    if not np.all(np.linalg.norm(points, axis=1) <= _LONGEST):
        raise DataError("every probe must be finite and of norm at most 1: encode the public points first")
    shorten(points)
    return points


def least_squares_in_ball(points: Array, answers: Array, radius: float) -> Array:
    """Return, for each row a of ``answers``, the shortest minimiser w of |points w - a| over |w| <= radius."""
    left, singular, right = np.linalg.svd(points, full_matrices=False)
    significant = singular > singular[0] * max(points.shape) * np.finfo(float).eps
    pulls = (answers @ left[:, significant]) * singular[significant]
    return np.asarray(
        [_shrink(pull, singular[significant] ** 2, radius) for pull in pulls] @ right[significant]
    )


def _shrink(pull: Array, squares: Array, radius: float) -> Array:
    """Return pull / (squares + m) for the smallest m >= 0 with a norm of at most the radius: the secular equation."""

    def length(at: float) -> float:
        return float(np.linalg.norm(pull / (squares + at)))

    if length(0.0) <= radius:
        return np.asarray(pull / squares)
    # the length is at most |pull| / m, and its reciprocal is nearly linear in m
    upper = float(np.linalg.norm(pull)) / radius
    multiplier = root(lambda at: 1.0 / radius - 1.0 / length(at), 0.0, upper, xtol=1e-300, rtol=1e-15)
    solution = pull / (squares + multiplier)
    return np.asarray(solution * min(1.0, radius / float(np.linalg.norm(solution))))

"""The default regularization, from public numbers alone (docs/theory/regularization.md)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize_scalar

from privlearn.accounting import GaussianObjectiveCurves, gaussian_ratio
from privlearn.arrays import Array
from privlearn.errors import InvalidParameter
from privlearn.estimators.reference import reference_problem
from privlearn.guarantee import Guarantee, check_guarantee
from privlearn.mechanisms.task import Task

_CAUTION = 3.6
"""Weight of the noise: E[s^2] E[1/s^2], where log s is uniform from sqrt(1/8) to sqrt(8) times the typical size."""
_MAX_DIRECTIONS = 400  # rows hardly fill more; words and fine bins are mostly absent
_SLACK_SHARE = 0.45  # of epsilon; objective perturbation itself stops at a half
_OUTPUT_FLAT, _OUTPUT_CURVED = 0.08, 0.1  # output perturbation: many directions, each flat; few, each curved
_SESSION_CLASSES = 2.5  # best of 1 to 5 on Adult, epsilon 0.1 to 4
_SESSION_NUMBERS = 0.4  # about the best of 0.02 to 1.6 on two simulated tables and Adult, 1000 and 4000 rows
_STEPS, _MAX_ROUNDS, _PRECISION = 64, 30, 5e-3


@dataclass(frozen=True)
class Curvatures:
    """Public: curvatures of the sum of losses along d directions, which fall like 1/j, and what is learnt along them.

    Parameters
    ----------
    information : float
        Their sum: N times the typical second derivative of the loss.
    directions : int
    size : float
        Deviation of the coefficients to be learnt, so of the scores of rows of norm 1.
    sampling : float
        Variance of the sum of gradients along a direction, relative to its curvature.
    """

    information: float
    directions: int
    size: float
    sampling: float

    def _grid(self) -> tuple[Array, Array]:
        """Return curvatures, and how many directions have about each."""
        edges = np.geomspace(0.5, self.directions + 0.5, _STEPS + 1)
        curvatures, counts = 1.0 / np.sqrt(edges[1:] * edges[:-1]), np.diff(edges)
        return curvatures * self.information / np.sum(curvatures * counts), counts

    def best_strength(self, deviation: float) -> float:
        """Return the k with the smallest expected excess risk under noise of this deviation per coordinate.

        The excess along a direction of curvature a is a (k^2 size^2 + sampling a + deviation^2) / (a + k)^2. The noise
        counts more, since sizes are uncertain and noise costs weak signals more than shrinkage costs strong ones.
        """
        curvatures, counts = self._grid()
        fixed = self.sampling * curvatures + _CAUTION * deviation**2

        def excess(log_strength: float) -> float:
            strength = math.exp(log_strength)
            parts = (strength * self.size) ** 2 + fixed
            return float(np.sum(counts * curvatures * parts / (curvatures + strength) ** 2))

        start = math.log(math.hypot(deviation, self.sampling) / self.size)
        best = minimize_scalar(excess, bounds=(start - 7.0, start + 7.0), method="bounded")
        return math.exp(best.x)


def default_regularization(task: Task, guarantee: Guarantee, mechanism: str, noise: str) -> float:
    """Return Lambda from n, epsilon, delta, the dimension and the loss's constants.

    Let sigma be the deviation of the noise in one coordinate of the sum of gradients, and k = N Lambda.

    Objective perturbation: the k at which the expected excess risk is smallest, if curvatures of all magnitudes occur
    and coefficients have a typical size (`Curvatures`). It is 1 / size^2 without noise, about sigma / size where rows
    determine most directions, and grows relative to sigma as rows determine fewer. sigma belongs to the epsilon that
    remains after the Jacobian's slack, which falls as k grows; the slack never takes more than 45 % of epsilon.

    Output perturbation: the noise in a prediction is sigma / k for any dimension: k = (0.08 sigma sqrt(N))^(2/3),
    or, where few directions share the curvature and shrinkage costs less, sqrt(0.1 sigma N / d).

    The task's own ``regularization`` is not read.
    """
    curvatures = _curvatures(task)
    if not guarantee.is_private:
        return curvatures.best_strength(0.0) / task.total
    if mechanism == "output":
        strength = _output_strength(task, guarantee, noise)
        return max(strength, curvatures.best_strength(0.0)) / task.total
    lower = _strength_of_slack(task, _SLACK_SHARE * guarantee.epsilon / task.problems)

    def strength_after(strength: float) -> float:
        return max(lower, curvatures.best_strength(_deviation_at(task, guarantee, noise, strength)))

    return _fixed_point(strength_after, lower) / task.total


def _curvatures(task: Task) -> Curvatures:
    """Return the curvatures of a task's reference problem; of K classes, those of one class against the others.

    Two classes that differ by log-odds of size s have coefficients of size s / 2 each. With K classes the same odds
    against K - 1 rivals need scores that differ by log(K - 1) more.
    """
    problem = reference_problem(task.loss)
    size, curvature, directions = problem.margin, problem.curvature, task.dimension
    sampling = problem.derivative_square / curvature
    if task.classes:
        size *= (1.0 + math.log(task.classes - 1)) / 2.0
        curvature *= 4.0 / task.classes * (1.0 - 1.0 / task.classes)
        directions //= task.classes
    return Curvatures(task.total * curvature, min(directions, _MAX_DIRECTIONS), size, sampling)


def _deviation_at(task: Task, guarantee: Guarantee, noise: str, strength: float) -> float:
    """Return the noise in one coordinate of the sum of gradients, at N Lambda = ``strength``."""
    slack = task.jacobian_slack(strength / task.total)
    if task.classes and noise == "gaussian":
        curve = GaussianObjectiveCurves(slack, corners=task.corners)
        return task.gradient_sensitivity / gaussian_ratio(guarantee.epsilon, guarantee.delta, curve=curve)
    return _noise_deviation(task, guarantee.epsilon - task.problems * slack, guarantee.delta, noise)


def _fixed_point(step: Callable[[float], float], start: float) -> float:
    """Return a k that hardly differs from ``step(k)``, which falls as k grows."""
    strength = step(start)
    for _ in range(_MAX_ROUNDS):
        following = math.sqrt(strength * step(strength))  # halfway, since k alternates around the solution
        if abs(following / strength - 1.0) < _PRECISION:
            break
        strength = following
    return strength


def session_regularization(task: Task, guarantee: Guarantee | None) -> float:
    """Return Lambda of a session's learner, at which noise and shrinkage balance.

    Let B be the noise in the sum of gradients: an answer has noise B / (N Lambda). A label needs its sign only, and
    N Lambda = 2.5 B leaves a noise of 0.4. Of K scores, two are compared, and the largest noise of K - 1 rivals counts:
    sqrt(2) max(1, sqrt(2 log(K - 1))) times as much. A number needs its size: shrinkage, about Lambda / c where the
    loss has curvature c, costs as much as the noise at N Lambda proportional to sqrt(B N c).
    """
    if guarantee is None:
        raise InvalidParameter(
            "regularization='auto' depends on the guarantee. Pass guarantee=Guarantee(epsilon, delta), the same "
            "as for the session, or a number"
        )
    check_guarantee(guarantee)
    if guarantee.is_private and guarantee.delta == 0:
        raise InvalidParameter("a session needs delta > 0: pass guarantee=Guarantee(epsilon, 1e-6)")
    plain = _curvatures(task).best_strength(0.0)
    if not guarantee.is_private:
        return plain / task.total
    ratio = gaussian_ratio(guarantee.epsilon, guarantee.delta)
    noise = math.sqrt(task.problems) * task.gradient_sensitivity / ratio
    if task.loss.argument == "residual":
        balance = _SESSION_NUMBERS * math.sqrt(noise * task.total * task.loss.smoothness)
    else:
        rivals = max(task.classes - 1, 1)
        several = math.sqrt(2.0 * max(1.0, 2.0 * math.log(rivals))) if task.classes else 1.0
        balance = _SESSION_CLASSES * several * noise
    return max(balance, plain) / task.total


def _output_strength(task: Task, guarantee: Guarantee, noise: str) -> float:
    deviation = _noise_deviation(task, guarantee.epsilon, guarantee.delta, noise)
    flat = (_OUTPUT_FLAT * deviation * math.sqrt(task.total)) ** (2 / 3)
    curved = math.sqrt(_OUTPUT_CURVED * deviation * task.total / task.dimension)
    return float(max(flat, curved))


def _strength_of_slack(task: Task, slack: float) -> float:
    """Return the k at which the Jacobian of one problem costs ``slack`` of epsilon."""
    return task.curvature_ratio(1.0 / task.total) / task.curvature_ratio_of(slack)


def _noise_deviation(task: Task, epsilon: float, delta: float, noise: str) -> float:
    sensitivity, dimension, problems = task.gradient_sensitivity, task.dimension, task.problems
    if noise == "gaussian":
        return sensitivity * math.sqrt(problems) / gaussian_ratio(epsilon, delta)
    deviation = sensitivity * problems * math.sqrt(dimension) / epsilon
    return math.sqrt(2.0) * deviation if noise == "laplace" else deviation

"""A regularization that is good without tuning and never looks at the data."""

from __future__ import annotations

import math

from privlearn.accounting import gaussian_ratio
from privlearn.guarantee import Guarantee
from privlearn.mechanisms import Task

_STRENGTH = {"objective": 0.05, "output": 0.2}
_PLAIN = 1.0


def default_regularization(task: Task, guarantee: Guarantee, mechanism: str, noise: str) -> float:
    """Lambda from n, epsilon, delta, the dimension and the loss's constants alone.

    Write |b| for the typical norm of the noise in the sum of gradients (S sqrt(d) / ratio for Gaussian noise,
    S d / epsilon for norm-Gamma noise, sqrt(2) times that for Laplace noise). A larger N Lambda damps that noise, which
    reaches the coefficients as b / (N Lambda + curvature), but shrinks the model as well; both pulls scale with
    |b| / (N Lambda), so their balance is N Lambda = k |b|. Output perturbation does not enjoy the curvature's
    damping and needs a larger k. Without noise, N Lambda = 1 (scikit-learn's C = 1).

    The task's own ``regularization`` is not read.
    """
    if not guarantee.is_private:
        return _PLAIN / task.total
    strength = _STRENGTH[mechanism] * _noise_norm(task, guarantee, noise)
    return max(strength, _PLAIN) / task.total


def _noise_norm(task: Task, guarantee: Guarantee, noise: str) -> float:
    sensitivity, dimension, problems = task.gradient_sensitivity, task.dimension, task.problems
    if noise == "gaussian":
        ratio = gaussian_ratio(guarantee.epsilon, guarantee.delta)
        return sensitivity * math.sqrt(problems * dimension) / ratio
    norm = sensitivity * problems * dimension / guarantee.epsilon
    return math.sqrt(2.0) * norm if noise == "laplace" else norm

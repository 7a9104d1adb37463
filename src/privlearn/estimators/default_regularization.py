"""A regularization that is good without tuning and never looks at the data."""

from __future__ import annotations

import math

from privlearn.accounting import gaussian_ratio
from privlearn.guarantee import Guarantee
from privlearn.mechanisms import Task

_DAMPED = 0.6  # objective perturbation where the data's curvature holds the noise down
_DROWNED = 0.1  # objective perturbation where it does not
_SLACK_SHARE = 0.25
_OUTPUT = 0.25
_PLAIN = 0.25  # N Lambda without noise


def default_regularization(task: Task, guarantee: Guarantee, mechanism: str, noise: str) -> float:
    """Lambda from n, epsilon, delta, the dimension and the loss's constants alone.

    Let B be the typical norm of the noise in the sum of gradients: S sqrt(d) / ratio for Gaussian noise, S d / epsilon
    for norm-Gamma noise, sqrt(2) times that for Laplace noise. It reaches the coefficients as B / (N Lambda + h), h the
    data's curvature, of order N along the directions the data fills and 0 along the others. Where h is small, noise and
    shrinkage balance at N Lambda proportional to B; where h dominates, at N Lambda proportional to B^2 / N. Data has
    directions of both kinds, and the rule takes the geometric mean, capped by the first: B min(0.1, 0.6 sqrt(B / N)).
    Nor may the Jacobian's slack take more than a quarter of epsilon: N Lambda >= c / (exp(epsilon/4) - 1).
    Output perturbation has no slack and does not enjoy the curvature: 0.25 B. Without noise N Lambda is 0.25 (in
    scikit-learn's terms C = 4), below which held-out error hardly moves.

    The constants were set on Adult and bank marketing (docs/theory/regularization.md); the form was not.
    The task's own ``regularization`` is not read.
    """
    if not guarantee.is_private:
        return _PLAIN / task.total
    size = _noise_norm(task, guarantee, noise)
    if mechanism == "output":
        return max(_OUTPUT * size, _PLAIN) / task.total
    balance = size * min(_DROWNED, _DAMPED * math.sqrt(size / task.total))
    curvature = task.curvature_ratio(1.0) * task.total
    share = min(_SLACK_SHARE * guarantee.epsilon / task.problems, 1.0)  # beyond it the slack is no concern
    cheap_slack = curvature / math.expm1(share)
    return max(balance, cheap_slack, _PLAIN) / task.total


def _noise_norm(task: Task, guarantee: Guarantee, noise: str) -> float:
    sensitivity, dimension, problems = task.gradient_sensitivity, task.dimension, task.problems
    if noise == "gaussian":
        ratio = gaussian_ratio(guarantee.epsilon, guarantee.delta)
        return sensitivity * math.sqrt(problems * dimension) / ratio
    norm = sensitivity * problems * dimension / guarantee.epsilon
    return math.sqrt(2.0) * norm if noise == "laplace" else norm

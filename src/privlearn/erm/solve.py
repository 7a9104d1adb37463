"""Regularised empirical risk minimisation to a certified distance from the exact minimiser."""

from __future__ import annotations

import math

import numpy as np

from privlearn.erm.descent import Directions, descend
from privlearn.erm.losses import Loss
from privlearn.erm.matrix_free import ConjugateGradients
from privlearn.erm.newton import FactorisedHessian
from privlearn.erm.objective import Objective
from privlearn.erm.problem import Problem, Progress, Solution
from privlearn.errors import InvalidParameter

FACTORISED_LIMIT = 4000  # columns; above, a d x d matrix costs more than conjugate gradients


def minimise(problem: Problem, *, tolerance: float = 1e-10, progress: Progress | None = None) -> Solution:
    """Minimise ``problem`` until the exact gradient's norm is at most ``tolerance``, proven.

    Raises
    ------
    SolverError
        If that cannot be certified.
    """
    if not 0 < tolerance < math.inf:
        raise InvalidParameter(f"tolerance must be a finite number above 0, not {tolerance!r}")
    objective = Objective(problem)
    dimension = objective.rows.dimension
    directions: Directions = (
        FactorisedHessian(objective) if dimension <= FACTORISED_LIMIT else ConjugateGradients(objective)
    )
    return descend(objective, directions, np.zeros(dimension), tolerance, progress)


def certified_distance(loss: Loss, regularization: float, tolerance: float) -> float:
    """Public bound on the distance to the exact minimiser whenever `minimise` returns; free of the data."""
    return tolerance / regularization

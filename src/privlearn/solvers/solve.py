"""Regularised empirical risk minimisation to a certified distance from the exact minimiser."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from privlearn.arrays import Array
from privlearn.data.sources.row_source import EncodedRows, in_memory
from privlearn.errors import SolverError, check_positive
from privlearn.solvers.certifiable import GAP_TOLERANCE
from privlearn.solvers.descent import MAX_ITERATIONS, Directions, descend, not_certified
from privlearn.solvers.hinge import minimise_hinge
from privlearn.solvers.newton import (
    ConjugateGradients,
    FactorisedHessian,
    SampledHessian,
    columns_in_use,
    extend,
    restrict,
)
from privlearn.solvers.objective import Objective
from privlearn.solvers.problem import Problem, Progress, Solution, sample_rows

FACTORISED_LIMIT = 4000  # columns; above, a d x d matrix costs more than conjugate gradients
SPARSE_LIMIT = 256  # the same for sparse rows, whose zeros such a matrix does not use

# The warm start reads one row in STRIDE, about MAX_SAMPLE_ROWS rows at most, but at least one in MAX_STRIDE where rows
# need little memory: with more rows a larger sample pays off.
STRIDE, MAX_STRIDE = 8, 32
MAX_SAMPLE_ROWS = 1 << 16
MIN_SAMPLE_ROWS, ROWS_PER_COLUMN = 500, 10  # a smaller sample would not help
WARM_ITERATIONS = 30  # a longer warm start saves no time


def minimise(
    problem: Problem,
    *,
    tolerance: float = 1e-10,
    gap: float = GAP_TOLERANCE,
    progress: Progress | None = None,
) -> Solution:
    """Minimise ``problem`` until the exact gradient's norm is proven to be at most ``tolerance``.

    The hinge loss has no gradient: for it the duality gap is reduced to ``gap``. With a tolerance of at least
    `certifiable.min_tolerance`, and a gap of at least `certifiable.min_gap`, this succeeds on every table.

    Raises
    ------
    SolverError
        If that cannot be certified.

    Examples
    --------
    >>> from privlearn.solvers import Logistic
    >>> rows, signs = np.array([[0.6, 0.8], [0.8, -0.6]]), np.array([1.0, -1.0])
    >>> solution = minimise(Problem(rows, signs, Logistic(), regularization=0.1, total=2))
    >>> solution.coefficients.shape, solution.distance <= 1e-9
    ((2,), True)
    """
    check_positive(tolerance=tolerance)
    if math.isinf(problem.loss.smoothness):
        return minimise_hinge(replace(problem, features=in_memory(problem.features)), gap, progress)
    used = columns_in_use(problem)
    if used is None:
        return _descend(problem, tolerance, progress)
    # The empty columns' part of the certificate is tiny: half of the squared tolerance is ample for it.
    solution = minimise(restrict(problem, used), tolerance=tolerance * math.sqrt(0.5), progress=progress)
    whole = extend(problem, used, solution)
    if whole.gradient_norm > tolerance:
        raise not_certified(tolerance)
    return whole


def _descend(
    problem: Problem, tolerance: float, progress: Progress | None = None, max_iterations: int = MAX_ITERATIONS
) -> Solution:
    """Descend from the minimiser over a sample of rows, which also gives directions where there are many columns."""
    part = _sample(problem)
    start = np.zeros(problem.features.shape[1])
    if part is not None:
        try:
            start = _descend(part, _precision(part), max_iterations=WARM_ITERATIONS).coefficients
        except SolverError:  # a warm start only saves time
            part = None
    return descend_from(start, Objective(problem), tolerance, progress, part, max_iterations)


def descend_from(
    start: Array,
    objective: Objective,
    tolerance: float,
    progress: Progress | None,
    part: Problem | None = None,
    max_iterations: int = MAX_ITERATIONS,
) -> Solution:
    """Run Newton's method with directions for that number of columns; ``part`` is the problem of a sample of rows."""
    directions: Directions
    if objective.dimension <= (SPARSE_LIMIT if objective.is_sparse else FACTORISED_LIMIT):
        directions = FactorisedHessian(objective)
    elif part is None or not objective.is_sparse:
        directions = ConjugateGradients(objective)
    else:
        directions = SampledHessian(Objective(part), start, lambda: ConjugateGradients(objective))
    return descend(objective, directions, start, tolerance, progress, max_iterations)


def warm_rows(rows: int, dimension: int, max_stride: float = math.inf) -> tuple[int, int]:
    """Return the stride of a warm start's sample and its number of rows; 0 rows if they are too few."""
    stride = int(min(max(STRIDE, rows // MAX_SAMPLE_ROWS), max_stride))
    count = -(-rows // stride)
    smallest = max(MIN_SAMPLE_ROWS, ROWS_PER_COLUMN * min(dimension, FACTORISED_LIMIT))
    return stride, count if count >= smallest else 0


def _sample(problem: Problem) -> Problem | None:
    """Return the problem of every ``stride``-th row, in memory; None if there are too few."""
    rows, dimension = problem.features.shape
    is_small = isinstance(problem.features, EncodedRows) and problem.features.tables is not None
    stride, count = warm_rows(rows, dimension, MAX_STRIDE if is_small else math.inf)
    if not count:
        return None
    return replace(
        problem,
        features=sample_rows(problem.features, stride),
        signs=problem.signs[::stride],
        row_weights=None if problem.row_weights is None else problem.row_weights[::stride],
        offsets=None if problem.offsets is None else problem.offsets[::stride],
        total=max(1, round(problem.total * count / rows)),
    )


def _precision(part: Problem) -> float:
    """Return the tolerance of a warm start: a fraction of the sampling error."""
    return 0.4 * part.norm_bound / math.sqrt(part.features.shape[0])

"""Regularised empirical risk minimisation to a certified distance from the exact minimiser."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privlearn.arrays import Array
from privlearn.data.sources.row_source import EncodedRows, in_memory
from privlearn.errors import SolverError, check_positive
from privlearn.imports import sparse
from privlearn.solvers.certifiable import GAP_TOLERANCE, SAFETY, UNIT_ROUNDOFF
from privlearn.solvers.descent import MAX_ITERATIONS, Directions, descend, not_certified
from privlearn.solvers.hinge import minimise_hinge
from privlearn.solvers.newton import ConjugateGradients, FactorisedHessian, SampledHessian
from privlearn.solvers.objective import Objective
from privlearn.solvers.problem import Problem, Progress, Solution, sample_rows, threads_for

FACTORISED_LIMIT = 4000  # columns; above, a d x d matrix costs more than conjugate gradients
SPARSE_LIMIT = 256  # the same for sparse rows, whose zeros such a matrix does not use

# The warm start reads one row in STRIDE, about MAX_SAMPLE_ROWS rows at most, but at least one in MAX_STRIDE where rows
# need little memory: with more rows a larger sample pays off.
STRIDE, MAX_STRIDE = 8, 32
MAX_SAMPLE_ROWS = 1 << 16
MIN_SAMPLE_ROWS, ROWS_PER_COLUMN = 500, 10  # a smaller sample would not help
WARM_ITERATIONS = 30  # a longer warm start saves no time

WORTHWHILE = 0.5  # renumbering copies the column indices: only if this share of the columns or less is in use


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
    used = _columns_in_use(problem)
    if used is None:
        with threads_for(problem.features):
            return _descend(problem, tolerance, progress)
    # The empty columns' part of the certificate is tiny: half of the squared tolerance is ample for it.
    solution = minimise(_restrict(problem, used), tolerance=tolerance * math.sqrt(0.5), progress=progress)
    whole = _extend(problem, used, solution)
    if whole.gradient_norm > tolerance:
        # Never returned uncertified: the noise was calibrated for this distance.
        raise not_certified(tolerance)
    return whole


def _columns_in_use(problem: Problem) -> NDArray[np.intp] | None:
    """Return the columns in use, in order, or None if leaving out the others would gain little."""
    if not sparse.issparse(problem.features):
        return None
    features: Any = problem.features
    present = np.zeros(features.shape[1], dtype=bool)
    present[features.indices] = True
    present[0] = True  # a problem has at least one column
    used = np.flatnonzero(present)
    return used if len(used) <= WORTHWHILE * len(present) else None


def _restrict(problem: Problem, used: NDArray[np.intp]) -> Problem:
    """Return the problem in the used columns alone; the values are shared, the indices renumbered."""
    features = problem.features
    new_index = np.zeros(features.shape[1], dtype=features.indices.dtype)
    new_index[used] = np.arange(len(used))
    parts = (features.data, new_index[features.indices], features.indptr)
    restricted = sparse.csr_array(parts, shape=(features.shape[0], len(used)))
    return replace(
        problem, features=restricted, linear=None if problem.linear is None else problem.linear[used]
    )


def _extend(problem: Problem, used: NDArray[np.intp], solution: Solution) -> Solution:
    """Return the solution in all columns, with the certificate of both parts."""
    if problem.linear is None:
        coefficients, rest = np.zeros(problem.features.shape[1]), 0.0
    else:
        # A column without entries has only the linear term and the ridge, so its minimiser is known.
        coefficients = -problem.linear / problem.regularization
        rest = SAFETY * UNIT_ROUNDOFF * float(np.linalg.norm(problem.linear))
    coefficients[used] = solution.coefficients
    norm = math.hypot(solution.gradient_norm, rest)
    return Solution(coefficients, norm, norm / problem.regularization, solution.iterations)


def _descend(
    problem: Problem, tolerance: float, progress: Progress | None = None, max_iterations: int = MAX_ITERATIONS
) -> Solution:
    """Descend from the minimiser over a sample of rows, which also gives directions where there are many columns."""
    rough = problem.features.roughly() if isinstance(problem.features, EncodedRows) else None
    # All rows, if products with them are fast: then one pass over the rows themselves certifies the point.
    part = _sample(problem) if rough is None else replace(problem, features=rough)
    start = np.zeros(problem.features.shape[1])
    if part is not None:
        try:
            precision = _precision(part) if rough is None else 0.5 * tolerance
            start = _descend(part, precision, max_iterations=WARM_ITERATIONS).coefficients
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
        # N shrinks with the rows, so that the regularization keeps its weight relative to them.
        total=max(1, round(problem.total * count / rows)),
    )


def _precision(part: Problem) -> float:
    """Return the tolerance of a warm start: a fraction of the sampling error."""
    return 0.4 * part.norm_bound / math.sqrt(part.features.shape[0])

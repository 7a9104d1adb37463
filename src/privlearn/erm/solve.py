"""Regularised empirical risk minimisation to a certified distance from the exact minimiser."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from privlearn.arrays import Array
from privlearn.data.sources.row_source import EncodedRows, in_memory
from privlearn.erm.certifiable import GAP_TOLERANCE
from privlearn.erm.descent import MAX_ITERATIONS, Directions, descend, not_certified
from privlearn.erm.hinge import minimise_hinge
from privlearn.erm.newton import (
    ConjugateGradients,
    FactorisedHessian,
    extend,
    restrict,
    used_columns,
)
from privlearn.erm.objective import Objective
from privlearn.erm.problem import Problem, Progress, Solution, sampled
from privlearn.erm.sampled import SampledHessian
from privlearn.errors import SolverError, check_positive

FACTORISED_LIMIT = 4000  # columns; above, a d x d matrix costs more than conjugate gradients
SPARSE_LIMIT = 256  # the same for sparse rows, which such a matrix makes no use of
STRIDE = 8  # the warm start reads one row in so many,
MOST_ROWS = 1 << 16  # and no more than about so many,
MOST_STRIDE = (
    32  # but one in so many where rows take little room: the more rows, the more a sample has to tell
)
WARM_ITERATIONS = 30  # what takes longer saves no time
FEWEST_ROWS, ROWS_PER_COLUMN = 500, 10  # with fewer rows a warm start would say too little


def minimise(
    problem: Problem,
    *,
    tolerance: float = 1e-10,
    gap: float = GAP_TOLERANCE,
    progress: Progress | None = None,
) -> Solution:
    """Minimise ``problem`` until the exact gradient's norm is at most ``tolerance``, proven.

    The hinge loss has no gradient: for it the duality gap is brought below ``gap``. With a tolerance of at least
    `certifiable.least_tolerance`, and a gap of at least `certifiable.least_gap`, that succeeds on every table.

    Raises
    ------
    SolverError
        If that cannot be certified.
    """
    check_positive(tolerance=tolerance)
    if math.isinf(problem.loss.smoothness):
        return minimise_hinge(replace(problem, features=in_memory(problem.features)), gap, progress)
    used = used_columns(problem)
    if used is None:
        return _descend(problem, tolerance, progress)
    # the empty columns' share of the certificate is so small that half the tolerance's square is ample for it
    found = minimise(restrict(problem, used), tolerance=tolerance * math.sqrt(0.5), progress=progress)
    whole = extend(problem, used, found)
    if whole.gradient_norm > tolerance:
        raise not_certified(tolerance)
    return whole


def _descend(
    problem: Problem, tolerance: float, progress: Progress | None = None, most: int = MAX_ITERATIONS
) -> Solution:
    """From the minimiser over some of the rows, which also give the directions where there are many columns."""
    part = _sample(problem)
    start = np.zeros(problem.features.shape[1])
    if part is not None:
        try:
            start = _descend(part, _precision(part), most=WARM_ITERATIONS).coefficients
        except SolverError:  # nobody promised this tolerance: it only saves time
            part = None
    return descend_from(start, Objective(problem), tolerance, progress, part, most)


def descend_from(
    start: Array,
    objective: Objective,
    tolerance: float,
    progress: Progress | None,
    part: Problem | None = None,
    most: int = MAX_ITERATIONS,
) -> Solution:
    """Newton's method by the directions that suit so many columns; ``part`` is the problem of some of the rows."""
    directions: Directions
    if objective.dimension <= (SPARSE_LIMIT if objective.is_sparse else FACTORISED_LIMIT):
        directions = FactorisedHessian(objective)
    elif part is None or not objective.is_sparse:
        directions = ConjugateGradients(objective)
    else:
        directions = SampledHessian(Objective(part), start, lambda: ConjugateGradients(objective))
    return descend(objective, directions, start, tolerance, progress, most)


def warm_rows(rows: int, dimension: int, most_stride: float = math.inf) -> tuple[int, int]:
    """One row in how many a warm start reads, and how many that are; none if they are too few."""
    stride = int(min(max(STRIDE, rows // MOST_ROWS), most_stride))
    kept = -(-rows // stride)
    return stride, kept if kept >= max(FEWEST_ROWS, ROWS_PER_COLUMN * min(dimension, FACTORISED_LIMIT)) else 0


def _sample(problem: Problem) -> Problem | None:
    """The problem of every so many-th row, in memory; None if that would say too little."""
    rows, dimension = problem.features.shape
    is_small = isinstance(problem.features, EncodedRows) and problem.features.tables is not None
    stride, kept = warm_rows(rows, dimension, MOST_STRIDE if is_small else math.inf)
    if not kept:
        return None
    return replace(
        problem,
        features=sampled(problem.features, stride),
        signs=problem.signs[::stride],
        row_weights=None if problem.row_weights is None else problem.row_weights[::stride],
        offsets=None if problem.offsets is None else problem.offsets[::stride],
        total=max(1, round(problem.total * kept / rows)),
    )


def _precision(part: Problem) -> float:
    """As precise as a sample deserves."""
    return 0.4 * part.norm_bound / math.sqrt(part.features.shape[0])

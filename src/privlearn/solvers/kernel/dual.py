"""Minimise a kernel machine in its dual, to a certified gap.

The dual has one variable ``alpha_i`` for each row, and the function is ``sum_i dual_i k(x_i, .)``. `minimise_kernel`
chooses the method by the loss. If rounding stops it short of the gap, it starts again from `linear_start`, the
minimiser of the equal linear problem on the rows of a root of the Gram matrix.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from privlearn.arrays import Array
from privlearn.errors import SolverError, check_positive
from privlearn.solvers.certifiable import min_gap, min_tolerance
from privlearn.solvers.hinge import minimise_dual
from privlearn.solvers.kernel.gap import WeightedLoss, gradient_gap, hinge_gap
from privlearn.solvers.kernel.hinge import HingeDual
from privlearn.solvers.kernel.newton import DualPoint, newton_step
from privlearn.solvers.kernel.problem import CertifiedPoint, KernelProblem, KernelSolution, Rows, SignedGram
from privlearn.solvers.problem import Problem, Progress
from privlearn.solvers.solve import minimise


def linear_start(gram: SignedGram, losses: WeightedLoss, total: float) -> Array:
    """Return ``alpha`` of the linear machine's minimiser on the rows of the Gram matrix's root."""
    features = gram.root_rows()
    problem = Problem(
        features,
        gram.signs,
        losses.loss,
        gram.scale / total,
        math.ceil(total),
        losses.weights,
        norm_bound=1.001 * math.sqrt(gram.max_entry),
        offsets=losses.offsets,
    )
    bounds: dict[str, Any] = {
        "dimension": features.shape[1],
        "weight_bound": max(float(np.sum(losses.weights)) / total, 1e-12) * max(gram.max_entry, 1.0),
    }
    if math.isinf(losses.loss.smoothness):
        return minimise_dual(problem, min_gap(problem.regularization, **bounds))
    tolerance = min_tolerance(losses.loss, problem.regularization, **bounds)
    coefficients = minimise(problem, tolerance=min(tolerance, 1e-3)).coefficients
    return -losses.first_derivative(gram.signs * (features @ coefficients))


MAX_STEPS = 200  # of Newton's method
STALLED = 30  # steps without a smaller gap: rounding does not allow more
OUTSIDE = 1e-9  # part of a limit by which rounding may exceed it
STRIDE = 4  # the warm start reads one row in 4
MIN_SAMPLE_ROWS = 300  # with fewer a warm start gains nothing
ROUGH_GAP = 1e-3  # of a warm start


def default_gap(regularization: float) -> float:
    """Public: return a gap far below the sensitivity of the minimiser, and reachable in float64 if k(x, x) <= 1.

    With it `certified_kernel_distance` is less than ``1e-7 n`` times the sensitivity ``2 / (n Lambda)``, for Lambda
    up to 1.
    """
    return 1e-12 * max(1.0, 1e-3 / regularization)


def certified_kernel_distance(regularization: float, gap: float | None = None) -> float:
    """Return a public bound on ``|f - f*|_H`` whenever `minimise_kernel` returns, for any data and loss."""
    return math.sqrt(2.0 * (default_gap(regularization) if gap is None else gap) / regularization)


def minimise_kernel(
    problem: KernelProblem, *, gap: float | None = None, progress: Progress | None = None
) -> KernelSolution:
    """Minimise ``problem`` until ``J(f) - min J`` is proven to be at most ``gap``.

    Parameters
    ----------
    problem : KernelProblem
    gap : float, optional
        `default_gap` by default. Guarantees depend on it: never choose it from the data.
    progress : callable, optional
        Called with the number of systems solved and the gap.

    Raises
    ------
    SolverError
        If that cannot be certified.

    Examples
    --------
    >>> from privlearn.solvers.losses import Logistic
    >>> gram, signs = np.array([[1.0, 0.2], [0.2, 1.0]]), np.array([1.0, -1.0])
    >>> solution = minimise_kernel(KernelProblem(gram, signs, Logistic(), regularization=0.1, total=2))
    >>> solution.dual.round(4).tolist(), solution.gap <= 1e-12
    ([1.3032, -1.3032], True)
    """
    gap = default_gap(problem.regularization) if gap is None else gap
    check_positive(gap=gap)
    weights = np.ones(len(problem.gram)) if problem.row_weights is None else problem.row_weights
    rows = np.flatnonzero(weights > 0)  # the others have an empty box
    dual = np.zeros(len(weights))
    if len(rows) == 0:
        return KernelSolution(dual, 0.0, 0.0, 0)
    gram = _signed_gram(problem, rows)
    offsets = np.zeros(len(weights)) if problem.offsets is None else problem.offsets
    losses = WeightedLoss(problem.loss, weights, offsets).part(rows)
    minimise = _minimise_hinge if math.isinf(problem.loss.smoothness) else _minimise_smooth
    result = minimise(gram, losses, problem.total, gap, progress)
    if not result.gap <= gap:
        raise SolverError(
            f"the kernel machine could not certify a gap of {gap:g}. Use a larger gap or a stronger "
            "regularization, or use loss='huber_hinge'"
        )
    dual[rows] = gram.dual(result.alpha)
    distance = certified_kernel_distance(problem.regularization, result.gap)
    return KernelSolution(dual, result.gap, distance, result.steps)


def _minimise_hinge(
    gram: SignedGram, losses: WeightedLoss, total: float, gap: float, progress: Progress | None
) -> CertifiedPoint:
    dual = HingeDual(gram, losses.weights, total)
    reached = dual.minimise(gap, progress)
    if reached <= gap:
        return CertifiedPoint(dual.alpha, reached, dual.steps)
    alpha = np.clip(linear_start(gram, losses, total), 0.0, losses.weights)
    return CertifiedPoint(alpha, hinge_gap(gram, losses.weights, total, alpha), dual.steps)


def _minimise_smooth(
    gram: SignedGram, losses: WeightedLoss, total: float, gap: float, progress: Progress | None
) -> CertifiedPoint:
    start = np.zeros(gram.count) if gram.count < MIN_SAMPLE_ROWS else _warm_start(gram, losses, total)
    result = _newton(gram, losses, total, gap, start, progress)
    if result.gap <= gap:
        return result
    return _newton(gram, losses, total, gap, linear_start(gram, losses, total), progress)


def _newton(
    gram: SignedGram,
    losses: WeightedLoss,
    total: float,
    gap: float,
    alpha: Array,
    progress: Progress | None = None,
) -> CertifiedPoint:
    """Run Newton's method from ``alpha``; return the point with the smallest certified gap."""

    def certify(alpha: Array) -> float:
        return gradient_gap(gram, losses, total, alpha, gram.times(alpha), gap)

    def step(alpha: Array) -> Array:
        return newton_step(gram, losses, DualPoint(alpha, gram.times(alpha))).alpha

    limits = losses.loss.lipschitz * losses.weights
    return best_newton_point(alpha, limits, certify, step, gap, progress)


def best_newton_point(
    alpha: Array,
    limits: Array,
    certify: Callable[[Array], float],
    step: Callable[[Array], Array],
    gap: float,
    progress: Progress | None = None,
    max_stalled: int = STALLED,
) -> CertifiedPoint:
    """Iterate ``step`` from ``alpha`` until ``certify`` returns at most ``gap``, or stops improving.

    The minimiser lies within ``limits``, and so does the returned point.
    """
    best, stalled = CertifiedPoint(alpha, math.inf, 0), 0
    for number in range(MAX_STEPS):
        clipped = np.clip(alpha, -limits, limits)
        if np.all(np.abs(alpha - clipped) <= OUTSIDE * limits):
            alpha = clipped
        reached = certify(clipped)
        if progress is not None:
            progress(number, reached)
        if reached < best.gap:
            best, stalled = CertifiedPoint(clipped, reached, number), 0
        else:
            stalled += 1
        if best.gap <= gap or stalled == max_stalled:
            break
        alpha = step(alpha)
    return best


def _warm_start(gram: SignedGram, losses: WeightedLoss, total: float) -> Array:
    """Return a rough minimiser over one row in `STRIDE`, as a point of the whole problem."""
    rows = np.arange(0, gram.count, STRIDE)
    share = len(rows) / gram.count
    alpha = np.zeros(gram.count)
    part, some = gram.restrict(rows, share), losses.part(rows)
    start = np.zeros(part.count) if part.count < MIN_SAMPLE_ROWS else _warm_start(part, some, share * total)
    alpha[rows] = _newton(part, some, share * total, ROUGH_GAP, start).alpha / share
    return alpha


def _signed_gram(problem: KernelProblem, rows: Rows) -> SignedGram:
    signs = np.asarray(problem.signs, dtype=np.float64)
    error = problem.gram_error + problem.asymmetry
    whole = SignedGram(problem.gram, signs, problem.regularization * problem.total, error)
    return whole if len(rows) == whole.count else whole.restrict(rows)

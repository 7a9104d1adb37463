"""Minimise a kernel machine in its dual, and certify how far the result may be off."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from privlearn.arrays import Array
from privlearn.erm.certifiable import least_gap, least_tolerance
from privlearn.erm.hinge import minimise_dual
from privlearn.erm.kernel.gap import WeightedLoss, gradient_gap, hinge_gap
from privlearn.erm.kernel.hinge import HingeDual
from privlearn.erm.kernel.newton import DualPoint, newton_step
from privlearn.erm.kernel.problem import KernelProblem, KernelSolution, Rows, SignedGram
from privlearn.erm.problem import Problem, Progress
from privlearn.erm.solve import minimise
from privlearn.errors import SolverError, check_positive

NEGLIGIBLE = 1e-17  # eigenvalues, relative to the sum of all


def linear_start(gram: SignedGram, losses: WeightedLoss, total: float) -> Array:
    """``alpha`` of the linear machine's minimiser."""
    features = _rows_of_root(gram)
    problem = Problem(
        features,
        gram.signs,
        losses.loss,
        gram.scale / total,
        math.ceil(total),
        losses.weights,
        norm_bound=1.001 * math.sqrt(gram.largest),
        offsets=losses.offsets,
    )
    facts: dict[str, Any] = {
        "dimension": features.shape[1],
        "weight_bound": max(float(np.sum(losses.weights)) / total, 1e-12) * max(gram.largest, 1.0),
    }
    if math.isinf(losses.loss.smoothness):
        return minimise_dual(problem, least_gap(problem.regularization, **facts))
    tolerance = least_tolerance(losses.loss, problem.regularization, **facts)
    coefficients = minimise(problem, tolerance=min(tolerance, 1e-3)).coefficients
    return -losses.slope(gram.signs * (features @ coefficients))


def _rows_of_root(gram: SignedGram) -> Array:
    values, vectors = np.linalg.eigh(gram.block(np.arange(gram.count)))
    kept = values > NEGLIGIBLE * np.sum(values)
    return (
        np.ascontiguousarray(vectors[:, kept] * np.sqrt(values[kept]))
        if kept.any()
        else np.zeros((gram.count, 1))
    )


MAX_STEPS = 200
STALLED = 30  # steps without a smaller gap: rounding does not allow more
OUTSIDE = 1e-9  # part of a limit by which rounding may exceed it
STRIDE = 4  # the warm start reads one row in so many
FEWEST_ROWS = 300  # with fewer there is nothing to gain from a warm start
ROUGH_GAP = 1e-3  # all that a warm start deserves


def default_gap(regularization: float) -> float:
    """Public: far below what one record moves the minimiser, and within reach of float64 if k(x, x) <= 1.

    With it `certified_kernel_distance` is less than ``1e-7 n`` times the sensitivity ``2 / (n Lambda)``, for Lambda
    up to 1.
    """
    return 1e-12 * max(1.0, 1e-3 / regularization)


def certified_kernel_distance(regularization: float, gap: float | None = None) -> float:
    """Public bound on ``|f - f*|_H`` whenever `minimise_kernel` returns; free of the data and the loss."""
    return math.sqrt(2.0 * (default_gap(regularization) if gap is None else gap) / regularization)


def minimise_kernel(
    problem: KernelProblem, *, gap: float | None = None, progress: Progress | None = None
) -> KernelSolution:
    """Minimise ``problem`` until ``J(f) - min J`` is at most ``gap``, proven.

    Parameters
    ----------
    problem : KernelProblem
    gap : float, optional
        `default_gap` by default. It enters guarantees: never choose it by looking at the data.
    progress : callable, optional
        Called with the number of systems solved and the gap.

    Raises
    ------
    SolverError
        If that cannot be certified.
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
    found = minimise(gram, losses, problem.total, gap, progress)
    if not found.gap <= gap:
        raise SolverError(
            f"the kernel machine could not certify a gap of {gap:g}: ask for a larger gap or a stronger "
            "regularization, or take loss='huber_hinge'"
        )
    dual[rows] = gram.dual(found.alpha)
    distance = certified_kernel_distance(problem.regularization, found.gap)
    return KernelSolution(dual, found.gap, distance, found.steps)


@dataclass(frozen=True, eq=False)
class _Found:
    alpha: Array
    gap: float
    steps: int


def _minimise_hinge(
    gram: SignedGram, losses: WeightedLoss, total: float, gap: float, progress: Progress | None
) -> _Found:
    dual = HingeDual(gram, losses.weights, total)
    reached = dual.minimise(gap, progress)
    if reached <= gap:
        return _Found(dual.alpha, reached, dual.steps)
    alpha = np.clip(linear_start(gram, losses, total), 0.0, losses.weights)
    return _Found(alpha, hinge_gap(gram, losses.weights, total, alpha), dual.steps)


def _minimise_smooth(
    gram: SignedGram, losses: WeightedLoss, total: float, gap: float, progress: Progress | None
) -> _Found:
    start = np.zeros(gram.count) if gram.count < FEWEST_ROWS else _of_some_rows(gram, losses, total)
    found = _newton(gram, losses, total, gap, start, progress)
    if found.gap <= gap:
        return found
    return _newton(gram, losses, total, gap, linear_start(gram, losses, total), progress)


def _newton(
    gram: SignedGram,
    losses: WeightedLoss,
    total: float,
    gap: float,
    alpha: Array,
    progress: Progress | None = None,
) -> _Found:
    """Newton's method from ``alpha``: the best point that it comes by."""
    limits = losses.loss.lipschitz * losses.weights  # the minimiser is within, and so is what is returned
    best, since_best = _Found(alpha, math.inf, 0), 0
    for step in range(MAX_STEPS):
        clipped = np.clip(alpha, -limits, limits)
        if np.all(np.abs(alpha - clipped) <= OUTSIDE * limits):
            alpha = clipped
        margins = gram.times(clipped)
        reached = gradient_gap(gram, losses, total, clipped, margins, gap)
        if progress is not None:
            progress(step, reached)
        best, since_best = (
            (_Found(clipped, reached, step), 0) if reached < best.gap else (best, since_best + 1)
        )
        if best.gap <= gap or since_best == STALLED:
            break
        point = DualPoint(alpha, margins if alpha is clipped else gram.times(alpha))
        alpha = newton_step(gram, losses, point).alpha
    return best


def _of_some_rows(gram: SignedGram, losses: WeightedLoss, total: float) -> Array:
    """The minimiser over one row in `STRIDE`, roughly, as a point of the whole problem."""
    rows = np.arange(0, gram.count, STRIDE)
    share = len(rows) / gram.count
    alpha = np.zeros(gram.count)
    part, some = gram.restricted(rows, share), losses.part(rows)
    start = np.zeros(part.count) if part.count < FEWEST_ROWS else _of_some_rows(part, some, share * total)
    alpha[rows] = _newton(part, some, share * total, ROUGH_GAP, start).alpha / share
    return alpha


def _signed_gram(problem: KernelProblem, rows: Rows) -> SignedGram:
    signs = np.asarray(problem.signs, dtype=np.float64)
    error = problem.gram_error + problem.asymmetry
    whole = SignedGram(problem.gram, signs, problem.regularization * problem.total, error)
    return whole if len(rows) == whole.count else whole.restricted(rows)

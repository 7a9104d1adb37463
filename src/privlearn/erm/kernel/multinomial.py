"""The softmax loss over a kernel's space: one function per class, found together and certified together.

``J(F) = (1/N) sum_i weight_i (log sum_k exp f_k(x_i) - f_(y_i)(x_i)) + (Lambda/2) sum_k |f_k|_H^2``. In the span of the
data ``f_k = sum_i A_ik k(x_i, .) / (Lambda N)``, the margins are ``Z = Q A`` with ``Q = G / (Lambda N)``, and the
gradient is ``Q R / N`` with ``R = A + weights * (P - E)``, P the probabilities and E the classes' indicators
(docs/theory/kernel-machine.md, "Several classes").
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privlearn.arrays import Array
from privlearn.erm.certifiable import SAFETY, UNDERFLOW, gamma, least_tolerance, softmax_slope_error
from privlearn.erm.descent import flat_length
from privlearn.erm.kernel.dual import NEGLIGIBLE, certified_kernel_distance
from privlearn.erm.kernel.problem import KernelProblem, KernelSolution, SignedGram
from privlearn.erm.losses import Multinomial
from privlearn.erm.multinomial import minimise_multinomial, softmax
from privlearn.errors import SolverError

MOST_STEPS = 60
MOST_PRODUCTS = 400  # of one Newton system
FORCING = 0.1  # of a system's right-hand side that may be left over; less as the gradient falls
FLAT = 1e-9  # of the slope along a direction at which the search along it ends


def minimise_kernel_multinomial(
    problem: KernelProblem, labels: NDArray[np.integer[Any]], n_classes: int, *, gap: float
) -> KernelSolution:
    """Minimise until ``J(F) - min J`` is at most ``gap``, proven.

    Parameters
    ----------
    problem : KernelProblem
        Its signs, loss and offsets are not read.
    labels : integer array of shape (n,)
        0 to ``n_classes - 1``.
    n_classes : int
    gap : float
        It enters guarantees: never choose it by looking at the data.

    Returns
    -------
    KernelSolution
        ``dual`` has shape (n_classes, n).

    Raises
    ------
    SolverError
        If that cannot be certified.
    """
    machine = _Machine(problem, labels, n_classes)
    found = machine.descend(np.zeros((machine.count, n_classes)), gap)
    if not found.gap <= gap:
        found = machine.descend(machine.linear_start(), gap)
    if not found.gap <= gap:
        raise SolverError(
            f"the kernel machine could not certify a gap of {gap:g}: ask for a larger gap or a stronger regularization"
        )
    distance = certified_kernel_distance(problem.regularization, found.gap)
    return KernelSolution(found.alpha.T / machine.scale, found.gap, distance, found.steps)


@dataclass(frozen=True, eq=False)
class _Found:
    alpha: Array
    gap: float
    steps: int


class _Machine:
    """A problem's Gram matrix, labels and weights; ``alpha`` has a row per record and a column per class."""

    def __init__(self, problem: KernelProblem, labels: NDArray[np.integer[Any]], n_classes: int) -> None:
        self.count, self._classes = len(problem.gram), n_classes
        self.scale = problem.regularization * problem.total
        self._gram, self._labels = problem.gram, labels
        self._regularization, self._total = problem.regularization, problem.total
        weights = np.ones(self.count) if problem.row_weights is None else problem.row_weights
        self._weights: Array = weights[:, np.newaxis]
        self._own = (np.arange(self.count), labels)
        error = problem.gram_error + problem.asymmetry
        self._signed = SignedGram(problem.gram, np.ones(self.count), self.scale, error)

    def descend(self, alpha: Array, gap: float) -> _Found:
        """Newton's method from ``alpha``: the best point that it comes by."""
        best = _Found(alpha, math.inf, 0)
        for step in range(MOST_STEPS):
            clipped = np.clip(alpha, -self._weights, self._weights)  # the minimiser is within
            reached = self._certified_gap(clipped, gap)
            if reached < best.gap:
                best = _Found(clipped, reached, step)
            elif step > best.steps + 3:
                break  # rounding does not allow more
            if best.gap <= gap:
                break
            alpha = self._newton_step(alpha)
        return best

    def linear_start(self) -> Array:
        """``alpha`` of the linear machine's minimiser on the rows of the Gram matrix's root."""
        values, vectors = np.linalg.eigh(self._gram)
        kept = values > NEGLIGIBLE * np.sum(values)
        rows = np.zeros((self.count, 1))
        if kept.any():
            rows = np.ascontiguousarray(vectors[:, kept] * np.sqrt(values[kept]))
        mass = float(np.sum(self._weights)) / self._total * max(self._signed.largest, 1.0)
        tolerance = least_tolerance(
            Multinomial(),
            self._regularization,
            dimension=self._classes * rows.shape[1],
            weight_bound=max(mass, 1e-12),
        )
        found = minimise_multinomial(
            rows,
            self._labels,
            self._classes,
            regularization=self._regularization,
            total=self._total,
            row_weights=self._weights[:, 0],
            norm_bound=1.001 * math.sqrt(self._signed.largest),
            tolerance=min(tolerance, 1e-3),
        )
        return -self._slopes(softmax(rows @ found.coefficients.T)[0])

    def _slopes(self, probabilities: Array) -> Array:
        slopes = probabilities.copy()
        slopes[self._own] -= 1.0
        return self._weights * slopes

    def _times(self, matrix: Array) -> Array:
        return np.asarray(self._gram @ matrix) / self.scale

    def _newton_step(self, alpha: Array) -> Array:
        """The minimiser along Newton's direction, found by conjugate gradients."""
        margins = self._times(alpha)
        probabilities, _ = softmax(margins)
        residual = alpha + self._slopes(probabilities)
        direction, change = self._newton_direction(probabilities, residual)
        length = self._best_length(margins, change, float(np.vdot(alpha, change)), direction)
        return alpha + length * direction

    def _newton_direction(self, probabilities: Array, residual: Array) -> tuple[Array, Array]:
        """D and Q D with (I + S Q) D = -residual, S the softmax's curvature in each row.

        I + S Q is symmetric and positive in the inner product <U, V> = tr(U' Q V): conjugate gradients in it need one
        product with Q per step.
        """
        direction, change = np.zeros_like(residual), np.zeros_like(residual)
        left, pushed = -residual, self._times(-residual)
        along, along_pushed = left, pushed
        square = start = float(np.vdot(left, pushed))
        enough = min(FORCING, math.sqrt(max(start, 0.0) / self._total)) ** 2 * start
        for _ in range(MOST_PRODUCTS):
            if not square > enough:
                break
            image = along + self._curved(probabilities, along_pushed)
            bend = float(np.vdot(along_pushed, image))
            if not bend > 0:
                break  # rows of no length: rounding alone is left
            step = square / bend
            direction, change = direction + step * along, change + step * along_pushed
            left = left - step * image
            pushed = self._times(left)
            before, square = square, float(np.vdot(left, pushed))
            along, along_pushed = (
                left + square / before * along,
                pushed + square / before * along_pushed,
            )
        return direction, change

    def _curved(self, probabilities: Array, margins: Array) -> Array:
        """Each row's ``weight (diag(p) - p p')`` times its margins."""
        moved = probabilities * margins
        return np.asarray(self._weights * (moved - probabilities * np.sum(moved, axis=1, keepdims=True)))

    def _best_length(self, margins: Array, change: Array, fixed: float, direction: Array) -> float:
        square = float(np.vdot(direction, change))

        def slope_and_bend(length: float) -> tuple[float, float]:
            probabilities, _ = softmax(margins + length * change)
            slope = float(np.vdot(self._slopes(probabilities), change)) + fixed + length * square
            return slope, float(np.vdot(self._curved(probabilities, change), change)) + square

        start = abs(slope_and_bend(0.0)[0])
        return flat_length(slope_and_bend, FLAT * start) if square > 0 and start > 0 else 1.0

    def _certified_gap(self, alpha: Array, goal: float) -> float:
        """``|grad J|_H^2 / (2 Lambda)``, rounding errors included; margins in extended precision if that is needed."""
        errors = [self._signed.margin_error(column) for column in alpha.T]
        computed, rounding = self._gradient(alpha, self._times(alpha), math.hypot(*errors))
        if _gap(computed + rounding, self._total) > goal and rounding > computed:
            everything = np.arange(self.count)
            found = [self._signed.extended_margins(everything, column) for column in alpha.T]
            margins = np.column_stack([column for column, _ in found])
            error = math.hypot(*(error for _, error in found))
            computed, rounding = self._gradient(alpha, margins, error)
        return _gap(computed + rounding, self._total)

    def _gradient(self, alpha: Array, margins: Array, margin_error: float) -> tuple[float, float]:
        """``sqrt(N / Lambda) |grad J|_H`` as computed, and a bound on its error."""
        slopes = self._slopes(softmax(margins)[0])
        largest = math.sqrt(self._classes) * float(np.max(np.abs(margins), initial=0.0))
        errors = self._weights[:, 0] * softmax_slope_error(self._classes, margin_error, largest)
        errors = errors + gamma(4) * (np.linalg.norm(alpha, axis=1) + np.linalg.norm(slopes, axis=1))
        rounding = math.sqrt(self._signed.largest / self.scale) * float(np.sum(errors))
        return math.hypot(
            *(math.sqrt(self._signed.square(column)) for column in (alpha + slopes).T)
        ), rounding


def _gap(root: float, total: float) -> float:
    return SAFETY * root**2 / (2.0 * total) + UNDERFLOW

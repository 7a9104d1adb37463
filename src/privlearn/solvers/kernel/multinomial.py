"""The softmax loss over a kernel's space: one function per class, solved and certified jointly.

``J(F) = (1/N) sum_i weight_i (log sum_k exp f_k(x_i) - f_(y_i)(x_i)) + (Lambda/2) sum_k |f_k|_H^2``. In the span of the
data ``f_k = sum_i A_ik k(x_i, .) / (Lambda N)``, the margins are ``Z = Q A`` with ``Q = G / (Lambda N)``, and the
gradient is ``Q R / N`` with ``R = A + weights * (P - E)``, P the probabilities and E the classes' indicators
(docs/theory/kernel-machine.md, "Several classes").
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privlearn.arrays import Array
from privlearn.errors import SolverError
from privlearn.solvers.certifiable import gamma, min_tolerance, softmax_derivative_error
from privlearn.solvers.descent import find_step_length
from privlearn.solvers.kernel.dual import best_newton_point, certified_kernel_distance
from privlearn.solvers.kernel.gap import gap_of_gradient
from privlearn.solvers.kernel.problem import CertifiedPoint, KernelProblem, KernelSolution, SignedGram
from privlearn.solvers.losses import Multinomial
from privlearn.solvers.multinomial import minimise_multinomial, softmax, softmax_product

STALLED = 4  # steps without a smaller gap: rounding does not allow more
MAX_PRODUCTS = 400  # of one Newton system
FORCING = 0.1  # relative residual of a Newton system; smaller as the gradient decreases
FLAT = 1e-9  # part of the first derivative along a direction at which the line search ends


def minimise_kernel_multinomial(
    problem: KernelProblem, labels: NDArray[np.integer[Any]], n_classes: int, *, gap: float
) -> KernelSolution:
    """Minimise until ``J(F) - min J`` is proven to be at most ``gap``.

    Parameters
    ----------
    problem : KernelProblem
        Its signs, loss and offsets are not used.
    labels : integer array of shape (n,)
        0 to ``n_classes - 1``.
    n_classes : int
    gap : float
        Guarantees depend on it: never choose it from the data.

    Returns
    -------
    KernelSolution
        ``dual`` has shape (n_classes, n).

    Raises
    ------
    SolverError
        If that cannot be certified.

    Examples
    --------
    >>> from privlearn.solvers.losses import Multinomial
    >>> problem = KernelProblem(np.eye(3), np.ones(3), Multinomial(), regularization=0.1, total=3)
    >>> solution = minimise_kernel_multinomial(problem, np.array([0, 1, 2]), 3, gap=1e-10)
    >>> solution.dual.shape, solution.gap <= 1e-10
    ((3, 3), True)
    """
    machine = _Machine(problem, labels, n_classes)
    result = machine.descend(np.zeros((machine.count, n_classes)), gap)
    if not result.gap <= gap:
        result = machine.descend(machine.linear_start(), gap)
    if not result.gap <= gap:
        raise SolverError(
            f"the kernel machine could not certify a gap of {gap:g}. Use a larger gap or a stronger regularization"
        )
    distance = certified_kernel_distance(problem.regularization, result.gap)
    return KernelSolution(result.alpha.T / machine.scale, result.gap, distance, result.steps)


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

    def descend(self, alpha: Array, gap: float) -> CertifiedPoint:
        """Run Newton's method from ``alpha``; return the point with the smallest certified gap."""
        certify = partial(self._certified_gap, target=gap)
        return best_newton_point(alpha, self._weights, certify, self._newton_step, gap, max_stalled=STALLED)

    def linear_start(self) -> Array:
        """Return ``alpha`` of the linear machine's minimiser on the rows of the Gram matrix's root."""
        rows = self._signed.root_rows()
        mass = float(np.sum(self._weights)) / self._total * max(self._signed.max_entry, 1.0)
        tolerance = min_tolerance(
            Multinomial(),
            self._regularization,
            dimension=self._classes * rows.shape[1],
            weight_bound=max(mass, 1e-12),
        )
        solution = minimise_multinomial(
            rows,
            self._labels,
            self._classes,
            regularization=self._regularization,
            total=self._total,
            row_weights=self._weights[:, 0],
            norm_bound=1.001 * math.sqrt(self._signed.max_entry),
            tolerance=min(tolerance, 1e-3),
        )
        return -self._derivatives(softmax(rows @ solution.coefficients.T)[0])

    def _derivatives(self, probabilities: Array) -> Array:
        """Return the weighted first derivatives of the losses in their margins, (n, K)."""
        derivatives = probabilities.copy()
        derivatives[self._own] -= 1.0
        return self._weights * derivatives

    def _times(self, matrix: Array) -> Array:
        return np.asarray(self._gram @ matrix) / self.scale

    def _newton_step(self, alpha: Array) -> Array:
        """Return the minimiser along Newton's direction, computed by conjugate gradients."""
        margins = self._times(alpha)
        probabilities, _ = softmax(margins)
        residual = alpha + self._derivatives(probabilities)
        direction, change = self._newton_direction(probabilities, residual)
        length = self._best_length(margins, change, float(np.vdot(alpha, change)), direction)
        return alpha + length * direction

    def _newton_direction(self, probabilities: Array, residual: Array) -> tuple[Array, Array]:
        """Return D and Q D with (I + S Q) D = -residual, S the softmax's second derivative in each row.

        I + S Q is symmetric and positive in the inner product <U, V> = tr(U' Q V): conjugate gradients in it need one
        product with Q per step.
        """
        direction, change = np.zeros_like(residual), np.zeros_like(residual)
        left, pushed = -residual, self._times(-residual)
        along, along_pushed = left, pushed
        square = start = float(np.vdot(left, pushed))
        target = min(FORCING, math.sqrt(max(start, 0.0) / self._total)) ** 2 * start
        for _ in range(MAX_PRODUCTS):
            if not square > target:
                break
            image = along + self._curve(probabilities, along_pushed)
            energy = float(np.vdot(along_pushed, image))
            if not energy > 0:
                break  # only rounding errors are left
            step = square / energy
            direction, change = direction + step * along, change + step * along_pushed
            left = left - step * image
            pushed = self._times(left)
            before, square = square, float(np.vdot(left, pushed))
            along, along_pushed = (left + square / before * along, pushed + square / before * along_pushed)
        return direction, change

    def _curve(self, probabilities: Array, margins: Array) -> Array:
        """Return each row's ``weight (diag(p) - p p')`` times its margins."""
        return self._weights * softmax_product(probabilities, margins)

    def _best_length(self, margins: Array, change: Array, fixed: float, direction: Array) -> float:
        square = float(np.vdot(direction, change))

        def derivatives(length: float) -> tuple[float, float]:
            probabilities, _ = softmax(margins + length * change)
            first = float(np.vdot(self._derivatives(probabilities), change)) + fixed + length * square
            return first, float(np.vdot(self._curve(probabilities, change), change)) + square

        start = abs(derivatives(0.0)[0])
        return find_step_length(derivatives, FLAT * start) if square > 0 and start > 0 else 1.0

    def _certified_gap(self, alpha: Array, target: float) -> float:
        """Return ``|grad J|_H^2 / (2 Lambda)``, rounding included; margins in extended precision if needed."""
        errors = [self._signed.margin_error(column) for column in alpha.T]
        computed, rounding = self._gradient(alpha, self._times(alpha), math.hypot(*errors))
        if gap_of_gradient(computed + rounding, self._total) > target and rounding > computed:
            everything = np.arange(self.count)
            wide = [self._signed.wide_margins(everything, column) for column in alpha.T]
            margins = np.column_stack([column for column, _ in wide])
            error = math.hypot(*(error for _, error in wide))
            computed, rounding = self._gradient(alpha, margins, error)
        return gap_of_gradient(computed + rounding, self._total)

    def _gradient(self, alpha: Array, margins: Array, margin_error: float) -> tuple[float, float]:
        """Return ``sqrt(N / Lambda) |grad J|_H`` as computed, and a bound on its error."""
        derivatives = self._derivatives(softmax(margins)[0])
        max_margin = math.sqrt(self._classes) * float(np.max(np.abs(margins), initial=0.0))
        errors = self._weights[:, 0] * softmax_derivative_error(self._classes, margin_error, max_margin)
        errors = errors + gamma(4) * (np.linalg.norm(alpha, axis=1) + np.linalg.norm(derivatives, axis=1))
        rounding = math.sqrt(self._signed.max_entry / self.scale) * float(np.sum(errors))
        squares = (self._signed.square(column) for column in (alpha + derivatives).T)
        return math.sqrt(sum(squares)), rounding

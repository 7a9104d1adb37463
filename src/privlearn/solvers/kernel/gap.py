"""Certified gaps of kernel machines (docs/theory/kernel-machine.md).

`gradient_gap` and `hinge_gap` return an upper bound on ``J(f) - min J`` for the function whose coefficients are
``SignedGram.dual(alpha)``, rounding errors included.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from privlearn.arrays import Array
from privlearn.solvers.certifiable import (
    MIN_HINGE_REGULARIZATION,
    SAFETY,
    SOLVER_MARGIN,
    UNDERFLOW,
    gamma,
    hinge_terms,
    softmax_derivative_error,
)
from privlearn.solvers.kernel.problem import Rows, SignedGram, wide_gamma
from privlearn.solvers.losses import Loss, LossProperties

MAX_GAP = 1e-3  # relative to the weight bound, which is about J(0): a larger gap would be meaningless


@dataclass(frozen=True, eq=False, repr=False)
class WeightedLoss:
    """``weight_i loss(margin_i - offset_i)``, the `MarginFunction` of a smooth loss."""

    loss: Loss
    weights: Array
    offsets: Array

    def first_derivative(self, margins: Array) -> Array:
        return self.weights * self.loss.first_derivative(margins - self.offsets)

    def second_derivative(self, margins: Array) -> Array:
        return self.weights * self.loss.second_derivative(margins - self.offsets)

    def derivative_errors(self, margins: Array, margin_error: float) -> Array:
        """Return bounds on the errors of `first_derivative`."""
        max_argument = float(np.max(np.abs(margins) + np.abs(self.offsets), initial=0.0))
        return self.weights * _derivative_error(self.loss, margin_error, max_argument)

    def part(self, rows: Rows) -> WeightedLoss:
        """Return the losses of some rows."""
        return WeightedLoss(self.loss, self.weights[rows], self.offsets[rows])


def gradient_gap(
    gram: SignedGram, losses: WeightedLoss, total: float, alpha: Array, margins: Array, target: float
) -> float:
    """Return ``|grad J|_H^2 / (2 Lambda)`` for smooth losses; ``margins`` are ``gram.times(alpha)``.

    If rounding of the margins keeps the bound above ``target``, they are summed again in extended precision.
    """
    computed, rounding = _gradient(gram, losses, alpha, margins, gram.margin_error(alpha))
    if gap_of_gradient(computed + rounding, total) > target and rounding > computed:
        margins, error = gram.wide_margins(np.arange(gram.count), alpha)
        computed, rounding = _gradient(gram, losses, alpha, margins, error)
    return gap_of_gradient(computed + rounding, total)


def hinge_gap(gram: SignedGram, weights: Array, total: float, alpha: Array) -> float:
    """Return the duality gap for ``0 <= alpha <= weights``: non-negative terms, so that rounding stays relative.

    A row at its bound on the right side of the corner contributes nothing. The margins of the others are summed in
    extended precision.
    """
    low, high = weights - alpha, alpha
    excess, error = gram.times(alpha) - 1.0, gram.margin_error(alpha)
    _, growth = hinge_terms(excess, SAFETY * error + gamma(2), low, high)
    contributing = np.flatnonzero(growth)
    margins, error = gram.wide_margins(contributing, alpha)
    excess, low, high = margins - 1.0, low[contributing], high[contributing]
    error = SAFETY * error + gamma(2) * (1.0 + float(np.max(np.abs(margins), initial=0.0)))
    terms, _ = hinge_terms(excess, error, low, high)
    # alpha and the dual's floats
    apart = gamma(4) * float(np.sum(alpha)) * math.sqrt(gram.max_entry / gram.scale)
    return SAFETY * (float(np.sum(terms)) + apart**2) / total + UNDERFLOW


def min_kernel_gap(
    loss: LossProperties,
    regularization: float,
    *,
    rows: int,
    weight_bound: float = 1.0,
    gram_error: float = 0.0,
    classes: int = 0,
) -> float:
    """Return the gap that `minimise_kernel` proves for any rows with k(x, x) <= 1, from public numbers; or infinity.

    Every dual coefficient is at most L weight / (N Lambda), so that their absolute sum, and every margin, is at most
    L weight_bound / Lambda.

    Parameters
    ----------
    loss : LossProperties
    regularization : float
    rows : int
        Maximal number of rows.
    weight_bound : float, default=1.0
        The rows' weights add up to at most this times N.
    gram_error : float, default=0.0
        As in `KernelProblem`.
    classes : int, default=0
        Number of classes of the softmax loss, whose functions each have such coefficients.
    """
    if math.isinf(loss.smoothness) and regularization < 2.0 * MIN_HINGE_REGULARIZATION * weight_bound:
        return math.inf
    max_entry = 1.0 + 2.0 * gram_error
    dual_sum = loss.lipschitz * weight_bound / regularization
    margin = max_entry * dual_sum
    error = SAFETY * ((wide_gamma(rows + 2) * max_entry + gram_error) * dual_sum + gamma(1) * margin)
    if math.isinf(loss.smoothness):
        at_corner = SAFETY * error + gamma(2) * (1.0 + margin)
        apart = (gamma(4) * weight_bound) ** 2 * max_entry / regularization
        smallest = SOLVER_MARGIN * SAFETY * (weight_bound * at_corner + apart) + UNDERFLOW
    else:
        several = math.sqrt(max(classes, 1))  # each function's margins are off by the error
        if classes:
            error = softmax_derivative_error(classes, several * error, several * margin)
        else:
            error = _derivative_error(loss, error, margin + 1.0)
        error += gamma(4) * (1.0 + several) * loss.lipschitz
        root = SOLVER_MARGIN * weight_bound * error
        smallest = SAFETY * root**2 * max_entry / (2.0 * regularization) + UNDERFLOW
    return smallest if smallest <= MAX_GAP * weight_bound else math.inf


def rough_hinge_gap(weights: Array, total: float, alpha: Array, margins: Array) -> float:
    """Return the duality gap without a bound on rounding errors, to control the iteration."""
    excess = margins - 1.0
    return float((weights - alpha) @ np.maximum(-excess, 0.0) + alpha @ np.maximum(excess, 0.0)) / total


def _gradient(
    gram: SignedGram, losses: WeightedLoss, alpha: Array, margins: Array, error: float
) -> tuple[float, float]:
    """Return ``sqrt(N / Lambda) |grad J|_H`` as computed, and a bound on its error.

    ``grad J = (1/N) sum_i v_i sign_i k(x_i, .)`` with ``v_i = alpha_i + weight_i loss'(z_i)``: an error ``e_i`` in
    ``v_i`` moves it by at most ``e_i sqrt(k(x_i, x_i)) / N``.
    """
    derivatives = losses.first_derivative(margins)
    errors = losses.derivative_errors(margins, error) + gamma(4) * (np.abs(alpha) + np.abs(derivatives))
    rounding = math.sqrt(gram.max_entry / gram.scale) * float(np.sum(errors))
    return math.sqrt(gram.square(alpha + derivatives)), rounding


def _derivative_error(loss: LossProperties, margin_error: float, max_argument: float) -> float:
    """Return the error of a derivative at a margin minus its offset, together at most ``max_argument``."""
    error = SAFETY * (margin_error + gamma(2) * max_argument)
    return loss.smoothness * error + loss.derivative_rounding + gamma(2) * loss.lipschitz


def gap_of_gradient(root: float, total: float) -> float:
    """Return the gap of a gradient with ``sqrt(N / Lambda) |grad J|_H`` at most ``root``."""
    return SAFETY * root**2 / (2.0 * total) + UNDERFLOW

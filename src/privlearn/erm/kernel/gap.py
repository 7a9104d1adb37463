"""How far a function is from the minimiser, proven: docs/theory/kernel-machine.md has the argument.

Both functions return an upper bound on ``J(f) - min J`` for the function whose coefficients are
``SignedGram.dual(alpha)``, rounding errors included.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from privlearn.arrays import Array
from privlearn.erm.certifiable import LEAST_FOR_HINGE, ROOM, SAFETY, UNDERFLOW, gamma, softmax_slope_error
from privlearn.erm.kernel.problem import Rows, SignedGram, extended_gamma
from privlearn.erm.losses import Loss, LossFacts

MOST_GAP = 1e-3  # relative to the weight bound, which is about J(0): beyond, a proof would say nothing


@dataclass(frozen=True, eq=False)
class WeightedLoss:
    """``weight_i loss(margin_i - offset_i)``, the `MarginFunction` of a smooth loss."""

    loss: Loss
    weights: Array
    offsets: Array

    def slope(self, margins: Array) -> Array:
        return self.weights * self.loss.derivative(margins - self.offsets)

    def curvature(self, margins: Array) -> Array:
        return self.weights * self.loss.curvature(margins - self.offsets)

    def slope_errors(self, margins: Array, margin_error: float) -> Array:
        """Bounds on the errors of ``slope``."""
        largest = float(np.max(np.abs(margins) + np.abs(self.offsets), initial=0.0))
        return self.weights * _slope_error(self.loss, margin_error, largest)

    def part(self, rows: Rows) -> WeightedLoss:
        return WeightedLoss(self.loss, self.weights[rows], self.offsets[rows])


def gradient_gap(
    gram: SignedGram, losses: WeightedLoss, total: float, alpha: Array, margins: Array, goal: float
) -> float:
    """``|grad J|_H^2 / (2 Lambda)``, for losses with bounded curvature; ``margins`` are ``gram.times(alpha)``.

    If it is the margins' rounding that keeps the bound above ``goal``, they are summed again in extended
    precision.
    """
    computed, rounding = _gradient(gram, losses, alpha, margins, gram.margin_error(alpha))
    if _gap(computed + rounding, total) > goal and rounding > computed:
        margins, error = gram.extended_margins(np.arange(gram.count), alpha)
        computed, rounding = _gradient(gram, losses, alpha, margins, error)
    return _gap(computed + rounding, total)


def hinge_gap(gram: SignedGram, weights: Array, total: float, alpha: Array) -> float:
    """The duality gap for ``0 <= alpha <= weights``: a sum of non-negative terms, so that rounding stays relative.

    A row counts by its distance from the corner times its slope, and one at its bound on the right side of the
    corner not at all. The margins of those that count are summed in extended precision.
    """
    low, high = weights - alpha, alpha
    excess, error = gram.times(alpha) - 1.0, gram.margin_error(alpha)
    counting = np.flatnonzero(_slopes(excess, SAFETY * error + gamma(2), low, high))
    margins, error = gram.extended_margins(counting, alpha)
    excess, low, high = margins - 1.0, low[counting], high[counting]
    error = SAFETY * error + gamma(2) * (1.0 + float(np.max(np.abs(margins), initial=0.0)))
    terms = low * np.maximum(-excess, 0.0) + high * np.maximum(excess, 0.0)
    terms += _slopes(excess, error, low, high) * error
    apart = (
        gamma(4) * float(np.sum(alpha)) * math.sqrt(gram.largest / gram.scale)
    )  # alpha and the dual's floats
    return SAFETY * (float(np.sum(terms)) + apart**2) / total + UNDERFLOW


def least_kernel_gap(
    loss: LossFacts,
    regularization: float,
    *,
    rows: int,
    weight_bound: float = 1.0,
    gram_error: float = 0.0,
    classes: int = 0,
) -> float:
    """The gap that `minimise_kernel` proves for any rows with k(x, x) <= 1, from public numbers alone; or infinity.

    Every dual coefficient is at most L weight / (N Lambda), so that their absolute sum, and every margin, is at most
    L weight_bound / Lambda.

    Parameters
    ----------
    loss : LossFacts
    regularization : float
    rows : int
        The most rows that there may be.
    weight_bound : float, default=1.0
        The rows' weights add up to at most this times N.
    gram_error : float, default=0.0
        As in `KernelProblem`.
    classes : int, default=0
        Of the softmax loss, whose functions each have such coefficients.
    """
    if math.isinf(loss.smoothness) and regularization < 2.0 * LEAST_FOR_HINGE * weight_bound:
        return math.inf
    largest = 1.0 + 2.0 * gram_error
    slopes = loss.lipschitz * weight_bound / regularization
    margin = largest * slopes
    error = SAFETY * ((extended_gamma(rows + 2) * largest + gram_error) * slopes + gamma(1) * margin)
    if math.isinf(loss.smoothness):
        at_corner = SAFETY * error + gamma(2) * (1.0 + margin)
        apart = (gamma(4) * weight_bound) ** 2 * largest / regularization
        least = ROOM * SAFETY * (weight_bound * at_corner + apart) + UNDERFLOW
    else:
        several = math.sqrt(max(classes, 1))  # each function's margins are off by the error
        if classes:
            error = softmax_slope_error(classes, several * error, several * margin)
        else:
            error = _slope_error(loss, error, margin + 1.0)
        error += gamma(4) * (1.0 + several) * loss.lipschitz
        least = SAFETY * (ROOM * weight_bound * error) ** 2 * largest / (2.0 * regularization) + UNDERFLOW
    return least if least <= MOST_GAP * weight_bound else math.inf


def rough_hinge_gap(weights: Array, total: float, alpha: Array, margins: Array) -> float:
    """The same without proof, to steer by."""
    excess = margins - 1.0
    return float((weights - alpha) @ np.maximum(-excess, 0.0) + alpha @ np.maximum(excess, 0.0)) / total


def _gradient(
    gram: SignedGram, losses: WeightedLoss, alpha: Array, margins: Array, error: float
) -> tuple[float, float]:
    """``sqrt(N / Lambda) |grad J|_H`` as computed, and a bound on its error.

    ``grad J = (1/N) sum_i v_i sign_i k(x_i, .)`` with ``v_i = alpha_i + weight_i loss'(z_i)``: an error ``e_i`` in
    ``v_i`` moves it by at most ``e_i sqrt(k(x_i, x_i)) / N``.
    """
    slopes = losses.slope(margins)
    errors = losses.slope_errors(margins, error) + gamma(4) * (np.abs(alpha) + np.abs(slopes))
    rounding = math.sqrt(gram.largest / gram.scale) * float(np.sum(errors))
    return math.sqrt(gram.square(alpha + slopes)), rounding


def _slope_error(loss: LossFacts, margin_error: float, largest: float) -> float:
    """Of a slope at a margin less its offset, both together at most ``largest``."""
    error = SAFETY * (margin_error + gamma(2) * largest)
    return loss.smoothness * error + loss.derivative_rounding + gamma(2) * loss.lipschitz


def _gap(root: float, total: float) -> float:
    return SAFETY * root**2 / (2.0 * total) + UNDERFLOW


def _slopes(excess: Array, error: float, low: Array, high: Array) -> Array:
    """How much a row's term may grow with an error of its margin: the larger slope if the corner is that near."""
    return np.where(excess < -error, low, np.where(excess > error, high, np.maximum(low, high)))

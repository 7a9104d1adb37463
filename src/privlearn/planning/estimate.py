"""How large the noise in a prediction will be, beside the margins of a reference problem."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

from privlearn.arrays import Array, is_sparse
from privlearn.data.sources.row_source import in_memory
from privlearn.erm.losses import Logistic, Loss, LossFacts
from privlearn.mechanisms.noise import coordinate_deviation

LOG_ODDS_SPREAD = 2.0
"""Standard deviation of the log-odds of a label: the best error there is 22 %."""
TARGET_SPREAD = 0.3
"""Of the predictable and of the unpredictable part of a number scaled to [-1, 1]: the best R^2 there is 1/2."""

NORMAL_GRID = np.linspace(-6.0, 6.0, 241)
"""Where integrals over a normal law look at it."""


@dataclass(frozen=True)
class ReferenceProblem:
    """What a plan needs to know of the labels, which it does not see.

    Parameters
    ----------
    margin : float
        Standard deviation of the scores of the best model without regularization.
    curvature : float
        Of the expected loss along those scores: its slope's change from no model to the best one, divided by the way.
    slope_square : float
        Mean square of the loss's slope at those scores: how much records differ in what they ask for.
    """

    margin: float
    curvature: float
    slope_square: float


def reference_problem(loss: LossFacts) -> ReferenceProblem:
    """The problem as the loss sees it: scores drawn from a normal law, labels or targets drawn given them."""
    if loss.sees == "residual":
        spread, slope = TARGET_SPREAD, _regression_slope(cast(Loss, loss))
        squares = partial(_regression_squares, cast(Loss, loss))
    else:
        margin_loss: Any = Logistic() if loss.sees == "classes" else loss
        spread, slope = LOG_ODDS_SPREAD, _classification_slope(margin_loss)
        squares = partial(_classification_squares, margin_loss)
    best = float(brentq(slope, 0.0, 100.0))
    return ReferenceProblem(best * spread, -slope(0.0) / (best * spread**2), squares(best))


def _classification_slope(loss: Loss) -> Callable[[float], float]:
    """Derivative of the expected loss of the scores ``factor * log_odds`` with respect to the factor."""
    log_odds, weights = LOG_ODDS_SPREAD * NORMAL_GRID, normal_weights()

    def slope(factor: float) -> float:
        scores = factor * log_odds
        of_positives = expit(log_odds) * loss.derivative(scores)
        of_negatives = expit(-log_odds) * loss.derivative(-scores)
        return float(np.sum(weights * log_odds * (of_positives - of_negatives)))

    return slope


def _classification_squares(loss: Loss, factor: float) -> float:
    """Mean square of the loss's slope at the scores ``factor * log_odds``."""
    log_odds = LOG_ODDS_SPREAD * NORMAL_GRID
    of_positives = expit(log_odds) * loss.derivative(factor * log_odds) ** 2
    of_negatives = expit(-log_odds) * loss.derivative(-factor * log_odds) ** 2
    return float(np.sum(normal_weights() * (of_positives + of_negatives)))


def _regression_slope(loss: Loss) -> Callable[[float], float]:
    """The same for the scores ``factor * signal`` of a target that is the signal plus as much that is not."""
    signal, rest = TARGET_SPREAD * NORMAL_GRID[:, np.newaxis], TARGET_SPREAD * NORMAL_GRID
    weights = np.outer(normal_weights(), normal_weights())

    def slope(factor: float) -> float:
        residuals = factor * signal - (signal + rest)
        return float(np.sum(weights * signal * loss.derivative(residuals)))

    return slope


def _regression_squares(loss: Loss, factor: float) -> float:
    """The same for the residuals that the scores ``factor * signal`` leave."""
    signal, rest = TARGET_SPREAD * NORMAL_GRID[:, np.newaxis], TARGET_SPREAD * NORMAL_GRID
    weights = np.outer(normal_weights(), normal_weights())
    return float(np.sum(weights * loss.derivative((factor - 1.0) * signal - rest) ** 2))


def normal_weights() -> Array:
    """Of the points of `NORMAL_GRID`."""
    density = np.exp(-(NORMAL_GRID**2) / 2.0)
    return np.asarray(density / density.sum())


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Rows along the principal directions of their second moments.

    Parameters
    ----------
    moments : array
        Mean square along each direction, in which the intercept is one like the others.
    variances : array
        Variance along each: what can tell one row from another.
    """

    moments: Array
    variances: Array

    @classmethod
    def of(cls, features: Any) -> Spectrum:
        """From whichever is smaller, the moments of the columns or the inner products of the rows."""
        features = in_memory(features)
        if features.shape[1] > features.shape[0]:
            return cls.of_products(_dense(features @ features.T))
        rows = _dense(features)
        return cls._along(rows @ np.linalg.eigh(rows.T @ rows)[1])

    @classmethod
    def of_products(cls, products: Array) -> Spectrum:
        """From the inner products of the rows, such as a kernel's values."""
        squares, directions = np.linalg.eigh(products)
        return cls._along(directions * np.sqrt(np.maximum(squares, 0.0)))

    def beside_cells(self, share: float, cells: int) -> Spectrum:
        """The same rows with a share of their squared norm in so many cells, of which each row fills a few.

        Cells are filled as unevenly as words occur (Zipf's law): the second half as often as the first, the third a
        third as often, and so on.
        """
        each = 1.0 / np.arange(1.0, cells + 1.0)
        each *= share / each.sum()
        return Spectrum(*(np.append((1.0 - share) * part, each) for part in (self.moments, self.variances)))

    @classmethod
    def _along(cls, rows: Array) -> Spectrum:
        return cls(np.mean(rows**2, axis=0), np.var(rows, axis=0))


def _dense(matrix: Any) -> Array:
    return np.asarray(matrix.toarray() if is_sparse(matrix) else matrix, dtype=np.float64)


def noise_in_prediction(mechanism: Any, spectrum: Spectrum, problem: ReferenceProblem) -> float:
    """Standard deviation of the noise in the prediction for a typical row."""
    length = math.sqrt(spectrum.moments.sum())
    if mechanism.perturbs != "objective":
        return _deviation(mechanism, mechanism.noise_scale) * length
    held = problem.curvature * spectrum.moments + mechanism.effective_regularization
    solved = _deviation(mechanism, mechanism.noise_scale) / mechanism.task.total
    return math.hypot(
        solved * math.sqrt(np.sum(spectrum.moments / held**2)),
        _deviation(mechanism, mechanism.tolerance_noise_scale) * length,
    )


def worst_case(mechanism: Any) -> float:
    """Proven bound on the standard deviation of the noise in any prediction, whatever the data.

    By Poincare's inequality, since a prediction is a 1/(N Lambda)-Lipschitz function of the noise.
    """
    direct = _deviation(mechanism, mechanism.noise_scale)
    if mechanism.perturbs != "objective":
        return direct
    if mechanism.noise == "norm_gamma":  # its Poincare constant is that much larger than its variance
        direct *= math.sqrt(1.0 + 1.0 / max(mechanism.task.dimension - 1, 1))
    through_solver = direct / (mechanism.task.total * mechanism.effective_regularization)
    tolerance = _deviation(mechanism, mechanism.tolerance_noise_scale)
    return math.hypot(through_solver, tolerance) + float(mechanism.solver_distance)


def typical_margin(regularization: float, spectrum: Spectrum, problem: ReferenceProblem) -> float:
    """Spread of the predictions without noise: those of the typical problem, shrunk by the regularization."""
    everything = spectrum.variances.sum()
    if everything == 0.0:  # all rows are alike
        return 0.0
    curvature = problem.curvature * spectrum.moments
    kept = curvature / (curvature + regularization)
    return problem.margin * math.sqrt(np.sum(spectrum.variances * kept**2) / everything)


def _deviation(mechanism: Any, scale: float) -> float:
    return coordinate_deviation(mechanism.noise, scale, mechanism.task.dimension)

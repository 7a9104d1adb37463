"""The noise in a prediction compared with the margins of a reference problem, which replaces unseen labels."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import numpy as np
from scipy.special import expit

from privlearn.accounting.functions import root
from privlearn.arrays import Array, is_sparse
from privlearn.data.sources.row_source import in_memory
from privlearn.mechanisms.noise import coordinate_deviation
from privlearn.solvers.losses import Logistic, Loss, LossProperties

LOG_ODDS_DEVIATION = 2.0
"""Standard deviation of a label's log-odds in the reference problem: its best error is 22 %."""
TARGET_DEVIATION = 0.3
"""Standard deviation of the predictable, and of the unpredictable, part of a number in [-1, 1]: best R^2 is 1/2."""

NORMAL_GRID = np.linspace(-6.0, 6.0, 241)
"""Points at which integrals over the normal distribution are evaluated."""


@dataclass(frozen=True)
class ReferenceProblem:
    """The assumptions of a forecast about the labels, which it does not read.

    Parameters
    ----------
    margin : float
        Standard deviation of the scores of the best model without regularization.
    curvature : float
        Second derivative of the expected loss along those scores, on average from no model to the best one.
    derivative_square : float
        Mean square of the loss's first derivative at those scores: how much the gradients of records differ.
    """

    margin: float
    curvature: float
    derivative_square: float


def reference_problem(
    loss: LossProperties, size: float = 1.0, rate: float = 0.5, spread: float | None = None
) -> ReferenceProblem:
    """Return the reference problem of a loss: normally distributed scores, with labels or numbers drawn given them.

    Parameters
    ----------
    loss : LossProperties
    size : float, default=1.0
        Deviation of log-odds, relative to `LOG_ODDS_DEVIATION`; or of the predictable part of a number, relative to
        its unpredictable part.
    rate : float, default=0.5
        Share of one of two classes. The model starts from it; only deviations from it are learnt.
    spread : float, optional
        Standard deviation of a scaled number, if known. Otherwise its unpredictable part has `TARGET_DEVIATION`.
    """
    if loss.argument == "residual":
        rest = TARGET_DEVIATION if spread is None else spread / math.hypot(size, 1.0)
        deviation, derivative = size * rest, _regression_derivative(cast(Loss, loss), size, rest)
        squares = partial(_regression_squares, cast(Loss, loss), size, rest)
    else:
        margin_loss: Any = Logistic() if loss.argument == "classes" else loss
        deviation = size * LOG_ODDS_DEVIATION
        centre = log_odds_centre(deviation, rate)
        derivative = _classification_derivative(margin_loss, deviation, centre)
        squares = partial(_classification_squares, margin_loss, deviation, centre)
    best = root(derivative, 0.0, 100.0)
    return ReferenceProblem(best * deviation, -derivative(0.0) / (best * deviation**2), squares(best))


def log_odds_centre(deviation: float, rate: float) -> float:
    """Return the mean of normal log-odds at which the second class has this share."""
    if rate == 0.5:
        return 0.0

    def excess(centre: float) -> float:
        return float(np.sum(normal_weights() * expit(centre + deviation * NORMAL_GRID))) - rate

    return root(excess, -60.0, 60.0)


def _classification_derivative(loss: Loss, deviation: float, centre: float) -> Callable[[float], float]:
    """Return the derivative of the expected loss of ``centre + factor * deviations`` with respect to the factor."""
    deviations, weights = deviation * NORMAL_GRID, normal_weights()
    chance = expit(centre + deviations)

    def derivative(factor: float) -> float:
        scores = centre + factor * deviations
        slopes = chance * loss.first_derivative(scores) - (1.0 - chance) * loss.first_derivative(-scores)
        return float(np.sum(weights * deviations * slopes))

    return derivative


def _classification_squares(loss: Loss, deviation: float, centre: float, factor: float) -> float:
    """Return the mean square of the loss's first derivative at those scores."""
    chance, scores = expit(centre + deviation * NORMAL_GRID), centre + factor * deviation * NORMAL_GRID
    of_positives, of_negatives = (loss.first_derivative(sign * scores) ** 2 for sign in (1.0, -1.0))
    return float(np.sum(normal_weights() * (chance * of_positives + (1.0 - chance) * of_negatives)))


def _regression_derivative(loss: Loss, size: float, deviation: float) -> Callable[[float], float]:
    """Return the derivative for the scores ``factor * signal``, where the target is the signal plus a rest."""
    signal, rest = size * deviation * NORMAL_GRID[:, np.newaxis], deviation * NORMAL_GRID
    weights = np.outer(normal_weights(), normal_weights())

    def derivative(factor: float) -> float:
        residuals = factor * signal - (signal + rest)
        return float(np.sum(weights * signal * loss.first_derivative(residuals)))

    return derivative


def _regression_squares(loss: Loss, size: float, deviation: float, factor: float) -> float:
    """Return the mean square of the first derivative at the residuals of the scores ``factor * signal``."""
    signal, rest = size * deviation * NORMAL_GRID[:, np.newaxis], deviation * NORMAL_GRID
    weights = np.outer(normal_weights(), normal_weights())
    return float(np.sum(weights * loss.first_derivative((factor - 1.0) * signal - rest) ** 2))


def normal_weights() -> Array:
    """Return the probabilities of the points of `NORMAL_GRID`."""
    density = np.exp(-(NORMAL_GRID**2) / 2.0)
    return np.asarray(density / density.sum())


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Second moments and variances of rows along their principal directions, each an array of shape (directions,).

    Parameters
    ----------
    moments : array
        Mean square along each direction, the intercept included.
    variances : array
        Variance along each: what distinguishes rows.
    """

    moments: Array
    variances: Array

    @classmethod
    def of(cls, features: Any) -> Spectrum:
        """Return the spectrum of rows, from the smaller one of the column moments and the row products."""
        features = in_memory(features)
        if features.shape[1] > features.shape[0]:
            return cls.of_products(_dense(features @ features.T))
        rows = _dense(features)
        return cls._along(rows @ np.linalg.eigh(rows.T @ rows)[1])

    @classmethod
    def of_products(cls, products: Array) -> Spectrum:
        """Return the spectrum of rows with these inner products, such as a kernel's values."""
        squares, directions = np.linalg.eigh(products)
        return cls._along(directions * np.sqrt(np.maximum(squares, 0.0)))

    def add_cells(self, share: float, cells: int) -> Spectrum:
        """Return the spectrum with a share of the squared norm moved to ``cells`` indicator features.

        Their frequencies follow Zipf's law: the k-th cell is filled 1/k times as often as the first.
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
    """Return the standard deviation of the noise in the prediction for a typical row."""
    length = math.sqrt(spectrum.moments.sum())
    if mechanism.perturbs != "objective":
        return _deviation(mechanism, mechanism.noise_scale) * length
    curvature = problem.curvature * spectrum.moments + mechanism.effective_regularization
    solved = _deviation(mechanism, mechanism.noise_scale) / mechanism.task.total
    return math.hypot(
        solved * math.sqrt(np.sum(spectrum.moments / curvature**2)),
        _deviation(mechanism, mechanism.tolerance_noise_scale) * length,
    )


def worst_case(mechanism: Any) -> float:
    """Return a proven bound on the standard deviation of the noise in any prediction, on any data.

    By Poincare's inequality, since a prediction is a 1/(N Lambda)-Lipschitz function of the noise.
    """
    direct = _deviation(mechanism, mechanism.noise_scale)
    if mechanism.perturbs != "objective":
        return direct
    if mechanism.noise == "norm_gamma":  # its Poincare constant exceeds its variance by this factor
        direct *= math.sqrt(1.0 + 1.0 / max(mechanism.task.dimension - 1, 1))
    through_solver = direct / (mechanism.task.total * mechanism.effective_regularization)
    tolerance = _deviation(mechanism, mechanism.tolerance_noise_scale)
    return math.hypot(through_solver, tolerance) + float(mechanism.solver_distance)


def typical_margin(regularization: float, spectrum: Spectrum, problem: ReferenceProblem) -> float:
    """Return the standard deviation of predictions without noise, shrunk by the regularization."""
    total = spectrum.variances.sum()
    if total == 0.0:  # all rows are equal
        return 0.0
    curvature = problem.curvature * spectrum.moments
    retained = curvature / (curvature + regularization)
    return problem.margin * math.sqrt(np.sum(spectrum.variances * retained**2) / total)


def _deviation(mechanism: Any, scale: float) -> float:
    return coordinate_deviation(mechanism.noise, scale, mechanism.task.dimension)

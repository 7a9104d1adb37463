"""The reference problem: what defaults and forecasts assume about labels, which they do not see."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, cast

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

from privlearn.arrays import Array
from privlearn.solvers.losses import Logistic, Loss, LossProperties

LOG_ODDS_DEVIATION = 2.0
"""Standard deviation of a label's log-odds in the reference problem: its best error is 22 %."""
TARGET_DEVIATION = 0.3
"""Standard deviation of the predictable, and of the unpredictable, part of a number in [-1, 1]: best R^2 is 1/2."""

NORMAL_GRID = np.linspace(-6.0, 6.0, 241)
"""Points at which integrals over the normal distribution are evaluated."""


@dataclass(frozen=True)
class ReferenceProblem:
    """What a forecast assumes about the labels, which it does not see.

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


def reference_problem(loss: LossProperties, size: float = 1.0, rate: float = 0.5) -> ReferenceProblem:
    """Return the reference problem of a loss: normally distributed scores, with labels or numbers drawn given them.

    Parameters
    ----------
    loss : LossProperties
    size : float, default=1.0
        Deviation of log-odds, or of the predictable part of a number, relative to `LOG_ODDS_DEVIATION` or
        `TARGET_DEVIATION`.
    rate : float, default=0.5
        Share of the rarer of two classes. The model knows it: only deviations from it are learnt.
    """
    return _solve_problem(cast(Hashable, loss), size, rate)


@lru_cache(maxsize=256)
def _solve_problem(hashed: Hashable, size: float, rate: float) -> ReferenceProblem:
    loss = cast(LossProperties, hashed)
    if loss.argument == "residual":
        deviation, derivative = size * TARGET_DEVIATION, _regression_derivative(cast(Loss, loss), size)
        squares = partial(_regression_squares, cast(Loss, loss), size)
    else:
        margin_loss: Any = Logistic() if loss.argument == "classes" else loss
        deviation = size * LOG_ODDS_DEVIATION
        offset = log_odds_offset(deviation, rate)
        derivative = _classification_derivative(margin_loss, deviation, offset)
        squares = partial(_classification_squares, margin_loss, deviation, offset)
    best = float(brentq(derivative, 0.0, 100.0))
    return ReferenceProblem(best * deviation, -derivative(0.0) / (best * deviation**2), squares(best))


def log_odds_offset(deviation: float, rate: float) -> float:
    """Return the mean of normal log-odds at which the second class has this share."""
    if rate == 0.5:
        return 0.0
    chance = partial(_share_at, deviation)
    return float(brentq(lambda offset: chance(offset) - rate, -60.0, 60.0))


def _share_at(deviation: float, offset: float) -> float:
    return float(np.sum(normal_weights() * expit(offset + deviation * NORMAL_GRID)))


def _classification_derivative(loss: Loss, deviation: float, offset: float) -> Callable[[float], float]:
    """Return the derivative of the expected loss of ``offset + factor * deviations`` with respect to the factor."""
    deviations, weights = deviation * NORMAL_GRID, normal_weights()
    chance = expit(offset + deviations)

    def derivative(factor: float) -> float:
        scores = offset + factor * deviations
        slopes = chance * loss.first_derivative(scores) - (1.0 - chance) * loss.first_derivative(-scores)
        return float(np.sum(weights * deviations * slopes))

    return derivative


def _classification_squares(loss: Loss, deviation: float, offset: float, factor: float) -> float:
    """Return the mean square of the loss's first derivative at those scores."""
    chance, scores = expit(offset + deviation * NORMAL_GRID), offset + factor * deviation * NORMAL_GRID
    squares = (
        chance * loss.first_derivative(scores) ** 2 + (1.0 - chance) * loss.first_derivative(-scores) ** 2
    )
    return float(np.sum(normal_weights() * squares))


def _regression_derivative(loss: Loss, size: float) -> Callable[[float], float]:
    """Return the derivative for the scores ``factor * signal``, where the target is the signal plus as much noise."""
    signal, rest = size * TARGET_DEVIATION * NORMAL_GRID[:, np.newaxis], TARGET_DEVIATION * NORMAL_GRID
    weights = np.outer(normal_weights(), normal_weights())

    def derivative(factor: float) -> float:
        residuals = factor * signal - (signal + rest)
        return float(np.sum(weights * signal * loss.first_derivative(residuals)))

    return derivative


def _regression_squares(loss: Loss, size: float, factor: float) -> float:
    """Return the mean square of the first derivative at the residuals of the scores ``factor * signal``."""
    signal, rest = size * TARGET_DEVIATION * NORMAL_GRID[:, np.newaxis], TARGET_DEVIATION * NORMAL_GRID
    weights = np.outer(normal_weights(), normal_weights())
    return float(np.sum(weights * loss.first_derivative((factor - 1.0) * signal - rest) ** 2))


def normal_weights() -> Array:
    """Return the probabilities of the points of `NORMAL_GRID`."""
    density = np.exp(-(NORMAL_GRID**2) / 2.0)
    return np.asarray(density / density.sum())

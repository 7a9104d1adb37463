"""A learning problem of ordinary difficulty, and what a loss makes of it (docs/theory/planning.md)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit

from privlearn.erm import Loss, LossFacts
from privlearn.erm.losses import Logistic

Array = NDArray[np.float64]

LOG_ODDS_SPREAD = 2.0
"""Standard deviation of the log-odds of a label: the best error there is 22 %."""
TARGET_SPREAD = 0.3
"""Of the predictable and of the unpredictable part of a number scaled to [-1, 1]: the best R^2 there is 1/2."""

_GRID = np.linspace(-6.0, 6.0, 241)


@dataclass(frozen=True)
class TypicalProblem:
    """What a plan needs to know of the labels, which it does not see.

    Parameters
    ----------
    margin : float
        Standard deviation of the scores of the best model without regularization.
    curvature : float
        Of the expected loss along those scores: its slope's change from no model to the best one, divided by the way.
    """

    margin: float
    curvature: float


def typical_problem(loss: LossFacts) -> TypicalProblem:
    """The problem as the loss sees it: scores drawn from a normal law, labels or targets drawn given them."""
    if loss.sees == "residual":
        spread, slope = TARGET_SPREAD, _regression_slope(cast(Loss, loss))
    else:
        margin_loss: Any = Logistic() if loss.sees == "classes" else loss
        spread, slope = LOG_ODDS_SPREAD, _classification_slope(margin_loss)
    best = float(brentq(slope, 0.0, 100.0))
    return TypicalProblem(margin=best * spread, curvature=-slope(0.0) / (best * spread**2))


def _classification_slope(loss: Loss) -> Callable[[float], float]:
    """Derivative of the expected loss of the scores ``factor * log_odds`` with respect to the factor."""
    log_odds, weights = LOG_ODDS_SPREAD * _GRID, _normal_weights()

    def slope(factor: float) -> float:
        scores = factor * log_odds
        of_positives = expit(log_odds) * loss.derivative(scores)
        of_negatives = expit(-log_odds) * loss.derivative(-scores)
        return float(np.sum(weights * log_odds * (of_positives - of_negatives)))

    return slope


def _regression_slope(loss: Loss) -> Callable[[float], float]:
    """The same for the scores ``factor * signal`` of a target that is the signal plus as much that is not."""
    signal, rest = TARGET_SPREAD * _GRID[:, np.newaxis], TARGET_SPREAD * _GRID
    weights = np.outer(_normal_weights(), _normal_weights())

    def slope(factor: float) -> float:
        residuals = factor * signal - (signal + rest)
        return float(np.sum(weights * signal * loss.derivative(residuals)))

    return slope


def _normal_weights() -> Array:
    density = np.exp(-(_GRID**2) / 2.0)
    return np.asarray(density / density.sum())

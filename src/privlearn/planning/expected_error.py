"""The error that a forecast lets expect on the reference problem: from noise, shrinkage and too few records."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, ndtr

from privlearn.arrays import Array
from privlearn.erm.losses import LossFacts
from privlearn.planning.estimate import (
    LOG_ODDS_SPREAD,
    NORMAL_GRID,
    TARGET_SPREAD,
    ReferenceProblem,
    Spectrum,
    normal_weights,
)


@dataclass(frozen=True)
class ExpectedError:
    """A share of wrong answers; for a number the root mean square error, in its units.

    Attributes
    ----------
    error : float
    best : float
        Of the best model there is.
    guessing : float
        Of an answer that looks at nothing.
    """

    error: float
    best: float
    guessing: float

    @property
    def excess(self) -> float:
        return self.error - self.best

    @property
    def lost(self) -> float:
        """Share of what the best model gains over guessing."""
        return self.excess / (self.guessing - self.best)


def expected_error(
    loss: LossFacts,
    rows: int,
    noise: float,
    regularization: float,
    spectrum: Spectrum,
    problem: ReferenceProblem,
    unit: float = 1.0,
) -> ExpectedError:
    """Of a model from so many records of the reference problem, with such noise in its scores.

    A score is what the reference problem's best model says, each direction shrunk by the regularization, plus two
    independent errors: the mechanism's noise, and what another draw of as many records would change.

    Parameters
    ----------
    loss : LossFacts
    rows : int
    noise : float
        Standard deviation in a typical row's score, with targets scaled to [-1, 1].
    regularization : float
    spectrum : Spectrum
    problem : ReferenceProblem
    unit : float, default=1.0
        Units of the target in one of the scaled target.
    """
    shares, kept = _kept(spectrum, regularization, problem)
    along = problem.margin * float(np.sum(shares * kept))
    spread = math.sqrt(
        problem.margin**2 * float(np.sum(shares * kept**2))
        + noise**2
        + sampling_variance(rows, spectrum, regularization, problem)
    )
    if loss.sees == "residual":
        return _of_numbers(along, spread, unit)
    return ExpectedError(wrong_answers(along / spread if spread else 0.0), wrong_answers(1.0), 0.5)


def sampling_variance(
    rows: int, spectrum: Spectrum, regularization: float, problem: ReferenceProblem
) -> float:
    """Of a typical row's score over draws of so many records, by the sandwich formula."""
    held = problem.curvature * spectrum.moments + regularization
    return problem.slope_square / rows * float(np.sum((spectrum.moments / held) ** 2))


def wrong_answers(correlation: float) -> float:
    """Share of wrong signs of a normal score that has this correlation with the log-odds of the label."""
    left = math.sqrt(max(1.0 - correlation**2, 1e-12))
    positive = ndtr(correlation * NORMAL_GRID / left)
    likely = expit(LOG_ODDS_SPREAD * NORMAL_GRID)
    return float(np.sum(normal_weights() * (likely * (1.0 - positive) + (1.0 - likely) * positive)))


def _kept(spectrum: Spectrum, regularization: float, problem: ReferenceProblem) -> tuple[Array, Array]:
    """Each direction's share of the signal, and how much of it the regularization leaves."""
    curvature = problem.curvature * spectrum.moments
    everything = spectrum.variances.sum()
    shares = spectrum.variances / everything if everything else np.zeros_like(curvature)
    return shares, curvature / (curvature + regularization)


def _of_numbers(along: float, spread: float, unit: float) -> ExpectedError:
    """``along`` is the score's part along the predictable part of the target, of deviation `TARGET_SPREAD`."""
    missed = TARGET_SPREAD**2 - 2.0 * TARGET_SPREAD * along + spread**2
    best, guessing = TARGET_SPREAD, math.hypot(TARGET_SPREAD, TARGET_SPREAD)
    return ExpectedError(unit * math.hypot(TARGET_SPREAD, math.sqrt(missed)), unit * best, unit * guessing)

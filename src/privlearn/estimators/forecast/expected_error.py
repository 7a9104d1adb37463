"""Expected error on the reference problem, from the noise, the shrinkage and the number of records."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, ndtr

from privlearn.arrays import Array
from privlearn.estimators.forecast.reference import (
    LOG_ODDS_DEVIATION,
    NORMAL_GRID,
    TARGET_DEVIATION,
    ReferenceProblem,
    Spectrum,
    normal_weights,
)
from privlearn.solvers.losses import LossProperties


@dataclass(frozen=True)
class ExpectedError:
    """A share of wrong answers; for a number the root mean square error, in its units.

    Attributes
    ----------
    error : float
    best : float
        Error of the best possible model.
    guessing : float
        Error of the best constant answer.
    """

    error: float
    best: float
    guessing: float

    @property
    def excess(self) -> float:
        """Return the error beyond the best model's."""
        return self.error - self.best


def expected_error(
    loss: LossProperties,
    rows: float,
    noise: float,
    regularization: float,
    spectrum: Spectrum,
    problem: ReferenceProblem,
    unit: float = 1.0,
) -> ExpectedError:
    """Return the expected error of a model trained on ``rows`` records of the reference problem.

    A score is that of the reference problem's best model, each direction shrunk by the regularization, plus two
    independent errors: the mechanism's noise, and the variation over draws of the records.

    Parameters
    ----------
    loss : LossProperties
    rows : float
        Number of records; of weighted ones, the number of equal records with as much information.
    noise : float
        Standard deviation in a typical row's score, with targets scaled to [-1, 1].
    regularization : float
    spectrum : Spectrum
    problem : ReferenceProblem
    unit : float, default=1.0
        Units of the target in one of the scaled target.
    """
    shares, retained = shrinkage(spectrum, regularization, problem)
    along = problem.margin * float(np.sum(shares * retained))
    deviation = math.sqrt(
        problem.margin**2 * float(np.sum(shares * retained**2))
        + noise**2
        + float(np.sum(sampling_variances(rows, spectrum, regularization, problem)))
    )
    if loss.argument == "residual":
        return _number_error(along, deviation, unit)
    return ExpectedError(error_rate(along / deviation if deviation else 0.0), error_rate(1.0), 0.5)


def sampling_variances(
    rows: float, spectrum: Spectrum, regularization: float, problem: ReferenceProblem
) -> Array:
    """Return each direction's part of the variance of a typical score over draws of ``rows`` records.

    By the sandwich formula.
    """
    curvature = problem.curvature * spectrum.moments + regularization
    return np.asarray(problem.derivative_square / rows * (spectrum.moments / curvature) ** 2)


def noise_shares(spectrum: Spectrum, regularization: float, problem: ReferenceProblem) -> Array:
    """Return each direction's share of the squared noise in a typical score, as objective perturbation has it."""
    each = spectrum.moments / (problem.curvature * spectrum.moments + regularization) ** 2
    total = each.sum()
    return np.asarray(each / total if total else each)


def error_rate(correlation: float) -> float:
    """Return the share of wrong signs of a normal score with this correlation with the label's log-odds."""
    residual = math.sqrt(max(1.0 - correlation**2, 1e-12))
    positive = ndtr(correlation * NORMAL_GRID / residual)
    chance = expit(LOG_ODDS_DEVIATION * NORMAL_GRID)
    return float(np.sum(normal_weights() * (chance * (1.0 - positive) + (1.0 - chance) * positive)))


def shrinkage(
    spectrum: Spectrum, regularization: float, problem: ReferenceProblem, alignment: float = 1.0
) -> tuple[Array, Array]:
    """Return each direction's share of the signal, and the part of it that the regularization leaves.

    Shares are in proportion to the rows' variance to the power of ``alignment``.
    """
    curvature = problem.curvature * spectrum.moments
    shares = np.maximum(spectrum.variances, 0.0) ** alignment
    total = shares.sum()
    return shares / total if total else np.zeros_like(curvature), curvature / (curvature + regularization)


def _number_error(along: float, deviation: float, unit: float) -> ExpectedError:
    """Return the error of numbers; ``along`` is the score's component along the predictable part of the target."""
    missed = TARGET_DEVIATION**2 - 2.0 * TARGET_DEVIATION * along + deviation**2
    best, guessing = TARGET_DEVIATION, math.hypot(TARGET_DEVIATION, TARGET_DEVIATION)
    return ExpectedError(unit * math.hypot(TARGET_DEVIATION, math.sqrt(missed)), unit * best, unit * guessing)

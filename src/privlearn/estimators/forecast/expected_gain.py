"""The share of a model's gain over a constant that privacy costs, and the AUC or R^2 to expect.

The argument: docs/theory/planning.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, ndtr

from privlearn.arrays import Array
from privlearn.estimators.forecast.expected_error import noise_shares, sampling_variances, shrinkage
from privlearn.estimators.forecast.reference import (
    LOG_ODDS_DEVIATION,
    NORMAL_GRID,
    ReferenceProblem,
    Spectrum,
    log_odds_centre,
    normal_weights,
    reference_problem,
)
from privlearn.release.score_map import UNITS_OF_SPREAD
from privlearn.solvers.losses import LossProperties

SIZES = (6.0, 1.5, 1.0, 0.25)
"""Signals of a nearly perfect, a strong, a typical and a weak problem with classes, relative to the reference
problem's. The first counts in ranges only."""

NUMBER_SIZES = (3.0, 1.5, 1.0, 0.3)
"""Sizes for numbers: R^2 of 0.9, 0.69, 0.5 and 0.08 without noise."""

ALIGNMENTS = (0.5, 3.0)
"""A direction in which rows have variance v carries a share of the signal in proportion to v, by assumption. A range
also covers v to these powers: signals along minor directions of the rows, and along main ones alone."""

RANGE_DEVIATIONS = 2.0
"""A range covers noise up to this number of standard deviations."""

WIDE_SPREADS = (0.42, 0.42, 0.14, 0.05)
"""Standard deviations of these numbers in units of half the range, if the bounds may be far too wide."""

UNIT_SPREADS = (1.0 / UNITS_OF_SPREAD,) * 4
"""Standard deviations of these numbers if the model learns in units of the spread."""


@dataclass(frozen=True)
class Gain:
    """The expected quality of a private model, for one size of the signal.

    Attributes
    ----------
    lost : float
        Fraction of the gain that privacy costs. The gain is that of a model without privacy over the best constant
        prediction: in log-loss for classes (to second order), in R^2 for numbers. Above 1, the private model is worse
        than the constant.
    setting : Setting
    private, plain : Scores
        Expected scores of the private model, and of one without privacy.
    """

    lost: float
    setting: Setting
    private: Scores
    plain: Scores

    # Not attributes: a search for the smallest epsilon needs what is lost alone, and an AUC takes 2 milliseconds.
    @property
    def quality(self) -> float:
        """Return the expected AUC of classes, or R^2 of numbers."""
        return self.setting.quality(self.private)

    @property
    def plain_quality(self) -> float:
        """Return the expected AUC or R^2 of a model without privacy."""
        return self.setting.quality(self.plain)


@dataclass(frozen=True)
class Scores:
    """A model's scores compared with the best ones: the mean square of their difference, and their correlation.

    ``chance`` is the deviation of that correlation, and ``missed_chance`` of the mean square, over draws of the noise
    and of the records.
    """

    missed: float
    correlation: float
    missed_chance: float
    chance: float


@dataclass(frozen=True)
class Setting:
    """Reference problem with one size of the signal.

    Parameters
    ----------
    size : float
        Size of the signal, relative to that of the reference problem.
    rate : float
        Share of the rarer class.
    problem : ReferenceProblem
    is_number : bool
    """

    size: float
    rate: float
    problem: ReferenceProblem
    is_number: bool

    def gain(self, rows: float, noise: float, regularization: float, spectrum: Spectrum) -> Gain:
        """Compare a private model of ``rows`` records with a model without privacy.

        ``noise`` is the deviation in a typical row's score. The model without privacy has the regularization that
        serves a signal of this size best.
        """
        problem = self.problem
        private = _scores(rows, noise, regularization, spectrum, problem)
        best = problem.derivative_square / (problem.curvature * problem.margin**2)
        plain = _scores(rows, 0.0, best / rows, spectrum, problem)
        gained = problem.margin**2 - plain.missed
        lost = (private.missed - plain.missed) / gained if gained > 0.0 else math.inf
        return Gain(max(lost, 0.0), self, private, plain)

    def extremes(
        self, rows: float, noise: float, regularization: float, spectrum: Spectrum
    ) -> tuple[float, float]:
        """Return a low and a high AUC or R^2 of a fit, over `ALIGNMENTS` of the signal and draws of the noise."""
        qualities = [
            self.quality(_scores(rows, noise, regularization, spectrum, self.problem, alignment), luck)
            for alignment in ALIGNMENTS
            for luck in (-RANGE_DEVIATIONS, RANGE_DEVIATIONS)
        ]
        return min(qualities), max(qualities)

    def quality(self, scores: Scores, luck: float = 0.0) -> float:
        """Return the AUC or R^2 of a fit whose noise is ``luck`` standard deviations better than its mean."""
        if not self.is_number:
            correlation = min(max(scores.correlation + luck * scores.chance, -1.0), 1.0)
            return auc(correlation, self.size * LOG_ODDS_DEVIATION, self.rate)
        signal = self.problem.margin**2
        missed = max(scores.missed - luck * scores.missed_chance, 0.0)
        return (signal - missed) / (signal * (1.0 + self.size**-2))


def settings(
    loss: LossProperties, rate: float, spreads: tuple[float, ...] = WIDE_SPREADS
) -> tuple[Setting, ...]:
    """Return the reference problems of a nearly perfect, a strong, a typical and a weak signal.

    A loss without probabilities has no offset: it is compared on classes of equal size. ``spreads`` are the standard
    deviations of scaled numbers.
    """
    is_number = loss.argument == "residual"
    rate = 0.5 if is_number or loss.link == "none" else min(rate, 1.0 - rate)
    return tuple(
        Setting(size, rate, reference_problem(loss, size, rate, spread), is_number)
        for size, spread in zip(NUMBER_SIZES if is_number else SIZES, spreads, strict=True)
    )


def _scores(
    rows: float,
    noise: float,
    regularization: float,
    spectrum: Spectrum,
    problem: ReferenceProblem,
    alignment: float = 1.0,
) -> Scores:
    shares, retained = shrinkage(spectrum, regularization, problem, alignment)
    errors = noise**2 * noise_shares(spectrum, regularization, problem) + sampling_variances(
        rows, spectrum, regularization, problem
    )
    error = float(np.sum(errors))
    along = float(np.sum(shares * retained))
    spread = problem.margin**2 * float(np.sum(shares * retained**2)) + error
    if not spread:
        return Scores(problem.margin**2, 0.0, 0.0, 0.0)
    return Scores(
        missed=problem.margin**2 * float(np.sum(shares * (1.0 - retained) ** 2)) + error,
        correlation=problem.margin * along / math.sqrt(spread),
        missed_chance=math.sqrt(2.0 * float(np.sum(errors**2))),
        chance=math.sqrt(float(np.sum(shares * errors)) / spread),
    )


def auc(correlation: float, deviation: float, rate: float) -> float:
    """Return the AUC of normal scores with this correlation with the log-odds of labels.

    >>> round(auc(0.0, 2.0, 0.1), 6), round(auc(1.0, 2.0, 0.1), 2)
    (0.5, 0.88)
    """
    chance = expit(log_odds_centre(deviation, rate) + deviation * NORMAL_GRID)
    positives, negatives = (_normalize(normal_weights() * share) for share in (chance, 1.0 - chance))
    rest = math.sqrt(max(2.0 * (1.0 - correlation**2), 1e-12))
    higher = ndtr(correlation * (NORMAL_GRID[:, np.newaxis] - NORMAL_GRID) / rest)
    return float(positives @ higher @ negatives)


def _normalize(weights: Array) -> Array:
    return np.asarray(weights / weights.sum())

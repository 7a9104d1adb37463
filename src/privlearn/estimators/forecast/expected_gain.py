"""The share of a model's gain that privacy costs, and the AUC or R^2 to expect (docs/theory/planning.md)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, ndtr

from privlearn.arrays import Array
from privlearn.estimators.forecast.expected_error import sampling_variance, shrinkage
from privlearn.estimators.forecast.spectrum import Spectrum
from privlearn.estimators.reference import (
    LOG_ODDS_DEVIATION,
    NORMAL_GRID,
    TARGET_DEVIATION,
    ReferenceProblem,
    log_odds_offset,
    normal_weights,
)

SIZES = (1.5, 1.0, 0.35)
"""Signals of a strong, a typical and a weak problem with classes, relative to the reference problem's."""

NUMBER_SIZES = (1.5, 1.0, 0.2)
"""The same for numbers, whose bounds may be far wider than their spread."""


@dataclass(frozen=True)
class Gain:
    """What to expect of a private model, for one size of the signal.

    Attributes
    ----------
    lost : float
        Share of what a model without privacy gains over the best constant that the private one does not: of the
        log-loss of classes (to second order), of the R^2 of numbers. Above 1 it is worse than the constant.
    quality : float
        Expected AUC of classes, R^2 of numbers.
    plain_quality : float
        The same without privacy.
    """

    lost: float
    quality: float
    plain_quality: float


@dataclass(frozen=True)
class Scores:
    """A model's scores next to the best ones of the reference problem.

    Attributes
    ----------
    missed : float
        Mean square of the difference.
    correlation : float
    """

    missed: float
    correlation: float


def expected_scores(
    rows: int, noise: float, regularization: float, spectrum: Spectrum, problem: ReferenceProblem
) -> Scores:
    """Return how far the scores of a model trained on ``rows`` records are from the best ones."""
    shares, retained = shrinkage(spectrum, regularization, problem)
    error = noise**2 + sampling_variance(rows, spectrum, regularization, problem)
    signal = problem.margin**2
    spread = signal * float(np.sum(shares * retained**2)) + error
    along = math.sqrt(signal) * float(np.sum(shares * retained))
    missed = signal * float(np.sum(shares * (1.0 - retained) ** 2)) + error
    return Scores(missed, along / math.sqrt(spread) if spread else 0.0)


def expected_gain(private: Scores, plain: Scores, problem: ReferenceProblem, quality: Quality) -> Gain:
    """Compare a private model's scores with those of a model without privacy."""
    gain = problem.margin**2 - plain.missed
    lost = (private.missed - plain.missed) / gain if gain > 0.0 else math.inf
    return Gain(max(lost, 0.0), quality.of(private), quality.of(plain))


@dataclass(frozen=True)
class Quality:
    """How a model's quality is measured: AUC of classes, R^2 of numbers.

    Parameters
    ----------
    is_number : bool
    size : float
        Of the signal, relative to the reference problem's.
    rate : float
        Share of the rarer class.
    """

    is_number: bool
    size: float
    rate: float

    def of(self, scores: Scores) -> float:
        """Return AUC or R^2."""
        if not self.is_number:
            return auc(scores.correlation, self.size * LOG_ODDS_DEVIATION, self.rate)
        signal = (self.size * TARGET_DEVIATION) ** 2
        return (signal - scores.missed) / (signal + TARGET_DEVIATION**2)


def auc(correlation: float, deviation: float, rate: float) -> float:
    """Return the AUC of normal scores with this correlation with the log-odds of labels."""
    chance = expit(log_odds_offset(deviation, rate) + deviation * NORMAL_GRID)
    positives, negatives = (
        _normalize(normal_weights() * chance),
        _normalize(normal_weights() * (1.0 - chance)),
    )
    rest = math.sqrt(max(2.0 * (1.0 - correlation**2), 1e-12))
    higher = ndtr(correlation * (NORMAL_GRID[:, np.newaxis] - NORMAL_GRID) / rest)
    return float(positives @ higher @ negatives)


def _normalize(weights: Array) -> Array:
    return np.asarray(weights / weights.sum())

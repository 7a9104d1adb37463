"""Families of regression models: what one record adds to the score and to the information of its model.

For a linear predictor e and an outcome y, a family has a residual r(e, y) of mean 0 under the model, cut to
[-bound, bound], and an information h(e) between 0 and its own bound. Estimates solve sum_i w_i r_i x_i = 0. The weight
w_i = min(1, 1 / |x_i|^2) depends on the row x_i alone, so it changes no estimand (docs/theory/inference.md).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from privlearn.arrays import Array
from privlearn.errors import InvalidParameter
from privlearn.statistics.regression.histograms import NoisyHistogram

_RATE_FACTOR = 1.5
"""Counts: records with an expected count beyond this multiple of the mean lose weight."""
_MIN_RATE = 0.01
_MAX_PREDICTOR = 30.0


@dataclass(frozen=True)
class OutcomeScale:
    """Released: the scale on which an outcome is modelled.

    Parameters
    ----------
    intercepts : tuple of float
        Linear predictor at the centre of all variables, to start from: one for each row of a record.
    residual_bound : float
        Residuals are cut to this size; the unit of scores.
    information_bound : float
        Largest information of a record; the unit of information.
    centre, spread : float
        The modelled number is (y - centre) / spread.
    """

    intercepts: tuple[float, ...]
    residual_bound: float
    information_bound: float
    centre: float = 0.0
    spread: float = 1.0


class Family(ABC):
    """The parts that differ between models.

    Attributes
    ----------
    name : str
    ratio : str
        Name of exp(coefficient); empty if it has no meaning.
    outcome : {"classes", "levels", "number"}
    rounds : int
        Approximate steps before the last one.
    is_cut : bool
        Whether residuals are cut, at a size that is learnt from them.
    """

    name: ClassVar[str]
    ratio: ClassVar[str] = ""
    outcome: ClassVar[str] = "number"
    rounds: ClassVar[int] = 4
    is_cut: ClassVar[bool] = True

    @abstractmethod
    def start(self, outcome: NoisyHistogram, offset: float, cut: float) -> OutcomeScale:
        """Return the scale of the outcome from its noisy histogram; ``cut`` is a number of standard deviations."""

    @abstractmethod
    def residuals(self, predictor: Array, outcome: Array, scale: OutcomeScale) -> Array:
        """PRIVATE: return the residual of each record, before it is cut."""

    @abstractmethod
    def information(self, predictor: Array, residuals: Array, scale: OutcomeScale) -> Array:
        """PRIVATE: return the information of each record over its bound: between 0 and 1."""


class Logistic(Family):
    """Two classes: log odds are linear. Residuals lie within [-1, 1]; the information p (1 - p) is at most 1/4."""

    name = "logistic"
    ratio = "odds ratio"
    outcome = "classes"
    is_cut = False

    def start(self, outcome: NoisyHistogram, offset: float, cut: float) -> OutcomeScale:
        share = float(np.clip(outcome.counts[1] / outcome.total, _MIN_RATE, 1.0 - _MIN_RATE))
        return OutcomeScale((math.log(share / (1.0 - share)),), 1.0, 0.25)

    def residuals(self, predictor: Array, outcome: Array, scale: OutcomeScale) -> Array:
        return np.asarray(outcome - _logistic(predictor))

    def information(self, predictor: Array, residuals: Array, scale: OutcomeScale) -> Array:
        chance = _logistic(predictor)
        return np.asarray(4.0 * chance * (1.0 - chance))


class Ordinal(Logistic):
    """Ordered levels: the log odds of a higher level are linear, with one intercept for each level that is exceeded.

    Slopes are common to all comparisons (cumulative logit, proportional odds). Each of the K - 1 comparisons is a row
    of the record with the weight 1 / (K - 1) and the outcome "is higher", as if the record were a person with several
    rows.
    """

    name = "ordinal"
    ratio = "cumulative odds ratio"
    outcome = "levels"

    def start(self, outcome: NoisyHistogram, offset: float, cut: float) -> OutcomeScale:
        higher = np.clip(1.0 - outcome.below[1:-1], _MIN_RATE, 1.0 - _MIN_RATE)
        return OutcomeScale(tuple(np.log(higher / (1.0 - higher)).tolist()), 1.0, 0.25)


class Linear(Family):
    """A number: its mean is linear. Residuals are cut, as in Huber's estimate, several deviations from 0."""

    name = "linear"
    rounds = 1

    def start(self, outcome: NoisyHistogram, offset: float, cut: float) -> OutcomeScale:
        return OutcomeScale((0.0,), cut, 1.0, *outcome.location)

    def residuals(self, predictor: Array, outcome: Array, scale: OutcomeScale) -> Array:
        return np.asarray((outcome - scale.centre) / scale.spread - predictor)

    def information(self, predictor: Array, residuals: Array, scale: OutcomeScale) -> Array:
        return np.asarray(np.abs(residuals) < scale.residual_bound, dtype=float)


class Poisson(Family):
    """A count: the logarithm of its mean is linear, with the logarithm of an exposure added.

    A record whose expected count m exceeds the bound t on the information has the weight t / m, so that its residual
    still has mean 0, and its information is min(m, t).
    """

    name = "poisson"
    ratio = "rate ratio"

    def start(self, outcome: NoisyHistogram, offset: float, cut: float) -> OutcomeScale:
        quantiles = outcome.trimmed
        mean = max(float(np.mean(quantiles)), _MIN_RATE)
        deviation = max(float(np.std(quantiles)), math.sqrt(mean))
        return OutcomeScale((math.log(mean) - offset,), cut * deviation, _RATE_FACTOR * mean)

    def residuals(self, predictor: Array, outcome: Array, scale: OutcomeScale) -> Array:
        mean = np.exp(np.clip(predictor, -_MAX_PREDICTOR, _MAX_PREDICTOR))
        return np.asarray(np.minimum(1.0, scale.information_bound / mean) * (outcome - mean))

    def information(self, predictor: Array, residuals: Array, scale: OutcomeScale) -> Array:
        mean = np.exp(np.clip(predictor, -_MAX_PREDICTOR, _MAX_PREDICTOR))
        return np.asarray(np.minimum(mean / scale.information_bound, 1.0))


def _logistic(predictor: Array) -> Array:
    return np.asarray(1.0 / (1.0 + np.exp(-np.clip(predictor, -_MAX_PREDICTOR, _MAX_PREDICTOR))))


FAMILIES: dict[str, Family] = {family.name: family for family in (Logistic(), Ordinal(), Linear(), Poisson())}


def family_of(name: str) -> Family:
    """Return the family of that name."""
    if name not in FAMILIES:
        raise InvalidParameter(f"family must be one of {', '.join(FAMILIES)}, not {name!r}")
    return FAMILIES[name]

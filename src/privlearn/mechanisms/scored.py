"""Searches whose trials fit and score a candidate on all records: a trial's noise, and the best of several."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
from scipy.optimize import brentq

from privlearn.accounting import MARGIN, GaussianCurve, renyi_delta
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.noise import ADD_NOISE, GRID_BITS
from privlearn.mechanisms.search import Candidate, Plan, Search
from privlearn.randomness import Randomness

Output = TypeVar("Output")

SCORE_SHARE = 0.1
"""The score's part of a trial: of epsilon for Laplace noise, of rho (in zCDP) beside the fit's for Gaussian noise."""

_BELOW_ONE = math.nextafter(1.0, 0.0)
_STEP, _HALVINGS = 1.3, 6  # of the search for a candidate's epsilon: to 1.3^(1/64), half a percent


@dataclass(frozen=True)
class Best(Generic[Output]):
    """The trial that leaves: its candidate, what it gave, and its noisy number of mistakes."""

    candidate: int
    output: Output
    mistakes: float


@dataclass(frozen=True)
class ScoredSearch(Search):
    """Trials that run a candidate and count its mistakes with noise; one person moves the count by at most r.

    A trial of candidate i costs R_i(a) + a (r / scale + 2^-44)^2 / 2 in Renyi divergence of the order a, or, for
    delta = 0, where the score has Laplace noise, epsilon_i + r / scale + 2^-44; r is the rows a person may have.

    Parameters
    ----------
    score_noise_scale : float
        Of the noise on the number of mistakes: Gaussian if delta > 0, else Laplace.
    """

    score_noise_scale: float

    @property
    def is_pure(self) -> bool:
        return self.guarantee.delta == 0

    @property
    def score_noise(self) -> str:
        return "laplace" if self.is_pure else "gaussian"

    @property
    def score_ratio(self) -> float:
        """How far one person moves the number of mistakes, in units of the noise; rounding to its grid included."""
        return _rows_per_person(self.candidates) / self.score_noise_scale + 2.0**-GRID_BITS

    def _spends_at(self, order: float) -> Guarantee:
        """From the whole search's Renyi divergence of one order."""
        promise = self.guarantee
        delta = renyi_delta(self.renyi(order), order, promise.epsilon * (1.0 - MARGIN)) / (1.0 - MARGIN)
        return Guarantee(promise.epsilon, min(delta, _BELOW_ONE), promise.neighbours)

    def _best_of(
        self, places: Iterable[int], trial: Callable[[int], tuple[Output, float]], randomness: Randomness
    ) -> Best[Output]:
        """Run the trials of these candidates, at least one; of equally good ones the first is kept."""
        trials = (self._with_noise(place, *trial(place), randomness) for place in places)
        return min(trials, key=lambda best: best.mistakes)

    def _with_noise(
        self, place: int, output: Output, mistakes: float, randomness: Randomness
    ) -> Best[Output]:
        add_noise = ADD_NOISE[self.score_noise]
        noisy = add_noise(np.array([mistakes]), self.score_noise_scale, randomness)
        return Best(place, output, float(noisy[0]))


def score_scale(ratio: float, candidates: Sequence[Candidate]) -> float:
    """The score's noise for a given sensitivity / scale, rounding to the grid included."""
    return _rows_per_person(candidates) / (ratio - 2.0**-GRID_BITS)


def calibrated(plan: Plan, rho: float, orders: Sequence[float], whole: Guarantee) -> Candidate:
    """The candidate with the least noise, to half a percent, whose divergences at the orders are those of rho-zCDP."""

    def kept(epsilon: float) -> Candidate | None:
        candidate = plan(Guarantee(epsilon, whole.delta, whole.neighbours))
        within = all(candidate.renyi(order) <= order * rho * (1.0 - MARGIN) for order in orders)
        return candidate if within else None

    return _last_kept(kept, _epsilon_of(math.sqrt(2.0 * rho), whole.delta))


def _last_kept(kept: Callable[[float], Candidate | None], start: float) -> Candidate:
    """The candidate of the largest epsilon that is kept: bracket it, then halve."""
    low, best = start, kept(start)
    while best is None:
        low /= _STEP
        best = kept(low)
    high = low * _STEP
    while found := kept(high):
        low, high, best = high, high * _STEP, found
    for _ in range(_HALVINGS):
        middle = math.sqrt(low * high)
        found = kept(middle)
        low, high, best = (middle, high, found) if found else (low, middle, best)
    return best


def _epsilon_of(ratio: float, delta: float) -> float:
    """The epsilon at which a Gaussian mechanism of this ratio has this delta."""
    curve = GaussianCurve(ratio)
    return math.exp(brentq(lambda log: curve.log_delta(math.exp(log)) - math.log(delta), -30.0, 7.0))


def _rows_per_person(candidates: Sequence[Candidate]) -> int:
    """How far one person moves the number of mistakes; those of averaged rows are averaged as well."""
    return max(candidate.task.rows_per_person for candidate in candidates)

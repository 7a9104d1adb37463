"""Base classes of searches: candidates compared by noisy counts of their mistakes, under one guarantee."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from privlearn.accounting import MARGIN, Curve, GaussianCurve, renyi_delta
from privlearn.accounting.functions import root
from privlearn.errors import InvalidParameter
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.mechanism import Mechanism
from privlearn.mechanisms.noise import ADD_NOISE, GRID_BITS
from privlearn.mechanisms.task import Task
from privlearn.randomness import Randomness


class Candidate(Protocol):
    """A calibrated mechanism."""

    @property
    def task(self) -> Task: ...

    @property
    def guarantee(self) -> Guarantee: ...

    def spends(self) -> Guarantee:
        """Return the guarantee, recomputed from the constants."""

    def renyi(self, order: float) -> float:
        """Return its Renyi divergence."""


Calibrator = Callable[[Guarantee], Candidate]
"""Calibrates a candidate to a guarantee, from public parameters."""


@dataclass(frozen=True)
class Search(Mechanism):
    """A private choice among candidates: one guarantee covers the choice, the released score and the fitted model.

    Parameters
    ----------
    guarantee : Guarantee
        The guarantee of the whole procedure.
    candidates : tuple
        One mechanism per candidate, calibrated from public parameters before any of them runs.
    """

    guarantee: Guarantee
    candidates: tuple[Candidate, ...]

    page = "selection"

    @property
    def covers(self) -> str:
        return (
            "The whole search and everything in this file that depends on the records: which candidate was chosen, the "
            f"error that is shown, the coefficients. {self.guarantee.relation.count_label}, schema, class labels, the "
            "candidates' parameters and the solver's tolerance are public and enter as such."
            f"{self.guarantee.relation.count_coverage} Not covered: how long the search took."
        )

    def __post_init__(self) -> None:
        if len(self.candidates) < 2:
            raise InvalidParameter("a search needs at least two candidates. Fit a single one directly.")
        guarantees = [candidate.guarantee for candidate in self.candidates]
        if not all(guarantee.is_private for guarantee in (self.guarantee, *guarantees)):
            raise InvalidParameter("epsilon of a private search and of each candidate must be finite")
        if any(guarantee.neighbours != self.guarantee.neighbours for guarantee in guarantees):
            raise InvalidParameter("a search and its candidates must have the same neighbours")

    @property
    def records(self) -> int:
        """Number of records of the whole search."""
        return self.candidates[0].task.total

    @abstractmethod
    def renyi(self, order: float) -> float:
        """Return the Renyi divergence of the given order of the whole procedure."""

    @abstractmethod
    def constants(self) -> dict[str, Any]:
        """Return every number in the theorem except the candidates' own, for the certificate."""

    def _max_cost(self) -> Guarantee:
        """Return a guarantee that covers any one of the candidates."""
        spent = [candidate.spends() for candidate in self.candidates]
        epsilon, delta = max(cost.epsilon for cost in spent), max(cost.delta for cost in spent)
        return Guarantee(epsilon, delta, self.guarantee.neighbours)

    def _max_renyi(self, order: float) -> float:
        return max(candidate.renyi(order) for candidate in self.candidates)


@dataclass(frozen=True)
class SearchResult:
    """A search with its result: the chosen candidate and its error.

    Parameters
    ----------
    search : Search
    parameters : tuple of mappings
        Parameters in which the candidates differ, as plain values.
    chosen : int
        Index of the chosen candidate.
    error : float, optional
        Its mistakes as a share of the records, where the search releases them.
    """

    search: Search
    parameters: tuple[Mapping[str, Any], ...]
    chosen: int
    error: float | None

    def __post_init__(self) -> None:
        count = len(self.search.candidates)
        if len(self.parameters) != count or not 0 <= self.chosen < count:
            raise InvalidParameter(
                "chosen must be the index of a candidate, with one parameters mapping for each candidate"
            )

    @property
    def guarantee(self) -> Guarantee:
        return self.search.guarantee

    @property
    def fit(self) -> Candidate:
        """The mechanism that produced the model."""
        return self.search.candidates[self.chosen]

    @property
    def task(self) -> Task:
        return self.fit.task

    def spends(self) -> Guarantee:
        """Return the guarantee of the whole procedure, recomputed from the constants alone."""
        return self.search.spends()

    def curve(self) -> Curve:
        """Return the curve of the whole procedure."""
        return self.search.curve()

    def constants(self) -> dict[str, Any]:
        """Return every number of the search's own theorem."""
        return self.search.constants()


Output = TypeVar("Output")

SCORE_SHARE = 0.1
"""The score's part of a trial: of epsilon for Laplace noise, relative to the fit's rho (zCDP) for Gaussian noise."""

_BELOW_ONE = math.nextafter(1.0, 0.0)  # the largest delta of a guarantee
_STEP, _HALVINGS = 1.3, 6  # find a candidate's epsilon up to a factor of 1.3^(1/64): half a percent


@dataclass(frozen=True)
class Best(Generic[Output]):
    """The released trial: its candidate, its output, and its noisy number of mistakes."""

    candidate: int
    output: Output
    mistakes: float


@dataclass(frozen=True)
class ScoredSearch(Search):
    """Trials that run a candidate and count its mistakes with noise; one person moves the count by at most r.

    A trial of candidate i costs R_i(a) + a (r / scale + 2^-44)^2 / 2 in Renyi divergence of the order a, or, for
    delta = 0, where the score has Laplace noise, epsilon_i + r / scale + 2^-44; r is the maximum number of rows of a
    person.

    Parameters
    ----------
    score_noise_scale : float
        Scale of the noise on the number of mistakes: Gaussian if delta > 0, else Laplace.
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
        """Sensitivity of the number of mistakes over its noise scale, rounding to the grid included."""
        return _rows_per_person(self.candidates) / self.score_noise_scale + 2.0**-GRID_BITS

    def _spends_at(self, order: float) -> Guarantee:
        """Return the guarantee implied by the whole search's Renyi divergence of one order."""
        guarantee = self.guarantee
        delta = renyi_delta(self.renyi(order), order, guarantee.epsilon * (1.0 - MARGIN)) / (1.0 - MARGIN)
        return Guarantee(guarantee.epsilon, min(delta, _BELOW_ONE), guarantee.neighbours)

    def _best_of(
        self, indices: Iterable[int], trial: Callable[[int], tuple[Output, float]], randomness: Randomness
    ) -> Best[Output]:
        """Run the trials of these candidates, at least one; the first of equally good ones wins."""
        trials = (self._with_noise(index, *trial(index), randomness) for index in indices)
        return min(trials, key=lambda best: best.mistakes)

    def _with_noise(
        self, index: int, output: Output, mistakes: float, randomness: Randomness
    ) -> Best[Output]:
        add_noise = ADD_NOISE[self.score_noise]
        noisy = add_noise(np.array([mistakes]), self.score_noise_scale, randomness)
        return Best(index, output, float(noisy[0]))


def score_scale(ratio: float, candidates: Sequence[Candidate]) -> float:
    """Return the score's noise scale for a given sensitivity / scale, rounding to the grid included."""
    return _rows_per_person(candidates) / (ratio - 2.0**-GRID_BITS)


def calibrate_candidate(
    calibrate: Calibrator, rho: float, orders: Sequence[float], whole: Guarantee
) -> Candidate:
    """Return the candidate with the least noise, to half a percent, within rho-zCDP at the given orders."""

    def affordable(epsilon: float) -> Candidate | None:
        candidate = calibrate(Guarantee(epsilon, whole.delta, whole.neighbours))
        within = all(candidate.renyi(order) <= order * rho * (1.0 - MARGIN) for order in orders)
        return candidate if within else None

    return _last_affordable(affordable, _epsilon_of(math.sqrt(2.0 * rho), whole.delta))


def _last_affordable(affordable: Callable[[float], Candidate | None], start: float) -> Candidate:
    """Return the candidate of the largest affordable epsilon: bracket it, then bisect."""
    low, best = start, affordable(start)
    while best is None:
        low /= _STEP
        best = affordable(low)
    high = low * _STEP
    # Renyi divergences of a candidate grow with its epsilon, so the affordable ones form an interval from 0.
    while candidate := affordable(high):
        low, high, best = high, high * _STEP, candidate
    for _ in range(_HALVINGS):
        middle = math.sqrt(low * high)
        candidate = affordable(middle)
        low, high, best = (middle, high, candidate) if candidate else (low, middle, best)
    return best


def _epsilon_of(ratio: float, delta: float) -> float:
    """Return the epsilon at which a Gaussian mechanism of this ratio has this delta."""
    curve = GaussianCurve(ratio)
    return math.exp(root(lambda log: curve.log_delta(math.exp(log)) - math.log(delta), -30.0, 7.0))


def _rows_per_person(candidates: Sequence[Candidate]) -> int:
    """Return the sensitivity of the number of mistakes; those of averaged rows are averaged as well."""
    return max(candidate.task.rows_per_person for candidate in candidates)

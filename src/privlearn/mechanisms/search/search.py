"""Searches: candidates compared by noisy counts of their mistakes, under one promise."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Protocol, TypeVar

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
    """A mechanism that was calibrated, as `mechanisms` lists them."""

    @property
    def task(self) -> Task: ...

    @property
    def guarantee(self) -> Guarantee: ...

    def spends(self) -> Guarantee:
        """The guarantee recomputed from its constants."""

    def renyi(self, order: float) -> float:
        """Its Renyi divergence."""


Plan = Callable[[Guarantee], Candidate]
"""Calibrates a candidate to a promise, from public facts."""


@dataclass(frozen=True)
class Search(Mechanism):
    """Candidates, one of which is chosen; choice, revealed score and fit are under one guarantee.

    Parameters
    ----------
    guarantee : Guarantee
        Of the whole procedure.
    candidates : tuple
        A calibrated mechanism each, planned from public facts before any of them is run.
    """

    guarantee: Guarantee
    candidates: tuple[Candidate, ...]

    page: ClassVar[str] = "selection"

    @property
    def covers(self) -> str:
        """What the guarantee is about."""
        return (
            "The whole search and everything in this file that depends on the records: which candidate was chosen, the "
            f"error that is shown, the coefficients. {self.guarantee.relation.counted}, schema, class labels, the "
            "candidates' parameters and the solver's tolerance are public and enter as such."
            f"{self.guarantee.relation.on_count} Not covered: how long the search took."
        )

    def __post_init__(self) -> None:
        if len(self.candidates) < 2:
            raise InvalidParameter("a search needs at least two candidates: fit a single one directly")
        promises = [candidate.guarantee for candidate in self.candidates]
        if not all(promise.is_private for promise in (self.guarantee, *promises)):
            raise InvalidParameter("a private search has a finite epsilon, and so has each of its candidates")
        if any(promise.neighbours != self.guarantee.neighbours for promise in promises):
            raise InvalidParameter("a search and its candidates must speak of the same neighbours")

    @property
    def records(self) -> int:
        """How many the whole search is about."""
        return self.candidates[0].task.total

    @abstractmethod
    def renyi(self, order: float) -> float:
        """Renyi divergence of the given order that the whole procedure may cost."""

    @abstractmethod
    def constants(self) -> dict[str, Any]:
        """Every number that the theorem speaks of besides the candidates' own, for the certificate."""

    def _largest_spent(self) -> Guarantee:
        """What covers any one of the candidates."""
        spent = [candidate.spends() for candidate in self.candidates]
        epsilon, delta = max(cost.epsilon for cost in spent), max(cost.delta for cost in spent)
        return Guarantee(epsilon, delta, self.guarantee.neighbours)

    def _largest_renyi(self, order: float) -> float:
        return max(candidate.renyi(order) for candidate in self.candidates)


@dataclass(frozen=True)
class Searched:
    """A search with what came out of it, beside the model: the chosen candidate and its error.

    Parameters
    ----------
    search : Search
    parameters : tuple of mappings
        What tells the candidates apart, as plain values.
    chosen : int
        Place of the candidate that was chosen.
    error : float, optional
        Its mistakes as a share of the records, where the search reveals them.
    """

    search: Search
    parameters: tuple[Mapping[str, Any], ...]
    chosen: int
    error: float | None

    def __post_init__(self) -> None:
        count = len(self.search.candidates)
        if len(self.parameters) != count or not 0 <= self.chosen < count:
            raise InvalidParameter("the chosen candidate is not one of the search's")

    @property
    def guarantee(self) -> Guarantee:
        return self.search.guarantee

    @property
    def fit(self) -> Candidate:
        """The mechanism that the model comes from."""
        return self.search.candidates[self.chosen]

    @property
    def task(self) -> Task:
        return self.fit.task

    def spends(self) -> Guarantee:
        """The guarantee of the whole procedure, recomputed from the constants alone."""
        return self.search.spends()

    def curve(self) -> Curve:
        """Of the whole procedure."""
        return self.search.curve()

    def constants(self) -> dict[str, Any]:
        """Every number of the search's own theorem."""
        return self.search.constants()


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
    return math.exp(root(lambda log: curve.log_delta(math.exp(log)) - math.log(delta), -30.0, 7.0))


def _rows_per_person(candidates: Sequence[Candidate]) -> int:
    """How far one person moves the number of mistakes; those of averaged rows are averaged as well."""
    return max(candidate.task.rows_per_person for candidate in candidates)

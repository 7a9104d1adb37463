"""What the ways to choose among candidates share: several planned mechanisms under one promise."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from privlearn.errors import InvalidParameter
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.mechanism import Mechanism
from privlearn.mechanisms.task import Task


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
    covers: ClassVar[str] = (
        "The whole search and everything in this file that depends on the records: which candidate was chosen, the "
        "error that is shown, the coefficients. Number of records, schema, class labels, the candidates' parameters "
        "and the solver's tolerance are public and enter as such. Not covered: how long the search took."
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

    def constants(self) -> dict[str, Any]:
        """Every number of the search's own theorem."""
        return self.search.constants()

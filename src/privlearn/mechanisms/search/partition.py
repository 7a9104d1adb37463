"""CMS11's Algorithm 4: a part of the records for each candidate, one more part to choose by."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from privlearn.accounting import MARGIN
from privlearn.errors import DataError, InvalidParameter, whole_number
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.mechanism import register_mechanism
from privlearn.mechanisms.search.search import Plan, Search
from privlearn.mechanisms.search.selection import SELECTION_ROUNDING, choose_row
from privlearn.randomness import Randomness

Output = TypeVar("Output")


@register_mechanism
@dataclass(frozen=True)
class Partition(Search):
    """Train candidate i on part i, choose one by its mistakes on the last part with the exponential mechanism.

    **Theorem** (CMS11 Algorithm 4 and Theorem 8; docs/theory/selection.md). The records are split into m + 1 parts by
    their places in the table, whatever is in them; where their number is private, by a draw of its own for each.
    Candidate i is (epsilon_i, delta_i)-private on part i, and is chosen with probability proportional to
    exp(-e z_i / 2), z_i the number of its mistakes on the last part. A record touches one part only: either one
    candidate, the rest being a function of what it gives and of other records; or the z_i, each by at most 1. So the
    candidates' outputs and the choice together are (epsilon, delta)-private with
    epsilon = max(epsilon_1, ..., epsilon_m, e + 2^-38) and delta = max(delta_1, ..., delta_m); 2^-38 pays for the
    rounding of the weights.

    Parameters
    ----------
    selection_epsilon : float
        e.
    validation_rows : int
        Size of the last part, or what is expected of it.
    """

    selection_epsilon: float
    validation_rows: int

    name: ClassVar[str] = "partition"
    title: ClassVar[str] = "a part of the records a candidate, chosen on one more part (CMS11 Algorithm 4)"
    floating_point: ClassVar[str] = (
        "whole numbers decide the choice; the rounding of its weights is inside the guarantee"
    )
    chosen_constants: ClassVar[tuple[str, ...]] = ("selection_epsilon", "validation_rows")

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "validation_rows", whole_number(self.validation_rows, "validation_rows"))
        tasks = [candidate.task for candidate in self.candidates]
        if any(task.rows_per_person > 1 or task.averaged for task in tasks):
            raise InvalidParameter(
                "method='partition' needs one row per person: a person with several would be in several parts. "
                "Take method='random_stopping'"
            )

    @property
    def records(self) -> int:
        """In all parts together."""
        return sum(candidate.task.total for candidate in self.candidates) + self.validation_rows

    @classmethod
    def calibrate(cls, guarantee: Guarantee, plans: Sequence[Plan], validation_rows: int) -> Partition:
        """Every part gets the whole promise; each of ``plans`` calibrates a candidate to one, on its part."""
        epsilon = guarantee.epsilon * (1.0 - MARGIN) - SELECTION_ROUNDING
        return cls(guarantee, tuple(plan(guarantee) for plan in plans), epsilon, validation_rows)

    def spends(self) -> Guarantee:
        trained = self._largest_spent()
        epsilon = max(trained.epsilon, self.selection_epsilon + SELECTION_ROUNDING)
        return Guarantee(epsilon, trained.delta, trained.neighbours)

    def renyi(self, order: float) -> float:
        """The exponential mechanism's log-ratios have range e: e^2/8-zCDP (Cesar and Rogers 2021), at most e."""
        chosen = self.selection_epsilon + SELECTION_ROUNDING
        return max(self._largest_renyi(order), min(chosen, order * chosen**2 / 8.0))

    def constants(self) -> dict[str, Any]:
        return {"selection_epsilon": self.selection_epsilon, "validation_rows": self.validation_rows}

    def log_weights(self, mistakes: NDArray[np.float64]) -> NDArray[np.float64]:
        """Logarithm of what each candidate's probability is proportional to."""
        return -self.selection_epsilon * mistakes / 2.0

    def run(self, trial: Callable[[int], tuple[Output, float]], randomness: Randomness) -> tuple[int, Output]:
        """Touch the data: the chosen candidate and its output, which may leave; the mistakes may not.

        ``trial`` runs a candidate on its part: what it gives, and the number of mistakes that makes on the last part.
        """
        outputs, mistakes = zip(*(trial(place) for place in range(len(self.candidates))), strict=True)
        chosen = choose_row(self.log_weights(np.array(mistakes)), randomness)
        return chosen, outputs[chosen]


def scatter_places(rows: int, parts: int, randomness: Randomness) -> list[NDArray[np.int64]]:
    """The rows' places in disjoint parts, each row's drawn on its own: one row more is in one part, moving no other."""
    part = np.random.default_rng(randomness.bits(128)).integers(parts, size=rows)
    return [np.flatnonzero(part == number) for number in range(parts)]


def split_places(rows: int, parts: int, randomness: Randomness) -> list[NDArray[np.int64]]:
    """The rows' places in disjoint parts of equal size, up to one row, in an order that no row has a say in."""
    if rows < parts:
        raise DataError(
            f"{parts - 1} candidates need {parts} parts, more than there are rows: give fewer candidates"
        )
    order = np.random.default_rng(randomness.bits(128)).permutation(rows)
    return np.array_split(order, parts)

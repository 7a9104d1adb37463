"""CMS11's Algorithm 4: one part of the records for each candidate, and one more to choose by."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from privlearn.accounting import MARGIN
from privlearn.errors import DataError, InvalidParameter, whole_number
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.mechanism import register_mechanism
from privlearn.mechanisms.search.search import Calibrator, Search
from privlearn.mechanisms.search.selection import SELECTION_ROUNDING, choose_row, exponential_weights
from privlearn.randomness import Randomness

Output = TypeVar("Output")


@register_mechanism
@dataclass(frozen=True)
class Partition(Search):
    """Train candidate i on part i, choose one by its mistakes on the last part with the exponential mechanism.

    **Theorem** (CMS11 Algorithm 4 and Theorem 8; docs/theory/selection.md). The records are split into m + 1 parts by
    their positions in the table, independent of their content; where their number is private, by one draw per record.
    Candidate i is (epsilon_i, delta_i)-private on part i, and is chosen with probability proportional to
    exp(-e z_i / 2), z_i the number of its mistakes on the last part. A record affects one part only: either one
    candidate, the rest being a function of its output and of other records; or the z_i, each by at most 1. So the
    candidates' outputs and the choice together are (epsilon, delta)-private with
    epsilon = max(epsilon_1, ..., epsilon_m, e + 2^-38) and delta = max(delta_1, ..., delta_m); 2^-38 pays for the
    rounding of the weights. Where rows of a person are averaged, persons take the place of records: all rows of one
    are in one part, and which part is secret and exchangeable (docs/theory/selection.md).

    Parameters
    ----------
    selection_epsilon : float
        e.
    validation_rows : int
        Size of the last part, or its expectation.

    Examples
    --------
    >>> from functools import partial
    >>> from privlearn.mechanisms.release.output import OutputPerturbation
    >>> from privlearn.mechanisms.task import Task
    >>> from privlearn.solvers import Logistic
    >>> tasks = [Task(Logistic(), 10_000, 5, 1, strength, 1e-9, "replace_one") for strength in (0.001, 0.01)]
    >>> candidates = [
    ...     partial(OutputPerturbation.calibrate, task, noise="gaussian", calibration="tight") for task in tasks
    ... ]
    >>> search = Partition.calibrate(Guarantee(1.0, 1e-6), candidates, validation_rows=1_000)
    >>> [round(candidate.noise_scale, 3) for candidate in search.candidates], round(search.selection_epsilon, 6)
    ([0.845, 0.084], 1.0)
    """

    selection_epsilon: float
    validation_rows: int

    name = "partition"
    title = "a part of the records a candidate, chosen on one more part (CMS11 Algorithm 4)"
    floating_point = "whole numbers decide the choice; the rounding of its weights is inside the guarantee"
    calibrated_constants = ("selection_epsilon", "validation_rows")

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "validation_rows", whole_number(self.validation_rows, "validation_rows"))
        tasks = [candidate.task for candidate in self.candidates]
        if any(task.rows_per_person > 1 for task in tasks):
            raise InvalidParameter(
                "method='partition' cannot keep the rows of one person in one part without a person column. Name it "
                "in the schema (person: COLUMN), or use method='random_stopping'."
            )

    @property
    def records(self) -> int:
        """Number of records in all parts together."""
        return sum(candidate.task.total for candidate in self.candidates) + self.validation_rows

    @classmethod
    def calibrate(
        cls, guarantee: Guarantee, calibrators: Sequence[Calibrator], validation_rows: int
    ) -> Partition:
        """Return the search that gives every part the whole guarantee; ``calibrators`` calibrate the candidates."""
        epsilon = guarantee.epsilon * (1.0 - MARGIN) - SELECTION_ROUNDING
        return cls(
            guarantee, tuple(calibrate(guarantee) for calibrate in calibrators), epsilon, validation_rows
        )

    def spends(self) -> Guarantee:
        trained = self._max_cost()
        epsilon = max(trained.epsilon, self.selection_epsilon + SELECTION_ROUNDING)
        return Guarantee(epsilon, trained.delta, trained.neighbours)

    def renyi(self, order: float) -> float:
        """Return the Renyi divergence; the exponential mechanism is e^2/8-zCDP (Cesar and Rogers 2021), at most e."""
        selection = self.selection_epsilon + SELECTION_ROUNDING
        return max(self._max_renyi(order), min(selection, order * selection**2 / 8.0))

    def constants(self) -> dict[str, Any]:
        return {"selection_epsilon": self.selection_epsilon, "validation_rows": self.validation_rows}

    def weights(self, mistakes: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return weights to which the candidates' probabilities are proportional."""
        return exponential_weights(-mistakes, self.selection_epsilon / 2.0)

    def run(self, trial: Callable[[int], tuple[Output, float]], randomness: Randomness) -> tuple[int, Output]:
        """Touch the data: return the index and output of one candidate, which may be released; the mistakes may not.

        ``trial`` runs a candidate on its part and returns its output and its number of mistakes on the last part.
        """
        outputs, mistakes = zip(*(trial(index) for index in range(len(self.candidates))), strict=True)
        chosen = choose_row(self.weights(np.array(mistakes)), randomness)
        return chosen, outputs[chosen]


def scatter_rows(rows: int, parts: int, randomness: Randomness) -> list[NDArray[np.int64]]:
    """Return the row indices of random disjoint parts, drawn row by row: adding a row moves no other."""
    part = np.random.default_rng(randomness.bits(128)).integers(parts, size=rows)
    return [np.flatnonzero(part == number) for number in range(parts)]


def split_rows(rows: int, parts: int, randomness: Randomness) -> list[NDArray[np.int64]]:
    """Return the row indices of random disjoint parts of equal size, up to one row, independent of their content."""
    if rows < parts:
        raise DataError(
            f"{parts - 1} candidates need {parts} parts, more than there are rows. Pass fewer candidates."
        )
    order = np.random.default_rng(randomness.bits(128)).permutation(rows)
    return np.array_split(order, parts)

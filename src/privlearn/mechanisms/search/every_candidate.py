"""Try every candidate once, on all records, with its part of the guarantee: for small grids."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from privlearn.accounting import MARGIN, pure_renyi, zcdp_budget, zcdp_order
from privlearn.errors import InvalidParameter
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.mechanism import register_mechanism
from privlearn.mechanisms.search.search import (
    SCORE_SHARE,
    Best,
    Calibrator,
    ScoredSearch,
    calibrate_candidate,
    score_scale,
)
from privlearn.randomness import Randomness

Output = TypeVar("Output")


@register_mechanism
@dataclass(frozen=True)
class EveryCandidate(ScoredSearch):
    """Fit and score each candidate once on all records; release the best with its score.

    **Theorem** (adaptive composition; docs/theory/selection.md). The Renyi divergences of all m trials add up; for
    delta = 0, their epsilons do. Releasing only the best is post-processing.

    Parameters
    ----------
    order : float
        Renyi order at which delta is computed; 0 where delta = 0.

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
    >>> search = EveryCandidate.calibrate(Guarantee(1.0, 1e-6), candidates)
    >>> [round(candidate.noise_scale, 3) for candidate in search.candidates], round(search.score_noise_scale, 1)
    ([1.344, 0.134], 21.3)
    >>> search.spends() <= Guarantee(1.0, 1e-6)
    True
    """

    order: float = 0.0

    name = "every_candidate"
    title = "the best of all candidates, each tried once on all records"
    floating_point = (
        "the score has an exact discrete sampler on a grid of 2^-44 of its noise scale, whose rounding is inside the "
        "guarantee"
    )
    calibrated_constants = ("score_noise_scale", "order")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (self.is_pure or self.order > 1):
            raise InvalidParameter("the order of a Renyi divergence must be above 1")

    @classmethod
    def calibrate(cls, guarantee: Guarantee, calibrators: Sequence[Calibrator]) -> EveryCandidate:
        """Return the search with the least noise; each of ``calibrators`` calibrates a candidate to a guarantee."""
        if guarantee.delta == 0:
            trial = guarantee.epsilon * (1.0 - MARGIN) / len(calibrators)
            of_fit = Guarantee(trial * (1.0 - SCORE_SHARE), 0.0, guarantee.neighbours)
            candidates = tuple(calibrate(of_fit) for calibrate in calibrators)
            return cls(guarantee, candidates, score_scale(SCORE_SHARE * trial, candidates))
        rho = zcdp_budget(guarantee.epsilon, guarantee.delta)
        order = zcdp_order(rho, guarantee.epsilon)
        fit = rho * (1.0 - MARGIN) / (len(calibrators) * (1.0 + SCORE_SHARE))
        candidates = tuple(
            calibrate_candidate(calibrate, fit, [order], guarantee) for calibrate in calibrators
        )
        return cls(guarantee, candidates, score_scale(math.sqrt(2.0 * SCORE_SHARE * fit), candidates), order)

    def spends(self) -> Guarantee:
        if not self.is_pure:
            return self._spends_at(self.order)
        spent = [candidate.spends() for candidate in self.candidates]
        epsilon = sum(cost.epsilon + self.score_ratio for cost in spent)
        return Guarantee(epsilon, sum(cost.delta for cost in spent), self.guarantee.neighbours)

    def renyi(self, order: float) -> float:
        if self.is_pure:
            return pure_renyi(self.spends().epsilon, order)
        scores = len(self.candidates) * order * self.score_ratio**2 / 2.0
        return sum(candidate.renyi(order) for candidate in self.candidates) + scores

    def constants(self) -> dict[str, Any]:
        order = {} if self.is_pure else {"order": self.order}
        return {"score_noise_scale": self.score_noise_scale, "score_ratio": self.score_ratio, **order}

    def run(self, trial: Callable[[int], tuple[Output, float]], randomness: Randomness) -> Best[Output]:
        """Touch the data: return the best trial, which may be released; the others may not.

        ``trial`` runs a candidate on all records and returns its output and its number of mistakes.
        """
        return self._best_of(range(len(self.candidates)), trial, randomness)

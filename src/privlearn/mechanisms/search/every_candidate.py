"""Every candidate once, on all records, with its part of the promise: what a small grid needs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from privlearn.accounting import MARGIN, zcdp_budget, zcdp_order
from privlearn.accounting.compose import pure_renyi
from privlearn.errors import InvalidParameter
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.mechanism import register_mechanism
from privlearn.mechanisms.search.search import SCORE_SHARE, Best, Plan, ScoredSearch, calibrated, score_scale
from privlearn.randomness import Randomness

Output = TypeVar("Output")


@register_mechanism
@dataclass(frozen=True)
class EveryCandidate(ScoredSearch):
    """Fit and score each candidate once on all records; release the best with its score.

    **Theorem** (composition; docs/theory/selection.md). All m trials together, each allowed to know the others, have
    the sum of their Renyi divergences; for delta = 0, of their epsilons. Releasing only the best is a function of them.

    Parameters
    ----------
    order : float
        At which delta is computed; 0 where delta = 0, which needs none.
    """

    order: float = 0.0

    name: ClassVar[str] = "every_candidate"
    title: ClassVar[str] = "the best of all candidates, each tried once on all records"
    floating_point: ClassVar[str] = (
        "the score has an exact discrete sampler on a grid of 2^-44 of its noise scale, whose rounding is inside the "
        "guarantee"
    )
    chosen_constants: ClassVar[tuple[str, ...]] = ("score_noise_scale", "order")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (self.is_pure or self.order > 1):
            raise InvalidParameter("the order of a Renyi divergence must be above 1")

    @classmethod
    def calibrate(cls, guarantee: Guarantee, plans: Sequence[Plan]) -> EveryCandidate:
        """The least noise, on every candidate and on the scores; each of ``plans`` calibrates a candidate."""
        if guarantee.delta == 0:
            trial = guarantee.epsilon * (1.0 - MARGIN) / len(plans)
            promise = Guarantee(trial * (1.0 - SCORE_SHARE), 0.0, guarantee.neighbours)
            candidates = tuple(plan(promise) for plan in plans)
            return cls(guarantee, candidates, score_scale(SCORE_SHARE * trial, candidates))
        rho = zcdp_budget(guarantee.epsilon, guarantee.delta)
        order = zcdp_order(rho, guarantee.epsilon)
        fit = rho * (1.0 - MARGIN) / (len(plans) * (1.0 + SCORE_SHARE))
        candidates = tuple(calibrated(plan, fit, [order], guarantee) for plan in plans)
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
        """Touch the data: the best trial, which may leave; the others may not.

        ``trial`` runs a candidate on all records: what it gives, and the number of mistakes that makes.
        """
        return self._best_of(range(len(self.candidates)), trial, randomness)

"""Private selection with a random number of trials, each on all records (Liu and Talwar; Papernot and Steinke)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from privlearn.accounting import MARGIN, STOPPED_PURE, pure_renyi, stopping_budget, stopping_renyi
from privlearn.errors import InvalidParameter, whole_number
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
from privlearn.mechanisms.search.selection import draw_below
from privlearn.randomness import Randomness

Output = TypeVar("Output")


@register_mechanism
@dataclass(frozen=True)
class RandomStopping(ScoredSearch):
    """Fit and score random candidates on all records, a random number of times; release the best with its score.

    **Theorem** (Liu and Talwar 2019; Papernot and Steinke 2022, Theorem 2; docs/theory/selection.md). A trial draws one
    of the m candidates uniformly, runs it, and scores it; after each trial a coin decides with probability 1/T to stop.
    If a trial's Renyi curve is R, the largest of the candidates' trials, then the best trial with its score has, at the
    order a and for any b > 1,

        R(a) + 2 (1 - 1/b) R(b) + 2 log(T) / b + log(T) / (a - 1),

    and delta(epsilon) follows (Canonne, Kamath and Steinke 2020). For delta = 0 the best of epsilon-private trials is
    3 epsilon-private. How many trials there were is not part of the release, and would cost more.

    Parameters
    ----------
    expected_trials : int
        T.
    order, inner_order : float
        a and b; 0 where delta = 0.

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
    >>> search = RandomStopping.calibrate(Guarantee(1.0, 1e-6), candidates, expected_trials=10)
    >>> [round(candidate.noise_scale, 3) for candidate in search.candidates]
    [1.887, 0.189]
    >>> search.spends() <= Guarantee(1.0, 1e-6)
    True
    """

    expected_trials: int
    order: float = 0.0
    inner_order: float = 0.0

    name = "random_stopping"
    title = "the best of a random number of trials (Liu-Talwar, Papernot-Steinke)"
    floating_point = (
        "whole numbers decide how many trials there are, and of which candidates; the score has an exact discrete "
        "sampler on a grid of 2^-44 of its noise scale, whose rounding is inside the guarantee"
    )
    calibrated_constants = ("score_noise_scale", "expected_trials", "order", "inner_order")

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "expected_trials", whole_number(self.expected_trials, "expected_trials"))
        if not (self.is_pure or (self.order > 1 and self.inner_order > 1)):
            raise InvalidParameter("both orders of a Renyi divergence must be above 1")

    @classmethod
    def calibrate(
        cls, guarantee: Guarantee, calibrators: Sequence[Calibrator], expected_trials: int
    ) -> RandomStopping:
        """Return the search with the least noise; each of ``calibrators`` calibrates a candidate to a guarantee.

        With delta > 0 all candidates may reach the same Renyi divergence at the two orders.
        """
        if guarantee.delta == 0:
            trial = guarantee.epsilon * (1.0 - MARGIN) / STOPPED_PURE
            of_fit = Guarantee(trial * (1.0 - SCORE_SHARE), 0.0, guarantee.neighbours)
            candidates = tuple(calibrate(of_fit) for calibrate in calibrators)
            return cls(guarantee, candidates, score_scale(SCORE_SHARE * trial, candidates), expected_trials)
        rho, *orders = stopping_budget(guarantee.epsilon, guarantee.delta, expected_trials)
        fit = rho / (1.0 + SCORE_SHARE)
        candidates = tuple(
            calibrate_candidate(calibrate, fit, orders, guarantee) for calibrate in calibrators
        )
        scale = score_scale(math.sqrt(2.0 * SCORE_SHARE * fit), candidates)
        return cls(guarantee, candidates, scale, expected_trials, *orders)

    def spends(self) -> Guarantee:
        if not self.is_pure:
            return self._spends_at(self.order)
        fit = self._max_cost()
        return Guarantee(STOPPED_PURE * (fit.epsilon + self.score_ratio), fit.delta, fit.neighbours)

    def renyi(self, order: float) -> float:
        if self.is_pure:
            return pure_renyi(self.spends().epsilon, order)
        return stopping_renyi(self._trial_renyi, self.expected_trials, order, self.inner_order)

    def constants(self) -> dict[str, Any]:
        orders = {} if self.is_pure else {"order": self.order, "inner_order": self.inner_order}
        return {
            "score_noise_scale": self.score_noise_scale,
            "score_ratio": self.score_ratio,
            "expected_trials": self.expected_trials,
            **orders,
        }

    def run(self, trial: Callable[[int], tuple[Output, float]], randomness: Randomness) -> Best[Output]:
        """Touch the data: return the best trial, which may be released; the others, and their number, may not.

        ``trial`` runs a candidate on all records and returns its output and its number of mistakes.
        """
        return self._best_of(sorted(self._draw_candidates(randomness)), trial, randomness)

    def _trial_renyi(self, order: float) -> float:
        return self._max_renyi(order) + order * self.score_ratio**2 / 2.0

    def _draw_candidates(self, randomness: Randomness) -> list[int]:
        """Return one candidate for each trial; integers throughout, so that the distribution is exact."""
        drawn = [draw_below(len(self.candidates), randomness)]
        while draw_below(self.expected_trials, randomness) != 0:
            drawn.append(draw_below(len(self.candidates), randomness))
        return drawn

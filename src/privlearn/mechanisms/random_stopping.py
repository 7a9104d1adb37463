"""Private selection with a random number of trials, each on all records (Liu and Talwar; Papernot and Steinke)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
from scipy.optimize import brentq

from privlearn.accounting import (
    MARGIN,
    STOPPED_PURE,
    GaussianCurve,
    renyi_delta,
    stopped_renyi,
    stopping_plan,
)
from privlearn.errors import InvalidParameter
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.answers import whole_number
from privlearn.mechanisms.noise import ADD_NOISE, GRID_BITS
from privlearn.mechanisms.search import Candidate, Plan, Search, rows_per_person
from privlearn.mechanisms.selection import draw_below
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
class RandomStopping(Search):
    """Fit and score random candidates on all records, a random number of times; release the best with its score.

    **Theorem** (Liu and Talwar 2019; Papernot and Steinke 2022, Theorem 2; docs/theory/selection.md). A trial draws one
    of the m candidates uniformly, runs it, and counts its mistakes on the same records, with noise; one person moves
    the count by at most r, the rows a person may have. After each trial a coin decides with probability 1/T to stop.
    If a trial has the Renyi curve R (the largest of the candidates' curves, plus the score's
    a (r / scale + 2^-44)^2 / 2), then the best trial with its score has, at the order a and for any b > 1,

        R(a) + 2 (1 - 1/b) R(b) + 2 log(T) / b + log(T) / (a - 1),

    and delta(epsilon) follows (Canonne, Kamath and Steinke 2020). For delta = 0 the score has Laplace noise, a trial
    costs e = max(epsilon_i) + r / scale + 2^-44, and the best of them 3 e. How many trials there were is not part of
    the release, and would cost more.

    Parameters
    ----------
    expected_trials : int
        T.
    score_noise_scale : float
        Of the noise on the number of mistakes: Gaussian if delta > 0, else Laplace.
    order, inner_order : float
        a and b; 0 where delta = 0, which needs none.
    """

    expected_trials: int
    score_noise_scale: float
    order: float = 0.0
    inner_order: float = 0.0

    name: ClassVar[str] = "random_stopping"
    title: ClassVar[str] = "the best of a random number of trials (Liu-Talwar, Papernot-Steinke)"
    floating_point: ClassVar[str] = (
        "whole numbers decide how many trials there are, and of which candidates; the score has an exact discrete "
        "sampler on a grid of 2^-44 of its noise scale, whose rounding is inside the guarantee"
    )
    chosen_constants: ClassVar[tuple[str, ...]] = (
        "expected_trials",
        "score_noise_scale",
        "order",
        "inner_order",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "expected_trials", whole_number(self.expected_trials, "expected_trials"))
        if not (self._is_pure or (self.order > 1 and self.inner_order > 1)):
            raise InvalidParameter("both orders of a Renyi divergence must be above 1")

    @classmethod
    def calibrate(cls, guarantee: Guarantee, plans: Sequence[Plan], expected_trials: int) -> RandomStopping:
        """The least noise, on every candidate and on the score, with which the best trial keeps the promise.

        Each of ``plans`` calibrates a candidate to a promise. With delta > 0 all may reach the same Renyi divergence at
        the two orders, each by the promise that this needs.
        """
        if guarantee.delta == 0:
            trial = guarantee.epsilon * (1.0 - MARGIN) / STOPPED_PURE
            promise = Guarantee(trial * (1.0 - SCORE_SHARE), 0.0, guarantee.neighbours)
            candidates = tuple(plan(promise) for plan in plans)
            return cls(guarantee, candidates, expected_trials, _scale(SCORE_SHARE * trial, candidates))
        rho, *orders = stopping_plan(guarantee.epsilon, guarantee.delta, expected_trials)
        fit, score = (share * rho / (1.0 + SCORE_SHARE) for share in (1.0, SCORE_SHARE))
        candidates = tuple(_calibrated(plan, fit, orders, guarantee) for plan in plans)
        return cls(
            guarantee, candidates, expected_trials, _scale(math.sqrt(2.0 * score), candidates), *orders
        )

    @property
    def score_noise(self) -> str:
        return "laplace" if self._is_pure else "gaussian"

    @property
    def score_ratio(self) -> float:
        """How far one person moves the number of mistakes, in units of the noise; rounding to its grid included."""
        return rows_per_person(self.candidates) / self.score_noise_scale + 2.0**-GRID_BITS

    def spends(self) -> Guarantee:
        neighbours, epsilon = self.guarantee.neighbours, self.guarantee.epsilon
        if self._is_pure:
            fit = self._largest_spent()
            return Guarantee(STOPPED_PURE * (fit.epsilon + self.score_ratio), fit.delta, neighbours)
        delta = renyi_delta(self.renyi(self.order), self.order, epsilon * (1.0 - MARGIN))
        return Guarantee(epsilon, min(delta / (1.0 - MARGIN), _BELOW_ONE), neighbours)

    def renyi(self, order: float) -> float:
        if self._is_pure:
            epsilon = self.spends().epsilon
            return min(epsilon, order * epsilon**2 / 2.0)
        return stopped_renyi(self._trial_renyi, self.expected_trials, order, self.inner_order)

    def constants(self) -> dict[str, Any]:
        orders = {} if self._is_pure else {"order": self.order, "inner_order": self.inner_order}
        return {
            "expected_trials": self.expected_trials,
            "score_noise_scale": self.score_noise_scale,
            "score_ratio": self.score_ratio,
            **orders,
        }

    def run(self, trial: Callable[[int], tuple[Output, float]], randomness: Randomness) -> Best[Output]:
        """Touch the data: the best trial, which may leave; the others, and how many there were, may not.

        ``trial`` runs a candidate on all records: what it gives, and the number of mistakes that makes.
        """
        best: Best[Output] | None = None
        for place in sorted(self._draw_candidates(randomness)):
            output, mistakes = trial(place)
            noisy = self._add_noise(mistakes, randomness)
            if best is None or noisy < best.mistakes:
                best = Best(place, output, noisy)
        assert best is not None, "there is at least one trial"
        return best

    @property
    def _is_pure(self) -> bool:
        return self.guarantee.delta == 0

    def _trial_renyi(self, order: float) -> float:
        return self._largest_renyi(order) + order * self.score_ratio**2 / 2.0

    def _draw_candidates(self, randomness: Randomness) -> list[int]:
        """One for each trial; whole numbers throughout, so that the law is exact."""
        drawn = [draw_below(len(self.candidates), randomness)]
        while draw_below(self.expected_trials, randomness) != 0:
            drawn.append(draw_below(len(self.candidates), randomness))
        return drawn

    def _add_noise(self, mistakes: float, randomness: Randomness) -> float:
        add_noise = ADD_NOISE[self.score_noise]
        return float(add_noise(np.array([mistakes]), self.score_noise_scale, randomness)[0])


def _scale(ratio: float, candidates: Sequence[Candidate]) -> float:
    """The score's noise for a given sensitivity / scale, rounding to the grid included."""
    return rows_per_person(candidates) / (ratio - 2.0**-GRID_BITS)


def _calibrated(plan: Plan, rho: float, orders: Sequence[float], whole: Guarantee) -> Candidate:
    """The candidate with the least noise, to half a percent, whose divergences are those of rho-zCDP at the orders."""

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

"""TDIL with the paper's constants: JT13 Algorithm 3, its rounds, noise and steps, with line 5 corrected."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from privlearn.accounting import MARGIN, zcdp_delta
from privlearn.arrays import Array
from privlearn.errors import InvalidParameter
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.mechanism import register_mechanism
from privlearn.mechanisms.noise import GRID_BITS, add_laplace
from privlearn.mechanisms.release.answers import answer_sensitivity
from privlearn.mechanisms.release.tdil import TestDataIndependentLearner
from privlearn.mechanisms.search.selection import SELECTION_ROUNDING
from privlearn.mechanisms.task import Task
from privlearn.randomness import Randomness

FAILURE = 0.05
"""beta: probability that the noise exceeds what the threshold is sized for. No part of the guarantee."""


@register_mechanism
@dataclass(frozen=True)
class PaperTDIL(TestDataIndependentLearner):
    """B rounds of: choose a point z, answer <z, w - guess> with Laplace noise, step if the answer exceeds a threshold.

    The paper's constants, for rows of norm at most 1: B = N epsilon / (100 L log(4/delta)), at least 1;
    eps0 = N epsilon Lambda / (10 L sqrt(B) log(4/delta)), which is x / S for S = 2 L / (N Lambda) and
    x = epsilon / (5 sqrt(B) log(4/delta)); noise of scale 1 / (2 eps0); threshold (4 / eps0) log(2 B / beta); a step
    of a quarter of it along z, towards the answer; the last guess is released. For K problems B counts all.

    **Where it departs from the listing.** Line 5 weighs z by exp(eps0 N Lambda / (8 L) |<z, guess - w>|), although eps0
    contains N Lambda / L already: that choice alone would cost eps0 / 2 in each round (``listing_choice_epsilon``),
    x / (2 S) instead of x / 2. Here x replaces eps0 in that line. Line 8's second answer does not enter
    the model, and is not drawn. The net of radius ``net_radius`` = d / (eps0 N), of (4 / radius)^d points, is replaced
    by the public points given, or by the whole unit ball, which is finer.

    **Theorem.** A round's choice has range x / 2, its answer costs 2 x purely: together (x/2)^2 / 8 + (2 x)^2 / 2 zCDP,
    and B rounds 65/32 B x^2 = 0.082 epsilon^2 / log^2(4/delta), which implies (epsilon, delta) as
    `TestDataIndependentLearner` argues. `spends` states the paper's epsilon for the noise at hand (half the noise,
    twice the epsilon), and a delta that the zCDP proves.

    At realistic sizes the threshold exceeds every answer (``vacuous``) and the released model is zero.

    Examples
    --------
    >>> from privlearn.solvers import Logistic
    >>> task = Task(Logistic(), total=10_000, dimension=5, problems=1, regularization=0.01, tolerance=1e-9,
    ...             neighbours="replace_one")
    >>> mechanism = PaperTDIL.calibrate(task, Guarantee(1.0, 1e-6), "laplace", "jt13")
    >>> mechanism.rounds, mechanism.noise_scale > 1
    (6, True)
    """

    name = "tdil_jt13"
    title = "test data independent learner (TDIL) with the paper's constants"
    combinations: ClassVar[dict[str, tuple[str, ...]]] = {"jt13": ("laplace",)}

    def __post_init__(self) -> None:
        if self.guarantee.is_private and self.guarantee.delta == 0:
            raise InvalidParameter("tdil_jt13 rests on log(4 / delta). Pass delta=1e-6")
        super().__post_init__()

    @classmethod
    def calibrate(
        cls,
        task: Task,
        guarantee: Guarantee,
        noise: str,
        calibration: str,
        *,
        points: int | None = None,
        rounds: int | None = None,
    ) -> PaperTDIL:
        """Return the paper's constants; ``rounds`` replaces its B, with the noise for that number."""
        cls.check_combination(noise, calibration)
        task = task.certifiable()
        if not guarantee.is_private:
            return cls(task, guarantee, noise, calibration, rounds or 1, 0.0, 0.0)
        # Refuses a delta of 0.
        draft = cls(task, guarantee, noise, calibration, rounds or 1, math.nan, math.nan)
        rounds = rounds or _paper_rounds(task, guarantee)
        draft = replace(draft, rounds=rounds)
        share = guarantee.epsilon * (1.0 - MARGIN) / draft._epsilon_per_share
        answer = 2.0 * share - 2.0**-GRID_BITS
        choice = share / 2.0 - SELECTION_ROUNDING
        return cls(task, guarantee, noise, calibration, rounds, choice, answer_sensitivity(task) / answer)

    @property
    def threshold(self) -> float:
        """(4 / eps0) log(2 B / beta), and 1 / eps0 is twice the noise's scale."""
        return 8.0 * self.noise_scale * math.log(2.0 * self.rounds / FAILURE)

    @property
    def is_vacuous(self) -> bool:
        """True if on any data no answer passes the threshold, except with probability `FAILURE`.

        All noises together stay below scale log(B / beta), an eighth of the threshold.
        """
        return self.threshold * 7.0 / 8.0 > self.task.ball_radius

    @property
    def net_radius(self) -> float:
        """nu = d / (eps0 N): radius of the paper's net."""
        return 2.0 * self.noise_scale * self.task.dimension / self.task.total

    @property
    def listing_choice_epsilon(self) -> float:
        """Cost of one round's choice with line 5 as printed: eps0 / 2."""
        return 1.0 / (4.0 * self.noise_scale)

    @property
    def listing_is_proved(self) -> bool:
        """Whether line 5 as printed would meet the guarantee by this accounting: not for N Lambda above some 100."""
        printed = self.listing_choice_epsilon**2 / 8.0 + self._round_costs[1] ** 2 / 2.0
        rho = self.task.problems * self.rounds * printed
        return zcdp_delta(rho, self.guarantee.epsilon) <= self.guarantee.delta

    @property
    def zcdp(self) -> float:
        """rho of all rounds of all problems."""
        choice, answer = self._round_costs
        return self.task.problems * self.rounds * (choice**2 / 8.0 + answer**2 / 2.0)

    def spends(self) -> Guarantee:
        """Return the paper's epsilon for this noise, and the delta that is proved for it."""
        if not self.guarantee.is_private:
            return Guarantee(math.inf, 0.0, self.task.neighbours)
        choice, answer = self._round_costs
        epsilon = self._epsilon_per_share * max(answer / 2.0, 2.0 * choice)
        proved = zcdp_delta(self.zcdp, epsilon * (1.0 - MARGIN))
        return Guarantee(epsilon, max(proved, self.guarantee.delta), self.task.neighbours)

    def constants(self) -> dict[str, Any]:
        if not self.guarantee.is_private:
            return super().constants()
        return super().constants() | {
            "threshold": self.threshold,
            "step": self.threshold / 4.0,
            "net_radius": self.net_radius,
            "printed_choice_epsilon": self.listing_choice_epsilon,
            "printed_is_proved": self.listing_is_proved,
            "vacuous": self.is_vacuous,
        }

    def _learn(self, minimiser: Array, randomness: Randomness, net: Array | None) -> Array:
        guess = np.zeros_like(minimiser)
        for _ in range(self.rounds):
            point = self._choose(guess - minimiser, randomness, net)
            gap = np.array([point @ (minimiser - guess)])
            answer = float(add_laplace(gap, self.noise_scale, randomness)[0])
            if abs(answer) > self.threshold:
                guess = guess + math.copysign(self.threshold / 4.0, answer) * point
        return guess

    @property
    def _round_costs(self) -> tuple[float, float]:
        """Pure costs of a choice and of an answer, rounding included."""
        return (
            self.selection_epsilon + SELECTION_ROUNDING,
            self.sensitivity / self.noise_scale + 2.0**-GRID_BITS,
        )

    @property
    def _epsilon_per_share(self) -> float:
        """epsilon / x = 5 sqrt(B) log(4 / delta), B the rounds of all problems."""
        rounds = self.rounds * self.task.problems
        return 5.0 * math.sqrt(rounds) * math.log(4.0 / self.guarantee.delta)


def _paper_rounds(task: Task, guarantee: Guarantee) -> int:
    """Return B of line 1, in which Lambda does not occur."""
    lipschitz = task.loss.lipschitz * task.max_weight
    return max(1, int(task.total * guarantee.epsilon / (100.0 * lipschitz * math.log(4.0 / guarantee.delta))))

"""TDIL, JT13's test data independent learner: answer where guess and minimiser differ most, then refit the guess."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from privlearn.accounting import MARGIN, Curve, ZcdpCurve, zcdp_budget, zcdp_delta
from privlearn.arrays import Array
from privlearn.errors import InvalidParameter, whole_number
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.mechanism import register_mechanism
from privlearn.mechanisms.noise import GRID_BITS, add_gaussian
from privlearn.mechanisms.oracle import MinimiserOracle
from privlearn.mechanisms.release.answers import AnsweringMechanism, answer_sensitivity, check_probes
from privlearn.mechanisms.search.selection import (
    SELECTION_ROUNDING,
    choose_in_ball,
    choose_row,
    exponential_weights,
)
from privlearn.mechanisms.task import Task
from privlearn.randomness import Randomness

SELECTION_SHARE = 0.5  # of a round's zCDP, for the choice of the point
MAX_ROUNDS = 20  # that are chosen automatically
SIGNAL = 1.0 / 32.0
"""Rounds are added while an answer's noise stays below this share of the ball's radius. Like the two above, it was
tuned on simulations and on Adult, where results hardly depend on it (docs/theory/tdil.md)."""

_PRIOR_SCALES = np.geomspace(1e-3, 1.0, 41)  # candidates for tau, relative to the ball's radius


@register_mechanism
@dataclass(frozen=True)
class TestDataIndependentLearner(AnsweringMechanism):
    """Rounds of: choose a point z where guess and minimiser differ, answer it with noise, refit the guess.

    **Theorem** (JT13 Algorithm 3, corrected; docs/theory/tdil.md). One person moves an answer <w, z>, |z| <= 1, by at
    most S = D2 + 2 t + rounding. In each round, for each of K problems,

    - z is drawn with probability proportional to exp(e |<z, guess - w>| / (2 S)), from a finite public net or, for the
      linear kernel, from the whole unit ball. The log-ratio of two neighbours' probabilities has range at most e, plus
      2^-38 for rounding over a net: (e + 2^-38)^2 / 8 zCDP (Cesar and Rogers 2021);
    - <z, w - guess> is answered with Gaussian noise: (S / scale + 2^-44)^2 / 2 zCDP.

    The guess is a function of the points and answers released before. Rounds and problems add up; rho-zCDP gives
    delta(epsilon) by Canonne, Kamath and Steinke (2020).

    There is no literal paper mode: line 5 of the listing multiplies eps0 by n Lambda / (8 L R^2) although eps0 contains
    n Lambda / (L R^2) already, so the printed algorithm spends more than Theorem 7 claims. The refit replaces the
    paper's steps of fixed length: a ridge regression on all answers so far, with the strength of maximal likelihood.

    Examples
    --------
    >>> from privlearn.solvers import Logistic
    >>> task = Task(Logistic(), total=10_000, dimension=5, problems=1, regularization=0.01, tolerance=1e-9,
    ...             neighbours="replace_one")
    >>> mechanism = TestDataIndependentLearner.calibrate(task, Guarantee(1.0, 1e-6), "gaussian", "tight")
    >>> mechanism.rounds, round(mechanism.noise_scale, 3)
    (4, 0.256)
    >>> mechanism.spends() <= Guarantee(1.0, 1e-6)
    True
    """

    rounds: int
    selection_epsilon: float
    noise_scale: float

    name = "tdil"
    title = "test data independent learner (TDIL)"
    page = "tdil"
    perturbs = "choices"
    calibrated_constants = ("rounds", "selection_epsilon", "noise_scale")
    combinations: ClassVar[dict[str, tuple[str, ...]]] = {"tight": ("gaussian",)}
    floating_point = (
        "answers and draws from a net: exact discrete samplers; rounding is inside the guarantee. Draws from the unit "
        "ball: exactly from the continuous distribution, rounded last, to a grid of 2^-40, which costs nothing"
    )

    def __post_init__(self) -> None:
        if self.guarantee.is_private and self.guarantee.delta == 0:
            raise InvalidParameter("tdil answers with Gaussian noise, which needs delta > 0. Pass delta=1e-6")
        super().__post_init__()
        object.__setattr__(self, "rounds", whole_number(self.rounds, "rounds"))

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
    ) -> TestDataIndependentLearner:
        """Return the mechanism with the least noise for a guarantee; choose ``rounds`` unless given."""
        cls.check_combination(noise, calibration)
        task = task.certifiable()
        if not guarantee.is_private:
            return cls(task, guarantee, noise, calibration, rounds or 1, 0.0, 0.0)
        # Raises if it cannot be calibrated.
        cls(task, guarantee, noise, calibration, rounds or 1, math.nan, math.nan)
        budget = zcdp_budget(guarantee.epsilon, guarantee.delta) * (1.0 - MARGIN) / task.problems
        rounds = rounds or _sensible_rounds(task, budget)
        selection = math.sqrt(8.0 * SELECTION_SHARE * budget / rounds) - SELECTION_ROUNDING
        ratio = math.sqrt(2.0 * (1.0 - SELECTION_SHARE) * budget / rounds) - 2.0**-GRID_BITS
        return cls(task, guarantee, noise, calibration, rounds, selection, answer_sensitivity(task) / ratio)

    @property
    def noisy_numbers(self) -> int:
        return self.rounds

    @property
    def selection_rate(self) -> float:
        """Factor of |<z, guess - w>| in the exponent."""
        return self.selection_epsilon / (2.0 * self.sensitivity)

    @property
    def zcdp(self) -> float:
        """rho of all rounds of all problems."""
        selection = (self.selection_epsilon + SELECTION_ROUNDING) ** 2 / 8.0
        answer = (self.sensitivity / self.noise_scale + 2.0**-GRID_BITS) ** 2 / 2.0
        return self.task.problems * self.rounds * (selection + answer)

    def spends(self) -> Guarantee:
        if not self.guarantee.is_private:
            return Guarantee(math.inf, 0.0, self.task.neighbours)
        epsilon = self.guarantee.epsilon
        return Guarantee(epsilon, zcdp_delta(self.zcdp, epsilon * (1.0 - MARGIN)), self.task.neighbours)

    def curve(self) -> Curve:
        """Return the curve that zCDP implies."""
        return ZcdpCurve(self.zcdp)

    def renyi(self, order: float) -> float:
        return order * self.zcdp

    def run(self, oracle: MinimiserOracle, randomness: Randomness) -> Array:
        """Touch the data: solve, then choose and answer; the result may be released.

        Public points are the net; without them z is drawn from the whole unit ball.
        """
        minimisers = oracle.minimise(None, self.effective_regularization)
        if not self.guarantee.is_private:
            return minimisers
        net = None if oracle.points is None else check_probes(oracle.points, self.task.dimension)
        return np.array([self._learn(w, randomness, net) for w in minimisers])

    def _learn(self, minimiser: Array, randomness: Randomness, net: Array | None) -> Array:
        return self.refit(*self.interrogate(minimiser, randomness, net))

    def interrogate(self, minimiser: Array, randomness: Randomness, net: Array | None) -> tuple[Array, Array]:
        """Return points, one per row, and noisy answers <z, w>; each choice depends on released values only."""
        points, answers = np.empty((self.rounds, minimiser.size)), np.empty(self.rounds)
        guess = np.zeros_like(minimiser)
        for round_ in range(self.rounds):
            point = points[round_] = self._choose(guess - minimiser, randomness, net)
            gap = np.array([point @ (minimiser - guess)])
            answers[round_] = add_gaussian(gap, self.noise_scale, randomness)[0] + point @ guess
            guess = self.refit(points[: round_ + 1], answers[: round_ + 1])
        return points, answers

    def refit(self, points: Array, answers: Array) -> Array:
        """Return the posterior mean of w given the answers, prior N(0, tau^2 I) with the likeliest tau, in the ball.

        Post-processing: it uses released values only.
        """
        radius, variance = self.task.ball_radius, self.noise_scale**2
        eigenvalues, axes = np.linalg.eigh(points @ points.T)
        pulls = axes.T @ answers
        scales = (_PRIOR_SCALES * radius)[:, np.newaxis] ** 2
        variances = scales * np.maximum(eigenvalues, 0.0) + variance
        likeliest = np.argmin(np.sum(pulls**2 / variances + np.log(variances), axis=1))
        mean = points.T @ (axes @ (pulls * scales[likeliest] / variances[likeliest]))
        return np.asarray(mean * min(1.0, radius / max(float(np.linalg.norm(mean)), radius)))

    def constants(self) -> dict[str, Any]:
        return {
            "minimiser_sensitivity": self.task.minimiser_sensitivity,
            "solver_distance": self.task.solver_distance,
            "sensitivity": self.sensitivity,
            "ball_radius": self.task.ball_radius,
            "rounds": self.rounds,
            "selection_epsilon": self.selection_epsilon,
            "noise_scale": self.noise_scale,
            "zcdp": self.zcdp if self.guarantee.is_private else 0.0,
        }

    def _choose(self, difference: Array, randomness: Randomness, net: Array | None) -> Array:
        if net is None:
            return choose_in_ball(difference, self.selection_rate, randomness)
        return np.asarray(net[choose_row(self.weights(difference, net), randomness)])

    def weights(self, difference: Array, net: Array) -> Array:
        """Return weights to which the probabilities of the net's points are proportional."""
        return exponential_weights(np.abs(net @ difference), self.selection_rate)


def _sensible_rounds(task: Task, budget: float) -> int:
    """Return the largest number of rounds with an answer's noise, S sqrt(rounds / (2 rho)), below the target signal."""
    signal = SIGNAL * task.ball_radius / answer_sensitivity(task)
    return max(1, min(MAX_ROUNDS, int(2.0 * (1.0 - SELECTION_SHARE) * budget * signal**2)))

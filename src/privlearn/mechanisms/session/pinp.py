"""PINP: a private model answers where it agrees with the exact one, found by the sparse vector technique."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from privlearn.accounting import MARGIN, Curve, zcdp_budget, zcdp_delta
from privlearn.accounting.release_curves import ZcdpCurve
from privlearn.errors import InvalidParameter, shown, whole_number
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.mechanism import register_mechanism
from privlearn.mechanisms.noise import GRID_BITS, add_gaussian, add_laplace, grid_step
from privlearn.mechanisms.session.task import KernelTask, SessionMechanism
from privlearn.randomness import Randomness


@dataclass(frozen=True)
class AboveThreshold:
    """The sparse vector technique for one update: noise on the threshold once, on every distance anew.

    **Theorem** (Dwork and Roth 2014, Theorem 3.23). If one person moves each distance by at most S, all answers up to
    and including the first "above" are together epsilon-private, with Laplace noise of scale 2 S / epsilon on the
    threshold and 4 S / epsilon on each distance, however many there are and however they are chosen.

    Both sides are integers, multiples of one grid step; a rounded distance moves by at most S plus one step.
    """

    sensitivity: float
    epsilon: float
    threshold: float

    @property
    def _scale(self) -> float:
        # grid_step(scale) is at most scale 2^-44: with this scale, 2 (S + step) / scale is at most epsilon
        return 2.0 * self.sensitivity / (self.epsilon - 2.0 * 2.0**-GRID_BITS)

    def draw_threshold(self, randomness: Randomness) -> int:
        """The noisy threshold in grid steps; keep it secret and use it until the first "above"."""
        step = grid_step(self._scale)
        return round(self.threshold / step) + int(randomness.discrete_laplace(self._scale / step, 1)[0])

    def is_above(self, distance: float, noisy_threshold: int, randomness: Randomness) -> bool:
        step = grid_step(self._scale)
        noise = int(randomness.discrete_laplace(2.0 * self._scale / step, 1)[0])
        return round(distance / step) + noise >= noisy_threshold


QUERIES = 10_000
FAILURE = 0.05
"""T and beta unless others are given: how many queries the constants are made for, and with which probability their
noise may exceed what the threshold allows for."""


@dataclass(frozen=True)
class Verdict:
    """What a query did: ``score`` is ``None`` if the public guess is good enough, else the noisy value; ``correction``
    is what the guess then moves by, times k(z, .)."""

    score: float | None = None
    correction: float = 0.0


class PINP(SessionMechanism):
    """What both modes share: answers where the distance to a public guess is above a threshold, up to B updates."""

    updates: int
    answer_scale: float
    threshold: float

    name: ClassVar[str] = "pinp"
    page: ClassVar[str] = "pinp"

    def __post_init__(self) -> None:
        _check(self.facts, self.guarantee)
        object.__setattr__(self, "updates", whole_number(self.updates, "updates"))

    @property
    def answer_deviation(self) -> float:
        return self.answer_scale

    @property
    def answer_error(self) -> float:
        return max(self.threshold, self.answer_scale)


@register_mechanism
@dataclass(frozen=True)
class TightPINP(PINP):
    """PINP by the sparse vector technique with fresh noise in each answer.

    Up to ``updates`` (B) times: run `AboveThreshold` at ``test_epsilon`` (e) on |f(z) - w(z)|, w the public guess; at
    the first "above" answer f(z) + N(0, answer_scale^2) (s) and move w by (answer - w(z)) k(z, .).

    **Theorem.** B (e^2/2 + S^2/(2 s^2))-zCDP, however many queries, where S bounds what one person changes in a
    computed value; converted by Canonne, Kamath and Steinke (2020), Corollary 13. See docs/theory/pinp.md.
    """

    updates: int
    test_epsilon: float
    answer_scale: float
    threshold: float

    title: ClassVar[str] = "PINP, corrections where a public guess is wrong"
    noise: ClassVar[str] = "laplace and gaussian"
    chosen_constants: ClassVar[tuple[str, ...]] = ("updates", "test_epsilon", "answer_scale", "threshold")
    floating_point: ClassVar[str] = (
        "exact discrete samplers on grids of 2^-44 of the noise scales; rounding is inside the guarantee"
    )
    queries: ClassVar[int | None] = None

    @classmethod
    def calibrate(
        cls, facts: KernelTask, guarantee: Guarantee, *, queries: int = QUERIES, failure: float = FAILURE
    ) -> TightPINP:
        """Split the promise evenly between tests and answers, over as many updates as the guess may need.

        The threshold is twice the noise that ``queries`` tests stay below except with probability ``failure``: these
        two size the threshold, which grows like log(queries), and have no part in the guarantee.
        """
        _check(facts, guarantee)
        _check_sizes(queries, failure)
        rho = zcdp_budget(guarantee.epsilon, guarantee.delta) * (1.0 - MARGIN)

        def plan(updates: int) -> TightPINP:
            test_epsilon = math.sqrt(rho / updates)
            answer_scale = facts.answer_sensitivity / (test_epsilon - 2.0**-GRID_BITS)
            noises = facts.answer_sensitivity / test_epsilon, answer_scale
            threshold = _tight_threshold(*noises, updates, queries, failure)
            return cls(facts, guarantee, updates, test_epsilon, answer_scale, threshold)

        return plan(_fewest(lambda updates: updates >= plan(updates)._updates_needed))

    @property
    def test(self) -> AboveThreshold:
        return AboveThreshold(self.facts.answer_sensitivity, self.test_epsilon, self.threshold)

    @property
    def is_vacuous(self) -> bool:
        """True if, whatever the data, all answers it was sized for are 0, except with their failure probability.

        The tests' noise stays below half of the threshold except with that probability, so the guess 0 is corrected
        only at values above the other half. Where the threshold exceeds every value but its half does not, this is
        False: noise can correct the guess, where the value is large and by luck.
        """
        return self.threshold / 2.0 > self.facts.norm_bound

    @property
    def _updates_needed(self) -> float:
        # Each update shrinks |f - w|^2 by at least (threshold/2)^2 - (threshold/4)^2.
        return 16.0 * self.facts.norm_bound**2 / (3.0 * self.threshold**2)

    def spends(self) -> Guarantee:
        """The guarantee recomputed from the constants alone."""
        epsilon = self.guarantee.epsilon
        delta = zcdp_delta(self._rho, epsilon * (1.0 - MARGIN)) / (1.0 - MARGIN)
        return Guarantee(epsilon, delta, self.guarantee.neighbours)

    def curve(self) -> Curve:
        """What concentrated privacy gives."""
        return ZcdpCurve(self._rho)

    def renyi(self, order: float) -> float:
        """Renyi divergence of the given order that the whole session may cost."""
        return order * self._rho

    @property
    def _rho(self) -> float:
        ratio = self.facts.answer_sensitivity / self.answer_scale + 2.0**-GRID_BITS
        return self.updates * (self.test_epsilon**2 + ratio**2) / 2.0

    def draw_threshold(self, randomness: Randomness) -> int:
        """What has to be remembered until the next update."""
        return self.test.draw_threshold(randomness)

    def ask(self, value: float, guess: float, noisy_threshold: int, randomness: Randomness) -> Verdict:
        """Compare the private value with the public guess."""
        if not self.test.is_above(abs(value - guess), noisy_threshold, randomness):
            return Verdict()
        score = float(add_gaussian(np.array([value]), self.answer_scale, randomness)[0])
        return Verdict(score, score - guess)

    def constants(self) -> dict[str, Any]:
        """Every number the theorem speaks of, for the certificate."""
        return self.facts.constants() | {
            "updates": self.updates,
            "test_epsilon": self.test_epsilon,
            "answer_scale": self.answer_scale,
            "threshold": self.threshold,
            "vacuous": self.is_vacuous,
        }


@register_mechanism
@dataclass(frozen=True)
class PaperPINP(PINP):
    """PINP with the paper's constants, corrected where they contradict each other (THEORY.md, 3.4).

    The same Laplace noise of scale ``answer_scale`` (1/eps0) serves the test |value + noise - w(z)| > threshold and the
    answer; an update moves w by threshold/4 towards it. eps0 is Theorem 9's, with S outside the root, the smaller of
    the two printed; B follows from the potential argument. At realistic numbers of records the threshold exceeds
    every value of the function by far (`is_vacuous`), and all answers are 0.

    **Theorem** (JT13 Theorem 2 by Gupta, Roth and Ullman 2012, Theorem 4.1), for ``queries`` (T) queries and
    ``updates`` (B) updates. It is taken from the papers, not proved anew. T and the failure probability beta size B and
    the threshold, 4 log(2 T / beta) / eps0; after T queries the session answers from its public guess.
    """

    updates: int
    answer_scale: float
    threshold: float
    queries: int = QUERIES

    mode: ClassVar[str] = "paper"
    title: ClassVar[str] = "PINP with the paper's constants"
    noise: ClassVar[str] = "laplace"
    chosen_constants: ClassVar[tuple[str, ...]] = ("updates", "answer_scale", "threshold", "queries")
    floating_point: ClassVar[str] = (
        "exact discrete sampler on a grid of 2^-44 of the noise scale; rounding is inside the guarantee"
    )
    renyi: ClassVar[None] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "queries", whole_number(self.queries, "queries"))

    @classmethod
    def calibrate(
        cls, facts: KernelTask, guarantee: Guarantee, *, queries: int = QUERIES, failure: float = FAILURE
    ) -> PaperPINP:
        """B, eps0 and the threshold of Algorithm 1, for T = ``queries`` and beta = ``failure``."""
        _check(facts, guarantee)
        _check_sizes(queries, failure)
        tests = math.log(2.0 * queries / failure)
        updates = _paper_updates(facts, guarantee, tests)
        scale = facts.answer_sensitivity / (
            _paper_share(guarantee, updates) * (1.0 - MARGIN) - 2.0**-GRID_BITS
        )
        return cls(facts, guarantee, updates, scale, 4.0 * scale * tests, queries)

    @property
    def is_vacuous(self) -> bool:
        """True if, whatever the data, every answer is 0, except with the failure probability that it was sized for.

        The noise of all ``queries`` tests stays below a quarter of the threshold except with that probability.
        """
        return self.threshold * 3.0 / 4.0 > self.facts.norm_bound

    def spends(self) -> Guarantee:
        """The theorem's claim, scaled to the noise: twice the noise would have allowed half the epsilon."""
        ratio = self.facts.answer_sensitivity / self.answer_scale + 2.0**-GRID_BITS
        epsilon = ratio / _paper_share(Guarantee(1.0, self.guarantee.delta), self.updates)
        return Guarantee(epsilon, self.guarantee.delta, self.guarantee.neighbours)

    def ask(self, value: float, guess: float, noisy_threshold: int, randomness: Randomness) -> Verdict:
        """Compare the noisy value with the public guess."""
        score = float(add_laplace(np.array([value]), self.answer_scale, randomness)[0])
        if abs(score - guess) <= self.threshold:
            return Verdict()
        return Verdict(score, math.copysign(self.threshold / 4.0, score - guess))

    def constants(self) -> dict[str, Any]:
        """Every number the theorem speaks of, for the certificate."""
        return self.facts.constants() | {
            "queries": self.queries,
            "updates": self.updates,
            "answer_scale": self.answer_scale,
            "threshold": self.threshold,
            "vacuous": self.is_vacuous,
        }


def _check(facts: KernelTask, guarantee: Guarantee) -> None:
    if facts.functions > 1:
        raise InvalidParameter(
            "PINP follows one function, for two classes or a number: take mechanism='function_release'"
        )
    if not guarantee.is_private:
        raise InvalidParameter("PINP without a promise is the learner itself: give a finite epsilon")
    if guarantee.delta == 0:
        raise InvalidParameter("PINP needs delta > 0: pass Guarantee(epsilon, 1e-6)")


def _check_sizes(queries: int, failure: float) -> None:
    whole_number(queries, "queries")
    if not 0 < failure < 1:
        raise InvalidParameter(f"failure must lie between 0 and 1, e.g. 0.05, not {shown(failure)}")


def _tight_threshold(
    test_scale: float, answer_scale: float, updates: int, queries: int, failure: float
) -> float:
    """Twice what the tests' noise reaches, and four times what an answer's reaches, except with ``failure``."""
    on_threshold = 2.0 * test_scale * math.log(3.0 * updates / failure)
    on_distances = 4.0 * test_scale * math.log(3.0 * queries / failure)
    on_answers = answer_scale * math.sqrt(2.0 * math.log(6.0 * updates / failure))
    return max(2.0 * (on_threshold + on_distances), 4.0 * on_answers)


def _paper_updates(facts: KernelTask, guarantee: Guarantee, tests: float) -> int:
    """B = C N epsilon Lambda / (200 sqrt(5) L log(4/delta) log(2T/beta)), at least 1; ``tests``: the last logarithm."""
    task = facts.task
    strength = (
        task.total * task.regularization * guarantee.epsilon / (task.loss.lipschitz * task.weight_bound)
    )
    logarithms = math.log(4.0 / guarantee.delta) * tests
    return max(1, int(facts.norm_bound * strength / (200.0 * math.sqrt(5.0) * logarithms)))


def _paper_share(guarantee: Guarantee, updates: int) -> float:
    """eps0 S = epsilon / (200 sqrt(B) log(4/delta))."""
    return guarantee.epsilon / (200.0 * math.sqrt(updates) * math.log(4.0 / guarantee.delta))


def _fewest(enough: Callable[[int], bool]) -> int:
    """Smallest whole number, at least 1, for which a condition that holds for all large ones holds."""
    high = 1
    while not enough(high):
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high

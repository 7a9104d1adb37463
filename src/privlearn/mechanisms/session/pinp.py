"""PINP: a public guess answers where it agrees with the exact model, by the sparse vector technique."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from privlearn.accounting import MARGIN, Curve, ZcdpCurve, zcdp_budget, zcdp_delta
from privlearn.errors import InvalidParameter, preview, whole_number
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.mechanism import register_mechanism
from privlearn.mechanisms.noise import GRID_BITS, add_gaussian, add_laplace, grid_step
from privlearn.mechanisms.session.task import KernelTask, SessionMechanism
from privlearn.randomness import Randomness


@dataclass(frozen=True)
class AboveThreshold:
    """The sparse vector technique for one update: noise on the threshold once, fresh noise on every distance.

    **Theorem** (Dwork and Roth 2014, Theorem 3.23). If one person moves each distance by at most S, all answers up to
    and including the first "above" are together epsilon-private, with Laplace noise of scale 2 S / epsilon on the
    threshold and 4 S / epsilon on each distance, for any number and adaptive choice of distances.

    Both sides are integers, multiples of one grid step; a rounded distance moves by at most S plus one step.

    Examples
    --------
    >>> from privlearn.randomness import SeededRandomness
    >>> test, randomness = AboveThreshold(sensitivity=0.01, epsilon=1.0, threshold=0.5), SeededRandomness(0)
    >>> noisy_threshold = test.draw_threshold(randomness)
    >>> [test.is_above(distance, noisy_threshold, randomness) for distance in (0.0, 0.1, 5.0)]
    [False, False, True]
    """

    sensitivity: float
    epsilon: float
    threshold: float

    @property
    def _scale(self) -> float:
        # grid_step(scale) is at most scale 2^-44: with this scale, 2 (S + step) / scale is at most epsilon
        return 2.0 * self.sensitivity / (self.epsilon - 2.0 * 2.0**-GRID_BITS)

    def draw_threshold(self, randomness: Randomness) -> int:
        """Return the noisy threshold in grid steps; keep it secret and use it until the first "above"."""
        step = grid_step(self._scale)
        return round(self.threshold / step) + int(randomness.discrete_laplace(self._scale / step, 1)[0])

    def is_above(self, distance: float, noisy_threshold: int, randomness: Randomness) -> bool:
        """Return whether the noisy distance reaches the noisy threshold."""
        step = grid_step(self._scale)
        noise = int(randomness.discrete_laplace(2.0 * self._scale / step, 1)[0])
        # Integers on both sides: a comparison of floats could depend on bits below the noise.
        return round(distance / step) + noise >= noisy_threshold


QUERIES = 10_000
FAILURE = 0.05
"""Defaults of T and beta: the number of queries for which the constants are sized, and the probability that their noise
exceeds what the threshold allows for."""


@dataclass(frozen=True)
class Verdict:
    """Outcome of a query: ``score`` is ``None`` if the public guess is good enough, else the noisy value; the guess
    then moves by ``correction`` times k(z, .)."""

    score: float | None = None
    correction: float = 0.0


class PINP(SessionMechanism):
    """Base of both modes: answers where the distance to a public guess is above a threshold, up to B updates."""

    updates: int
    answer_scale: float
    threshold: float

    name = "pinp"
    page = "pinp"

    def __post_init__(self) -> None:
        _check(self.kernel_task, self.guarantee)
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

    **Theorem.** B (e^2/2 + S^2/(2 s^2))-zCDP, for any number of queries, where S is the sensitivity of a computed
    value; converted by Canonne, Kamath and Steinke (2020), Corollary 13. See docs/theory/pinp.md.

    Examples
    --------
    >>> from privlearn.solvers import Logistic
    >>> from privlearn.mechanisms.task import Task
    >>> task = Task(Logistic(), total=10_000, dimension=5, problems=1, regularization=0.01, tolerance=1e-9,
    ...             neighbours="replace_one")
    >>> session = KernelTask(task, solver_distance=1e-9)
    >>> mechanism = TightPINP.calibrate(session, Guarantee(1.0, 1e-6), queries=1_000)
    >>> mechanism.updates, round(mechanism.threshold, 2)
    (2, 19.42)
    """

    updates: int
    test_epsilon: float
    answer_scale: float
    threshold: float

    title = "PINP, corrections where a public guess is wrong"
    noise = "laplace and gaussian"
    calibrated_constants = ("updates", "test_epsilon", "answer_scale", "threshold")
    floating_point = (
        "exact discrete samplers on grids of 2^-44 of the noise scales; rounding is inside the guarantee"
    )
    queries: ClassVar[int | None] = None

    @classmethod
    def calibrate(
        cls,
        kernel_task: KernelTask,
        guarantee: Guarantee,
        *,
        queries: int = QUERIES,
        failure: float = FAILURE,
    ) -> TightPINP:
        """Return the mechanism that splits the guarantee evenly between tests and answers, over all needed updates.

        The threshold is twice a bound on the noise of ``queries`` tests that fails with probability ``failure``: these
        two affect the threshold, which grows like log(queries), and not the guarantee.
        """
        _check(kernel_task, guarantee)
        _check_sizes(queries, failure)
        rho = zcdp_budget(guarantee.epsilon, guarantee.delta) * (1.0 - MARGIN)

        def with_updates(updates: int) -> TightPINP:
            test_epsilon = math.sqrt(rho / updates)
            answer_scale = kernel_task.answer_sensitivity / (test_epsilon - 2.0**-GRID_BITS)
            noises = kernel_task.answer_sensitivity / test_epsilon, answer_scale
            threshold = _tight_threshold(*noises, updates, queries, failure)
            return cls(kernel_task, guarantee, updates, test_epsilon, answer_scale, threshold)

        return with_updates(
            _smallest_number(lambda updates: updates >= with_updates(updates)._updates_needed)
        )

    @property
    def test(self) -> AboveThreshold:
        return AboveThreshold(self.kernel_task.answer_sensitivity, self.test_epsilon, self.threshold)

    @property
    def is_vacuous(self) -> bool:
        """True if on any data all answers it was sized for are 0, except with the failure probability.

        The tests' noise stays below half of the threshold except with that probability, so the guess 0 is corrected
        only at values above the other half. Where only the whole threshold exceeds every value, this is False: noise
        may still correct the guess where the value is large.
        """
        return self.threshold / 2.0 > self.kernel_task.norm_bound

    @property
    def _updates_needed(self) -> float:
        # Each update shrinks |f - w|^2 by at least (threshold/2)^2 - (threshold/4)^2.
        return 16.0 * self.kernel_task.norm_bound**2 / (3.0 * self.threshold**2)

    def spends(self) -> Guarantee:
        epsilon = self.guarantee.epsilon
        delta = zcdp_delta(self._rho, epsilon * (1.0 - MARGIN)) / (1.0 - MARGIN)
        return Guarantee(epsilon, delta, self.guarantee.neighbours)

    def curve(self) -> Curve:
        """Return the curve that zCDP implies."""
        return ZcdpCurve(self._rho)

    def renyi(self, order: float) -> float:
        return order * self._rho

    @property
    def _rho(self) -> float:
        ratio = self.kernel_task.answer_sensitivity / self.answer_scale + 2.0**-GRID_BITS
        return self.updates * (self.test_epsilon**2 + ratio**2) / 2.0

    def draw_threshold(self, randomness: Randomness) -> int:
        """Return the secret to be stored until the next update."""
        return self.test.draw_threshold(randomness)

    def ask(self, value: float, guess: float, noisy_threshold: int, randomness: Randomness) -> Verdict:
        """Compare the private value with the public guess."""
        if not self.test.is_above(abs(value - guess), noisy_threshold, randomness):
            return Verdict()
        score = float(add_gaussian(np.array([value]), self.answer_scale, randomness)[0])
        return Verdict(score, score - guess)

    def constants(self) -> dict[str, Any]:
        return self.kernel_task.constants() | {
            "updates": self.updates,
            "test_epsilon": self.test_epsilon,
            "answer_scale": self.answer_scale,
            "threshold": self.threshold,
            "vacuous": self.is_vacuous,
        }


@register_mechanism
@dataclass(frozen=True)
class PaperPINP(PINP):
    """PINP with the paper's constants, corrected where they contradict each other (docs/theory/pinp.md).

    The same Laplace noise of scale ``answer_scale`` (1/eps0) serves the test |value + noise - w(z)| > threshold and the
    answer; an update moves w by threshold/4 towards it. eps0 is Theorem 9's, with S outside the root, the smaller of
    the two printed; B = C epsilon / (200 sqrt(5) S log(4/delta) log(2T/beta)) follows from the potential argument with
    that eps0 and S = 2 L / (N Lambda) (L / (N Lambda) where no record is replaced). At realistic numbers of records the
    threshold far exceeds every value of the function (`is_vacuous`), and all answers are 0.

    **Theorem** (JT13 Theorem 2 by Gupta, Roth and Ullman 2012, Theorem 4.1), for ``queries`` (T) queries and
    ``updates`` (B) updates. It is taken from the papers, not proved again. T and the failure probability beta size B
    and the threshold, 4 log(2 T / beta) / eps0; after T queries the session answers from its public guess.

    Examples
    --------
    >>> from privlearn.solvers import Logistic
    >>> from privlearn.mechanisms.task import Task
    >>> task = Task(Logistic(), total=10_000, dimension=5, problems=1, regularization=0.01, tolerance=1e-9,
    ...             neighbours="replace_one")
    >>> session = KernelTask(task, solver_distance=1e-9)
    >>> mechanism = PaperPINP.calibrate(session, Guarantee(1.0, 1e-6), queries=1_000)
    >>> mechanism.updates, round(mechanism.threshold, 2)
    (1, 2577.41)
    """

    updates: int
    answer_scale: float
    threshold: float
    queries: int = QUERIES

    mode = "paper"
    title = "PINP with the paper's constants"
    noise = "laplace"
    calibrated_constants = ("updates", "answer_scale", "threshold", "queries")
    floating_point = (
        "exact discrete sampler on a grid of 2^-44 of the noise scale; rounding is inside the guarantee"
    )
    renyi: ClassVar[None] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "queries", whole_number(self.queries, "queries"))

    @classmethod
    def calibrate(
        cls,
        kernel_task: KernelTask,
        guarantee: Guarantee,
        *,
        queries: int = QUERIES,
        failure: float = FAILURE,
    ) -> PaperPINP:
        """Return B, eps0 and the threshold of Algorithm 1, for T = ``queries`` and beta = ``failure``."""
        _check(kernel_task, guarantee)
        _check_sizes(queries, failure)
        tests = math.log(2.0 * queries / failure)
        updates = _paper_updates(kernel_task, guarantee, tests)
        scale = kernel_task.answer_sensitivity / (
            _paper_share(guarantee, updates) * (1.0 - MARGIN) - 2.0**-GRID_BITS
        )
        return cls(kernel_task, guarantee, updates, scale, 4.0 * scale * tests, queries)

    @property
    def is_vacuous(self) -> bool:
        """True if on any data every answer is 0, except with the failure probability that it was sized for.

        The noise of all ``queries`` tests stays below a quarter of the threshold except with that probability.
        """
        return self.threshold * 3.0 / 4.0 > self.kernel_task.norm_bound

    def spends(self) -> Guarantee:
        """Return the theorem's claim, scaled to the noise: twice the noise gives half the epsilon."""
        ratio = self.kernel_task.answer_sensitivity / self.answer_scale + 2.0**-GRID_BITS
        epsilon = ratio / _paper_share(Guarantee(1.0, self.guarantee.delta), self.updates)
        return Guarantee(epsilon, self.guarantee.delta, self.guarantee.neighbours)

    def ask(self, value: float, guess: float, noisy_threshold: int, randomness: Randomness) -> Verdict:
        """Compare the noisy value with the public guess."""
        score = float(add_laplace(np.array([value]), self.answer_scale, randomness)[0])
        if abs(score - guess) <= self.threshold:
            return Verdict()
        return Verdict(score, math.copysign(self.threshold / 4.0, score - guess))

    def constants(self) -> dict[str, Any]:
        return self.kernel_task.constants() | {
            "queries": self.queries,
            "updates": self.updates,
            "answer_scale": self.answer_scale,
            "threshold": self.threshold,
            "vacuous": self.is_vacuous,
        }


def _check(kernel_task: KernelTask, guarantee: Guarantee) -> None:
    if kernel_task.functions > 1:
        raise InvalidParameter(
            "PINP answers for one function only, of two classes or a number. Pass mechanism='function_release'."
        )
    if not guarantee.is_private:
        raise InvalidParameter("PINP needs a finite epsilon. Without privacy, use the learner itself.")
    if guarantee.delta == 0:
        raise InvalidParameter("PINP needs delta > 0. Pass Guarantee(epsilon, 1e-6)")


def _check_sizes(queries: int, failure: float) -> None:
    whole_number(queries, "queries")
    if not 0 < failure < 1:
        raise InvalidParameter(f"failure must lie between 0 and 1, e.g. 0.05, not {preview(failure)}")


def _tight_threshold(
    test_scale: float, answer_scale: float, updates: int, queries: int, failure: float
) -> float:
    """Return twice a bound on the tests' noise, or four times one on the answers', with probability ``failure``."""
    on_threshold = 2.0 * test_scale * math.log(3.0 * updates / failure)
    on_distances = 4.0 * test_scale * math.log(3.0 * queries / failure)
    on_answers = answer_scale * math.sqrt(2.0 * math.log(6.0 * updates / failure))
    return max(2.0 * (on_threshold + on_distances), 4.0 * on_answers)


def _paper_updates(kernel_task: KernelTask, guarantee: Guarantee, tests: float) -> int:
    """Return B = C epsilon / (200 sqrt(5) S log(4/delta) log(2T/beta)), at least 1; ``tests`` is the last logarithm.

    It solves B = 16 C^2 / (5 threshold^2) for the threshold that B itself leads to.
    """
    logarithms = math.log(4.0 / guarantee.delta) * tests
    needed = kernel_task.norm_bound * guarantee.epsilon / (200.0 * math.sqrt(5.0) * logarithms)
    return max(1, int(needed / kernel_task.answer_sensitivity))


def _paper_share(guarantee: Guarantee, updates: int) -> float:
    """Return eps0 S = epsilon / (200 sqrt(B) log(4/delta))."""
    return guarantee.epsilon / (200.0 * math.sqrt(updates) * math.log(4.0 / guarantee.delta))


def _smallest_number(enough: Callable[[int], bool]) -> int:
    """Return the smallest whole number, at least 1, that satisfies a monotone condition."""
    high = 1
    while not enough(high):
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high

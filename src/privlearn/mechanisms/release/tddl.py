"""TDDL, JT13's test data dependent learner: noisy answers at public probes, then least squares.

`NormBoundedLearner` adds a private bound on the minimiser's norm: JT13 section 5, "by adding a small noise to |w*|".
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from privlearn.accounting import MARGIN, Curve, PureCurve, curve_of_runs, pure_renyi
from privlearn.accounting.functions import root
from privlearn.arrays import Array
from privlearn.errors import DataError, InvalidParameter, whole_number
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.mechanism import register_mechanism
from privlearn.mechanisms.noise import GRID_BITS, add_laplace
from privlearn.mechanisms.oracle import MinimiserOracle
from privlearn.mechanisms.release.answers import AnsweringMechanism, check_probes, least_squares_in_ball
from privlearn.mechanisms.task import Task
from privlearn.randomness import Randomness

FAILURE = 0.05
"""Probability that the private ball does not contain the minimiser; it affects accuracy only."""


@register_mechanism
@dataclass(frozen=True)
class TestDataDependentLearner(AnsweringMechanism):
    """Answer T public probes with Laplace noise; release the model of norm at most C that fits the answers best.

    **Theorem** (JT13 Algorithm 2 and Theorem 4; Dwork, Rothblum and Vadhan 2010 as JT13 Theorem 11). One person moves
    an answer <w, psi(z)>, |psi(z)| <= 1, by at most S = D2 + 2 t + rounding, so each answer costs
    e0 = S / scale + 2^-44, purely; T answers for each of K problems, k = K T, cost together

        epsilon = sqrt(2 k log(1 / delta)) e0 + k e0 (exp(e0) - 1).

    The least squares that follow use the noisy answers and the public probes only. Any ball that contains w is valid
    for them: C = min(L / Lambda, sqrt(l(0) / Lambda)), where JT13's Corollary 6 prints 2 L / Lambda.

    JT13 gives only the order of the scale; here it is the smallest that Theorem 11 allows. The noise in an answer grows
    like sqrt(T): this is a paper's mode, for comparison (docs/theory/tddl.md).

    Parameters
    ----------
    probes_count : int
        T, number of public probes, with repetitions.

    Examples
    --------
    >>> from privlearn.solvers import Logistic
    >>> task = Task(Logistic(), total=10_000, dimension=5, problems=1, regularization=0.01, tolerance=1e-9,
    ...             neighbours="replace_one")
    >>> mechanism = TestDataDependentLearner.calibrate(task, Guarantee(1.0, 1e-6), "laplace", "jt13", points=100)
    >>> mechanism.answers_count, round(mechanism.answer_epsilon, 4), round(mechanism.noise_scale, 3)
    (100, 0.0184, 1.088)
    """

    noise_scale: float
    probes_count: int

    name = "tddl"
    title = "test data dependent learner (TDDL)"
    page = "tddl"
    perturbs = "answers"
    calibrated_constants = ("noise_scale", "probes_count")
    combinations: ClassVar[dict[str, tuple[str, ...]]] = {"jt13": ("laplace",)}

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.guarantee.is_private and self.guarantee.delta == 0:
            raise InvalidParameter(
                "tddl needs delta > 0 for the composition of its answers. Pass delta=1e-6."
            )
        object.__setattr__(self, "probes_count", whole_number(self.probes_count, "probes_count"))

    @classmethod
    def calibrate(
        cls, task: Task, guarantee: Guarantee, noise: str, calibration: str, *, points: int | None = None
    ) -> TestDataDependentLearner:
        cls.check_combination(noise, calibration)
        if points is None:
            raise InvalidParameter("mechanism='tddl' answers at public points. Pass public_points=table")
        task = task.certifiable()
        unit = cls(task, guarantee, noise, calibration, math.nan, points)
        scale = unit._min_scale() if guarantee.is_private else 0.0
        return cls(task, guarantee, noise, calibration, scale, points)

    @property
    def noisy_numbers(self) -> int:
        return self.probes_count

    @property
    def answers_count(self) -> int:
        """k: number of noisy values released."""
        return self.task.problems * self.noisy_numbers

    @property
    def answer_epsilon(self) -> float:
        """e0: cost of one answer, the grid's rounding included."""
        return self.sensitivity / self.noise_scale + 2.0**-GRID_BITS

    def spends(self) -> Guarantee:
        if not self.guarantee.is_private:
            return Guarantee(math.inf, 0.0, self.task.neighbours)
        return Guarantee(self._compose(self.answer_epsilon), self.guarantee.delta, self.task.neighbours)

    def curve(self) -> Curve:
        """Return the curve of all answers, each of which is pure."""
        return curve_of_runs(PureCurve(self.answer_epsilon), self.answers_count)

    def renyi(self, order: float) -> float:
        return self.answers_count * pure_renyi(self.answer_epsilon, order)

    def exact_answers(self, minimiser: Array, points: Array) -> Array:
        """PRIVATE: return the exact numbers to which noise is added."""
        return np.asarray(points @ minimiser)

    def run(self, oracle: MinimiserOracle, randomness: Randomness) -> Array:
        """Touch the data: solve, answer the probes with noise, fit the answers; the result may be released."""
        minimisers = oracle.minimise(None, self.effective_regularization)
        if not self.guarantee.is_private:
            return minimisers
        points = self._check(oracle.points)
        # Exact answers never leave this method.
        exact = np.array([self.exact_answers(w, points) for w in minimisers])
        return self.fit_answers(points, add_laplace(exact, self.noise_scale, randomness))

    def fit_answers(self, points: Array, answers: Array) -> Array:
        """Return one model per row of noisy answers: post-processing."""
        return least_squares_in_ball(points, answers, self.task.ball_radius)

    def constants(self) -> dict[str, Any]:
        return {
            "minimiser_sensitivity": self.task.minimiser_sensitivity,
            "solver_distance": self.task.solver_distance,
            "sensitivity": self.sensitivity,
            "ball_radius": self.task.ball_radius,
            "probes_count": self.probes_count,
            "answers_count": self.answers_count,
            "answer_epsilon": self.answer_epsilon if self.guarantee.is_private else 0.0,
            "noise_scale": self.noise_scale,
        }

    def _check(self, probes: Any) -> Array:
        if probes is None:
            raise DataError(
                "tddl answers public probes. Give the oracle the features of public points, one per row"
            )
        points = check_probes(probes, self.task.dimension)
        if len(points) != self.probes_count:
            raise DataError(f"the noise was calibrated for {self.probes_count} probes, not {len(points)}")
        return points

    def _compose(self, answer_epsilon: float) -> float:
        """Return the epsilon of all answers by Theorem 11."""
        count = self.answers_count
        deviation = math.sqrt(2.0 * count * math.log(1.0 / self.guarantee.delta)) * answer_epsilon
        return deviation + count * answer_epsilon * math.expm1(answer_epsilon)

    def _min_scale(self) -> float:
        target = self.guarantee.epsilon * (1.0 - MARGIN)
        # the first term alone reaches the target at ``upper``
        upper = target / math.sqrt(2.0 * self.answers_count * math.log(1.0 / self.guarantee.delta))
        share = root(lambda e: self._compose(e) - target, 0.0, upper, xtol=1e-300, rtol=1e-14)
        return self.sensitivity / (share * (1.0 - MARGIN) - 2.0**-GRID_BITS)


@register_mechanism
@dataclass(frozen=True)
class NormBoundedLearner(TestDataDependentLearner):
    """TDDL with a private ball: the norm |w| is one more noisy answer, for each of K problems.

    **Theorem** (JT13 section 5 and Theorem 11). Since ||w| - |w'|| <= |w - w'|, one person moves |w| by at most the S
    of an answer (the norm's own rounding is below that of a product), so T + 1 numbers with Laplace noise cost what
    `TestDataDependentLearner` states for T + 1 probes. The ball is

        C = min(noisy norm + scale log(1 / (2 FAILURE)), public C), at least 0,

    which contains w except with probability FAILURE, and is post-processing. The public C, min(L / Lambda,
    sqrt(l(0) / Lambda)), may be many times |w|; at the noise of T answers the estimate is coarse, and where the noise
    exceeds |w| the smaller ball keeps the model useful (docs/theory/tddl.md, "A private ball").

    Examples
    --------
    >>> from privlearn.solvers import Logistic
    >>> task = Task(Logistic(), total=10_000, dimension=5, problems=1, regularization=0.01, tolerance=1e-9,
    ...             neighbours="replace_one")
    >>> mechanism = NormBoundedLearner.calibrate(task, Guarantee(1.0, 1e-6), "laplace", "jt13", points=100)
    >>> mechanism.answers_count
    101
    >>> round(mechanism.radius(noisy_norm=0.5), 3)
    3.019
    """

    name = "tddl_norm"
    title = "test data dependent learner (TDDL) with a private norm bound"

    @property
    def noisy_numbers(self) -> int:
        return self.probes_count + 1

    def exact_answers(self, minimiser: Array, points: Array) -> Array:
        """PRIVATE: return the answers at the points, and last the norm."""
        return np.append(super().exact_answers(minimiser, points), np.linalg.norm(minimiser))

    def fit_answers(self, points: Array, answers: Array) -> Array:
        """Return one model per row of noisy answers, each in its own ball: post-processing."""
        return np.concatenate(
            [least_squares_in_ball(points, row[np.newaxis, :-1], self.radius(row[-1])) for row in answers]
        )

    def radius(self, noisy_norm: float) -> float:
        """Return C for a noisy norm; slightly above 0, so that the ball is not empty."""
        reach = noisy_norm + self.noise_scale * math.log(1.0 / (2.0 * FAILURE))
        return min(max(reach, 1e-9 * self.task.ball_radius), self.task.ball_radius)

"""Accelerated gradient descent on noisy sums of gradients: the default for many holders."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from privlearn import accounting
from privlearn.arrays import Array
from privlearn.errors import InvalidParameter
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.mechanism import register_mechanism
from privlearn.mechanisms.summed import summed
from privlearn.mechanisms.task import Task

CURVATURE_SHARE = 0.1
"""Share of the budget (in zCDP) for the second moments: 5 % more noise in the gradients."""

ROUNDS_PER_ROOT = 2.0
"""Rounds over the square root of the condition number: e^-2 of the distance remains in the flattest direction."""

DEVIATIONS = 4.0
"""The noise in the second moments is longer than its bound with probability at most exp(-4^2 / 2), 1 in 3,000."""

MAX_MOMENTS = 2**21
"""Numbers in the second moments' sum above which it costs more than the rounds it saves: about 2,000 features."""

Solve = Callable[[Array, int], Array]
"""Returns a step, from a gradient and the number of records it averages."""


@register_mechanism
@dataclass(frozen=True)
class NoisyDescent(summed.SummedMechanism):
    """Query the gradient T times, each sum with Gaussian noise; descend with momentum; average the last half.

    **Theorem** (Dong, Roth and Su 2019, Corollary 3.3; docs/theory/multiparty.md). One person moves the sum of all
    gradients by at most S = 2 L (L for zero_out), sqrt(P) times that for P problems, at any point; all classes of the
    softmax loss are one problem, with L = sqrt(2). One person moves the sum of x x' by at most S2 = sqrt(2) in
    Frobenius norm (1 for zero_out). Gaussian noise of scale s on each of T gradients, and s2 on the second moments,
    costs, all answers together and for any dependence of points on earlier answers, exactly as much as one Gaussian
    mechanism of sensitivity / noise scale

        ratio = sqrt(T (S / s)^2 + (S2 / s2)^2),    delta(epsilon) = HS(epsilon, ratio),

    which is ratio^2 / 2 zCDP. Rounding of the sums and to the grid enlarges S / s and S2 / s2 slightly.

    **Calibrations**: ``plain`` asks for gradients only and steps by 1 / (c + Lambda). ``preconditioned`` first asks for
    the sum C of x x', with a tenth of the budget. As every Hessian of the loss is at most c C / N, steps are measured
    by M = c (C + t) / N + Lambda, t a bound on the noise's spectral norm: as safe, and the condition number falls from
    1 + c / Lambda to 1 + c t / (N Lambda). Step, momentum and T follow from public numbers alone.

    Examples
    --------
    >>> from privlearn.solvers import Logistic
    >>> task = Task(Logistic(), total=10_000, dimension=5, problems=1, regularization=0.01, tolerance=1e-9,
    ...             neighbours="replace_one")
    >>> mechanism = NoisyDescent.calibrate(
    ...     task, Guarantee(1.0, 1e-6), "gaussian", "preconditioned", parties=3, shares=2
    ... )
    >>> mechanism.rounds, round(mechanism.noise_scale, 1)
    (3, 15.4)
    >>> mechanism.spends() <= Guarantee(1.0, 1e-6)
    True
    """

    noise_scale: float

    name = "noisy_descent"
    title = "noisy gradient descent over a secure sum"
    calibrated_constants = ("parties", "shares", "rounds", "noise_scale")
    combinations: ClassVar[dict[str, tuple[str, ...]]] = {
        "preconditioned": ("gaussian",),
        "plain": ("gaussian",),
    }

    @classmethod
    def calibrate(
        cls,
        task: Task,
        guarantee: Guarantee,
        noise: str,
        calibration: str,
        *,
        parties: int,
        shares: int,
        rounds: int | None = None,
    ) -> NoisyDescent:
        cls.check_combination(noise, calibration)
        if guarantee.is_private and guarantee.delta == 0:
            raise InvalidParameter(
                "noisy descent adds Gaussian noise, which needs delta > 0. Pass delta=1e-6"
            )
        if rounds is None:
            rounds = _default_rounds(task, guarantee, calibration, summed.surplus(parties, shares))
        draft = cls(task, guarantee, noise, calibration, parties, shares, rounds, math.nan)
        scale = draft._min_scale() if guarantee.is_private else 0.0
        return cls(task, guarantee, noise, calibration, parties, shares, rounds, scale)

    @classmethod
    def better_calibration(cls, task: Task, guarantee: Guarantee, *, parties: int, shares: int) -> str:
        """``preconditioned`` if it at least halves the number of rounds and its one large sum is not too large."""
        if not guarantee.is_private or _moments(task) > MAX_MOMENTS:
            return "plain"
        extra = summed.surplus(parties, shares)
        plain, better = (_condition(task, guarantee, kind, extra) for kind in ("plain", "preconditioned"))
        return "preconditioned" if 4.0 * better <= plain else "plain"

    @classmethod
    def explain_refusal(cls, task: Task, noise: str) -> str | None:
        if not math.isfinite(task.loss.smoothness):
            return f"descent needs a smooth loss, and the {task.loss.name} is not"
        return None

    @property
    def curvature_noise_scale(self) -> float:
        """s2: the scale that spends `CURVATURE_SHARE` of the whole budget."""
        odds = (1.0 - CURVATURE_SHARE) / CURVATURE_SHARE
        factor = math.sqrt(odds / self.rounds) * self.noise_scale / self.sum_sensitivity
        return _moment_sensitivity(self.task) * factor

    @property
    def condition(self) -> float:
        """Condition number for which step sizes and momentum are chosen."""
        return _condition(self.task, self.guarantee, self.calibration, self.surplus)

    def spends(self) -> Guarantee:
        if not self.guarantee.is_private:
            return Guarantee(math.inf, 0.0, self.task.neighbours)
        epsilon = self.guarantee.epsilon
        delta = accounting.gaussian_delta(self.ratio, epsilon)
        return Guarantee(epsilon, delta, self.task.neighbours)

    def curve(self) -> accounting.Curve:
        """Return the curve of the one Gaussian mechanism equivalent to the whole run."""
        return accounting.GaussianCurve(self.ratio)

    def renyi_of(self, kinds: tuple[str, ...], order: float) -> float:
        return order * self._ratio_of(kinds) ** 2 / 2.0

    @property
    def ratio(self) -> float:
        """Sensitivity / noise scale of the one Gaussian mechanism equivalent to the whole run."""
        return self._ratio_of(self.kinds)

    def epsilon_of(self, kinds: tuple[str, ...]) -> float:
        return accounting.gaussian_epsilon(self._ratio_of(kinds), self.guarantee.delta) if kinds else 0.0

    def _ratio_of(self, kinds: tuple[str, ...]) -> float:
        gradient = self.sum_sensitivity / self.noise_scale + summed.grid_ratio(self._length)
        moments = _moment_sensitivity(self.task) / self.curvature_noise_scale + summed.grid_ratio(
            _moments(self.task)
        )
        squares = kinds.count("gradients") * gradient**2 + kinds.count("second_moments") * moments**2
        return math.sqrt(squares)

    @property
    def kinds(self) -> tuple[str, ...]:
        return ("second_moments",) * self._asks_moments + ("gradients",) * self.rounds

    def _describe_question(self, kind: str) -> tuple[int, float, tuple[summed.Noise, ...]]:
        if kind == "gradients":
            return self._length, self._gradient_bound, self._noise(self.noise_scale)
        # |x_j x_k| sqrt(2) <= 1 off the diagonal too
        bound = self.task.total * self.task.mass_bound * (1.0 + 2.0**-20)
        return _moments(self.task), bound, self._noise(self.curvature_noise_scale)

    def run(self, sums: summed.NoisySums) -> Array:
        task, share = self.task, 1.0 / math.sqrt(self.condition)
        # Nesterov's momentum for this condition number. The mean of the later points has less noise than the last
        # one.
        momentum, first_averaged = (1.0 - share) / (1.0 + share), self.rounds // 2
        solve = self._metric(sums) if self._asks_moments else self._plain
        before = here = total = np.zeros((task.problems, task.dimension))
        for number in range(self.rounds):
            ahead = here + momentum * (here - before)
            answer = sums.ask(self.question(self._asks_moments + number, ahead))
            gradient = answer.vector.reshape(ahead.shape) / answer.total + task.regularization * ahead
            before, here = here, ahead - solve(gradient, answer.total)
            if number >= first_averaged:
                total = total + here
        return total.reshape(-1, task.features) / (self.rounds - first_averaged)

    def constants(self) -> dict[str, Any]:
        private = self.guarantee.is_private
        moments = {
            "second_moment_sensitivity": _moment_sensitivity(self.task),
            "curvature_noise_scale": self.curvature_noise_scale if private else 0.0,
        }
        return {
            **self._common_constants(),
            "gradient_sensitivity": self.task.gradient_sensitivity,
            "rounded_sensitivity": self.sum_sensitivity,
            "noise_scale": self.noise_scale,
            **(moments if self._asks_moments else {}),
            "share_scale": self.noise_scale / math.sqrt(self.shares),
            "ratio": self.ratio if private else 0.0,
            "zcdp": self.renyi(1.0) if private else 0.0,
        }

    @property
    def _asks_moments(self) -> bool:
        return self.calibration == "preconditioned"

    @property
    def transcript(self) -> str:
        moments = "one noisy sum of second moments and " if self._asks_moments else ""
        return f"{moments}{self.rounds} noisy sums of gradients"

    def _noise(self, scale: float) -> tuple[summed.Noise, ...]:
        return (summed.Noise("gaussian", scale),) if self.guarantee.is_private else ()

    def _plain(self, gradient: Array, total: int) -> Array:
        return gradient / (self.task.loss.smoothness * self.task.mass_bound + self.task.regularization)

    def _metric(self, sums: summed.NoisySums) -> Solve:
        """Return steps M^-1 gradient; the sum also bounds the Hessian of fewer holders, if some drop out later."""
        task = self.task
        values, vectors = np.linalg.eigh(summed.unpack(sums.ask(self.question(0)).vector, task.features))
        if self.guarantee.is_private:
            # Noise may lower eigenvalues; shifted by a bound on the noise, they bound the true ones from above.
            shift = _spectral_bound(task, self.surplus * self.curvature_noise_scale)
            values = np.maximum(values + shift, 0.0)

        def solve(gradient: Array, total: int) -> Array:
            stiffness = task.loss.smoothness * values / total + task.regularization
            scores = gradient.reshape(-1, task.features)
            return np.reshape((scores @ vectors / stiffness) @ vectors.T, gradient.shape)

        return solve

    def _min_scale(self) -> float:
        target = accounting.gaussian_ratio(self.guarantee.epsilon, self.guarantee.delta) * (
            1.0 - accounting.MARGIN
        )
        share = 1.0 - CURVATURE_SHARE if self._asks_moments else 1.0
        grid = math.sqrt(self.rounds) * summed.grid_ratio(self._length)
        if self._asks_moments:
            grid = math.hypot(grid, summed.grid_ratio(_moments(self.task)))
        # Minkowski: the root of the sum of squares of both parts is at most the sum of the roots
        return self.sum_sensitivity * math.sqrt(self.rounds / share) / (target - grid)


def _default_rounds(task: Task, guarantee: Guarantee, calibration: str, extra: float) -> int:
    root = math.sqrt(_condition(task, guarantee, calibration, extra))
    if guarantee.is_private:
        return math.ceil(ROUNDS_PER_ROOT * root)
    # without noise: until half of the rounds bring the gradient, at most 2 L at the start, to the tolerance
    return math.ceil(2.0 * root * math.log(1e3 * root**2 / task.tolerance))


def _condition(task: Task, guarantee: Guarantee, calibration: str, extra: float) -> float:
    """Return the condition number of the Hessian in the calibration's metric, by public numbers.

    ``extra`` is the noise in a sum relative to the guaranteed noise.
    """
    curvature = task.loss.smoothness * task.mass_bound
    if calibration == "preconditioned" and guarantee.is_private:
        ratio = accounting.gaussian_ratio(guarantee.epsilon, guarantee.delta)
        scale = extra * _moment_sensitivity(task) / (math.sqrt(CURVATURE_SHARE) * ratio)
        curvature = task.loss.smoothness * _spectral_bound(task, scale) / task.total
    return 1.0 + curvature / task.regularization


def _moment_sensitivity(task: Task) -> float:
    """Return the sensitivity of the computed sum of weight x x', in Frobenius norm.

    Two positive semidefinite matrices of trace at most 1 are at most sqrt(2) apart, and one is at most 1 from zero.
    """
    return task.relation.moments * task.max_weight * task.records_of_a_person + summed.summation_error(
        task, 1.0
    )


def _moments(task: Task) -> int:
    return task.features * (task.features + 1) // 2


def _spectral_bound(task: Task, scale: float) -> float:
    """Return a bound on the norm of a symmetric Gaussian matrix: at most sqrt(2 d) on average, plus deviations."""
    return scale * (math.sqrt(2.0 * task.features) + DEVIATIONS)

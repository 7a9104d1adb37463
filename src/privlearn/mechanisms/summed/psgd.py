"""PSGD, RA12's stochastic gradient descent for many holders, with the guarantees its noise gives."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from privlearn import accounting
from privlearn.arrays import Array
from privlearn.errors import InvalidParameter
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.mechanism import register_mechanism
from privlearn.mechanisms.summed.summed import Noise, NoisySums, SummedMechanism
from privlearn.mechanisms.task import Task

ROUNDS_PER_CONDITION = 10  # relative to t0 = 1 + c / Lam
MIN_ROUNDS, MAX_ROUNDS = 100, 1000
SPLIT_ROUNDS = 3  # of the calibration ``split``


@register_mechanism
@dataclass(frozen=True)
class PrivateSGD(SummedMechanism):
    """RA12's descent on sums of gradients, to each of which every holder adds a fresh, whole norm-Gamma vector.

    **Theorem.** One person moves the sum of one holder's gradients by at most S = 2 L (L for zero_out), at any point,
    and the computed sum by at most S', rounding included. With a vector of density exp(-|b| / s) added before the
    result is rounded, that holder's answer is e = S' / s private, for any behaviour and knowledge of the coordinator
    and all other holders. T rounds cost T e (RA12 section 3.2), or with a delta the optimal composition of T pure
    mechanisms (Kairouz, Oh and Viswanath 2015). That is this mechanism's ``guarantee``.

    **Calibration ``split``**, for delta = 0: section 3.2 with sum_t epsilon_t = epsilon, here epsilon_t = epsilon / T.
    All T sums together are epsilon-private, and so is everything computed from them.

    **Calibration ``ra12``**, for delta > 0: Algorithm 1, Procedures 2 and 3. s = S / epsilon, and every holder adds a
    second vector, Gaussian, drawn once for all rounds. What the paper claims (RA12 Theorem 4.2): the *limit* of the
    descent is the minimiser of J(w) + (D/2) |w|^2 + <eta, w> / N with eta the sum of these vectors, Gaussian objective
    perturbation, and so (limit_epsilon, delta)-private, if the same holders answer every round. The scale of eta is
    `ra12_noise_scale` at epsilon minus the slack 2 log(1 + c / (N Lam)); to keep it when holders collude, each
    adds N(0, scale^2 / shares). But the coordinator sees T sums, and in the difference of two of them eta
    cancels: only the fresh noise protects them. A certificate states both.

    **Corrected misprints**: Procedure 2's exp(c/4) is exp(epsilon/4), as in CMS11; Procedure 3's (sigma epsilon - 2)^2
    is (sigma^2 epsilon - 2)^2; the appendix once has the loss gradient's sign wrong (docs/theory/multiparty.md).

    **Choices that the paper leaves open.** The start is 0. The step sizes are 1 / (Lam (t + t0)) with t0 = 1 + c / Lam:
    their sum diverges, and that of their squares does not. The number of rounds is 10 t0, at least 100 and at most
    1,000. With ``split`` it is 3, because the noise of every round grows with their number; at RA12's sizes a single
    round would be best.

    Examples
    --------
    >>> from privlearn.solvers import Logistic
    >>> task = Task(Logistic(), total=10_000, dimension=5, problems=1, regularization=0.01, tolerance=1e-9,
    ...             neighbours="replace_one")
    >>> mechanism = PrivateSGD.calibrate(task, Guarantee(1.0, 1e-6), "norm_gamma", "ra12", parties=3, shares=2)
    >>> mechanism.rounds, round(mechanism.run_noise_scale, 1)
    (260, 12.2)
    """

    limit_epsilon: float

    name = "psgd"
    title = "private stochastic gradient descent (PSGD) over a secure sum"
    calibrated_constants = ("parties", "shares", "rounds", "limit_epsilon")
    combinations: ClassVar[dict[str, tuple[str, ...]]] = {"ra12": ("norm_gamma",), "split": ("norm_gamma",)}

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.guarantee.is_private or self._splits != (self.guarantee.delta == 0):
            raise InvalidParameter(
                "PSGD needs a finite epsilon: with delta > 0 for calibration 'ra12', with delta 0 for 'split'"
            )

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
    ) -> PrivateSGD:
        """Return the mechanism for a guarantee; its ``limit`` is the paper's claim for the limit of the descent."""
        cls.check_combination(noise, calibration)
        draft = cls(task, guarantee, noise, calibration, parties, shares, 1, guarantee.epsilon)
        rounds = draft._default_rounds() if rounds is None else rounds
        if draft._splits:
            return replace(draft, rounds=rounds)
        epsilon = accounting.pure_composition_epsilon(draft.round_epsilon, rounds, guarantee.delta)
        claim = Guarantee(epsilon * (1.0 + accounting.MARGIN), guarantee.delta, guarantee.neighbours)
        return cls(task, claim, noise, calibration, parties, shares, rounds, guarantee.epsilon)

    @classmethod
    def explain_refusal(cls, task: Task, noise: str) -> str | None:
        """Return why the theorems do not cover this task; ``None`` if they do."""
        if not (math.isfinite(task.loss.smoothness) and task.loss.monotone):
            return f"RA12's theorem needs a smooth margin loss, and the {task.loss.name} is not"
        if task.problems > 1 or task.records_of_a_person > 1 or task.averaged:
            return "RA12's theorem is about two classes and one record per person"
        return None

    @property
    def limit(self) -> Guarantee:
        """The paper's claim, for the limit of the descent only."""
        return Guarantee(self.limit_epsilon, self.guarantee.delta, self.guarantee.neighbours)

    @property
    def round_scale(self) -> float:
        """Scale of each holder's fresh noise in every round."""
        if self._splits:
            return self.rounds * self.sum_sensitivity / (self.limit_epsilon * (1.0 - accounting.MARGIN))
        return self.task.gradient_sensitivity / self.limit_epsilon

    @property
    def round_epsilon(self) -> float:
        """Epsilon of one round, from the fresh noise alone."""
        return self.sum_sensitivity / self.round_scale

    @property
    def effective_regularization(self) -> float:
        """Lam = Lambda + D by Procedure 2: D is 0, unless the slack would use up epsilon."""
        if self._splits:
            return self.task.regularization
        slack = 2.0 * self.task.jacobian_slack(self.task.regularization)
        if self.limit_epsilon > slack:
            return self.task.regularization
        return self.task.curvature_ratio(1.0) / math.expm1(self.limit_epsilon / 4.0)

    @property
    def run_noise_scale(self) -> float:
        """sigma*: scale of the noise drawn once, summed over all holders."""
        task = self.task
        rest = self.limit_epsilon - 2.0 * task.jacobian_slack(self.effective_regularization)
        return accounting.ra12_noise_scale(
            rest, self.guarantee.delta, task.gradient_sensitivity, task.dimension
        )

    def spends(self) -> Guarantee:
        """Return the transcript's guarantee, recomputed from the constants alone."""
        if self._splits:
            return Guarantee(self.rounds * self.round_epsilon, 0.0, self.task.neighbours)
        epsilon = self.guarantee.epsilon
        delta = accounting.pure_composition_delta(self.round_epsilon, self.rounds, epsilon)
        return Guarantee(epsilon, delta, self.task.neighbours)

    def curve(self) -> accounting.Curve:
        """Return the curve of all rounds, each of which is pure."""
        return accounting.curve_of_runs(accounting.PureCurve(self.round_epsilon), self.rounds)

    def renyi_of(self, kinds: tuple[str, ...], order: float) -> float:
        return len(kinds) * accounting.pure_renyi(self.round_epsilon, order)

    @property
    def kinds(self) -> tuple[str, ...]:
        return ("gradients",) * self.rounds

    def _describe_question(self, kind: str) -> tuple[int, float, tuple[Noise, ...]]:
        fresh = Noise("norm_gamma", self.round_scale)
        for_the_run = () if self._splits else (Noise("gaussian", self.run_noise_scale, once_per_run=True),)
        return self.task.dimension, self._gradient_bound, (*for_the_run, fresh)

    def epsilon_of(self, kinds: tuple[str, ...]) -> float:
        return (
            accounting.pure_composition_epsilon(self.round_epsilon, len(kinds), self.guarantee.delta)
            if kinds
            else 0.0
        )

    def run(self, sums: NoisySums) -> Array:
        task, regularization, offset = self.task, self.effective_regularization, self._condition
        coefficients = np.zeros((1, task.dimension))
        for number in range(self.rounds):
            answer = sums.ask(self.question(number, coefficients))
            gradient = answer.vector[np.newaxis] / answer.total + regularization * coefficients
            coefficients = coefficients - gradient / (regularization * (number + offset))
        return coefficients

    def constants(self) -> dict[str, Any]:
        fixed = {} if self._splits else {"retained_scale": self.run_noise_scale}
        return {
            **self._common_constants(),
            "gradient_sensitivity": self.task.gradient_sensitivity,
            "limit_epsilon": self.limit_epsilon,
            "limit_delta": self.guarantee.delta,
            "effective_regularization": self.effective_regularization,
            **fixed,
            "round_scale": self.round_scale,
            "round_epsilon": self.round_epsilon,
            "transcript_epsilon_pure": self.rounds * self.round_epsilon,
        }

    @property
    def transcript(self) -> str:
        if self._splits:
            return f"{self.rounds} noisy sums of gradients, each with an equal part of epsilon"
        claim = f"RA12 claims epsilon = {self.limit_epsilon:g} for their limit alone"
        return f"{self.rounds} noisy sums of gradients ({claim})"

    @property
    def _splits(self) -> bool:
        return self.calibration == "split"

    @property
    def _condition(self) -> float:
        return 1.0 + self.task.loss.smoothness * self.task.mass_bound / self.effective_regularization

    def _default_rounds(self) -> int:
        if self._splits:
            return SPLIT_ROUNDS
        rounds = math.ceil(ROUNDS_PER_CONDITION * self._condition)
        return min(max(rounds, MIN_ROUNDS), MAX_ROUNDS)

"""PSGD, RA12's stochastic gradient descent for many holders, with the two guarantees its noise gives."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from privlearn.accounting import MARGIN, Curve, PureCurve, ra12_noise_scale
from privlearn.accounting.compose import pure_renyi
from privlearn.accounting.conversions import composed_pure_delta, composed_pure_epsilon
from privlearn.accounting.release_curves import composed
from privlearn.arrays import Array
from privlearn.errors import InvalidParameter
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.mechanism import register_mechanism
from privlearn.mechanisms.summed.summed import Noise, NoisySums, SummedMechanism
from privlearn.mechanisms.task import Task

ROUNDS_PER_CONDITION = 10
FEWEST_ROUNDS, MOST_ROUNDS = 100, 1000


@register_mechanism
@dataclass(frozen=True)
class PrivateSGD(SummedMechanism):
    """RA12 Algorithm 1, Procedures 2 and 3: holders add to every gradient a vector drawn once and one drawn anew.

    **What the paper claims** (RA12 Theorem 4.2): the *limit* of the descent is the minimiser of
    J(w) + (D/2) |w|^2 + <eta, w> / N with eta the sum of the holders' vectors N(0, scale^2 / K), Gaussian objective
    perturbation, hence (limit_epsilon, delta)-private. The scale is `ra12_noise_scale` of what the slack
    2 log(1 + c / (N Lam)) leaves of epsilon.

    **What the coordinator sees** is not the limit but T sums, and in the difference of two of them eta cancels. What is
    left is the noise drawn anew, of density exp(-epsilon |b| / (2 L)): epsilon per round, T epsilon for T rounds (RA12
    section 3.2 says so itself), or at delta the optimal composition of T pure mechanisms (Kairouz, Oh and
    Viswanath 2015). That is this mechanism's ``guarantee``; a certificate states both.

    **Corrected misprints**: Procedure 2's exp(c/4) is exp(epsilon/4), as in CMS11; Procedure 3's (sigma epsilon - 2)^2
    is (sigma^2 epsilon - 2)^2; the appendix once has the loss gradient's sign wrong (docs/theory/multiparty.md).

    The paper leaves open: the start, here 0; the step sizes, here 1 / (Lam (t + t0)), t0 = 1 + c / Lam, whose sum
    diverges and whose squares' sum does not; the number of rounds, here 10 t0 within 100 and 1,000.
    """

    limit_epsilon: float

    name: ClassVar[str] = "psgd"
    title: ClassVar[str] = "private stochastic gradient descent (PSGD) over a secure sum"
    chosen_constants: ClassVar[tuple[str, ...]] = ("parties", "shares", "rounds", "limit_epsilon")
    combinations: ClassVar[dict[str, tuple[str, ...]]] = {"ra12": ("norm_gamma",)}
    floating_point: ClassVar[str] = (
        "noise drawn anew: exactly from its continuous law, sums rounded last, to a grid of 2^-40 of its scale, which "
        "costs nothing; rounding of the gradients' sums is inside the guarantee"
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
        """The paper's noise for ``guarantee``, which it claims for the limit; the result's own is the transcript's."""
        cls.check_combination(noise, calibration)
        if not guarantee.is_private or guarantee.delta == 0:
            raise InvalidParameter("PSGD is a paper's private mode: it needs a finite epsilon and delta > 0")
        draft = cls(task, guarantee, noise, calibration, parties, shares, 1, guarantee.epsilon)
        rounds = draft._default_rounds() if rounds is None else rounds
        epsilon = composed_pure_epsilon(draft.round_epsilon, rounds, guarantee.delta)
        claim = Guarantee(epsilon * (1.0 + MARGIN), guarantee.delta, guarantee.neighbours)
        return cls(task, claim, noise, calibration, parties, shares, rounds, guarantee.epsilon)

    @classmethod
    def explain_refusal(cls, task: Task, noise: str) -> str | None:
        """Why the theorems do not cover this task; ``None`` if they do."""
        if not (math.isfinite(task.loss.smoothness) and task.loss.monotone):
            return f"RA12's theorem needs a smooth margin loss, and the {task.loss.name} is not"
        if task.problems > 1 or task.free_directions is None:
            return "RA12's theorem is about two classes and one record per person"
        return None

    @property
    def limit(self) -> Guarantee:
        """What the paper claims, for the limit of the descent only."""
        return Guarantee(self.limit_epsilon, self.guarantee.delta, self.guarantee.neighbours)

    @property
    def round_scale(self) -> float:
        """Scale of the noise that each holder draws anew in every round."""
        return self.task.gradient_sensitivity / self.limit_epsilon

    @property
    def round_epsilon(self) -> float:
        """What one round costs, by that noise alone."""
        return self.rounded_sensitivity / self.round_scale

    @property
    def effective_regularization(self) -> float:
        """Lam = Lambda + D by Procedure 2: raised if the slack would take all of epsilon."""
        slack = 2.0 * self.task.jacobian_slack(self.task.regularization)
        if self.limit_epsilon > slack:
            return self.task.regularization
        return self.task.curvature_ratio(1.0) / math.expm1(self.limit_epsilon / 4.0)

    @property
    def kept_scale(self) -> float:
        """sigma*: scale of the noise drawn once, summed over all holders."""
        task = self.task
        rest = self.limit_epsilon - 2.0 * task.jacobian_slack(self.effective_regularization)
        return ra12_noise_scale(rest, self.guarantee.delta, task.gradient_sensitivity, task.dimension)

    def spends(self) -> Guarantee:
        """The transcript's guarantee recomputed from the constants alone."""
        epsilon = self.guarantee.epsilon
        delta = composed_pure_delta(self.round_epsilon, self.rounds, epsilon)
        return Guarantee(epsilon, delta, self.task.neighbours)

    def curve(self) -> Curve:
        """Of all rounds, each of which is pure."""
        return composed(PureCurve(self.round_epsilon), self.rounds)

    def renyi_of(self, kinds: tuple[str, ...], order: float) -> float:
        return len(kinds) * pure_renyi(self.round_epsilon, order)

    @property
    def kinds(self) -> tuple[str, ...]:
        return ("gradients",) * self.rounds

    def _asked(self, kind: str) -> tuple[int, float, tuple[Noise, ...]]:
        once = Noise("gaussian", self.kept_scale, kept=True)
        anew = Noise("norm_gamma", self.round_scale, by_each=True)
        return self.task.dimension, self._gradient_bound, (once, anew)

    def epsilon_of(self, kinds: tuple[str, ...]) -> float:
        return composed_pure_epsilon(self.round_epsilon, len(kinds), self.guarantee.delta) if kinds else 0.0

    def run(self, sums: NoisySums) -> Array:
        task, regularization, offset = self.task, self.effective_regularization, self._condition
        here = np.zeros((1, task.dimension))
        for number in range(self.rounds):
            answer = sums.ask(self.question(number, here))
            gradient = answer.vector[np.newaxis] / answer.total + regularization * here
            here = here - gradient / (regularization * (number + offset))
        return here

    def constants(self) -> dict[str, Any]:
        """Every number the theorems speak of, for the certificate."""
        return {
            **self._common_constants(),
            "gradient_sensitivity": self.task.gradient_sensitivity,
            "limit_epsilon": self.limit_epsilon,
            "limit_delta": self.guarantee.delta,
            "effective_regularization": self.effective_regularization,
            "kept_scale": self.kept_scale,
            "round_scale": self.round_scale,
            "round_epsilon": self.round_epsilon,
            "transcript_epsilon_pure": self.rounds * self.round_epsilon,
        }

    @property
    def transcript(self) -> str:
        claim = f"RA12 claims epsilon = {self.limit_epsilon:g} for their limit alone"
        return f"{self.rounds} noisy sums of gradients ({claim})"

    @property
    def _condition(self) -> float:
        return 1.0 + self.task.loss.smoothness * self.task.mass_bound / self.effective_regularization

    def _default_rounds(self) -> int:
        wanted = math.ceil(ROUNDS_PER_CONDITION * self._condition)
        return min(max(wanted, FEWEST_ROUNDS), MOST_ROUNDS)

"""Local aggregation: each holder minimises over its own records; a mean of the minimisers is released with noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from privlearn.accounting import MARGIN, Curve, GaussianCurve, gaussian_delta, gaussian_ratio
from privlearn.accounting.compose import pure_renyi
from privlearn.arrays import Array
from privlearn.errors import InvalidParameter, whole_number
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.mechanism import register_mechanism
from privlearn.mechanisms.release.answers import refuse_joint
from privlearn.mechanisms.summed.summed import Noise, NoisySums, SummedMechanism, grid_ratio
from privlearn.mechanisms.task import Task


@register_mechanism
@dataclass(frozen=True)
class LocalAggregation(SummedMechanism):
    """Release sum_k v_k w_k + noise, w_k the minimiser over holder k's n_k records with the common Lambda.

    **Theorem** (Pathak, Rane and Raj 2010 for ``uniform``; ``weighted`` is ours). One person moves one w_k only, by at
    most S / (n_k Lambda) + 2 t, S = 2 L (L for zero_out), t the solver's distance. Hence the mean moves by at most

    - ``uniform``, v_k = 1/K: S / (K n_min Lambda) + 2 t / K, which the smallest holder decides;
    - ``weighted``, v_k = n_k / N: S / (N Lambda) + 2 t, as if one holder had all records, whatever the smallest has.

    That is S / (n Lambda) + 2 t with n = K n_min or N records in effect. Noise as in output perturbation:
    ``gaussian`` with delta, ``norm_gamma`` without (Pathak's is Laplace; RA12 compares with this one).
    """

    effective_records: int
    noise_scale: float

    name: ClassVar[str] = "local_aggregation"
    title: ClassVar[str] = "local aggregation over a secure sum"
    uses_solver: ClassVar[bool] = True
    chosen_constants: ClassVar[tuple[str, ...]] = (
        "parties",
        "shares",
        "rounds",
        "effective_records",
        "noise_scale",
    )
    combinations: ClassVar[dict[str, tuple[str, ...]]] = {
        "weighted": ("gaussian", "norm_gamma"),
        "uniform": ("gaussian", "norm_gamma"),
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        count = whole_number(self.effective_records, "effective_records")
        object.__setattr__(self, "effective_records", count)
        if self.rounds != 1:
            raise InvalidParameter("local aggregation has one round")
        if count > self.task.total or (self.calibration == "weighted" and count != self.task.total):
            raise InvalidParameter("the records in effect are all of them, or K times the fewest if uniform")

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
        smallest_party: int,
    ) -> LocalAggregation:
        """The least noise that keeps the promise; looks at public facts only."""
        cls.check_combination(noise, calibration)
        task = task.certifiable()
        count = task.total if calibration == "weighted" else parties * smallest_party
        draft = cls(task, guarantee, noise, calibration, parties, shares, 1, count, math.nan)
        scale = draft._least_scale() if guarantee.is_private else 0.0
        return cls(task, guarantee, noise, calibration, parties, shares, 1, count, scale)

    @classmethod
    def explain_refusal(cls, task: Task, noise: str) -> str | None:
        """Why the theorem does not cover this task; ``None`` if it does."""
        return refuse_joint(task)

    @property
    def sensitivity(self) -> float:
        """How far one person moves the mean of the computed minimisers, of one problem."""
        task = self.task
        exact = task.gradient_sensitivity / (self.effective_records * task.regularization)
        return exact + 2.0 * task.solver_distance

    @property
    def ratio(self) -> float:
        """Joint sensitivity of all problems over the noise's standard deviation."""
        return math.sqrt(self.task.problems) * self.sensitivity / self.noise_scale + grid_ratio(self._length)

    def spends(self) -> Guarantee:
        """The guarantee recomputed from the constants alone."""
        task = self.task
        if not self.guarantee.is_private:
            return Guarantee(math.inf, 0.0, task.neighbours)
        if self.noise == "norm_gamma":
            return Guarantee(task.problems * self.sensitivity / self.noise_scale, 0.0, task.neighbours)
        epsilon = self.guarantee.epsilon
        delta = gaussian_delta(self.ratio, epsilon)
        return Guarantee(epsilon, delta, task.neighbours)

    def curve(self) -> Curve:
        """Of the Gaussian mechanism that it is; of other noise, what (epsilon, 0) gives."""
        return super().curve() if self.noise == "norm_gamma" else GaussianCurve(self.ratio)

    def renyi_of(self, kinds: tuple[str, ...], order: float) -> float:
        if not kinds:
            return 0.0
        if self.noise == "norm_gamma":
            return pure_renyi(self.spends().epsilon, order)
        return order * self.ratio**2 / 2.0

    @property
    def kinds(self) -> tuple[str, ...]:
        return ("minimisers",)

    def _asked(self, kind: str) -> tuple[int, float, tuple[Noise, ...]]:
        noise = (Noise(self.noise, self.noise_scale),) if self.guarantee.is_private else ()
        return self._length, self.task.ball_radius + self.task.solver_distance, noise

    def epsilon_of(self, kinds: tuple[str, ...]) -> float:
        return self.guarantee.epsilon if kinds else 0.0

    def run(self, sums: NoisySums) -> Array:
        answer = sums.ask(self.question(0))
        # a holder that dropped out is missing from the mean's weights too
        present = (
            answer.total / self.task.total
            if self.calibration == "weighted"
            else answer.parties / self.parties
        )
        return answer.vector.reshape(self.task.problems, self.task.dimension) / present

    def constants(self) -> dict[str, Any]:
        """Every number the theorem speaks of, for the certificate."""
        return {
            **self._common_constants(),
            "effective_records": self.effective_records,
            "solver_distance": self.task.solver_distance,
            "sensitivity": self.sensitivity,
            "noise_scale": self.noise_scale,
        }

    @property
    def transcript(self) -> str:
        return "one noisy sum of weighted minimisers"

    def _least_scale(self) -> float:
        task, epsilon = self.task, self.guarantee.epsilon
        if self.noise == "norm_gamma":
            return task.problems * self.sensitivity / (epsilon * (1.0 - MARGIN))
        target = gaussian_ratio(epsilon, self.guarantee.delta) * (1.0 - MARGIN)
        return math.sqrt(task.problems) * self.sensitivity / (target - grid_ratio(self._length))

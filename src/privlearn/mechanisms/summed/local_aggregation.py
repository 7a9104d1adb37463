"""Local aggregation: each holder minimises over its own records; a mean of the minimisers is released with noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from privlearn.accounting import MARGIN, Curve, GaussianCurve, gaussian_delta, gaussian_ratio, pure_renyi
from privlearn.arrays import Array
from privlearn.errors import InvalidParameter, whole_number
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.mechanism import register_mechanism
from privlearn.mechanisms.release.answers import refuse_joint
from privlearn.mechanisms.summed.summed import Noise, NoisySums, SummedMechanism, grid_ratio
from privlearn.mechanisms.task import Task
from privlearn.solvers.certifiable import UNIT_ROUNDOFF


@register_mechanism
@dataclass(frozen=True)
class LocalAggregation(SummedMechanism):
    """Release sum_k v_k w_k + noise, w_k the minimiser over holder k's n_k records with the common Lambda.

    **Theorem** (Pathak, Rane and Raj 2010 for ``uniform``; ``weighted`` is ours). One person moves one w_k only, by at
    most S / (n_k Lambda) + 2 t, S = 2 L (L for zero_out), t the solver's distance. So the mean moves by at most

    - ``uniform``, v_k = 1/K: S / (K n_min Lambda) + 2 t / K, which the smallest holder decides;
    - ``weighted``, v_k = n_k / N: S / (N Lambda) + 2 t, as if one holder had all records, for any sizes.

    That is S / (n Lambda) + 2 t with n = K n_min or N effective records, and it bounds each holder's answer v_k w_k as
    well as the sum. For P problems the answers of all together are one vector, which moves by sqrt(P) times as much.
    The holder's rounding of v_k w_k adds 2^-52 times the radius of the minimisers to each 2 t.

    **Noise**: ``gaussian``, with delta, in shares. ``norm_gamma``, without: every holder adds a whole vector of density
    exp(-|b| / s) to its answer, so that answer alone is epsilon = sqrt(P) (S / (n Lambda) + 2 t) / s private. A person
    whose records lie with h holders moves h answers, S counts them all, and the h costs add up to epsilon. The sum
    holds K such vectors. (Pathak et al. have a protocol that leaves one Laplace vector in it, which is not implemented
    here; `privlearn.papers.ra12` adds one vector where RA12's figures do.)

    Examples
    --------
    >>> from privlearn.solvers import Logistic
    >>> task = Task(Logistic(), total=10_000, dimension=5, problems=1, regularization=0.01, tolerance=1e-9,
    ...             neighbours="replace_one")
    >>> mechanism = LocalAggregation.calibrate(
    ...     task, Guarantee(1.0, 1e-6), "gaussian", "weighted", parties=3, shares=2, min_party_records=3_000
    ... )
    >>> round(mechanism.noise_scale, 4)
    0.0845
    """

    effective_records: int
    noise_scale: float

    name = "local_aggregation"
    title = "local aggregation over a secure sum"
    uses_solver = True
    calibrated_constants = ("parties", "shares", "rounds", "effective_records", "noise_scale")
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
            raise InvalidParameter(
                "effective_records must be all records, or K times the smallest number of a holder if uniform"
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
        min_party_records: int,
    ) -> LocalAggregation:
        cls.check_combination(noise, calibration)
        task = task.certifiable()
        count = task.total if calibration == "weighted" else parties * min_party_records
        draft = cls(task, guarantee, noise, calibration, parties, shares, 1, count, math.nan)
        scale = draft._min_scale() if guarantee.is_private else 0.0
        return cls(task, guarantee, noise, calibration, parties, shares, 1, count, scale)

    @classmethod
    def explain_refusal(cls, task: Task, noise: str) -> str | None:
        return refuse_joint(task)

    @property
    def sensitivity(self) -> float:
        """Sensitivity of the mean of the computed minimisers, of one problem."""
        task = self.task
        exact = task.gradient_sensitivity / (self.effective_records * task.regularization)
        weighing = UNIT_ROUNDOFF * (task.ball_radius + task.solver_distance)
        return exact + 2.0 * (task.solver_distance + weighing)

    @property
    def joint_sensitivity(self) -> float:
        """Sensitivity of the vector of all problems' means, and of the answers of all holders together."""
        return math.sqrt(self.task.problems) * self.sensitivity

    @property
    def ratio(self) -> float:
        """Joint sensitivity of all problems over the noise's standard deviation."""
        return self.joint_sensitivity / self.noise_scale + grid_ratio(self._length)

    def spends(self) -> Guarantee:
        task = self.task
        if not self.guarantee.is_private:
            return Guarantee(math.inf, 0.0, task.neighbours)
        if self.noise == "norm_gamma":
            return Guarantee(self.joint_sensitivity / self.noise_scale, 0.0, task.neighbours)
        epsilon = self.guarantee.epsilon
        delta = gaussian_delta(self.ratio, epsilon)
        return Guarantee(epsilon, delta, task.neighbours)

    def curve(self) -> Curve:
        """Return the Gaussian mechanism's curve; of other noise, what (epsilon, 0) implies."""
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

    def _describe_question(self, kind: str) -> tuple[int, float, tuple[Noise, ...]]:
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

    def _min_scale(self) -> float:
        epsilon = self.guarantee.epsilon
        if self.noise == "norm_gamma":
            return self.joint_sensitivity / (epsilon * (1.0 - MARGIN))
        target = gaussian_ratio(epsilon, self.guarantee.delta) * (1.0 - MARGIN)
        return self.joint_sensitivity / (target - grid_ratio(self._length))

"""Output perturbation: minimise, then add noise to the minimiser."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from privlearn.accounting import MARGIN, Curve, GaussianCurve, gaussian_delta, gaussian_ratio, pure_renyi
from privlearn.arrays import Array
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.mechanism import ReleaseMechanism, register_mechanism
from privlearn.mechanisms.noise import ADD_NOISE, GRID_BITS, step_of
from privlearn.mechanisms.oracle import MinimiserOracle
from privlearn.mechanisms.task import PLAIN_TOLERANCE, Task
from privlearn.randomness import Randomness


@register_mechanism
@dataclass(frozen=True)
class OutputPerturbation(ReleaseMechanism):
    """Release w + noise, where w minimises each problem to the task's tolerance.

    **Theorem** (CMS11 Theorem 1 and Corollary 1; RBHT Theorem 10; Balle-Wang 2018). Let the loss be convex with
    |gradient of a record| <= L and N Lambda > 0. One person moves the exact minimiser by at most
    D2 = 2 L / (N Lambda) (L / (N Lambda) for zero_out neighbours), and the solver returns a point within t of it, so
    the solver's point moves by at most D = D2 + 2 t. With K problems, d coefficients each:

    - ``norm_gamma``, noise of density exp(-|b| / scale): epsilon = K D / scale.
    - ``laplace``, independent coordinates: epsilon = K (sqrt(d) D / scale + d 2^-44).
    - ``gaussian``: delta(epsilon) = HS(epsilon, sqrt(K) D / scale + sqrt(K d) 2^-44), the hockey-stick divergence of
      two normals at that distance. The noise in one prediction does not grow with d.

    Statistics released with it add their ratios, in squares, to that of the Gaussian noise, or their epsilons to that
    of pure noise (docs/theory/centring.md, docs/theory/locations.md).
    The 2^-44 terms cover rounding to the noise's grid. The argument: docs/theory/output.md.

    **Calibrations**: ``tight`` as above; ``cms11`` (norm_gamma) is the same; ``rbht`` (laplace) keeps RBHT Lemma 9's
    4 L / (N Lambda), true but twice too large.

    Examples
    --------
    >>> from privlearn.solvers import Logistic
    >>> task = Task(Logistic(), total=10_000, dimension=5, problems=1, regularization=0.01, tolerance=1e-9,
    ...             neighbours="replace_one")
    >>> mechanism = OutputPerturbation.calibrate(task, Guarantee(1.0, 1e-6), "gaussian", "tight")
    >>> round(mechanism.sensitivity, 6), round(mechanism.noise_scale, 4)
    (0.02, 0.0845)
    >>> mechanism.spends() <= Guarantee(1.0, 1e-6)
    True
    """

    noise_scale: float

    name = "output"
    title = "output perturbation"
    page = "output"
    is_default = True
    takes_statistics = True
    perturbs = "minimiser"
    calibrated_constants = ("noise_scale",)
    combinations: ClassVar[dict[str, tuple[str, ...]]] = {
        "tight": ("gaussian", "norm_gamma", "laplace"),
        "cms11": ("norm_gamma",),
        "rbht": ("laplace",),
    }

    @classmethod
    def calibrate(
        cls, task: Task, guarantee: Guarantee, noise: str, calibration: str, *, points: int | None = None
    ) -> OutputPerturbation:
        cls.check_combination(noise, calibration)
        # The tolerance adds to the sensitivity here, so a hundredth of it is chosen unless the caller asks for less.
        task = task.certifiable(negligible=None if guarantee.is_private else PLAIN_TOLERANCE)
        unit = cls(task, guarantee, noise, calibration, noise_scale=math.nan)
        return cls(task, guarantee, noise, calibration, unit._min_scale() if guarantee.is_private else 0.0)

    @classmethod
    def explain_refusal(cls, task: Task, noise: str) -> str | None:
        """Return ``None``: the theorem covers every convex loss."""
        return None

    @property
    def effective_regularization(self) -> float:
        return self.task.regularization

    @property
    def coefficient_step(self) -> float | None:
        return step_of(self.noise, self.noise_scale)

    @property
    def solver_distance(self) -> float:
        """t: maximal distance of the returned point from the exact minimiser."""
        return self.task.solver_distance

    @property
    def sensitivity(self) -> float:
        """D: maximal change of the solver's point for one problem by one person."""
        lemma = 2.0 if self.calibration == "rbht" else 1.0
        return lemma * self.task.minimiser_sensitivity + 2.0 * self.solver_distance

    def spends(self) -> Guarantee:
        if not self.guarantee.is_private:
            return Guarantee(math.inf, 0.0, self.task.neighbours)
        task, scale = self.task, self.noise_scale
        if self.noise == "gaussian":
            epsilon = self.guarantee.epsilon
            delta = gaussian_delta(math.hypot(self.ratio, task.other_ratio), epsilon)
            return Guarantee(epsilon, delta, task.neighbours)
        per_problem = self.sensitivity / scale
        if self.noise == "laplace":
            # Laplace noise is calibrated in L1, which is at most sqrt(d) times the Euclidean norm.
            per_problem = math.sqrt(task.dimension) * per_problem + task.dimension * 2.0**-GRID_BITS
        return Guarantee(task.problems * per_problem + task.other_epsilon, 0.0, task.neighbours)

    def curve(self) -> Curve:
        """Return the Gaussian mechanism's curve; of other noise, what (epsilon, 0) implies."""
        if self.noise != "gaussian":
            return super().curve()
        return GaussianCurve(math.hypot(self.ratio, self.task.other_ratio))

    def renyi(self, order: float) -> float:
        if self.noise == "gaussian":
            return order * (self.ratio**2 + self.task.other_ratio**2) / 2.0
        return pure_renyi(self.spends().epsilon, order)

    def run(self, oracle: MinimiserOracle, randomness: Randomness) -> Array:
        """Touch the data: solve, then add the noise; the result may be released."""
        minimisers = oracle.minimise(None, self.effective_regularization)
        if not self.guarantee.is_private:
            return minimisers
        # One row per problem: the multinomial loss has a row per class, but one noise vector over all of them.
        vectors = minimisers.reshape(self.task.problems, self.task.dimension)
        return ADD_NOISE[self.noise](vectors, self.noise_scale, randomness).reshape(minimisers.shape)

    def constants(self) -> dict[str, Any]:
        return {
            "minimiser_sensitivity": self.task.minimiser_sensitivity,
            "solver_distance": self.solver_distance,
            "sensitivity": self.sensitivity,
            "noise_scale": self.noise_scale,
        }

    @property
    def ratio(self) -> float:
        """Joint sensitivity of all problems over the noise's standard deviation, rounding to the grid included."""
        return math.sqrt(self.task.problems) * self.sensitivity / self.noise_scale + self._grid_ratio

    @property
    def _grid_ratio(self) -> float:
        return math.sqrt(self.task.problems * self.task.dimension) * 2.0**-GRID_BITS

    def _min_scale(self) -> float:
        task, epsilon = self.task, self.guarantee.epsilon
        if self.noise == "gaussian":
            # MARGIN covers the discrete sampler and the rounding of this arithmetic.
            whole = gaussian_ratio(epsilon, self.guarantee.delta) * (1.0 - MARGIN)
            ratio = math.sqrt(whole**2 - task.other_ratio**2) - self._grid_ratio
            return math.sqrt(task.problems) * self.sensitivity / ratio
        share = (epsilon * (1.0 - MARGIN) - task.other_epsilon) / task.problems
        if self.noise == "laplace":
            return math.sqrt(task.dimension) * self.sensitivity / (share - task.dimension * 2.0**-GRID_BITS)
        return self.sensitivity / share

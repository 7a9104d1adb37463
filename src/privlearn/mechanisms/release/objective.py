"""Objective perturbation: add a random linear term to the objective, then minimise."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from privlearn import accounting
from privlearn.accounting.functions import log_norm_tail
from privlearn.arrays import Array
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.mechanism import ReleaseMechanism, register_mechanism
from privlearn.mechanisms.noise import ADD_NOISE, GRID_BITS, step_of
from privlearn.mechanisms.oracle import MinimiserOracle
from privlearn.mechanisms.task import PLAIN_TOLERANCE, Task
from privlearn.randomness import Randomness

GRID_MARGIN = 1.01  # covers the rounding of the perturbation to its grid

TOLERANCE_SHARE = 1e-2
"""Share of epsilon for the solver's tolerance where curves do not compose: pure noise, and RA12's."""

TOLERANCE_RATIO = 0.1
"""Ratio of the tolerance's sensitivity / noise to the objective's: it costs half a per cent more noise there."""

TOLERANCE_NOISE_SHARE = 0.03
"""Share of the noise in a typical score that the tolerance's noise may have, if the mechanism chooses the tolerance."""


@register_mechanism
@dataclass(frozen=True)
class ObjectivePerturbation(ReleaseMechanism):
    """Minimise J(w) + (D/2) |w|^2 + <b, w> / N, then add a little noise for the solver's tolerance.

    **Theorem** (CMS11 Theorem 2, RA12 Theorem 4.1, sharpened; docs/theory/objective.md). Let the loss be convex,
    |gradient of a record| <= L, its second derivative at most c, and Lam = Lambda + D. One person moves the sum of
    gradients by at most S = 2 L (L for zero_out) and the log-determinant of the Jacobian by at most s = log(1 + c / (N
    Lam)); for the softmax loss of k classes L = sqrt(2) and s = (k - 1) log(1 + 1 / (k N Lam))
    (docs/theory/softmax.md). A person whose rows are averaged moves the gradients no further and costs s = c / (N Lam),
    softmax (1 - 1/k) / (N Lam), for any number of rows; m rows that count 1 each cost m S and m s. The exact minimiser
    of K problems, d coefficients each, costs

    - ``norm_gamma``, b of density exp(-|b| / scale): epsilon = K (S / scale + s).
    - ``gaussian``, b ~ N(0, scale^2 I), for a loss monotone in the margin: for each problem
      delta(epsilon) = HS(epsilon - s, S / scale), free of the dimension; K problems compose by their curves. A loss of
      residuals leaves a gradient's sign open: E max(0, 1 - exp(epsilon - s - m^2/2 - m |Z|)) with m = S / scale and Z a
      standard normal number. The softmax loss has k - 1 corners, whose deltas add up:
      (k - 1) HS(epsilon - s, S / scale). One averaging theorem covers every relation and any number of rows per person.

    The solver returns a point within t = (tolerance + rounding of b) / Lam of the exact minimiser: a second noise
    covers 2 t (after Iyengar et al. 2019). Gaussian, of ratio u = 2 t / its scale: each m above becomes
    sqrt(m^2 + u^2), and HS(epsilon - s, u) is added, but not for residuals. Pure noise: 2 t over its scale is added to
    epsilon.

    Statistics released with it, of Gaussian ratio r together, are one more such noise: in each problem u becomes
    sqrt(u^2 + r^2 / K). Those with pure noise add their epsilon (docs/theory/centring.md, docs/theory/locations.md).

    **Calibrations**: ``tight`` as above, with D raised until s takes at most half of epsilon; ``cms11`` (norm_gamma)
    and ``ra12`` (gaussian) keep the papers' s = 2 log(1 + c / (N Lam)) and their rule for D, and ``ra12`` its
    noise, which grows like sqrt(d); there the second noise has a hundredth of epsilon and delta.

    Examples
    --------
    >>> from privlearn.solvers import Logistic
    >>> task = Task(Logistic(), total=10_000, dimension=5, problems=1, regularization=0.01, tolerance=1e-9,
    ...             neighbours="replace_one")
    >>> mechanism = ObjectivePerturbation.calibrate(task, Guarantee(1.0, 1e-6), "gaussian", "tight")
    >>> round(mechanism.noise_scale, 2), mechanism.effective_regularization
    (8.51, 0.01)
    >>> mechanism.spends() <= Guarantee(1.0, 1e-6)
    True
    """

    effective_regularization: float
    noise_scale: float
    tolerance_noise_scale: float

    name = "objective"
    title = "objective perturbation"
    page = "objective"
    is_default = True
    takes_statistics = True
    perturbs = "objective"
    calibrated_constants = ("effective_regularization", "noise_scale", "tolerance_noise_scale")
    combinations: ClassVar[dict[str, tuple[str, ...]]] = {
        "tight": ("gaussian", "norm_gamma"),
        "cms11": ("norm_gamma",),
        "ra12": ("gaussian",),
    }

    @classmethod
    def calibrate(
        cls, task: Task, guarantee: Guarantee, noise: str, calibration: str, *, points: int | None = None
    ) -> ObjectivePerturbation:
        cls.check_combination(noise, calibration)
        if not guarantee.is_private:
            task = task.certifiable(negligible=PLAIN_TOLERANCE)
            return cls(task, guarantee, noise, calibration, task.regularization, 0.0, 0.0)
        regularization = _raise_regularization(task, guarantee.epsilon, calibration)
        # Each constant needs the one before: noise from Lambda, tolerance from noise, second noise from tolerance.
        draft = cls(task, guarantee, noise, calibration, regularization, math.nan, math.nan)
        draft = dataclasses.replace(draft, noise_scale=draft._min_scale())
        task = task.certifiable(
            regularization=regularization,
            linear_norm=draft._perturbation_bound,
            negligible=draft._negligible_tolerance(),
        )
        draft = dataclasses.replace(draft, task=task)
        scale = draft.solver_distance * draft._tolerance_noise_per_distance()
        return dataclasses.replace(draft, tolerance_noise_scale=scale)

    @classmethod
    def explain_refusal(cls, task: Task, noise: str) -> str | None:
        if not math.isfinite(task.loss.smoothness):
            return f"it needs a smooth loss, and the {task.loss.name} is not"
        if task.loss.argument == "classes" and not task.classes:
            return f"its proof for the {task.loss.name} loss needs the number of classes"
        return None

    @property
    def coefficient_step(self) -> float | None:
        return step_of(self.noise, self.tolerance_noise_scale)

    @property
    def noise_scales(self) -> tuple[float, ...]:
        return self.noise_scale, self.tolerance_noise_scale

    @property
    def slack(self) -> float:
        """s: cost of the Jacobian of one problem, in epsilon."""
        factor = 1.0 if self.calibration == "tight" else 2.0
        return factor * self.task.jacobian_slack(self.effective_regularization)

    @property
    def solver_distance(self) -> float:
        """t: maximal distance of the returned point from the exact minimiser under the exact perturbation."""
        return (self.task.tolerance + self._grid_tolerance) / self.effective_regularization

    @property
    def tolerance_share(self) -> float:
        """The tolerance's noise over that of the objective, in a typical score."""
        return self.tolerance_noise_scale / self._typical_noise if self.guarantee.is_private else 0.0

    def spends(self) -> Guarantee:
        task = self.task
        if not self.guarantee.is_private:
            return Guarantee(math.inf, 0.0, task.neighbours)
        if self.noise == "norm_gamma":
            # A shift of b costs its length over the scale, since b has a density proportional to exp(-|b| / scale).
            main = task.gradient_sensitivity / self.noise_scale + self.slack
            tolerance = 2.0 * self.solver_distance / self.tolerance_noise_scale
            whole = task.problems * (main + tolerance) + task.other_epsilon
            return Guarantee(whole, 0.0, task.neighbours)
        delta = self._ra12_delta() if self.calibration == "ra12" else self._delta_of_problems()
        return Guarantee(self.guarantee.epsilon, delta, task.neighbours)

    def curve(self) -> accounting.Curve:
        """Return the theorem's curve of all problems; for other noise or RA12, what (epsilon, delta) implies."""
        if self.noise != "gaussian" or self.calibration == "ra12":
            return super().curve()
        return accounting.curve_of_runs(self._curve(self.ratio, self._tolerance_ratio), self.task.problems)

    def renyi(self, order: float) -> float:
        if self.noise == "norm_gamma":
            return accounting.pure_renyi(self.spends().epsilon, order)
        task, other_ratio = self.task, math.hypot(self._tolerance_ratio, self._statistics_ratio)
        alone = accounting.GaussianObjectiveCurve(self.ratio, self.slack, task.has_open_sign, task.corners)
        return task.problems * (accounting.renyi_divergence(alone, order) + order * other_ratio**2 / 2.0)

    def run(self, oracle: MinimiserOracle, randomness: Randomness) -> Array:
        """Touch the data: solve the perturbed problems, add the tolerance's noise; the result may be released."""
        if not self.guarantee.is_private:
            return oracle.minimise(None, self.effective_regularization)
        nothing = np.zeros((self.task.problems, self.task.dimension))
        perturbation = ADD_NOISE[self.noise](nothing, self.noise_scale, randomness)
        # The theorem perturbs the sum over records, and the solver minimises the mean.
        minimisers = oracle.minimise(perturbation / self.task.total, self.effective_regularization)
        # The softmax loss has a row per class, but is one problem with one noise vector.
        vectors = minimisers.reshape(perturbation.shape)
        noisy = ADD_NOISE[self.noise](vectors, self.tolerance_noise_scale, randomness)
        return noisy.reshape(minimisers.shape)

    def constants(self) -> dict[str, Any]:
        return {
            "gradient_sensitivity": self.task.gradient_sensitivity,
            "effective_regularization": self.effective_regularization,
            "added_regularization": self.effective_regularization - self.task.regularization,
            "slack": self.slack if self.guarantee.is_private else 0.0,
            "noise_scale": self.noise_scale,
            "solver_distance": self.solver_distance,
            "tolerance_noise_scale": self.tolerance_noise_scale,
        }

    @property
    def _perturbation_bound(self) -> float:
        """Bound on |b| / N, exceeded with probability at most 2^-128, by the tails of chi and of Gamma(d)."""
        dimension, exponent = self.task.dimension, 128 * math.log(2.0)
        longest = math.sqrt(dimension) + math.sqrt(2.0 * exponent)
        if self.noise == "norm_gamma":
            longest = dimension + math.sqrt(2.0 * dimension * exponent) + exponent
        return GRID_MARGIN * longest * self.noise_scale / self.task.total

    @property
    def _grid_tolerance(self) -> float:
        """Bound on what rounding the perturbation to its grid adds to the gradient's norm."""
        rounding = math.sqrt(self.task.dimension) * 2.0**-40
        if self.noise == "norm_gamma":
            rounding = self.task.dimension * 2.0**-38
        return self.noise_scale * rounding / self.task.total

    @property
    def _typical_noise(self) -> float:
        """sigma / sqrt(k (k + N c)), k = N Lam: the geometric mean of b's effect on flat and steep directions."""
        flat = self.task.total * self.effective_regularization
        steep = flat * (1.0 + self.task.curvature_ratio(self.effective_regularization) * self.task.total)
        return self.noise_scale / math.sqrt(flat * steep)

    def _negligible_tolerance(self) -> float:
        """Return the tolerance whose noise is `TOLERANCE_NOISE_SHARE` of the objective's."""
        distance = TOLERANCE_NOISE_SHARE * self._typical_noise / self._tolerance_noise_per_distance()
        return distance * self.effective_regularization - self._grid_tolerance

    @property
    def _main_epsilon(self) -> float:
        return self.guarantee.epsilon * (1.0 - TOLERANCE_SHARE) - self.task.other_epsilon

    def _curve(self, ratio: float, tolerance_ratio: float) -> accounting.GaussianObjectiveCurve:
        """Return the curve of one problem."""
        task = self.task
        return accounting.GaussianObjectiveCurve(
            ratio,
            self.slack,
            task.has_open_sign,
            task.corners,
            math.hypot(tolerance_ratio, self._statistics_ratio),
        )

    @property
    def _statistics_ratio(self) -> float:
        """Return one problem's part of the ratio of the statistics: K such parts compose to the whole."""
        return self.task.other_ratio / math.sqrt(self.task.problems)

    @property
    def _tolerance_ratio(self) -> float:
        """Sensitivity / scale of one problem's second noise, rounding to its grid included."""
        return 2.0 * self.solver_distance / self.tolerance_noise_scale + self._grid_ratio

    @property
    def _grid_ratio(self) -> float:
        return math.sqrt(self.task.dimension) * 2.0**-GRID_BITS

    def _delta_of_problems(self) -> float:
        curve = self._curve(self.ratio, self._tolerance_ratio)
        epsilon = self.guarantee.epsilon * (1.0 - accounting.MARGIN)
        return accounting.composition_delta(curve, self.task.problems, epsilon) / (1.0 - accounting.MARGIN)

    def _ra12_delta(self) -> float:
        task = self.task
        sensitivity, epsilon = task.gradient_sensitivity, self._main_epsilon / task.problems - self.slack
        radius = (2.0 * self.noise_scale**2 * epsilon - sensitivity**2) / (2.0 * sensitivity)
        quantile = max(radius, 0.0) / self.noise_scale  # no guarantee if the noise is too small for any ball
        main = task.problems * math.exp(log_norm_tail(quantile, task.dimension))
        joint = math.sqrt(task.problems) * self._tolerance_ratio
        return main + accounting.gaussian_delta(joint, self.guarantee.epsilon * TOLERANCE_SHARE)

    def _min_scale(self) -> float:
        task, sensitivity = self.task, self.task.gradient_sensitivity
        share = (self._main_epsilon - self.guarantee.epsilon * accounting.MARGIN) / task.problems - self.slack
        if self.noise == "norm_gamma":
            return sensitivity / share
        if self.calibration == "ra12":
            delta = self.guarantee.delta * (1.0 - TOLERANCE_SHARE) * (1.0 - accounting.MARGIN) / task.problems
            return accounting.ra12_noise_scale(share, delta, sensitivity, task.dimension) * (
                1.0 + accounting.MARGIN
            )
        ratio = accounting.gaussian_ratio(
            self.guarantee.epsilon,
            self.guarantee.delta,
            times=task.problems,
            curve=accounting.GaussianObjectiveCurves(
                self.slack, task.has_open_sign, task.corners, self._statistics_ratio, TOLERANCE_RATIO
            ),
        )
        return sensitivity / (ratio * (1.0 - accounting.MARGIN))

    def _tolerance_noise_per_distance(self) -> float:
        """Return the second noise's scale divided by t."""
        share = TOLERANCE_SHARE * self.guarantee.epsilon
        if self.noise == "norm_gamma":
            return 2.0 * self.task.problems / (share * (1.0 - accounting.MARGIN))
        ratio = TOLERANCE_RATIO * self.ratio
        if self.calibration == "ra12":
            joint = accounting.gaussian_ratio(share, TOLERANCE_SHARE * self.guarantee.delta)
            ratio = joint / math.sqrt(self.task.problems)
        return 2.0 / (ratio * (1.0 - accounting.MARGIN) - self._grid_ratio)


def _raise_regularization(task: Task, epsilon: float, calibration: str) -> float:
    """Return Lambda + D: raised where the Jacobian's slack would take too much of epsilon."""
    share = (
        epsilon * (1.0 - TOLERANCE_SHARE) * (1.0 - accounting.MARGIN) - task.other_epsilon
    ) / task.problems
    slack = task.jacobian_slack(task.regularization)
    # The papers count the slack twice and raise only when it takes all of epsilon; both raise to half of epsilon.
    target, limit = (share / 2.0, share / 2.0) if calibration == "tight" else (share / 4.0, share / 2.0)
    if slack <= limit * (1.0 - accounting.MARGIN):
        return task.regularization
    return task.curvature_ratio(1.0) / task.curvature_ratio_of(target)

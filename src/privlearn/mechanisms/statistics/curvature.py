"""Noisy curvature: the loss's Hessian and the gradients' second moments at a released model, for intervals.

The argument, and what follows from the two matrices: docs/theory/intervals.md.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from privlearn.accounting import MARGIN, gaussian_delta, gaussian_ratio
from privlearn.arrays import Array
from privlearn.errors import InvalidParameter
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.mechanism import Mechanism, ReleaseMechanism, register_mechanism
from privlearn.mechanisms.noise import FLOATING_POINT, GRID_BITS, add_gaussian
from privlearn.mechanisms.task import Task
from privlearn.randomness import Randomness

MAX_COEFFICIENTS = 256
"""More numbers than this squared would be noise, and a large file."""

FOR_GRADIENTS = 0.1
"""Share of the squared ratio for the gradients' moments: their noise matters less (docs/theory/intervals.md)."""

_ROOT_HALF = math.sqrt(0.5)


class Curvatures(Protocol):
    """Computes the two exact matrices."""

    @abstractmethod
    def sums(self, coefficients: Array) -> tuple[Array, Array]:
        """PRIVATE: return the sums of the records' Hessians and of their gradients' outer products, at coefficients.

        Each record adds a positive semidefinite matrix of trace at most 1 to each: both are divided by their bounds.
        The sums are exact, in any order of the records.
        """


@register_mechanism
@dataclass(frozen=True)
class NoisyCurvature(Mechanism):
    """Two symmetric matrices with Gaussian noise; one record's part of each has trace at most 1.

    **Theorem** (docs/theory/intervals.md). At public coefficients w, let a record's Hessian have trace at most c and
    its gradient norm at most L, both times a record's largest weight. Divided by c and by L^2, one record's part of
    either sum is positive semidefinite of trace at most 1, so one person moves each by at most S in Frobenius norm:
    S = 1, and sqrt(2) if a record is replaced. A diagonal entry gets noise of deviation ``scale``, each pair of
    equal entries off the diagonal one draw of scale / sqrt(2). Together they are one Gaussian mechanism of

        ratio^2 = (S / hessian_noise_scale + g)^2 + (S / gradient_noise_scale + g)^2,   g = sqrt(d (d + 1) / 2) 2^-44,

    d the number of coefficients; g covers rounding to the noise's grid.

    Parameters
    ----------
    task : Task
        Task of the release with coefficients w.
    guarantee : Guarantee
    hessian_noise_scale, gradient_noise_scale : float
        In units of c, and of L^2.

    Examples
    --------
    >>> from privlearn.solvers import Logistic
    >>> task = Task(Logistic(), total=10_000, dimension=5, problems=1, regularization=0.01, tolerance=1e-9,
    ...             neighbours="replace_one")
    >>> mechanism = NoisyCurvature.calibrate(task, Guarantee(1.0, 1e-6))
    >>> round(mechanism.hessian_noise_scale, 2), round(mechanism.gradient_noise_scale, 2)
    (6.3, 18.89)
    """

    task: Task
    guarantee: Guarantee
    hessian_noise_scale: float
    gradient_noise_scale: float

    name = "curvature"
    title = "noisy curvature"
    page = "intervals"
    noise = "gaussian"
    calibrated_constants = ("hessian_noise_scale", "gradient_noise_scale")
    uses_solver = False

    @classmethod
    def calibrate(cls, task: Task, guarantee: Guarantee) -> NoisyCurvature:
        if not guarantee.is_private:
            return cls(task, guarantee, 0.0, 0.0)
        if guarantee.delta == 0.0:
            raise InvalidParameter(
                "the curvature gets Gaussian noise, which needs delta > 0. Pass delta=1e-6 (well below 1/n)"
            )
        whole = gaussian_ratio(guarantee.epsilon, guarantee.delta) * (1.0 - MARGIN)
        unit = cls(task, guarantee, math.nan, math.nan)
        hessian, gradients = (
            task.relation.moments / (whole * math.sqrt(share) - unit._grid_ratio)
            for share in (1.0 - FOR_GRADIENTS, FOR_GRADIENTS)
        )
        return cls(task, guarantee, hessian, gradients)

    @property
    def gaussian_numbers(self) -> int:
        return self.task.dimension * (self.task.dimension + 1)

    @property
    def hessian_bound(self) -> float:
        """c: maximal trace of a record's Hessian."""
        return self.task.curvature_ratio(1.0) * self.task.total

    @property
    def gradient_bound(self) -> float:
        """L^2: maximal squared norm of a record's gradient."""
        return (self.task.loss.lipschitz * self.task.max_weight) ** 2

    @property
    def ratio(self) -> float:
        """Sensitivity of both matrices over the deviation of their noise."""
        sensitivity, grid = self.task.relation.moments, self._grid_ratio
        gradients = sensitivity / self.gradient_noise_scale + grid
        return math.hypot(sensitivity / self.hessian_noise_scale + grid, gradients)

    @property
    def _grid_ratio(self) -> float:
        dimension = self.task.dimension
        return math.sqrt(dimension * (dimension + 1) / 2.0) * 2.0**-GRID_BITS

    @property
    def _depending(self) -> str:
        return "the two matrices. The release they belong to has its own price"

    @property
    def floating_point(self) -> str:
        return FLOATING_POINT["gaussian"]

    def spends(self) -> Guarantee:
        if not self.guarantee.is_private:
            return Guarantee(math.inf, 0.0, self.task.neighbours)
        epsilon = self.guarantee.epsilon
        return Guarantee(epsilon, gaussian_delta(self.ratio, epsilon), self.task.neighbours)

    def renyi(self, order: float) -> float:
        return order * self.ratio**2 / 2.0

    def run(self, oracle: Curvatures, coefficients: Array, randomness: Randomness) -> tuple[Array, Array]:
        """Touch the data: return both matrices in units of their bounds; they may be released."""
        hessian, gradients = oracle.sums(coefficients)
        return (
            _noisy(hessian, self.hessian_noise_scale, randomness),
            _noisy(gradients, self.gradient_noise_scale, randomness),
        )

    def constants(self) -> dict[str, Any]:
        return {
            "moments_sensitivity": self.task.relation.moments,
            "hessian_bound": self.hessian_bound,
            "gradient_bound": self.gradient_bound,
            "hessian_noise_scale": self.hessian_noise_scale,
            "gradient_noise_scale": self.gradient_noise_scale,
        }


def explain_refusal(mechanism: Any) -> str | None:
    """Return why no curvature can be released for a mechanism's output; ``None`` if it can."""
    return noise_refusal(mechanism) or task_refusal(mechanism.task)


def noise_refusal(mechanism: Any) -> str | None:
    """Return why the noise in a mechanism's coefficients is unknown, even without a curvature; else ``None``."""
    if not isinstance(mechanism, ReleaseMechanism) or mechanism.perturbs not in ("objective", "minimiser"):
        return "it was not made by objective or output perturbation of one holder's records, without a search"
    return _loss_refusal(mechanism.task)


def task_refusal(task: Task) -> str | None:
    """Return why the theorem does not cover a task; ``None`` if it does."""
    if task.records_of_a_person > 1:
        return "persons have several rows and no column names the person (person: COLUMN in the schema)"
    return _loss_refusal(task)


def _loss_refusal(task: Task) -> str | None:
    if task.prior_norm or task.largest_ridge != 1.0:
        return "its regularizer has weights or a public model"
    if task.problems > 1:
        return "its classes were learnt one against the rest, in several problems"
    if not math.isfinite(task.loss.smoothness):
        return f"the {task.loss.name} loss has no curvature"
    if task.loss.argument == "classes" and not task.classes:
        return "the number of its classes is not known"
    return None


def _noisy(matrix: Array, scale: float, randomness: Randomness) -> Array:
    """Return a symmetric matrix plus noise: one draw for each diagonal entry, a smaller one for each equal pair."""
    if scale == 0.0:
        return matrix
    above = np.triu_indices(len(matrix), 1)
    noisy = np.diag(add_gaussian(np.diag(matrix), scale, randomness))
    noisy[above] = add_gaussian(matrix[above], scale * _ROOT_HALF, randomness)
    return np.triu(noisy) + np.triu(noisy, 1).T

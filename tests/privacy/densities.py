"""The exact law of what objective perturbation releases, for tiny data sets, by change of variables.

The minimiser w of J(w) + <b, w>/N satisfies b = -sum of gradients - N Lambda w, so w has density
p(b(w)) |det(sum of curvatures + N Lambda I)|. Records are given as y * x.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Grid:
    """Points w of shape (points, d), all cells of one volume."""

    points: Array
    cell: float

    @classmethod
    def covering(
        cls, mechanism: Any, records: int, dimension: int, count: int, deviations: float = 9.0
    ) -> Grid:
        """The w that noise within so many deviations can lead to."""
        kappa = mechanism.task.total * mechanism.effective_regularization
        half = (deviations * mechanism.noise_scale + records * mechanism.task.loss.lipschitz) / kappa
        axis, width = np.linspace(-half, half, count, retstep=True)
        axes = np.meshgrid(*[axis] * dimension, indexing="ij")
        return cls(np.stack([a.ravel() for a in axes], axis=1), float(width) ** dimension)


def log_density(records: Array, points: Array, mechanism: Any) -> Array:
    """Logarithm of the density at ``points`` of the exact minimiser."""
    noise, jacobian = _change_of_variables(records, points, mechanism)
    norms, scale, d = np.linalg.norm(noise, axis=1), mechanism.noise_scale, points.shape[1]
    if mechanism.noise == "gaussian":
        log_noise = -(norms**2) / (2.0 * scale**2) - d * math.log(math.sqrt(2.0 * math.pi) * scale)
    else:
        # |b| is Gamma(d) and the sphere has area 2 pi^(d/2) / Gamma(d/2)
        area = math.log(2.0) + d / 2.0 * math.log(math.pi) - math.lgamma(d / 2.0)
        log_noise = -norms / scale - d * math.log(scale) - math.lgamma(d) - area
    return log_noise + jacobian


def _change_of_variables(records: Array, points: Array, mechanism: Any) -> tuple[Array, Array]:
    loss, task = mechanism.task.loss, mechanism.task
    kappa = task.total * mechanism.effective_regularization
    margins = points @ records.T
    noise = -(loss.derivative(margins) @ records) - kappa * points
    outer = np.einsum("ij,ik->ijk", records, records)
    hessian = np.einsum("pi,ijk->pjk", loss.curvature(margins), outer) + kappa * np.eye(points.shape[1])
    return noise, np.log(hessian[:, 0, 0]) if points.shape[1] == 1 else np.linalg.slogdet(hessian)[1]


def worst_loss(one: Array, other: Array, points: Array, mechanism: Any) -> float:
    """Largest absolute privacy loss on the points."""
    difference = log_density(one, points, mechanism) - log_density(other, points, mechanism)
    return float(np.max(np.abs(difference)))


def divergences(one: Array, other: Array, grid: Grid, mechanism: Any) -> tuple[float, float]:
    """Hockey-stick divergence at the promised epsilon, in the worse direction, and the mass that the grid covers."""
    first, second = (np.exp(log_density(records, grid.points, mechanism)) for records in (one, other))
    factor = math.exp(mechanism.guarantee.epsilon)
    excess = max(
        np.maximum(first - factor * second, 0.0).sum(), np.maximum(second - factor * first, 0.0).sum()
    )
    return float(excess) * grid.cell, float(first.sum()) * grid.cell

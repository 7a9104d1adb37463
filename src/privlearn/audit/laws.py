"""The exact law of what a mechanism releases on a tiny data set, written anew from the theory.

The minimiser w of J(w) + <b, w>/N satisfies b = -sum of gradients - N Lambda w, so under objective perturbation it has
density p(b(w)) |det(sum of curvatures + N Lambda I)|. The other mechanisms add noise to a function of the minimiser.
See docs/theory/audit.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from privlearn.audit.neighbours import Pair, Records
from privlearn.erm import Problem, minimise

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Grid:
    """Points of shape (points, d), all cells of one volume."""

    points: Array
    cell: float

    @classmethod
    def around(cls, centre: Array, half: float, count: int) -> Grid:
        steps, width = np.linspace(-half, half, count, retstep=True)
        axes = np.meshgrid(*[steps] * centre.size, indexing="ij")
        points = centre + np.stack([axis.ravel() for axis in axes], axis=1)
        return cls(points, float(width) ** centre.size)

    @classmethod
    def covering(cls, mechanism: Any, records: int, count: int, deviations: float = 9.0) -> Grid:
        """The minimisers that noise in the objective, within so many deviations, can lead to."""
        kappa = mechanism.task.total * mechanism.effective_regularization
        half = (deviations * mechanism.noise_scale + records * mechanism.task.loss.lipschitz) / kappa
        return cls.around(np.zeros(mechanism.task.dimension), half, count)


def solve(task: Any, records: Records, regularization: float, linear: Array | None = None) -> Array:
    """The minimiser on these records, as every estimator computes it."""
    problem = Problem(
        records.rows,
        np.ones(len(records.rows)),
        task.loss,
        regularization,
        task.total,
        linear=linear,
        offsets=records.offsets,
    )
    return minimise(problem, tolerance=task.tolerance, gap=task.gap).coefficients


def gradient_sum(task: Any, records: Records, points: Array) -> Array:
    """Sum over the records of the gradients at each of the points, the regularization left out."""
    margins = points @ records.rows.T - records.offsets
    return np.asarray(task.loss.derivative(margins) @ records.rows)


def log_jacobian(task: Any, records: Records, points: Array, regularization: float) -> Array:
    """log det(sum of curvatures + N Lambda I) at each of the points."""
    margins = points @ records.rows.T - records.offsets
    outer = np.einsum("ij,ik->ijk", records.rows, records.rows)
    ridge = task.total * regularization * np.eye(points.shape[1])
    hessians = np.einsum("pi,ijk->pjk", task.loss.curvature(margins), outer) + ridge
    return np.asarray(np.log(hessians[:, 0, 0]) if points.shape[1] == 1 else np.linalg.slogdet(hessians)[1])


def log_noise(noise: str, vectors: Array, scale: float) -> Array:
    """Logarithm of the noise's density at each of the vectors."""
    d = vectors.shape[1]
    if noise == "gaussian":
        squares = np.sum(vectors**2, axis=1)
        return np.asarray(-squares / (2.0 * scale**2) - d * math.log(math.sqrt(2.0 * math.pi) * scale))
    if noise == "laplace":
        return np.asarray(-np.sum(np.abs(vectors), axis=1) / scale - d * math.log(2.0 * scale))
    # |b| is Gamma(d) and the sphere has area 2 pi^(d/2) / Gamma(d/2)
    area = math.log(2.0) + d / 2.0 * math.log(math.pi) - math.lgamma(d / 2.0)
    return np.asarray(-np.linalg.norm(vectors, axis=1) / scale - d * math.log(scale) - math.lgamma(d) - area)


def log_objective_density(records: Records, points: Array, mechanism: Any) -> Array:
    """Of the exact minimiser under objective perturbation."""
    task, regularization = mechanism.task, mechanism.effective_regularization
    noise = -gradient_sum(task, records, points) - task.total * regularization * points
    return log_noise(mechanism.noise, noise, mechanism.noise_scale) + log_jacobian(
        task, records, points, regularization
    )


@dataclass(frozen=True, eq=False)
class LawPair:
    """Log-densities of two releases on the same points, and the volume that each point stands for."""

    first: Array
    second: Array
    cell: float

    @property
    def lost_mass(self) -> float:
        """How far the grid's sums are from 1: what quadrature can be wrong by."""
        return max(abs(float(np.sum(np.exp(law))) * self.cell - 1.0) for law in (self.first, self.second))

    @property
    def worst_loss(self) -> float:
        """Largest absolute privacy loss on the points."""
        return float(np.max(np.abs(self.first - self.second)))

    def delta(self, epsilon: float) -> float:
        """Hockey-stick divergence in the worse direction."""
        first, second = np.exp(self.first), np.exp(self.second)
        factor = math.exp(epsilon)
        excess = (np.maximum(p - factor * q, 0.0).sum() for p, q in ((first, second), (second, first)))
        return float(max(excess)) * self.cell


def objective_laws(mechanism: Any, pair: Pair, grid: Grid) -> LawPair:
    """Of objective perturbation, on points of one's choice."""
    first, second = (
        log_objective_density(records, grid.points, mechanism) for records in (pair.one, pair.other)
    )
    return LawPair(first, second, grid.cell)


def exact_laws(mechanism: Any, pair: Pair, probes: Array | None = None) -> LawPair:
    """What leaves on the two data sets; in one or two dimensions (of coefficients, or of answers)."""
    pure = mechanism.noise != "gaussian"
    count, deviations = {1: (20_001, 40.0 if pure else 9.0), 2: (401, 16.0 if pure else 6.0)}[
        len(probes) if mechanism.perturbs == "answers" and probes is not None else mechanism.task.dimension
    ]
    if mechanism.perturbs == "objective":
        grid = Grid.covering(mechanism, len(pair.one.rows), count, deviations)
        return objective_laws(mechanism, pair, grid)
    one, other = (
        solve(mechanism.task, records, mechanism.effective_regularization)
        for records in (pair.one, pair.other)
    )
    if mechanism.perturbs == "choices":
        return _one_round_of_tdil(mechanism, one, other, np.asarray(probes))
    if mechanism.perturbs == "answers":
        one, other = np.asarray(probes) @ one, np.asarray(probes) @ other
    half = deviations * mechanism.noise_scale + float(np.max(np.abs(one - other)))
    grid = Grid.around((one + other) / 2.0, half, count)
    first, second = (
        log_noise(mechanism.noise, grid.points - value, mechanism.noise_scale) for value in (one, other)
    )
    return LawPair(first, second, grid.cell)


def _one_round_of_tdil(mechanism: Any, one: Array, other: Array, net: Array) -> LawPair:
    """A row of the net, drawn by the exponential mechanism, and the noisy answer there; the guess is still 0."""
    answers = np.stack([net @ one, net @ other])
    reach = 9.0 * mechanism.noise_scale + float(np.max(np.abs(answers)))
    axis = Grid.around(np.zeros(1), reach, 4001)
    laws = []
    for values in answers:
        scores = mechanism.selection_rate * np.abs(values)
        chosen = scores - logsumexp(scores)
        answer = log_noise(
            "gaussian", (axis.points.T - values[:, np.newaxis]).reshape(-1, 1), mechanism.noise_scale
        )
        laws.append((chosen[:, np.newaxis] + answer.reshape(len(net), -1)).ravel())
    return LawPair(laws[0], laws[1], axis.cell)

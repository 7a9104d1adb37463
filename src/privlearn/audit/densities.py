"""Exact densities of releases in few dimensions, and the privacy curve between two of them.

The densities are written out from the definitions, independently of the mechanisms' code, and integrated on a grid.
Shapes: points (p, d), records (n, d), one log-density per point (p,).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from privlearn.accounting import PureCurve
from privlearn.arrays import Array
from privlearn.audit.empirical import Finding, judge
from privlearn.audit.neighbours import Pair, Records, worst_pairs
from privlearn.errors import InvalidParameter
from privlearn.guarantee import Guarantee
from privlearn.solvers.multinomial import minimise_multinomial
from privlearn.solvers.problem import Problem
from privlearn.solvers.solve import minimise


@dataclass(frozen=True, eq=False)
class Grid:
    """Points of shape (p, d), whose cells all have volume ``cell``."""

    points: Array
    cell: float

    @classmethod
    def around(cls, centre: Array, half: float, count: int) -> Grid:
        """Return a cube of ``count`` points along each axis."""
        steps, width = np.linspace(-half, half, count, retstep=True)
        axes = np.meshgrid(*[steps] * centre.size, indexing="ij")
        points = centre + np.stack([axis.ravel() for axis in axes], axis=1)
        return cls(points, float(width) ** centre.size)

    @classmethod
    def covering(cls, mechanism: Any, records: int, count: int, deviations: float = 9.0) -> Grid:
        """Return a grid over the minimisers that noise in the objective, up to ``deviations``, can lead to."""
        kappa = mechanism.task.total * mechanism.effective_regularization
        half = (deviations * mechanism.noise_scale + records * mechanism.task.loss.lipschitz) / kappa
        if mechanism.task.classes != 3 or mechanism.noise != "gaussian":
            return cls.around(np.zeros(mechanism.task.dimension), half, count)
        plane = cls.around(np.zeros(2), half, count)
        across = math.sqrt(2.0 * math.pi) * mechanism.noise_scale / kappa  # integral over their sum, a normal
        return cls(plane_of_three(plane.points), plane.cell * across)


def solve(task: Any, records: Records, regularization: float, linear: Array | None = None) -> Array:
    """Return the minimiser on these records, as every estimator computes it."""
    if task.classes:
        return softmax_minimiser(task, records.rows, records.offsets, regularization, linear)
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
    """Return the sum over the records of the gradients at each of the points, without regularization."""
    if task.classes:
        return softmax_gradients(task.classes, records.rows, records.offsets, points)
    margins = points @ records.rows.T - records.offsets
    return np.asarray(task.loss.first_derivative(margins) @ records.rows)


def log_jacobian(task: Any, records: Records, points: Array, regularization: float) -> Array:
    """Return log det(sum of Hessians + N Lambda I) at each of the points."""
    ridge = task.total * regularization * np.eye(points.shape[1])
    if task.classes:
        blocks = softmax_hessians(task.classes, records.rows, points) + ridge
        return np.asarray(np.linalg.slogdet(blocks)[1])
    margins = points @ records.rows.T - records.offsets
    outer = np.einsum("ij,ik->ijk", records.rows, records.rows)
    hessians = np.einsum("pi,ijk->pjk", task.loss.second_derivative(margins), outer) + ridge
    return np.asarray(np.log(hessians[:, 0, 0]) if points.shape[1] == 1 else np.linalg.slogdet(hessians)[1])


def softmax_minimiser(
    task: Any, rows: Array, labels: Array, regularization: float, linear: Array | None
) -> Array:
    """Return the minimiser of the softmax loss, classes one after another, as every estimator computes it."""
    solution = minimise_multinomial(
        rows,
        labels.astype(np.int64),
        task.classes,
        regularization=regularization,
        total=task.total,
        linear=None if linear is None else linear.reshape(task.classes, -1),
        tolerance=task.tolerance,
    )
    return solution.coefficients.ravel()


def softmax_gradients(classes: int, rows: Array, labels: Array, points: Array) -> Array:
    """Return the sum over the records of the gradients at each of the points."""
    residuals = _probabilities(classes, rows, points) - np.eye(classes)[labels.astype(np.int64)]
    return np.asarray(np.einsum("pik,ij->pkj", residuals, rows)).reshape(points.shape)


def softmax_hessians(classes: int, rows: Array, points: Array) -> Array:
    """Return the sum over the records of ``(diag(p) - p p') (x) x x'`` at each of the points."""
    p = _probabilities(classes, rows, points)
    inner = np.einsum("pik,kl->pikl", p, np.eye(classes)) - np.einsum("pik,pil->pikl", p, p)
    blocks = np.einsum("pikl,ij,im->pkjlm", inner, rows, rows)
    return np.asarray(blocks).reshape(len(points), points.shape[1], points.shape[1])


def _probabilities(classes: int, rows: Array, points: Array) -> Array:
    """Return probabilities of shape (points, records, classes)."""
    scores = np.einsum("pkj,ij->pik", points.reshape(len(points), classes, -1), rows)
    powers = np.exp(scores - scores.max(axis=2, keepdims=True))
    return np.asarray(powers / powers.sum(axis=2, keepdims=True))


def plane_of_three(points: Array) -> Array:
    """Map points of a plane to coefficients, one for each of three classes, that add up to 0; rows have one column.

    No record moves that sum, since every gradient adds up to 0: in its direction both densities are the noise's.
    """
    axes = np.array([[1.0, -1.0, 0.0], [1.0, 1.0, -2.0]])
    return np.asarray(points @ (axes / np.linalg.norm(axes, axis=1, keepdims=True)))


def log_noise(noise: str, vectors: Array, scale: float) -> Array:
    """Return the logarithm of the noise's density at each of the vectors."""
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
    """Return the log-density of the exact minimiser under objective perturbation."""
    task, regularization = mechanism.task, mechanism.effective_regularization
    noise = -gradient_sum(task, records, points) - task.total * regularization * points
    return log_noise(mechanism.noise, noise, mechanism.noise_scale) + log_jacobian(
        task, records, points, regularization
    )


@dataclass(frozen=True, eq=False)
class DensityPair:
    """Log-densities of two releases on the same points, and the volume of each point's cell."""

    first: Array
    second: Array
    cell: float

    @property
    def lost_mass(self) -> float:
        """Distance of the grid's sums from 1: the error of the quadrature."""
        return max(
            abs(float(np.sum(np.exp(density))) * self.cell - 1.0) for density in (self.first, self.second)
        )

    @property
    def worst_loss(self) -> float:
        """Maximum absolute privacy loss on the points."""
        return float(np.max(np.abs(self.first - self.second)))

    def delta(self, epsilon: float) -> float:
        """Return the hockey-stick divergence in the worse direction."""
        first, second = np.exp(self.first), np.exp(self.second)
        factor = math.exp(epsilon)
        excess = (np.maximum(p - factor * q, 0.0).sum() for p, q in ((first, second), (second, first)))
        return float(max(excess)) * self.cell


def objective_densities(mechanism: Any, pair: Pair, grid: Grid) -> DensityPair:
    """Return the densities of objective perturbation on the grid's points."""
    first, second = (log_objective_density(rows, grid.points, mechanism) for rows in (pair.one, pair.other))
    return DensityPair(first, second, grid.cell)


def exact_densities(mechanism: Any, pair: Pair, points: Array | None = None) -> DensityPair:
    """Return the densities of the releases on two data sets: in up to two dimensions, or three classes on a line."""
    pure = mechanism.noise != "gaussian"
    # By dimension: points along each axis, and how many deviations of the noise the grid covers on either side.
    sizes = {1: (20_001, 40.0 if pure else 9.0), 2: (401, 16.0 if pure else 6.0)}
    sizes[3] = (41, 10.0) if pure else (201, 6.0)  # three classes on a line
    answers = mechanism.perturbs == "answers"
    count, deviations = sizes[mechanism.noisy_numbers if answers else mechanism.task.dimension]
    if mechanism.perturbs == "objective":
        grid = Grid.covering(mechanism, len(pair.one.rows), count, deviations)
        return objective_densities(mechanism, pair, grid)
    one, other = (
        solve(mechanism.task, records, mechanism.effective_regularization)
        for records in (pair.one, pair.other)
    )
    if mechanism.perturbs == "choices":
        return _one_round_of_tdil(mechanism, one, other, np.asarray(points))
    if answers:
        one, other = (mechanism.exact_answers(w, np.asarray(points)) for w in (one, other))
    half = deviations * mechanism.noise_scale + float(np.max(np.abs(one - other)))
    grid = Grid.around((one + other) / 2.0, half, count)
    first, second = (
        log_noise(mechanism.noise, grid.points - value, mechanism.noise_scale) for value in (one, other)
    )
    return DensityPair(first, second, grid.cell)


def _one_round_of_tdil(mechanism: Any, one: Array, other: Array, net: Array) -> DensityPair:
    """Return the densities of the first round: a row of the net, drawn by its score, and the noisy answer there."""
    answers = np.stack([net @ one, net @ other])
    deviations = 9.0 if mechanism.noise == "gaussian" else 40.0
    reach = deviations * mechanism.noise_scale + float(np.max(np.abs(answers)))
    axis = Grid.around(np.zeros(1), reach, 4001)
    densities = []
    for values in answers:
        scores = mechanism.selection_rate * np.abs(values)
        choice = scores - logsumexp(scores)
        answer = log_noise(
            mechanism.noise, (axis.points.T - values[:, np.newaxis]).reshape(-1, 1), mechanism.noise_scale
        )
        densities.append((choice[:, np.newaxis] + answer.reshape(len(net), -1)).ravel())
    return DensityPair(densities[0], densities[1], axis.cell)


SHARES = (0.25, 0.5, 1.0, 1.5)
"""Where curves are compared, as multiples of the claimed epsilon."""

QUADRATURE = 1e-3
"""Relative error allowed for the integrals."""


def theorem_delta(mechanism: Any, epsilon: float) -> float:
    """Return delta(epsilon) by the mechanism's own theorem and constants."""
    guarantee = mechanism.guarantee
    if guarantee.delta == 0:
        return float(PureCurve(mechanism.spends().epsilon).delta(epsilon))
    requested = Guarantee(epsilon, guarantee.delta, guarantee.neighbours)
    try:
        spent = dataclasses.replace(mechanism, guarantee=requested).spends()
    except InvalidParameter:  # a delta of 1 and more: the theorem is void for so small an epsilon
        return 1.0
    # a theorem that fixes delta gives an epsilon, and claims nothing below it
    return float(spent.delta) if spent.epsilon <= epsilon else 1.0


def check_curve(mechanism: Any, points: NDArray[np.float64] | None = None) -> Iterator[Finding]:
    """Yield findings that compare the exact curve on the worst neighbours with the guarantee and the claimed curve."""
    guarantee = mechanism.guarantee
    pairs = [(pair.name, exact_densities(mechanism, pair, points)) for pair in worst_pairs(mechanism.task)]
    name, worst = max(pairs, key=lambda item: item[1].delta(guarantee.epsilon))
    yield judge(
        "exact curve",
        f"guaranteed epsilon {guarantee.epsilon:g}, worst of {len(pairs)} pairs of neighbours: {name}",
        _holds(worst, guarantee) and all(_holds(densities, guarantee) for _, densities in pairs),
        "the density of the release, integrated numerically, breaks the guarantee: too little noise",
        {"exact delta": worst.delta(guarantee.epsilon), "guaranteed delta": guarantee.delta}
        | ({"largest loss": max(one.worst_loss for _, one in pairs)} if guarantee.delta == 0 else {}),
    )
    claims = [
        (share * guarantee.epsilon, theorem_delta(mechanism, share * guarantee.epsilon)) for share in SHARES
    ]
    ratios = [(_ratio(densities, *claim), claim[0]) for claim in claims for _, densities in pairs]
    worst_ratio, at_epsilon = max(ratios)
    yield judge(
        "exact curve",
        f"delta at {len(claims)} other epsilons against the certificate's constants",
        worst_ratio <= 1.0 + QUADRATURE,
        f"at epsilon {at_epsilon:.3g} the exact curve lies above the one that the constants claim",
        {"largest share of the claim": worst_ratio},
    )


def _holds(densities: DensityPair, guarantee: Guarantee) -> bool:
    if guarantee.delta == 0:
        return densities.worst_loss <= guarantee.epsilon * (1.0 + 1e-9)
    return _ratio(densities, guarantee.epsilon, guarantee.delta) <= 1.0 + QUADRATURE


def _ratio(densities: DensityPair, epsilon: float, claimed: float) -> float:
    """Return the exact delta, less the error of the grid, divided by the claimed one."""
    return max(densities.delta(epsilon) - 2.0 * densities.lost_mass, 0.0) / max(claimed, 1e-12)

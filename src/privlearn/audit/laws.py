"""The laws of what mechanisms release in one dimension, and the privacy curve between two of them."""

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
from privlearn.audit import several_classes
from privlearn.audit.empirical import Finding, judged
from privlearn.audit.neighbours import Pair, Records, worst_pairs
from privlearn.erm.problem import Problem
from privlearn.erm.solve import minimise
from privlearn.errors import InvalidParameter
from privlearn.guarantee import Guarantee


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
        if mechanism.task.classes != 3 or mechanism.noise != "gaussian":
            return cls.around(np.zeros(mechanism.task.dimension), half, count)
        plane = cls.around(np.zeros(2), half, count)
        across = math.sqrt(2.0 * math.pi) * mechanism.noise_scale / kappa  # of the normal law of their sum
        return cls(several_classes.plane_of_three(plane.points), plane.cell * across)


def solve(task: Any, records: Records, regularization: float, linear: Array | None = None) -> Array:
    """The minimiser on these records, as every estimator computes it."""
    if task.classes:
        return several_classes.minimiser(task, records.rows, records.offsets, regularization, linear)
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
    if task.classes:
        return several_classes.gradients(task.classes, records.rows, records.offsets, points)
    margins = points @ records.rows.T - records.offsets
    return np.asarray(task.loss.derivative(margins) @ records.rows)


def log_jacobian(task: Any, records: Records, points: Array, regularization: float) -> Array:
    """log det(sum of curvatures + N Lambda I) at each of the points."""
    ridge = task.total * regularization * np.eye(points.shape[1])
    if task.classes:
        of_classes = several_classes.hessians(task.classes, records.rows, points) + ridge
        return np.asarray(np.linalg.slogdet(of_classes)[1])
    margins = points @ records.rows.T - records.offsets
    outer = np.einsum("ij,ik->ijk", records.rows, records.rows)
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


def exact_laws(mechanism: Any, pair: Pair, points: Array | None = None) -> LawPair:
    """What leaves on the two data sets; in one or two dimensions (of coefficients, or of answers).

    Or of three classes on a line.
    """
    pure = mechanism.noise != "gaussian"
    sizes = {1: (20_001, 40.0 if pure else 9.0), 2: (401, 16.0 if pure else 6.0)}
    sizes[3] = (41, 10.0) if pure else (201, 6.0)  # three classes on a line
    answers = mechanism.perturbs == "answers"
    count, deviations = sizes[mechanism.noisy_numbers if answers else mechanism.task.dimension]
    if mechanism.perturbs == "objective":
        grid = Grid.covering(mechanism, len(pair.one.rows), count, deviations)
        return objective_laws(mechanism, pair, grid)
    one, other = (
        solve(mechanism.task, records, mechanism.effective_regularization)
        for records in (pair.one, pair.other)
    )
    if mechanism.perturbs == "choices":
        return _one_round_of_tdil(mechanism, one, other, np.asarray(points))
    if answers:
        one, other = (mechanism.asks(w, np.asarray(points)) for w in (one, other))
    half = deviations * mechanism.noise_scale + float(np.max(np.abs(one - other)))
    grid = Grid.around((one + other) / 2.0, half, count)
    first, second = (
        log_noise(mechanism.noise, grid.points - value, mechanism.noise_scale) for value in (one, other)
    )
    return LawPair(first, second, grid.cell)


def _one_round_of_tdil(mechanism: Any, one: Array, other: Array, net: Array) -> LawPair:
    """A row of the net, drawn by the exponential mechanism, and the noisy answer there; the guess is still 0."""
    answers = np.stack([net @ one, net @ other])
    deviations = 9.0 if mechanism.noise == "gaussian" else 40.0
    reach = deviations * mechanism.noise_scale + float(np.max(np.abs(answers)))
    axis = Grid.around(np.zeros(1), reach, 4001)
    laws = []
    for values in answers:
        scores = mechanism.selection_rate * np.abs(values)
        chosen = scores - logsumexp(scores)
        answer = log_noise(
            mechanism.noise, (axis.points.T - values[:, np.newaxis]).reshape(-1, 1), mechanism.noise_scale
        )
        laws.append((chosen[:, np.newaxis] + answer.reshape(len(net), -1)).ravel())
    return LawPair(laws[0], laws[1], axis.cell)


SHARES = (0.25, 0.5, 1.0, 1.5)
"""Where curves are compared, in parts of the promised epsilon."""

QUADRATURE = 1e-3
"""What the integrals may be wrong by, relative."""


def claimed_delta(mechanism: Any, epsilon: float) -> float:
    """delta(epsilon) by the mechanism's own theorem and constants."""
    promise = mechanism.guarantee
    if promise.delta == 0:
        return float(PureCurve(mechanism.spends().epsilon).delta(epsilon))
    asked = Guarantee(epsilon, promise.delta, promise.neighbours)
    try:
        spent = dataclasses.replace(mechanism, guarantee=asked).spends()
    except InvalidParameter:  # a delta of 1 and more: so near to zero the theorem claims nothing
        return 1.0
    # a theorem that fixes delta answers with an epsilon, and says nothing below it
    return float(spent.delta) if spent.epsilon <= epsilon else 1.0


def check_curve(mechanism: Any, points: NDArray[np.float64] | None = None) -> Iterator[Finding]:
    """The exact curve on the worst neighbours stays below the claimed one, and below the promise."""
    promise = mechanism.guarantee
    found = [(pair.name, exact_laws(mechanism, pair, points)) for pair in worst_pairs(mechanism.task)]
    name, worst = max(found, key=lambda item: item[1].delta(promise.epsilon))
    yield judged(
        "exact curve",
        f"promised epsilon {promise.epsilon:g}, worst of {len(found)} pairs of neighbours: {name}",
        _is_kept(worst, promise) and all(_is_kept(laws, promise) for _, laws in found),
        "the law of the release, integrated numerically, breaks the promise: too little noise",
        {"exact delta": worst.delta(promise.epsilon), "promised delta": promise.delta}
        | ({"largest loss": max(laws.worst_loss for _, laws in found)} if promise.delta == 0 else {}),
    )
    claims = [
        (share * promise.epsilon, claimed_delta(mechanism, share * promise.epsilon)) for share in SHARES
    ]
    worst_ratio, where = max(
        (_over(laws.delta(epsilon), claimed, laws), epsilon)
        for epsilon, claimed in claims
        for _, laws in found
    )
    yield judged(
        "exact curve",
        f"delta at {len(claims)} other epsilons against the certificate's constants",
        worst_ratio <= 1.0 + QUADRATURE,
        f"at epsilon {where:.3g} the exact curve lies above the one that the constants claim",
        {"largest share of the claim": worst_ratio},
    )


def _is_kept(laws: LawPair, promise: Guarantee) -> bool:
    if promise.delta == 0:
        return laws.worst_loss <= promise.epsilon * (1.0 + 1e-9)
    return _over(laws.delta(promise.epsilon), promise.delta, laws) <= 1.0 + QUADRATURE


def _over(exact: float, claimed: float, laws: LawPair) -> float:
    """Exact over claimed, what the grid missed set aside."""
    return max(exact - 2.0 * laws.lost_mass, 0.0) / max(claimed, 1e-12)

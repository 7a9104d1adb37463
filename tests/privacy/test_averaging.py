"""The averaging theorem, by quadrature; and whole mechanisms for persons with several rows, exactly on a line.

delta_Z(t) = E(1 - exp(t - G))_+ with G = max over v in Z of <v, b> + |v|^2/2, b ~ N(0, I). If Z lies in an average of
sets, each of them the image of a part of T under an orthogonal map, then delta_Z <= delta_T
(docs/theory/objective.md).
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import qmc

from privlearn.arrays import Array
from privlearn.guarantee import RELATIONS
from privlearn.solvers import ClippedSquare, Huber, HuberHinge, Logistic
from tests.support.combinations import Plan, hockey_stick

AXIS = np.linspace(-9.0, 9.0, 501)
PLANE = np.stack(np.meshgrid(AXIS, AXIS), axis=-1).reshape(-1, 2)
MASS = np.exp(-np.sum(PLANE**2, axis=1) / 2.0) * (AXIS[1] - AXIS[0]) ** 2 / (2.0 * math.pi)
RELATIVE_ERROR = 2e-3  # of the quadrature, whose integrand has kinks
TIMES = (-0.5, 0.0, 0.2, 0.7, 1.5, 3.0)


def divergences(corners: Array, noise: Array, mass: Array | float) -> list[float]:
    """Return delta_Z at `TIMES` for the hull of some corners, by a sum over points of the noise."""
    largest = np.full(len(noise), -np.inf)
    for corner in corners:
        largest = np.maximum(largest, noise @ corner + corner @ corner / 2.0)
    return [float(np.sum(mass * np.maximum(-np.expm1(t - largest), 0.0))) for t in TIMES]


def sum_of_sets(sets: Sequence[Array]) -> Array:
    """Return the sums of one corner of each set, which span the sum of the sets."""
    return np.array([np.sum(chosen, axis=0) for chosen in itertools.product(*sets)])


def random_directions(rng: np.random.Generator, count: int, dimension: int) -> Array:
    """Return unit vectors, at times nearly parallel ones."""
    vectors = rng.normal(size=(count, dimension)) * np.array(
        [1.0, *[rng.choice([0.1, 1.0])] * (dimension - 1)]
    )
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


@pytest.mark.parametrize("seed", range(8))
def test_segments_in_the_plane(seed: int) -> None:
    """T = [0, r]: gradients of monotone losses, with shares that add up to r."""
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.full(rng.integers(2, 8), rng.choice([0.3, 1.0, 5.0]))) * rng.choice(
        [0.2, 0.7, 1.5, 3.0]
    )
    ends = random_directions(rng, len(shares), 2) * shares[:, np.newaxis]
    found = divergences(sum_of_sets([np.stack([0.0 * end, end]) for end in ends]), PLANE, MASS)
    bound = divergences(np.array([[0.0, 0.0], [shares.sum(), 0.0]]), PLANE, MASS)
    for one, other in zip(found, bound, strict=True):
        assert one <= other * (1.0 + RELATIVE_ERROR) + 1e-9


@pytest.mark.parametrize("seed", range(6))
def test_symmetric_segments_in_the_plane(seed: int) -> None:
    """T = [-r, r]: residuals, whose sign is open."""
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.ones(rng.integers(2, 6))) * rng.choice([0.2, 0.7, 1.5])
    ends = random_directions(rng, len(shares), 2) * shares[:, np.newaxis]
    found = divergences(sum_of_sets([np.stack([-end, end]) for end in ends]), PLANE, MASS)
    bound = divergences(np.array([[-shares.sum(), 0.0], [shares.sum(), 0.0]]), PLANE, MASS)
    for one, other in zip(found, bound, strict=True):
        assert one <= other * (1.0 + RELATIVE_ERROR) + 1e-9


def simplex(label: int, row: float) -> Array:
    """Return the corners of what (p - e_y) x of three classes can be, in the plane orthogonal to (1, 1, 1)."""
    basis = np.array([[1.0, -1.0, 0.0], [1.0, 1.0, -2.0]]) / np.sqrt([[2.0], [6.0]])
    return np.asarray(row * (np.eye(3) - np.eye(3)[label]) @ basis.T)


@pytest.mark.parametrize("size", [0.3, 0.7, 1.2])
def test_simplices_of_two_records(size: float) -> None:
    """Replace-one: the difference of two simplices costs no more than one of twice the size."""
    bound = divergences(2.0 * size * simplex(0, 1.0), PLANE, MASS)
    for (one, other), (row, turned) in itertools.product(
        itertools.product(range(3), repeat=2), itertools.product((1.0, -1.0, 0.6), repeat=2)
    ):
        difference = sum_of_sets([size * simplex(one, row), -size * simplex(other, turned)])
        for found, most in zip(divergences(difference, PLANE, MASS), bound, strict=True):
            assert found <= most * (1.0 + RELATIVE_ERROR) + 1e-9


@pytest.mark.parametrize("seed", range(5))
def test_simplices_of_a_person_s_rows(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.ones(3))
    parts = [share * simplex(int(rng.integers(3)), rng.choice([1.0, -1.0, 0.8])) for share in shares]
    bound = divergences(simplex(0, 1.0), PLANE, MASS)
    for found, most in zip(divergences(sum_of_sets(parts), PLANE, MASS), bound, strict=True):
        assert found <= most * (1.0 + RELATIVE_ERROR) + 1e-9


@pytest.mark.parametrize("seed", range(4))
def test_segments_in_space(seed: int) -> None:
    rng = np.random.default_rng(seed)
    noise = ndtri(np.clip(qmc.Sobol(3, seed=1).random(2**15), 1e-12, 1.0 - 1e-12))
    for _ in range(5):
        shares = rng.dirichlet(np.ones(rng.integers(2, 7))) * rng.choice([0.2, 0.7, 1.5])
        ends = random_directions(rng, len(shares), 3) * shares[:, np.newaxis]
        found = divergences(
            sum_of_sets([np.stack([0.0 * end, end]) for end in ends]), noise, 1.0 / len(noise)
        )
        for t, one in zip(TIMES[1:], found[1:], strict=True):
            assert one <= hockey_stick(t, float(shares.sum())) * 1.005 + 2e-4


def test_the_bound_would_notice_a_smaller_set() -> None:
    aligned = np.array([[0.0, 0.0], [0.4, 0.0], [0.8, 0.0]])
    assert divergences(aligned, PLANE, MASS)[3] > 1.1 * hockey_stick(TIMES[3], 0.95 * 0.8)


Person = list[tuple[float, float]]
"""The rows of one person: a number (times the label's sign) and what a regression subtracts."""

WEIGHTS = {"heaviest": (1.0, 1.0, 1.0), "mixed": (1.0, 0.2, 0.0)}
"""Weights of a person's rows, in units of the cap."""

POINTS = np.linspace(-1.0, 1.0, 40_001)


def log_density(
    mechanism: Any, persons: Sequence[Person], points: Array, averaged: bool, weights: Sequence[float]
) -> Array:
    """Return the logarithm of the exact minimiser's density on a line, at some points."""
    task, ridge = mechanism.task, mechanism.task.total * mechanism.effective_regularization
    noise, jacobian = -ridge * points, np.full(len(points), ridge)
    for rows in persons:
        for (row, offset), own in zip(rows, weights, strict=False):
            weight = own * task.row_weight_bound * (1.0 / len(rows) if averaged else 1.0)
            noise -= weight * row * task.loss.first_derivative(row * points - offset)
            jacobian += weight * row**2 * task.loss.second_derivative(row * points - offset)
    scaled = noise / mechanism.noise_scale
    return np.asarray(
        -(scaled**2) / 2.0 - math.log(math.sqrt(2.0 * math.pi) * mechanism.noise_scale) + np.log(jacobian)
    )


def worst_delta(mechanism: Any, averaged: bool, weights: Sequence[float] = WEIGHTS["heaviest"]) -> float:
    """Return the largest hockey-stick divergence over neighbours, in both directions."""
    promise, worst = mechanism.guarantee, 0.0
    ridge = mechanism.task.total * mechanism.effective_regularization
    points = POINTS * (9.0 * mechanism.noise_scale + 14.0 * mechanism.task.row_weight_bound) / ridge
    for one, other, others in pairs(mechanism.task):
        first, second = (
            np.exp(log_density(mechanism, [*others, *changed], points, averaged, weights))
            for changed in (one, other)
        )
        cell = points[1] - points[0]
        assert abs(first.sum() * cell - 1.0) < 1e-3
        for p, q in ((first, second), (second, first)):
            worst = max(worst, float(np.maximum(p - math.exp(promise.epsilon) * q, 0.0).sum()) * cell)
    return worst


def pairs(task: Any) -> list[tuple[list[Person], list[Person], list[Person]]]:
    """Return persons of two and three rows, what takes their place, and the other persons."""
    open_sign = task.loss.argument == "residual"
    offsets = (1.0, 1.0, 1.0) if open_sign else (0.0, 0.0, 0.0)
    rows = [[1.0], [1.0, 1.0], [1.0, -1.0], [1.0, 1.0, -0.6], [1.0, 1.0, 1.0]]
    limit = 3 if task.averaged else task.rows_per_person
    persons: list[Person] = [
        list(zip(values, offsets, strict=False)) for values in rows if len(values) <= limit
    ]
    rest: list[list[Person]] = [[], [[(1.0, offsets[1])]], [[(0.3, 0.4), (-1.0, 0.0)]]]
    if not task.relation.replaces:
        return [([person], [], others) for person in persons for others in rest]
    sign = 1.0 if open_sign else -1.0  # a residual is turned round by its target, a margin by its label
    turned: list[Person] = [[(sign * row, -offset) for row, offset in person] for person in persons]
    fewer: Person = [(sign, -offsets[0])]
    return [
        ([person], [replacement], others)
        for person, opposite in zip(persons, turned, strict=True)
        for replacement in (opposite, fewer)
        for others in rest
    ]


LOSSES = [Logistic(), HuberHinge(), Huber(0.5), ClippedSquare(1.0)]


@pytest.mark.parametrize("neighbours", RELATIONS)
@pytest.mark.parametrize("loss", LOSSES, ids=str)
@pytest.mark.parametrize("strength", [0.2, 20.0])
@pytest.mark.parametrize(
    "rows", [{"averaged": True}, {"rows_per_person": 2}, {"rows_per_person": 3}], ids=str
)
def test_persons_of_several_rows_on_a_line(
    neighbours: str, loss: Any, strength: float, rows: dict[str, Any]
) -> None:
    plan = Plan("objective", "gaussian", "tight", neighbours)
    mechanism = plan.calibrate(1.0, 0.01, loss=loss, total=3, dimension=1, regularization=strength, **rows)
    averaged = bool(rows.get("averaged"))
    assert worst_delta(mechanism, averaged) <= 0.01
    # A logistic gradient has its full length far out only.
    if strength == 20.0 and not isinstance(loss, Logistic):
        halved = dataclasses.replace(mechanism, noise_scale=mechanism.noise_scale / 2.0)
        assert worst_delta(halved, averaged) > 0.01


@pytest.mark.parametrize("neighbours", RELATIONS)
@pytest.mark.parametrize("loss", LOSSES, ids=str)
@pytest.mark.parametrize("strength", [0.2, 20.0])
@pytest.mark.parametrize(
    "rows",
    [{"row_weight_bound": 4.0}, {"row_weight_bound": 0.5}, {"row_weight_bound": 3.0, "averaged": True}],
    ids=str,
)
def test_weighted_rows_on_a_line(neighbours: str, loss: Any, strength: float, rows: dict[str, Any]) -> None:
    """Weights up to a public cap, and persons whose rows have weights: the cap is in noise and slack."""
    plan = Plan("objective", "gaussian", "tight", neighbours)
    strength *= rows["row_weight_bound"]
    mechanism = plan.calibrate(1.0, 0.01, loss=loss, total=3, dimension=1, regularization=strength, **rows)
    averaged = bool(rows.get("averaged"))
    assert max(worst_delta(mechanism, averaged, weights) for weights in WEIGHTS.values()) <= 0.01
    if strength >= 10.0 and not isinstance(loss, Logistic):
        halved = dataclasses.replace(mechanism, noise_scale=mechanism.noise_scale / 2.0)
        assert worst_delta(halved, averaged) > 0.01


@pytest.mark.parametrize("neighbours", RELATIONS)
def test_the_cap_of_weights_multiplies_noise_and_slack(neighbours: str) -> None:
    """Weights in units of 1/c, with c times the regularization, are the same problem in another unit."""
    plan, task = Plan("objective", "gaussian", "tight", neighbours), {"total": 10_000}
    plain = plan.calibrate(1.0, 1e-6, regularization=1e-2, **task)
    heavy = plan.calibrate(1.0, 1e-6, regularization=8e-2, row_weight_bound=8.0, **task)
    assert heavy.noise_scale == pytest.approx(8.0 * plain.noise_scale, rel=1e-3)
    assert heavy.slack == pytest.approx(plain.slack, rel=1e-9)


@pytest.mark.parametrize("neighbours", RELATIONS)
def test_a_person_costs_what_a_row_costs(neighbours: str) -> None:
    """The same curve; only the slack is q instead of log(1 + q)."""
    plan, task = Plan("objective", "gaussian", "tight", neighbours), {"total": 10_000, "regularization": 1e-2}
    one, person = plan.calibrate(1.0, 1e-6, **task), plan.calibrate(1.0, 1e-6, averaged=True, **task)
    assert one.slack < person.slack == person.task.curvature_ratio(person.effective_regularization)
    assert 1.0 < person.noise_scale / one.noise_scale < 1.001
    several = plan.calibrate(1.0, 1e-6, rows_per_person=4, **task)
    assert several.noise_scale / one.noise_scale == pytest.approx(4.0, rel=0.05)

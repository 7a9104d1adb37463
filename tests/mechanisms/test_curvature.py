"""Noisy curvature: what one person moves, how much noise there is, what it costs; and that sums are exact."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from privlearn import Guarantee
from privlearn.accounting import gaussian_delta
from privlearn.arrays import Array
from privlearn.data import ArrayEncoder
from privlearn.errors import InvalidParameter
from privlearn.estimators import ClassTargets, NumberTargets, Targets, TrainingRows
from privlearn.explain.private_curvature import UNIT, CurvatureRows
from privlearn.guarantee import RELATIONS
from privlearn.mechanisms import NoisyCurvature, Task
from privlearn.randomness import SeededRandomness
from privlearn.solvers import Huber, HuberHinge, Logistic, Multinomial
from tests.support.combinations import hockey_stick

ALARM = 1e-6
CLASSES = 3
LOSSES = [Logistic(), HuberHinge(), Huber(), Multinomial()]
every_loss = pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)


def plan(
    loss: Any, features: int, neighbours: str = "zero_out", weight: float = 1.0, epsilon: float = 1.0
) -> NoisyCurvature:
    classes = CLASSES if loss.argument == "classes" else 0
    task = Task(
        loss=loss,
        total=10,
        dimension=features * max(classes, 1),
        problems=1,
        regularization=0.1,
        tolerance=1.0,
        neighbours=neighbours,
        weight_bound=weight,
        classes=classes,
    )
    return NoisyCurvature.calibrate(
        task, Guarantee(epsilon, 1e-5 if math.isfinite(epsilon) else 0.0, neighbours)
    )


def rows_of(loss: Any, features: Array, answers: Array, weight: float = 1.0) -> TrainingRows:
    """Answers are numbers of classes, or targets."""
    encoder = ArrayEncoder(1.0, features.shape[1], fit_intercept=False)
    targets: Targets = NumberTargets(np.clip(answers, -1.0, 1.0), (-1.0, 1.0))
    if loss.argument != "residual":
        count = CLASSES if loss.argument == "classes" else 2
        weights = np.full(count, weight)
        targets = ClassTargets(answers.astype(np.int64) % count, np.arange(count), class_weights=weights)
    return TrainingRows(encoder.encode(features), encoder, targets, len(features))


def sums(
    mechanism: NoisyCurvature, loss: Any, features: Array, answers: Array, point: Array, weight: float = 1.0
) -> tuple[Array, Array]:
    return CurvatureRows(rows_of(loss, features, answers, weight), mechanism).sums(point)


def coefficients(mechanism: NoisyCurvature, random: np.random.Generator, size: float) -> Array:
    rows = max(mechanism.task.classes, 1)
    return size * random.normal(size=(rows, mechanism.task.dimension // rows))


@every_loss
@given(
    seed=st.integers(0, 2**32 - 1),
    features=st.integers(1, 12),
    neighbours=st.sampled_from(sorted(RELATIONS)),
    size=st.sampled_from([0.0, 0.3, 5.0]),
)
@settings(deadline=None, max_examples=40)
def test_one_person_moves_the_sums_by_no_more_than_is_declared(
    loss: Any, seed: int, features: int, neighbours: str, size: float
) -> None:
    weight = 1.0 if loss.argument == "residual" else 2.5
    mechanism, random = plan(loss, features, neighbours, weight), np.random.default_rng(seed)
    point = coefficients(mechanism, random, size)
    people = random.normal(size=(5, features)) * random.choice([0.01, 1.0, 30.0], size=(5, 1))
    answers = random.integers(0, 6, 5) / (5.0 if loss.argument == "residual" else 1.0)
    one = sums(mechanism, loss, people, answers, point, weight)
    kept, others = people[1:], answers[1:]
    if RELATIONS[neighbours].replaces:
        kept, others = np.vstack([kept, 30.0 * random.normal(size=(1, features))]), np.append(others, 1.0)
    two = sums(mechanism, loss, kept, others, point, weight)
    for first, second in zip(one, two, strict=True):
        assert np.linalg.norm(first - second) <= mechanism.task.relation.moments
        assert np.linalg.eigvalsh(first).min() > -1e-9


@every_loss
@pytest.mark.parametrize("neighbours", sorted(RELATIONS))
@pytest.mark.parametrize("several", [2, 7, 500])
def test_averaged_rows_of_one_person_move_the_sums_like_one_row(
    loss: Any, neighbours: str, several: int
) -> None:
    mechanism, random = plan(loss, 3, neighbours), np.random.default_rng(several)
    point = coefficients(mechanism, random, 5.0)
    people = np.concatenate([np.tile([[0.6, 0.8, 0.0]], (several, 1)), random.normal(size=(4, 3))])
    answers = np.concatenate([np.zeros(several), [1.0, 0.0, 1.0, 0.0]])
    owner = np.concatenate([np.zeros(several, np.int64), np.arange(1, 5)])
    weights = np.concatenate([np.full(several, 1.0 / several), np.ones(4)])
    rows = dataclasses.replace(rows_of(loss, people, answers), persons=owner, person_weights=weights)
    one = CurvatureRows(rows, mechanism).sums(point)
    people[:several] *= -1.0 if RELATIONS[neighbours].replaces else 0.0
    rows = dataclasses.replace(rows_of(loss, people, answers), persons=owner, person_weights=weights)
    two = CurvatureRows(rows, mechanism).sums(point)
    for first, second in zip(one, two, strict=True):
        assert np.linalg.norm(first - second) <= mechanism.task.relation.moments


@every_loss
def test_the_bounds_are_nearly_reached(loss: Any) -> None:
    """By a record at the steepest, and one at the most curved, place of the loss."""
    mechanism, row = plan(loss, 2), np.array([[0.6, 0.8]])
    towards = np.array([[-1.0], [1.0], [0.0]])[: max(1, mechanism.task.classes)] * row
    places = [
        sums(mechanism, loss, row, np.zeros(1), size * towards) for size in np.linspace(-40.0, 40.0, 801)
    ]
    assert max(float(np.trace(hessian)) for hessian, _ in places) > 0.99
    assert max(float(np.trace(gradients)) for _, gradients in places) > 0.99


@every_loss
def test_sums_are_those_of_the_loss_and_do_not_depend_on_the_order(loss: Any) -> None:
    mechanism, random = plan(loss, 3), np.random.default_rng(1)
    people, answers = random.normal(size=(4000, 3)) * 0.5, random.integers(0, 6, 4000).astype(float)
    if loss.argument == "residual":
        answers /= 5.0
    point = coefficients(mechanism, random, 0.5)
    found = sums(mechanism, loss, people, answers, point)
    order = random.permutation(len(people))
    again = sums(mechanism, loss, people[order], answers[order], point)
    assert all(np.array_equal(one, two) for one, two in zip(found, again, strict=True))
    rows = rows_of(loss, people, answers)
    hessian, gradients = _by_differences(loss, rows, point)
    assert np.allclose(mechanism.hessian_bound * found[0], hessian, atol=4000 * 4 / UNIT * 0.5)
    assert np.allclose(mechanism.gradient_bound * found[1], gradients, atol=4000 * 4 / UNIT)


def _by_differences(loss: Any, rows: TrainingRows, point: Array) -> tuple[Array, Array]:
    """Gradients written out a second time, and their slope by central differences."""
    features: Any = rows.features

    def gradients(at: Array) -> Array:
        scores = features @ at.reshape(point.shape).T
        if loss.argument == "classes":
            chances = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
            pull = chances - np.eye(CLASSES)[rows.targets.answers]
        else:
            signs, offsets = rows.targets.signs[0], rows.targets.offsets[0]
            pull = (
                signs * loss.first_derivative(signs * scores[:, 0] - (0 if offsets is None else offsets))
            )[:, None]
        return np.einsum("ik,ij->ikj", pull, features).reshape(len(features), -1)

    flat, step = point.ravel(), 1e-5
    slopes = [
        (gradients(flat + step * unit).sum(axis=0) - gradients(flat - step * unit).sum(axis=0)) / (2 * step)
        for unit in np.eye(len(flat))
    ]
    each = gradients(flat)
    return np.array(slopes), each.T @ each


@dataclasses.dataclass(frozen=True)
class Told:
    """An oracle that answers what it is told to. Implements `Curvatures`."""

    matrix: Array

    def sums(self, coefficients: Array) -> tuple[Array, Array]:
        return self.matrix, self.matrix


def test_noise_is_as_declared() -> None:
    """Fails if it is halved or doubled, on the diagonal or beside it, in either matrix."""
    size = 90
    mechanism = dataclasses.replace(plan(Logistic(), size), hessian_noise_scale=3.0, gradient_noise_scale=7.0)
    found = mechanism.run(
        Told(np.full((size, size), 5.0)), np.zeros((1, size)), SeededRandomness(np.random.default_rng(1))
    )
    for matrix, scale in zip(found, (3.0, 7.0), strict=True):
        assert np.array_equal(matrix, matrix.T)
        assert stats.kstest((np.diag(matrix) - 5.0) / scale, "norm").pvalue > ALARM
        beside = (matrix[np.triu_indices(size, 1)] - 5.0) / scale * math.sqrt(2.0)
        assert stats.kstest(beside, "norm").pvalue > ALARM


@pytest.mark.parametrize("neighbours", RELATIONS)
@pytest.mark.parametrize("direction", [(1.0, 0.0), (0.6, 0.8), (math.sqrt(0.5), math.sqrt(0.5))])
def test_the_exact_loss_of_the_worst_neighbours(neighbours: str, direction: tuple[float, float]) -> None:
    """Two coefficients, one record: the promise holds, and is used up but for a little that truncation leaves."""
    mechanism = plan(Logistic(), 2, neighbours)
    there = np.array([direction])
    away = np.array([[-direction[1], direction[0]]]) if RELATIONS[neighbours].replaces else np.zeros((1, 2))
    point, answers = np.zeros((1, 2)), np.zeros(1)
    shifts = []
    for which, scale in enumerate((mechanism.hessian_noise_scale, mechanism.gradient_noise_scale)):
        moved = [sums(mechanism, Logistic(), rows, answers, point)[which] for rows in (there, away)]
        change = moved[0] - moved[1]
        steep = 1.0 if which == 0 else 4.0  # at 0 the slope is half of what it may be
        shifts += [*(steep * np.diag(change) / scale), steep * change[0, 1] / (scale / math.sqrt(2.0))]
    epsilon = mechanism.guarantee.epsilon
    lost = hockey_stick(epsilon, float(np.linalg.norm(shifts)))
    assert 0.99 * mechanism.guarantee.delta < lost <= mechanism.guarantee.delta
    assert mechanism.spends() <= mechanism.guarantee
    halved = dataclasses.replace(mechanism, hessian_noise_scale=mechanism.hessian_noise_scale / 2.0)
    assert not halved.spends() <= mechanism.guarantee


def test_both_matrices_cost_what_one_gaussian_mechanism_does() -> None:
    mechanism = plan(Logistic(), 4, "replace_one")
    squares = [2.0 / scale**2 for scale in (mechanism.hessian_noise_scale, mechanism.gradient_noise_scale)]
    ratio = math.sqrt(sum(squares))
    assert mechanism.ratio == pytest.approx(ratio, rel=1e-9)
    assert mechanism.renyi(3.0) == pytest.approx(1.5 * ratio**2, rel=1e-9)
    assert mechanism.spends().delta == pytest.approx(gaussian_delta(ratio, 1.0), rel=1e-6)


def test_without_a_promise_there_is_no_noise() -> None:
    mechanism = plan(Logistic(), 2, epsilon=math.inf)
    matrix = np.array([[2.0, 1.0], [1.0, 3.0]])
    found = mechanism.run(Told(matrix), np.zeros((1, 2)), SeededRandomness(np.random.default_rng(1)))
    assert all(np.array_equal(one, matrix) for one in found)
    assert not mechanism.spends().is_private


def test_pure_privacy_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="delta > 0"):
        NoisyCurvature.calibrate(plan(Logistic(), 2).task, Guarantee(1.0, 0.0, "zero_out"))

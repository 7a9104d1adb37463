"""Softmax with noise in the objective: docs/theory/softmax.md, against exact laws, and against its corners drawn."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privlearn import PrivateLogisticRegression, PrivateSVC, Release
from privlearn.accounting import GaussianObjectiveCurve
from privlearn.arrays import Array
from privlearn.audit import Grid, Pair, Records, gradient_sum, log_jacobian, objective_densities, worst_pairs
from privlearn.guarantee import RELATIONS
from privlearn.mechanisms import Task
from privlearn.solvers import Multinomial
from tests.support.combinations import Plan

every_relation = pytest.mark.parametrize("neighbours", RELATIONS)
LONGEST = 1.0 - 1e-12


def task(neighbours: str, classes: int, features: int, **facts: Any) -> Task:
    usual: dict[str, Any] = {"total": 6, "regularization": 0.05, "tolerance": 1e-10, "problems": 1}
    shape = {"dimension": classes * features, "classes": classes, "neighbours": neighbours}
    return Task(Multinomial(), **usual | shape | facts)


def calibrated(noise: str, neighbours: str, epsilon: float, strength: float, total: int = 20) -> Any:
    """Three classes on a line: a law in the plane, once what no record moves is set aside."""
    return Plan("objective", noise, "tight", neighbours).calibrate(
        epsilon,
        0.01,
        loss=Multinomial(),
        dimension=3,
        classes=3,
        total=total,
        regularization=strength / total,
    )


def worst_delta(mechanism: Any, pairs: list[Pair]) -> float:
    grid = Grid.covering(mechanism, 3, 161, deviations=6.0)
    found = [objective_densities(mechanism, pair, grid) for pair in pairs]
    assert max(pair.lost_mass for pair in found) < 1e-3  # the change of variables is right
    return max(pair.delta(mechanism.guarantee.epsilon) for pair in found)


@every_relation
@pytest.mark.parametrize(("epsilon", "strength"), [(1.0, 50.0), (3.0, 1.0), (6.0, 0.3)])
def test_gaussian_noise_keeps_the_promise(neighbours: str, epsilon: float, strength: float) -> None:
    mechanism = calibrated("gaussian", neighbours, epsilon, strength)
    assert worst_delta(mechanism, worst_pairs(mechanism.task)) <= 0.01


@pytest.mark.parametrize("neighbours", ["zero_out", "add_remove"])
def test_half_the_gaussian_noise_breaks_it(neighbours: str) -> None:
    """One record alone, and a model that noise drives far enough for its gradient to reach the corners."""
    mechanism = calibrated("gaussian", neighbours, 3.0, 1.0)
    alone = Records.of(np.array([[LONGEST]]), np.zeros(1))
    pair = Pair("one record", alone, Records.of(np.zeros((1, 1))))
    assert 0.05 * 0.01 <= worst_delta(mechanism, [pair]) <= 0.01
    halved = dataclasses.replace(mechanism, noise_scale=mechanism.noise_scale / 2.0)
    assert worst_delta(halved, [pair]) > 0.01


@every_relation
@pytest.mark.parametrize("strength", [0.05, 5.0])
def test_pure_noise_keeps_the_promise(neighbours: str, strength: float) -> None:
    mechanism = calibrated("norm_gamma", neighbours, 1.5, strength)
    grid = Grid.covering(mechanism, 3, 41, deviations=12.0)
    pairs = worst_pairs(mechanism.task)
    worst = max(objective_densities(mechanism, pair, grid).worst_loss for pair in pairs)
    assert 0.3 * 1.5 <= worst <= 1.5


def _rows(rng: np.random.Generator, count: int, features: int) -> Array:
    rows = rng.normal(size=(count, features))
    return LONGEST * rows / np.linalg.norm(rows, axis=1, keepdims=True)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 5), st.integers(1, 3), st.sampled_from(list(RELATIONS)))
def test_one_record_moves_gradients_and_jacobian_as_stated(
    seed: int, classes: int, features: int, neighbours: str
) -> None:
    rng = np.random.default_rng(seed)
    facts = task(neighbours, classes, features)
    rows, labels = _rows(rng, 4, features), rng.integers(0, classes, 4)
    others, other_labels = rows.copy(), labels.copy()
    others[0] = _rows(rng, 1, features)[0] if neighbours == "replace_one" else 0.0
    other_labels[0] = rng.integers(0, classes)
    points = rng.normal(size=(5, classes * features)) * np.array([[0.0], [0.3], [2.0], [10.0], [40.0]])
    one, other = (Records.of(x, y.astype(float)) for x, y in ((rows, labels), (others, other_labels)))
    moved = gradient_sum(facts, one, points) - gradient_sum(facts, other, points)
    assert np.linalg.norm(moved, axis=1).max() <= facts.gradient_sensitivity
    strength = facts.regularization
    turned = log_jacobian(facts, one, points, strength) - log_jacobian(facts, other, points, strength)
    assert np.abs(turned).max() <= facts.jacobian_slack(strength) + 1e-9


@pytest.mark.parametrize("classes", [3, 10])
def test_the_bounds_on_gradient_and_jacobian_are_reached(classes: int) -> None:
    """Far out on the wrong side for the gradient; without a model, where all classes are alike, for the Jacobian."""
    facts = task("zero_out", classes, 1)
    one, silent = Records.of(np.array([[LONGEST]])), Records.of(np.zeros((1, 1)))
    here, far = np.zeros((1, classes)), np.zeros((1, classes))
    far[0, 1] = 40.0
    moved = np.linalg.norm(gradient_sum(facts, one, far) - gradient_sum(facts, silent, far))
    assert moved == pytest.approx(facts.gradient_sensitivity)
    gained = log_jacobian(facts, one, here, 0.05) - log_jacobian(facts, silent, here, 0.05)
    assert float(gained[0]) == pytest.approx(facts.jacobian_slack(0.05), rel=1e-9)


@pytest.mark.parametrize("cosine", [-1.0, -0.9, -0.5, 0.0, 0.5, 1.0])
@pytest.mark.parametrize("same_class", [True, False])
@pytest.mark.parametrize("classes", [3, 6])
def test_corners_of_two_records_cost_no_more_than_stated(
    cosine: float, same_class: bool, classes: int
) -> None:
    """The largest loss over all corners of (u (x) x) - (u' (x) x'), with b drawn, against the curve."""
    rng, sigma, t = np.random.default_rng(3), 1.6, 1.0
    x, turned = np.array([1.0, 0.0]), np.array([cosine, math.sqrt(1.0 - cosine**2)])
    first = np.eye(classes) - np.eye(classes)[0]
    second = np.eye(classes) - np.eye(classes)[0 if same_class else 1]
    corners = np.array([np.outer(u, x) - np.outer(v, turned) for u in first for v in second])
    corners = corners.reshape(len(corners), -1) / sigma
    noise = rng.normal(size=(100_000, corners.shape[1]))
    largest = (noise @ corners.T + 0.5 * np.sum(corners**2, axis=1)).max(axis=1)
    costs = np.maximum(-np.expm1(t - largest), 0.0)
    found, error = float(costs.mean()), float(costs.std()) / math.sqrt(len(costs))
    facts = task("replace_one", classes, 2)
    claimed = float(GaussianObjectiveCurve(2.0 * math.sqrt(2.0) / sigma, 0.0, False, facts.corners).delta(t))
    assert found <= claimed + 4.0 * error
    if cosine == -1.0 and same_class:
        assert found >= 0.4 * min(claimed, 1.0)


@pytest.mark.parametrize("neighbours", RELATIONS)
@pytest.mark.parametrize("classes", [3, 4, 10])
def test_every_relation_has_the_corners_of_one_simplex(classes: int, neighbours: str) -> None:
    assert task(neighbours, classes, 1).corners == classes - 1


@pytest.mark.parametrize("classes", [3, 7])
def test_corners_of_one_record_cost_about_what_is_stated(classes: int) -> None:
    rng, sigma, t = np.random.default_rng(4), 1.0, 3.0
    noise = rng.normal(size=(400_000, classes))
    largest = 1.0 / sigma**2 + (noise[:, 1:].max(axis=1) - noise[:, 0]) / sigma
    costs = np.maximum(-np.expm1(t - largest), 0.0)
    facts = task("zero_out", classes, 1)
    claimed = float(GaussianObjectiveCurve(math.sqrt(2.0) / sigma, 0.0, False, facts.corners).delta(t))
    error = float(costs.std()) / math.sqrt(len(costs))
    assert 0.6 * claimed <= float(costs.mean()) <= claimed + 4.0 * error


def test_two_classes_are_a_margin() -> None:
    for neighbours in RELATIONS:
        assert task(neighbours, 2, 3).corners == 1
        assert task(neighbours, 2, 3).curvature_ratio(1.0) == pytest.approx(0.5 / 6)


def test_persons_with_several_rows_get_gaussian_noise() -> None:
    mechanism = Plan("objective", "gaussian", "tight", "zero_out").calibrate(1.0)
    for facts in ({"rows_per_person": 2}, {"averaged": True}):
        assert mechanism.explain_refusal(task("zero_out", 3, 2, **facts), "gaussian") is None


@pytest.mark.parametrize("features", ["linear", "fourier", "landmarks"])
@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_three_classes_are_learnt_together_by_default(features: str, delta: float) -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, size=(400, 2))
    y = (X[:, 0] > 0.0).astype(int) + (X[:, 1] > 0.3)
    kernel: dict[str, Any] = {"linear": {}, "fourier": {"kernel": "rbf", "fourier_pairs": 10}}.get(
        features, {"kernel": "rbf", "public_points": X[:20]}
    )
    kind = PrivateSVC if kernel else PrivateLogisticRegression
    model = kind(epsilon=2.0, delta=delta, norm_bound=1.5, classes=[0, 1, 2], random_state=0, **kernel)
    found = model.fit(X, y).certificate_
    assert (found.mechanism.name, found.task.loss.name, found.task.classes) == ("objective", "multinomial", 3)
    assert Release.from_bytes(model.release_.to_bytes()).certificate.mechanism.spends() <= found.guarantee
    named = kind(epsilon=2.0, delta=delta, norm_bound=1.5, classes=[0, 1, 2], random_state=0, **kernel)
    named.set_params(loss=kind._default_loss)
    assert named.fit(X, y).certificate_.task.problems == 3

"""Function release: its noise against the theorem, its answers against its law."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from privlearn.errors import InvalidParameter
from privlearn.features import kernel_from_name
from privlearn.guarantee import Guarantee
from privlearn.mechanisms import FunctionRelease, Task, TightPINP
from privlearn.mechanisms.session import KernelTask
from privlearn.mechanisms.session.function_release import CAPACITY, FACTOR_JITTER, MAX_PATHS, VALUE_JITTER
from privlearn.sessions import InteractivePredictor
from privlearn.solvers import Multinomial
from tests.support.session_support import (
    PROMISE,
    SURPRISE,
    least_p_value,
    noise_scale,
    open_session,
    points_in_ball,
    written_learner,
)


def hockey_stick(epsilon: float, ratio: float) -> float:
    return float(
        norm.cdf(ratio / 2 - epsilon / ratio) - math.exp(epsilon) * norm.cdf(-ratio / 2 - epsilon / ratio)
    )


@pytest.mark.parametrize("neighbours", ["replace_one", "zero_out"])
@pytest.mark.parametrize("epsilon", [0.05, 1.0, 4.0])
@pytest.mark.parametrize("functions", [1, 3])
def test_the_noise_is_the_least_that_keeps_the_promise(
    epsilon: float, neighbours: str, functions: int
) -> None:
    """Written out anew: 2 L / (N Lambda) or half of it, twice the solver's distance, and the rounding of T values, for
    each function."""
    guarantee = Guarantee(epsilon, 1e-6, neighbours)
    facts = written_learner(functions, total=500, regularization=0.02).kernel_task(guarantee.neighbours)
    moved = (2.0 if neighbours == "replace_one" else 1.0) / (500 * 0.02) + 2e-8
    rounding = 2.0 * (1.0 / 0.02) * 2.0**-34
    distance = math.sqrt(functions * (moved**2 + CAPACITY * rounding**2 / VALUE_JITTER))
    mechanism = FunctionRelease.calibrate(facts, guarantee)
    assert hockey_stick(epsilon, distance / mechanism.noise_scale) == pytest.approx(1e-6, rel=1e-5)
    assert mechanism.spends() <= guarantee
    halved = dataclasses.replace(mechanism, noise_scale=mechanism.noise_scale / 2.0)
    assert not halved.spends() <= guarantee


@pytest.mark.parametrize("classes", [3, 10])
def test_functions_of_the_softmax_move_together(classes: int) -> None:
    """The noise does not grow with the number of classes but for the rounding of so many values."""
    task = Task(Multinomial(), 500, classes, 1, 0.02, 1.0, "zero_out", classes=classes)
    facts, promise = KernelTask(task, 1e-8), Guarantee(1.0, 1e-6, "zero_out")
    moved = math.sqrt(2.0) / (500 * 0.02) + 2e-8
    rounding = 2.0 * math.sqrt(2.0) * (1.0 / 0.02) * 2.0**-34
    distance = math.sqrt(moved**2 + classes * CAPACITY * rounding**2 / VALUE_JITTER)
    mechanism = FunctionRelease.calibrate(facts, promise)
    assert hockey_stick(1.0, distance / mechanism.noise_scale) == pytest.approx(1e-6, rel=1e-5)
    assert mechanism.constants()["functions"] == classes
    with pytest.raises(InvalidParameter, match="one function"):
        TightPINP.calibrate(facts, promise)


@pytest.mark.parametrize("factor", [1.0, 0.5, 2.0])
def test_exact_law_of_an_answer_of_three_classes(factor: float) -> None:
    """One point, the worst change of norm D: the divergence integrated over its three scores."""
    task = Task(Multinomial(), 500, 3, 1, 0.02, 1.0, "zero_out", classes=3)
    facts = KernelTask(task, 1e-8)
    scale = factor * FunctionRelease.calibrate(facts, Guarantee(1.0, 1e-6, "zero_out")).noise_scale
    change = facts.sensitivity * np.array([-1.0, 1.0, 0.0]) / math.sqrt(2.0)
    axis, width = np.linspace(-9 * scale, 9 * scale, 150, retstep=True)

    def law(centre: Any) -> Any:
        one, two, three = (norm.pdf(axis, at, scale) * width for at in centre)
        return one[:, None, None] * two[:, None] * three

    delta = float(np.sum(np.maximum(law(change) - math.e * law(np.zeros(3)), 0.0)))
    assert (delta <= 1.05e-6) == (factor >= 1.0)
    assert (delta >= 0.9e-6) == (factor <= 1.0)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 30), st.sampled_from([0.1, 1.0, 10.0]))
def test_no_change_of_the_function_is_seen_better_than_the_theorem_says(
    seed: int, count: int, gamma: float
) -> None:
    """A change of norm D, seen at any points through noise of covariance K plus jitter, is at most D long."""
    points = points_in_ball(count, 2, seed)
    kernel = kernel_from_name("rbf", gamma=gamma)
    rng = np.random.default_rng(seed)
    centres, weights = points_in_ball(4, 2, seed + 1), rng.normal(size=4)
    size = math.sqrt(weights @ kernel(centres, centres) @ weights)
    change = kernel(points, centres) @ weights
    covariance = kernel(points, points) + (FACTOR_JITTER + VALUE_JITTER) * np.eye(count)
    assert math.sqrt(change @ np.linalg.solve(covariance, change)) <= size * (1 + 1e-9)
    alone = kernel(points[:1], points[:1])[0, 0] / math.sqrt(1.0 + FACTOR_JITTER + VALUE_JITTER)
    assert alone == pytest.approx(1.0, abs=1e-4)  # k(z, .) seen at z: the bound is reached


@pytest.mark.usefixtures("no_sync")
def test_the_answers_of_a_session_have_the_claimed_law(tmp_path: Path) -> None:
    """Over many sessions, asked in pieces and again: covariance noise_scale^2 K, and one draw per point."""
    learner = written_learner()
    points = points_in_ball(8, 3, 1)
    points[3] = points[2] + 1e-3
    noises = []
    for seed in range(150):
        session = open_session(tmp_path / f"{seed}.session", learner, random_state=seed)
        first = session.decide(points[:3]).scores
        rest = [session.decide(point).scores for point in points[3:]]
        again = session.decide(points).scores
        assert np.array_equal(again, [*first, *rest])
        noises.append(again - learner.values(points)[:, 0])
        session.close()
    scale = noise_scale(session)
    covariance = scale**2 * (learner.similarity(points, points) + (FACTOR_JITTER + VALUE_JITTER) * np.eye(8))
    assert least_p_value(np.array(noises), covariance) > SURPRISE
    shuffled = np.random.default_rng(0).permuted(np.array(noises), axis=0)  # right variances, no dependence
    assert least_p_value(shuffled, covariance) < SURPRISE


@pytest.mark.usefixtures("no_sync")
def test_several_functions_have_independent_paths(tmp_path: Path) -> None:
    """Jointly: the kernel's covariance within each function, none between them; also after reopening."""
    learner, points = written_learner(functions=2), points_in_ball(3, 3, 1)
    noises = []
    for seed in range(100):
        session = open_session(tmp_path / f"{seed}.session", learner, random_state=2 * seed)
        session.decide(points[:2])
        session.close()
        session = InteractivePredictor.reopen(
            tmp_path / f"{seed}.session", learner, random_state=2 * seed + 1
        )
        noises.append((session.decide(points).scores - learner.values(points)).T.ravel())
        session.close()
    scale = noise_scale(session)
    one = learner.similarity(points, points) + (FACTOR_JITTER + VALUE_JITTER) * np.eye(3)
    covariance = scale**2 * np.kron(np.eye(2), one)
    assert least_p_value(np.array(noises), covariance) > SURPRISE
    assert least_p_value(np.tile(np.array(noises)[:, :3], 2), covariance) < SURPRISE  # one path for both


def _errors_of_adaptive_queries(path: Path, count: int) -> np.ndarray:
    """Return the errors of points that each lie near the one before, on the side its answer points to."""
    learner = written_learner()
    session = open_session(path, learner)
    rng = np.random.default_rng(5)
    point, errors = np.zeros(3), np.empty(count)
    for place in range(count):
        score = session.decide(point).scores
        errors[place] = score - learner.values(point[np.newaxis])[0, 0]
        step = rng.normal(size=3) * 0.5 + 0.05 * np.sign(score)
        point = (point + step) / max(1.0, 1.01 * float(np.linalg.norm(point + step)))
    session.close()
    return errors / noise_scale(session)


def _error_does_not_grow(errors: np.ndarray) -> None:
    # The path is one function: its errors stay within what the maximum of a unit Gaussian process reaches.
    half = len(errors) // 2
    assert np.max(np.abs(errors)) < 6.0
    assert np.std(errors[half:]) < 2.0 * max(1.0, np.std(errors[:half]))


@pytest.mark.usefixtures("no_sync")
def test_the_error_does_not_grow_over_500_adaptive_queries(tmp_path: Path) -> None:
    _error_does_not_grow(_errors_of_adaptive_queries(tmp_path / "a.session", 500))


@pytest.mark.slow
def test_the_error_does_not_grow_over_10000_adaptive_queries(tmp_path: Path) -> None:
    _error_does_not_grow(_errors_of_adaptive_queries(tmp_path / "a.session", 10_000))


def test_without_a_promise_the_answers_are_the_function(tmp_path: Path) -> None:
    learner = written_learner()
    points = points_in_ball(20, 3, 1)
    session = open_session(tmp_path / "a.session", learner, guarantee=Guarantee(math.inf))
    assert np.array_equal(session.decide(points).scores, learner.values(points)[:, 0])
    assert not session.certificate.is_private


def test_more_classes_than_the_proof_covers_are_refused() -> None:
    FunctionRelease.calibrate(written_learner(MAX_PATHS).kernel_task("replace_one"), PROMISE)
    with pytest.raises(InvalidParameter, match="128 classes"):
        FunctionRelease.calibrate(written_learner(MAX_PATHS + 1).kernel_task("replace_one"), PROMISE)


def test_a_pure_promise_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="delta > 0"):
        FunctionRelease.calibrate(written_learner().kernel_task("replace_one"), Guarantee(PROMISE.epsilon))

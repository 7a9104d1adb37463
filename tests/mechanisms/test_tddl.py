"""TDDL: the composition theorem inverted, the law of its answers, and its least squares against another solver."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.optimize import minimize

from privlearn.arrays import Array
from privlearn.errors import DataError, InvalidParameter
from privlearn.guarantee import Guarantee
from privlearn.mechanisms import MECHANISMS, PrecomputedMinimisers, Task
from privlearn.mechanisms import TestDataDependentLearner as Tddl
from privlearn.mechanisms.release import answer_sensitivity, check_probes, least_squares_in_ball
from privlearn.randomness import SecureRandomness, SeededRandomness
from privlearn.solvers import ClippedSquare, Hinge, Huber, Logistic, Multinomial, Problem, losses_of, minimise
from tests.support.oracles import Solver

LOSSES = losses_of("margin")

ALARM = 1e-6


def task(**facts: Any) -> Task:
    known: dict[str, Any] = {
        "loss": Logistic(),
        "total": 1000,
        "dimension": 2,
        "problems": 1,
        "regularization": 0.05,
    }
    return Task(**(known | {"tolerance": 1e-10, "neighbours": "replace_one"} | facts))


def plan(epsilon: float = 1.0, delta: float = 1e-5, probes_count: int = 30, **facts: Any) -> Tddl:
    chosen = task(**facts)
    guarantee = Guarantee(epsilon, delta, chosen.neighbours)
    return Tddl.calibrate(chosen, guarantee, "laplace", "jt13", points=probes_count)


def theorem_11(answers: int, each: float, delta: float) -> float:
    return math.sqrt(2 * answers * math.log(1 / delta)) * each + answers * each * (math.exp(each) - 1)


@pytest.mark.parametrize(
    "facts",
    [{}, {"problems": 3}, {"neighbours": "zero_out"}, {"neighbours": "add_remove"}, {"rows_per_person": 4}],
    ids=str,
)
@pytest.mark.parametrize("probes_count", [1, 300])
def test_noise_is_the_least_that_theorem_11_allows(facts: dict[str, Any], probes_count: int) -> None:
    mechanism = plan(0.7, 1e-5, probes_count, **facts)
    gradients = {"replace_one": 2}.get(mechanism.task.neighbours, 1) * facts.get("rows_per_person", 1)
    sensitivity = gradients / (1000 * 0.05) + 2 * mechanism.task.tolerance / 0.05
    spent = theorem_11(probes_count * facts.get("problems", 1), sensitivity / mechanism.noise_scale, 1e-5)
    assert spent == pytest.approx(0.7, rel=1e-8)
    assert spent < mechanism.spends().epsilon <= 0.7
    assert mechanism.spends().delta == 1e-5


def test_fewer_noise_or_more_probes_break_the_promise() -> None:
    mechanism = plan()
    assert mechanism.spends() <= mechanism.guarantee
    for part, factor in (("noise_scale", 0.5), ("noise_scale", 1 - 1e-6), ("probes_count", 31 / 30)):
        value = factor * getattr(mechanism, part)
        worse = dataclasses.replace(mechanism, **{part: round(value) if part == "probes_count" else value})
        assert not worse.spends() <= mechanism.guarantee


@pytest.mark.parametrize("probes_count", [1, 30, 300])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_the_exact_composition_is_within_the_promise(probes_count: int, epsilon: float) -> None:
    """k Laplace answers, each moved as far as it goes: an independent account of the same release."""
    mechanism = plan(epsilon, 1e-5, probes_count)
    single = privacy_loss_distribution.from_laplace_mechanism(
        mechanism.noise_scale, sensitivity=mechanism.sensitivity, value_discretization_interval=1e-4
    )
    assert single.self_compose(probes_count).get_delta_for_epsilon(epsilon) <= 1e-5


@pytest.mark.parametrize("order", [1.5, 4.0, 60.0])
def test_renyi_divergence_covers_the_laplace_answers(order: float) -> None:
    mechanism = plan()
    m = mechanism.sensitivity / mechanism.noise_scale
    # Mironov 2017, Prop. 6
    moment = order / (2 * order - 1) * math.exp((order - 1) * m) + (order - 1) / (2 * order - 1) * math.exp(
        -order * m
    )
    exact = 30 * math.log(moment) / (order - 1)
    assert exact <= mechanism.renyi(order) <= 2.5 * exact


def released_answers(mechanism: Tddl, w: Array, seed: int) -> Array:
    """Return the answers of a release: with orthogonal probes and a wide ball, least squares return them."""
    assert mechanism.task.ball_radius > 50 * mechanism.noise_scale + np.max(np.abs(w))
    return mechanism.run(PrecomputedMinimisers(w, np.eye(w.shape[1])), SeededRandomness(seed))


def test_answers_have_the_noise_they_pay_for() -> None:
    w = np.random.default_rng(0).normal(size=(1000, 3))
    mechanism = plan(5.0, probes_count=3, problems=1000, dimension=3, total=10**9, regularization=1e-5)
    noise = (released_answers(mechanism, w, 1) - w).ravel() / mechanism.noise_scale
    assert stats.kstest(noise, "laplace").pvalue > ALARM
    assert stats.gamma(3000).ppf(ALARM) < float(np.sum(np.abs(noise))) < stats.gamma(3000).isf(ALARM)
    assert len(np.unique(noise)) == 3000


def test_the_regularization_reaches_the_solver() -> None:
    asked: list[Any] = []

    def fit(linear: Any, regularization: float) -> Array:
        asked.append((linear, regularization))
        return np.zeros((1, 2))

    plan().run(Solver(fit, np.eye(2)[[0, 1] * 15]), SecureRandomness())
    assert asked == [(None, 0.05)]


def brute_force(points: Array, answers: Array, radius: float) -> Array:
    def with_gradient(w: Array) -> tuple[float, Array]:
        errors = points @ w - answers
        return float(np.sum(errors**2)), np.asarray(2 * points.T @ errors)

    inside: Any = {"type": "ineq", "fun": lambda w: radius**2 - w @ w, "jac": lambda w: -2 * w}
    found = minimize(
        with_gradient,
        np.zeros(points.shape[1]),
        jac=True,
        constraints=inside,
        method="SLSQP",
        options={"maxiter": 1000, "ftol": 1e-15},
    )
    return np.asarray(found.x)


@pytest.mark.parametrize("radius", [0.05, 0.5, 3.0, 1e6])
@pytest.mark.parametrize("shape", [(8, 3), (4, 4), (2, 5)])
def test_least_squares_in_the_ball(shape: tuple[int, int], radius: float) -> None:
    rng = np.random.default_rng(4)
    points, answers = rng.normal(size=shape) / 3, rng.normal(size=(2, shape[0]))
    for found, wanted in zip(least_squares_in_ball(points, answers, radius), answers, strict=True):
        other = brute_force(points, wanted, radius)
        assert np.linalg.norm(found) <= radius
        residuals = [float(np.sum((points @ w - wanted) ** 2)) for w in (found, other)]
        assert residuals[0] <= residuals[1] + 1e-9
        if shape[0] >= shape[1]:
            assert found == pytest.approx(other, abs=1e-4)


@given(st.integers(0, 10_000), st.floats(1e-6, 1e6))
def test_least_squares_meet_the_conditions_of_optimality(seed: int, radius: float) -> None:
    """gradient = -m w with m >= 0, and m = 0 inside the ball; also with repeated probes and empty columns."""
    rng = np.random.default_rng(seed)
    distinct = rng.normal(size=(5, 4)) * [1.0, 1.0, 0.0, 1e-3]
    points = distinct[rng.integers(0, rng.integers(1, 6), size=5)]
    answers = rng.normal(size=(1, 5)) * 10.0 ** rng.integers(-3, 4)
    (w,) = least_squares_in_ball(points, answers, radius)
    gradient = points.T @ (points @ w - answers[0])
    size = float(np.linalg.norm(points.T @ answers[0])) + 1e-300
    length = float(np.linalg.norm(w))
    assert length <= radius * (1 + 1e-12)
    multiplier = -float(gradient @ w) / length**2 if length else 0.0
    if length < radius * (1 - 1e-9):
        assert np.linalg.norm(gradient) <= 1e-9 * size
    else:
        assert multiplier >= -1e-9 * size / radius
        assert np.linalg.norm(gradient + multiplier * w) <= 1e-9 * size


@pytest.mark.parametrize("loss", [kind() for kind in LOSSES.values()], ids=lambda loss: loss.name)
@pytest.mark.parametrize("regularization", [1e-3, 0.1, 3.0])
def test_every_minimiser_is_in_the_ball(loss: Any, regularization: float) -> None:
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(60, 3))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    signs = np.where(rows[:, 0] > 0, 1.0, -1.0)
    weights = np.where(signs > 0, 4.0, 0.5)
    problem = Problem(rows, signs, loss, regularization, 60, weights, None)
    radius = task(loss=loss, regularization=regularization, weight_bound=4.0).ball_radius
    assert np.linalg.norm(minimise(problem, tolerance=1e-8).coefficients) <= radius


@pytest.mark.parametrize("loss", [Huber(0.2), ClippedSquare(0.5)], ids=lambda loss: loss.name)
@pytest.mark.parametrize("regularization", [1e-3, 0.1, 3.0])
def test_every_regression_is_in_the_ball(loss: Any, regularization: float) -> None:
    """All targets at a bound, and rows alike: nothing pulls the minimiser back but the penalty."""
    rows, signs = np.tile([[0.6, 0.8]], (20, 1)), np.ones(20)
    problem = Problem(rows, signs, loss, regularization, 20, None, None, offsets=-np.ones(20))
    facts = task(loss=loss, regularization=regularization)
    found = np.linalg.norm(minimise(problem, tolerance=1e-8).coefficients)
    assert found <= facts.ball_radius * (1 + 1e-6)
    steepest, at_zero = (1.0, 0.9) if loss.name == "huber" else (0.5, 0.375)
    assert facts.ball_radius == pytest.approx(
        min(steepest / regularization, (at_zero / regularization) ** 0.5)
    )


def test_the_ball_is_as_small_as_it_can_be() -> None:
    """Records all alike with the hinge: both bounds are met at Lambda = 1, the first also above."""
    rows, signs = np.tile([[0.6, 0.8]], (20, 1)), np.ones(20)
    for regularization in (1.0, 2.0):
        problem = Problem(rows, signs, Hinge(), regularization, 20, None, None)
        radius = task(loss=Hinge(), regularization=regularization).ball_radius
        assert radius == 1.0 / regularization
        assert np.linalg.norm(minimise(problem).coefficients) == pytest.approx(radius, rel=1e-6)
    assert task(loss=Hinge(), regularization=0.02).ball_radius == pytest.approx(math.sqrt(50.0))


def test_the_arithmetic_of_an_answer_is_paid_for() -> None:
    """At a huge number of records the answers' rounding errors outweigh what a person can move."""
    facts = task(total=10**18, dimension=1000, regularization=1e-3, tolerance=1e-300)
    rounding = answer_sensitivity(facts) - facts.minimiser_sensitivity
    rng = np.random.default_rng(0)
    w = np.sort(rng.normal(size=1000))
    w *= facts.ball_radius / np.linalg.norm(w)
    z = rng.normal(size=1000)
    z /= np.linalg.norm(z) * (1 + 1e-12)
    orders = [rng.permutation(1000) for _ in range(200)]
    sums = [float(np.cumsum(z[o] * w[o])[-1]) for o in orders]
    assert 0 < max(sums) - min(sums) <= rounding


def test_no_promise_no_noise() -> None:
    w = np.array([[3.0, -1.0]])
    mechanism = plan(math.inf, 0.0)
    assert np.array_equal(mechanism.run(PrecomputedMinimisers(w), SecureRandomness()), w)
    assert not mechanism.spends().is_private


def test_it_can_be_rebuilt_from_its_constants() -> None:
    mechanism = plan()
    chosen = {name: float(mechanism.constants()[name]) for name in Tddl.calibrated_constants}
    kind: Any = MECHANISMS["tddl"]
    again = kind(mechanism.task, mechanism.guarantee, "laplace", "jt13", **chosen)
    assert again == mechanism
    assert again.constants() == mechanism.constants()


@pytest.mark.parametrize(
    ("probes", "message"),
    [
        (None, "public probes"),
        (np.eye(2), "calibrated for 30"),
        (np.ones((30, 3)), "2 columns"),
        (np.ones((30, 2)), "norm at most 1"),
        (np.full((30, 2), np.nan), "finite"),
    ],
)
def test_wrong_probes_are_refused(probes: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        plan().run(PrecomputedMinimisers(np.zeros((1, 2)), probes), SecureRandomness())


def test_probes_a_rounding_too_long_are_shortened() -> None:
    given_ = np.array([[1.0 + 5e-7, 0.0], [0.0, 0.5]])
    points = check_probes(given_, 2)
    assert points[0, 0] <= 1.0
    assert points == pytest.approx(given_, abs=1e-6)
    assert given_[0, 0] > 1.0


def test_refusals() -> None:
    with pytest.raises(InvalidParameter, match="delta"):
        plan(delta=0.0)
    for count in (0, 1.5, math.inf, True):
        with pytest.raises(InvalidParameter, match="probes_count"):
            plan(probes_count=count)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="calibration"):
        Tddl.calibrate(task(), Guarantee(1.0, 1e-5), "laplace", "tight", points=3)
    with pytest.raises(InvalidParameter, match="noise"):
        Tddl.calibrate(task(), Guarantee(1.0, 1e-5), "gaussian", "jt13", points=3)
    assert "multinomial" in str(Tddl.explain_refusal(task(loss=Multinomial()), "laplace"))
    assert Tddl.explain_refusal(task(), "laplace") is None

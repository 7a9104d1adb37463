"""TDIL: its exact privacy loss on small cases, the law of what it asks and answers, and its accounts."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.integrate import quad
from scipy.special import log_softmax, ndtr

from privlearn.arrays import Array
from privlearn.errors import DataError, InvalidParameter
from privlearn.guarantee import Guarantee
from privlearn.mechanisms import MECHANISMS, PrecomputedMinimisers, Task
from privlearn.mechanisms import TestDataIndependentLearner as Tdil
from privlearn.randomness import SecureRandomness, SeededRandomness
from privlearn.solvers import Logistic, Multinomial

ALARM = 1e-6
NET = np.array([[0.999, 0.04], [-0.999, 0.04], [0.0, 0.001]])
"""The first two pull in opposite directions: between neighbours their scores differ by almost twice S."""


def plan(epsilon: float = 1.0, delta: float = 1e-3, rounds: int | None = 2, **facts: Any) -> Tdil:
    known: dict[str, Any] = {
        "loss": Logistic(),
        "total": 1000,
        "dimension": 2,
        "problems": 1,
        "regularization": 0.01,
    }
    task = Task(**(known | {"tolerance": 1e-10, "neighbours": "replace_one"} | facts))
    guarantee = Guarantee(epsilon, delta, task.neighbours)
    return Tdil.calibrate(task, guarantee, "gaussian", "tight", rounds=rounds)


def printed_sensitivity(mechanism: Tdil) -> float:
    """2 L / (N Lambda), with the solver's tolerance twice; rounding is far below the ninth digit here."""
    task = mechanism.task
    return (2.0 / task.total + 2.0 * task.tolerance) / task.regularization


def gaussian_hockey_stick(epsilon: Array, ratio: float) -> Array:
    """Return the hockey-stick divergence of N(ratio, 1) from N(0, 1), for any real epsilon."""
    if ratio == 0.0:
        return np.maximum(0.0, -np.expm1(epsilon))
    return ndtr(ratio / 2 - epsilon / ratio) - np.exp(epsilon) * ndtr(-ratio / 2 - epsilon / ratio)


def log_choice(mechanism: Tdil, guesses: Array, w: Array, row: int) -> Array:
    """Log-probability of choosing a row of the net, for each guess: written anew from the constants."""
    rate = mechanism.selection_epsilon / (2.0 * printed_sensitivity(plan()))
    return np.asarray(log_softmax(rate * np.abs((guesses - w) @ NET.T), axis=1)[:, row])


def joint_law(mechanism: Tdil, one: Array, other: Array) -> Iterator[tuple[Array, Array, Array, float]]:
    """Yield the joint density of two rounds on two neighbours, for each pair of choices over a grid of first answers.

    Log-densities under both, the grid's cell, and how far apart the second answers' normals are, in deviations.
    """
    scale, start = mechanism.noise_scale, np.zeros((1, 2))
    for first, point in enumerate(NET):
        answers = np.linspace(-12 * scale, 12 * scale, 401) + point @ (one + other) / 2
        guesses = np.array([mechanism.refit(point[np.newaxis], np.array([a])) for a in answers])
        for second, asked in enumerate(NET):
            mass, rival = (
                log_choice(mechanism, start, w, first)
                + stats.norm.logpdf(answers, point @ w, scale)
                + log_choice(mechanism, guesses, w, second)
                for w in (one, other)
            )
            yield mass, rival, np.diff(answers)[0], abs(float(asked @ (one - other))) / scale


def joint_hockey_stick(mechanism: Tdil, one: Array, other: Array) -> float:
    epsilon = mechanism.guarantee.epsilon
    return sum(
        float(np.sum(np.exp(mass) * gaussian_hockey_stick(epsilon - (mass - rival), ratio)) * cell)
        for mass, rival, cell, ratio in joint_law(mechanism, one, other)
    )


def joint_renyi(mechanism: Tdil, one: Array, other: Array, order: float) -> float:
    moment = sum(
        float(np.sum(np.exp(order * mass + (1 - order) * rival)) * cell)
        * math.exp(order * (order - 1) * ratio**2 / 2)
        for mass, rival, cell, ratio in joint_law(mechanism, one, other)
    )
    return math.log(moment) / (order - 1)


def neighbours(mechanism: Tdil, base: Sequence[float], angle: float) -> tuple[Array, Array]:
    step = printed_sensitivity(mechanism) / 2 * np.array([math.cos(angle), math.sin(angle)])
    return np.array(base) - step, np.array(base) + step


WORST = ((0.0, 40.0), 0.0)


@pytest.mark.parametrize(
    ("base", "angle"), [WORST, (WORST[0], math.pi), ((10.0, -4.0), 1.0), ((0.0, 0.0), math.pi / 2)]
)
def test_two_rounds_keep_the_promise_exactly(base: Sequence[float], angle: float) -> None:
    mechanism = plan()
    pair = neighbours(mechanism, base, angle)
    assert joint_hockey_stick(mechanism, *pair) <= mechanism.guarantee.delta
    for order in (1.5, 3.0, 10.0):
        assert joint_renyi(mechanism, *pair, order) <= mechanism.renyi(order)


def test_the_divergence_is_nearly_attained() -> None:
    mechanism = plan()
    assert joint_renyi(mechanism, *neighbours(mechanism, *WORST), 3.0) > 0.75 * mechanism.renyi(3.0)


@pytest.mark.parametrize(("part", "factor"), [("noise_scale", 0.5), ("selection_epsilon", 2.0)])
def test_half_the_noise_or_twice_the_choice_breaks_it(part: str, factor: float) -> None:
    mechanism = plan()
    worse = dataclasses.replace(mechanism, **{part: factor * getattr(mechanism, part)})
    pair = neighbours(mechanism, *WORST)
    assert joint_renyi(worse, *pair, 3.0) > mechanism.renyi(3.0)
    assert not worse.spends() <= mechanism.guarantee


@given(
    st.lists(st.floats(-1.0, 1.0), min_size=6, max_size=6),
    st.lists(st.floats(-50.0, 50.0), min_size=2, max_size=2),
    st.floats(0.0, 7.0),
    st.floats(1.01, 50.0),
)
def test_a_choice_from_any_net_costs_an_eighth_of_the_square(
    rows: list[float], base: list[float], angle: float, order: float
) -> None:
    mechanism = plan(epsilon=4.0, rounds=1)
    net = np.array(rows).reshape(3, 2) / math.sqrt(2.0)
    rate = mechanism.selection_epsilon / (2.0 * printed_sensitivity(mechanism))
    logs = [log_softmax(rate * np.abs(net @ w)) for w in neighbours(mechanism, base, angle)]
    moment = np.sum(np.exp(order * logs[0] + (1 - order) * logs[1]))
    assert math.log(moment) / (order - 1) <= order * mechanism.selection_epsilon**2 / 8 * (1 + 1e-6) + 1e-12


def ball_range(mechanism: Tdil, dimension: int, length: float, sideways: bool) -> float:
    """Range of the log-ratio of the densities of z from the unit ball, for neighbours around a vector so long.

    By symmetry only the plane of the two vectors matters; normalisers by quadrature over the height.
    """
    rate, step = mechanism.selection_rate, printed_sensitivity(mechanism) / 2
    one, other = (
        ((length, -step), (length, step)) if sideways else ((length - step, 0.0), (length + step, 0.0))
    )
    if dimension == 1:
        one, other = (length - step, 0.0), (length + step, 0.0)
    angles = np.linspace(0.0, 2.0 * math.pi, 2001) if dimension > 1 else np.array([0.0, math.pi])
    points = np.vstack([r * np.column_stack([np.cos(angles), np.sin(angles)]) for r in (0.0, 0.5, 1.0)])
    logs = [
        rate * np.abs(points @ w) - log_normaliser(dimension, rate * math.hypot(*w)) for w in (one, other)
    ]
    return float(np.ptp(logs[0] - logs[1]))


def log_normaliser(dimension: int, concentration: float) -> float:
    value, _ = quad(
        lambda t: (1 - t * t) ** ((dimension - 1) / 2) * math.exp(concentration * (t - 1)),
        0.0,
        1.0,
        epsabs=0.0,
    )
    return math.log(value) + concentration


@pytest.mark.parametrize("dimension", [1, 2, 5, 50])
@pytest.mark.parametrize("sideways", [True, False])
def test_a_choice_from_the_ball_has_the_range_it_pays_for(dimension: int, sideways: bool) -> None:
    mechanism = plan(epsilon=4.0, rounds=1)
    twice = dataclasses.replace(mechanism, selection_epsilon=2.0 * mechanism.selection_epsilon)
    ranges = [ball_range(mechanism, dimension, length, sideways) for length in (0.0, 0.3, 3.0, 30.0)]
    assert max(ranges) <= mechanism.selection_epsilon * (1 + 1e-9)
    if sideways and dimension > 1:
        assert max(ranges) > 0.95 * mechanism.selection_epsilon
        assert ball_range(twice, dimension, 30.0, True) > mechanism.selection_epsilon


def test_answers_have_the_noise_they_pay_for() -> None:
    mechanism, randomness = plan(rounds=4), SeededRandomness(1)
    w = np.array([3.0, -1.0])
    asked, answered = zip(*(mechanism.interrogate(w, randomness, NET) for _ in range(500)), strict=True)
    noise = (np.concatenate(answered) - np.concatenate(asked) @ w) / mechanism.noise_scale
    assert stats.kstest(noise, "norm").pvalue > ALARM
    assert stats.chi2(2000).ppf(ALARM) < float(noise @ noise) < stats.chi2(2000).isf(ALARM)


@pytest.mark.parametrize("neighbours_", ["replace_one", "zero_out", "add_remove"])
def test_choices_have_the_law_they_pay_for(neighbours_: Any) -> None:
    mechanism = plan(rounds=1, epsilon=4.0, neighbours=neighbours_)
    sensitivity = printed_sensitivity(mechanism) * (1.0 if neighbours_ == "replace_one" else 0.5)
    w, randomness = np.array([2.0 * sensitivity, sensitivity]), SeededRandomness(2)
    drawn = [mechanism.interrogate(w, randomness, NET)[0][0] for _ in range(2000)]
    counts = [sum(np.array_equal(point, row) for point in drawn) for row in NET]
    weights = np.exp(mechanism.selection_epsilon * np.abs(NET @ w) / (2.0 * sensitivity))
    assert stats.chisquare(counts, 2000 * weights / weights.sum()).pvalue > ALARM
    twice = weights**2
    assert stats.chisquare(counts, 2000 * twice / twice.sum()).pvalue < ALARM


def test_choices_from_the_ball_have_the_law_they_pay_for() -> None:
    """On the line the density of |z| is exp(rate |w| |z|): an exponential cut at 1."""
    mechanism, randomness = plan(rounds=1, epsilon=4.0, dimension=1), SeededRandomness(3)
    w = np.array([4.0 * printed_sensitivity(mechanism)])
    drawn = np.array([abs(mechanism.interrogate(w, randomness, None)[0].item()) for _ in range(3000)])
    for factor, fits in ((1.0, True), (2.0, False), (0.5, False)):
        power = factor * 2.0 * mechanism.selection_epsilon
        law = np.expm1(power * drawn) / np.expm1(power)
        assert (stats.kstest(law, "uniform").pvalue > ALARM) == fits


@pytest.mark.parametrize(
    "facts",
    [{}, {"problems": 3}, {"neighbours": "zero_out"}, {"neighbours": "add_remove"}, {"rows_per_person": 4}],
    ids=str,
)
@pytest.mark.parametrize("rounds", [None, 1, 7])
def test_the_promise_is_kept_and_used_up(facts: dict[str, Any], rounds: int | None) -> None:
    mechanism = plan(0.7, 1e-5, rounds, **facts)
    assert mechanism.spends() <= mechanism.guarantee
    for part, factor in (("noise_scale", 0.999), ("selection_epsilon", 1.001), ("rounds", 2.0)):
        worse = dataclasses.replace(mechanism, **{part: factor * getattr(mechanism, part)})
        assert not worse.spends() <= mechanism.guarantee


def test_every_problem_and_every_round_counts() -> None:
    one = plan(rounds=1)
    more: list[dict[str, Any]] = [{"problems": 4, "rounds": 1}, {"rounds": 4}]
    for facts in more:
        four = plan(**facts)
        assert four.zcdp == pytest.approx(one.zcdp, rel=1e-8)
        assert four.noise_scale == pytest.approx(2.0 * one.noise_scale, rel=1e-8)
        assert four.selection_epsilon == pytest.approx(one.selection_epsilon / 2.0, rel=1e-6)


def test_each_problem_has_its_own_noise() -> None:
    w = np.array([[3.0, -1.0]] * 3)
    models = plan(problems=3).run(PrecomputedMinimisers(w, NET), SecureRandomness())
    assert len(np.unique(models, axis=0)) == 3


@pytest.mark.parametrize("probes", [None, np.eye(3)], ids=["ball", "net"])
def test_much_budget_finds_the_minimiser(probes: Any) -> None:
    w = np.array([[1.0, -2.0, 0.5], [0.0, 0.3, 0.1]])
    mechanism = plan(1e4, 0.1, 20, dimension=3, problems=2)
    assert mechanism.run(PrecomputedMinimisers(w, probes), SeededRandomness(0)) == pytest.approx(w, abs=0.02)


def test_no_promise_no_noise() -> None:
    w = np.array([[3.0, -1.0]])
    mechanism = plan(math.inf, 0.0, None)
    assert np.array_equal(mechanism.run(PrecomputedMinimisers(w), SecureRandomness()), w)
    assert not mechanism.spends().is_private


@given(st.integers(0, 10_000))
def test_the_refit_stays_in_the_ball_and_fits_precise_answers(seed: int) -> None:
    rng, mechanism = np.random.default_rng(seed), plan(dimension=4)
    points = rng.normal(size=(3, 4)) / 4.0
    radius = mechanism.constants()["ball_radius"]
    wild = mechanism.refit(points, 1e6 * rng.normal(size=3))
    assert np.linalg.norm(wild) <= radius * (1 + 1e-12)
    precise = dataclasses.replace(mechanism, noise_scale=1e-9)
    answers = points @ rng.normal(size=4)
    assert points @ precise.refit(points, answers) == pytest.approx(answers, abs=1e-6)


def test_rounds_follow_public_numbers() -> None:
    assert plan(0.01, rounds=None).rounds == 1
    assert plan(100.0, rounds=None).rounds == 20
    assert 1 < plan(1.0, 1e-5, None, total=36_000, regularization=1e-3).rounds < 20


def test_it_can_be_rebuilt_from_its_constants() -> None:
    mechanism = plan()
    chosen = {name: float(mechanism.constants()[name]) for name in Tdil.calibrated_constants}
    again = MECHANISMS["tdil"](mechanism.task, mechanism.guarantee, "gaussian", "tight", **chosen)  # type: ignore[call-arg]
    assert again == mechanism
    assert again.constants() == mechanism.constants()


def test_refusals() -> None:
    with pytest.raises(InvalidParameter, match="delta"):
        plan(delta=0.0)
    with pytest.raises(InvalidParameter, match="rounds"):
        plan(rounds=1.5)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="calibration"):
        Tdil.calibrate(plan().task, Guarantee(1.0, 1e-5), "gaussian", "jt13")
    with pytest.raises(DataError, match="norm"):
        plan().run(PrecomputedMinimisers(np.zeros((1, 2)), np.array([[1.0, 0.1]])), SeededRandomness(0))
    assert "multinomial" in str(Tdil.explain_refusal(plan(loss=Multinomial()).task, "gaussian"))
    assert Tdil.explain_refusal(plan().task, "gaussian") is None

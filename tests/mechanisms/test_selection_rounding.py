"""What rounding adds to a choice, in exact arithmetic: the stated 2^-38 is enough at every size of the counts."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from flint import arb, ctx

from privlearn.arrays import Array
from privlearn.guarantee import Guarantee
from privlearn.mechanisms import Partition, Task
from privlearn.mechanisms import TestDataIndependentLearner as Tdil
from privlearn.mechanisms.search.selection import SELECTION_ROUNDING, exponential_weights
from privlearn.mechanisms.statistics import quantile
from privlearn.randomness import SeededRandomness
from privlearn.solvers import Logistic

SIZES = [10**3, 10**5, 10**7]
PRECISION = 200


def log_probabilities(weights: Array) -> list[arb]:
    """Return the logarithms of the exact probabilities that these computed weights stand for."""
    exact = [arb(float(weight)) for weight in weights]
    total = sum(exact, arb(0))
    return [(weight / total).log() for weight in exact]


def excess(one: Array, other: Array, epsilon: float) -> float:
    """Return by how much the log-ratios of two laws exceed epsilon, in size or in range."""
    with ctx.workprec(PRECISION):
        pairs = zip(log_probabilities(one), log_probabilities(other), strict=True)
        ratios = [mine - theirs for mine, theirs in pairs]
        worst = max(max(map(abs, ratios)), max(ratios) - min(ratios))
        return float((worst - arb(epsilon)).upper())


def neighbouring_counts(size: int, epsilon: float) -> Iterator[tuple[Array, Array]]:
    """Yield counts of mistakes, and the counts after the worst change: some move up by one, the others down."""
    random = np.random.default_rng(size)
    for _ in range(200):
        counts = size + random.integers(0, max(2, int(200 / epsilon)), size=4)
        yield counts.astype(float), (counts + random.choice([-1, 1], size=4)).astype(float)


@pytest.mark.parametrize("epsilon", [0.1, 0.7, 3.0])
@pytest.mark.parametrize("size", SIZES)
def test_a_partition_pays_for_the_rounding_of_its_choice(size: int, epsilon: float) -> None:
    search = Partition.calibrate(Guarantee(epsilon), [plan, plan], validation_rows=size)
    for counts, moved in neighbouring_counts(size, epsilon):
        surplus = excess(search.weights(counts), search.weights(moved), search.selection_epsilon)
        assert surplus <= SELECTION_ROUNDING
        assert max(np.abs(counts - moved)) == 1.0


def plan(guarantee: Guarantee) -> Tdil:
    return learner(1000, guarantee)


def learner(total: int, guarantee: Guarantee) -> Tdil:
    delta = guarantee.delta or 1e-6
    task = Task(Logistic(), total, 3, 1, 0.01, 0.0, "replace_one")
    return Tdil.calibrate(
        task, Guarantee(guarantee.epsilon, delta, "replace_one"), "gaussian", "tight", rounds=2
    )


@pytest.mark.parametrize("total", SIZES)
def test_tdil_computes_every_weight_to_the_stated_precision(total: int) -> None:
    """Minimisers that are as long as they come. The products' own rounding is a part of the sensitivity."""
    mechanism, random = learner(total, Guarantee(1.0)), np.random.default_rng(total)
    for _ in range(200):
        difference = random.normal(size=3)
        difference *= 1.9 * mechanism.task.ball_radius / np.linalg.norm(difference)
        net = nearly_alike(difference, 100.0 / mechanism.selection_rate, random)
        errors = log_errors(
            mechanism.weights(difference, net), np.abs(net @ difference), mechanism.selection_rate
        )
        assert max(errors) <= 2.0**-40


def log_errors(weights: Array, qualities: Array, rate: float) -> list[float]:
    """Return by how much the logarithms of the weights differ from rate * (quality - largest), exactly."""
    with ctx.workprec(PRECISION):
        exact = [arb(float(quality)) for quality in qualities]
        expected = [arb(rate) * (quality - max(exact)) for quality in exact]
        pairs = zip(weights, expected, strict=True)
        return [float(abs(arb(float(weight)).log() - right).upper()) for weight, right in pairs]


def nearly_alike(difference: Array, apart: float, random: np.random.Generator) -> Array:
    """Return points of the ball whose products with the difference lie within ``apart`` of each other."""
    length = float(np.linalg.norm(difference))
    axis = difference / length
    heights = 0.5 - min(0.9, apart / length) * random.uniform(size=4)
    sideways = random.normal(size=(4, 3))
    sideways -= np.outer(sideways @ axis, axis)
    return np.asarray(np.outer(heights, axis) + 0.8 * sideways / np.linalg.norm(sideways, axis=1)[:, None])


@pytest.mark.parametrize("spread", [0.0, 2.0**-900, 1.0, 2.0**900])
@pytest.mark.parametrize("size", SIZES)
def test_a_quantile_pays_for_the_rounding_of_its_choice(
    size: int, spread: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Priors as far apart as they come, from candidates of all magnitudes."""
    seen: list[Array] = []
    monkeypatch.setattr(quantile, "choose_row", lambda weights, _: seen.append(weights) or 0)
    points, priors = (column[::2003] for column in quantile.candidates(distances=True))
    if spread:
        priors = quantile._around(spread, points, priors)
    random, epsilon = np.random.default_rng(size), 0.3
    for _ in range(10):
        losses = size + random.integers(0, 12_000, size=points.size)
        moved = losses + random.choice([-1, 1], size=points.size)
        for found in (losses, moved):
            quantile._choose(points, priors, found, 1, epsilon, 1, SeededRandomness(0))
        assert excess(seen[-2], seen[-1], epsilon) <= SELECTION_ROUNDING


@pytest.mark.parametrize("offset", [0.0, 1e7, 1e12])
def test_weights_depend_on_differences_alone(offset: float) -> None:
    qualities = np.array([0.0, 1.0, 5.0, 90.0])
    plain = exponential_weights(qualities, 0.3)
    assert np.array_equal(exponential_weights(qualities + offset, 0.3), plain)
    assert plain.max() == 1.0

"""Empirical bounds are bounds: hardly ever above the truth, zero for identical inputs, and not idle."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from privlearn.arrays import Array
from privlearn.audit import epsilon_bound
from privlearn.errors import InvalidParameter

RNG = np.random.default_rng(3)
REPETITIONS = 300


def exceeds(sample_one: Any, sample_other: Any, truth: float, confidence: float, delta: float = 0.0) -> int:
    """Return how many of many audits claim more than the truth."""
    bounds = (
        epsilon_bound(sample_one(), sample_other(), delta=delta, confidence=confidence)
        for _ in range(REPETITIONS)
    )
    return sum(bound.epsilon > truth for bound in bounds)


def allowed(confidence: float) -> float:
    """Return the number of failures that a correct procedure exceeds once in a million times."""
    return float(stats.binom(REPETITIONS, 1.0 - confidence).isf(1e-6))


@pytest.mark.parametrize("confidence", [0.8, 0.99])
@pytest.mark.parametrize("dimension", [1, 3])
def test_identical_inputs_have_no_bound_above_zero(confidence: float, dimension: int) -> None:
    def sample() -> Array:
        return RNG.normal(size=(200, dimension))

    assert exceeds(sample, sample, 0.0, confidence) <= allowed(confidence)


def test_identical_inputs_that_repeat_themselves_have_no_bound_above_zero() -> None:
    def sample() -> Array:
        return RNG.integers(0, 5, size=(200, 1)).astype(float)

    assert exceeds(sample, sample, 0.0, 0.8) <= allowed(0.8)
    constant = np.ones((200, 2))
    assert epsilon_bound(constant, constant).epsilon == 0.0


def coin(probability: float) -> Array:
    return (RNG.random((400, 1)) < probability).astype(float)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_randomised_response_is_not_overstated(epsilon: float) -> None:
    """Its best event is known and its epsilon exact: any optimism would show."""
    truth = 1.0 / (1.0 + math.exp(-epsilon))
    above = exceeds(lambda: coin(truth), lambda: coin(1.0 - truth), epsilon, 0.8)
    assert above <= allowed(0.8)


@pytest.mark.parametrize("direction", [1, -1])
def test_delta_is_not_overstated(direction: int) -> None:
    """With probability delta it tells; otherwise it is randomised response. Both directions are looked at."""
    epsilon, delta = 0.5, 0.1
    heads = 1.0 / (1.0 + math.exp(-epsilon))

    def tell(sample: Array, mark: float) -> Array:
        return np.where(RNG.random(sample.shape) < delta, mark, sample)

    one_sample, other_sample = [lambda: tell(coin(heads), 7.0), lambda: tell(coin(1.0 - heads), -7.0)][
        ::direction
    ]
    assert exceeds(one_sample, other_sample, epsilon, 0.8, delta) <= allowed(0.8)
    one, other = (np.vstack([sample() for _ in range(10)]) for sample in (one_sample, other_sample))
    assert epsilon_bound(one, other, delta=0.05).epsilon > epsilon  # but a smaller delta is refuted


@pytest.mark.parametrize("direction", [1, -1])
def test_a_telling_event_is_found_in_either_direction(direction: int) -> None:
    """Rare under one law and common under the other, in the middle and not in a tail."""
    spread = RNG.normal(scale=50.0, size=(4000, 1))
    peaked = np.where(RNG.random((4000, 1)) < 0.2, RNG.normal(scale=0.5, size=(4000, 1)), spread)
    found = epsilon_bound(*(peaked, RNG.normal(scale=50.0, size=(4000, 1)))[::direction])
    assert 1.5 < found.epsilon < math.log(0.2 / 0.0006)


def test_a_direction_between_the_coordinates_is_found() -> None:
    """As when classes share their noise: each coordinate alone says little, their difference everything."""
    noise = RNG.normal(scale=100.0, size=(200, 1))
    one, other = noise + np.array([1.0, -1.0]), -noise + np.array([-1.0, 1.0])
    assert epsilon_bound(one, other).epsilon > 1.5


@pytest.mark.parametrize(
    ("one", "other", "settings"),
    [
        (np.zeros((9, 1)), np.zeros((9, 2)), {}),
        (np.zeros(9), np.zeros(9), {}),
        (np.zeros((3, 1)), np.zeros((9, 1)), {}),
        (np.full((9, 1), math.nan), np.zeros((9, 1)), {}),
        (np.zeros((9, 1)), np.zeros((9, 1)), {"confidence": 1.0}),
        (np.zeros((9, 1)), np.zeros((9, 1)), {"delta": -0.1}),
    ],
    ids=["columns", "vectors", "too few", "not finite", "certain", "negative delta"],
)
def test_what_cannot_be_bounded_is_refused(one: Array, other: Array, settings: dict[str, float]) -> None:
    with pytest.raises(InvalidParameter):
        epsilon_bound(one, other, **settings)

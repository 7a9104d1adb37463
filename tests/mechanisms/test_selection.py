"""Both samplers of the exponential mechanism against their laws."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from privlearn.arrays import Array
from privlearn.audit.samplers import HeightDistribution
from privlearn.mechanisms import noise
from privlearn.mechanisms.noise import FIRST_BITS
from privlearn.mechanisms.search.selection import (
    POINT_GRID_BITS,
    choose_in_ball,
    choose_row,
    exponential_weights,
    propose_in_ball,
)
from privlearn.randomness import Randomness, SecureRandomness, SeededRandomness

ALARM = 1e-7  # chi-square tails are heavier where few draws are expected: in truth 1e-6
DIMENSIONS = (1, 2, 5, 50)
DRAWS = 2000


def p_value(heights: Array, law: HeightDistribution) -> float:
    cdf: Any = law.cdf  # of arrays; scipy's types know only functions of one number
    return float(stats.kstest(heights, cdf).pvalue)


def heights(dimension: int, concentration: float, draws: int, randomness: Randomness) -> tuple[Array, Array]:
    """Points, and <z, u> for each; u is neither an axis nor of length 1."""
    vector = np.linspace(1.0, 3.0, dimension)
    length = float(np.linalg.norm(vector))
    points = np.array([choose_in_ball(vector, concentration / length, randomness) for _ in range(draws)])
    return points, points @ (vector / length)


def test_the_slices_of_the_ball_are_what_the_law_says() -> None:
    """The exponent (d-1)/2, against points of the ball found by throwing away those of the cube outside it."""
    cube = np.random.default_rng(0).uniform(-1.0, 1.0, size=(40_000, 5))
    ball = cube[np.linalg.norm(cube, axis=1) <= 1.0]
    assert p_value(np.abs(ball[:, 0]), HeightDistribution(5, 0.0)) > ALARM


@pytest.mark.parametrize("dimension", DIMENSIONS)
@pytest.mark.parametrize("concentration", [0.0, 6.0, 40.0, 3000.0])
def test_height_follows_the_numerically_integrated_law(dimension: int, concentration: float) -> None:
    # where all mass is near 1, integrate there
    law = HeightDistribution(
        dimension, concentration, 1.0 - np.geomspace(1.0, 1e-7, 401) if concentration > 1000.0 else None
    )
    _, along = heights(dimension, concentration, DRAWS, SeededRandomness(dimension))
    assert p_value(np.abs(along), law) > ALARM
    assert abs(float(np.sum(np.sign(along)))) < stats.norm.isf(ALARM) * math.sqrt(len(along))


@pytest.mark.parametrize("dimension", [2, 5, 50])
def test_the_rest_is_uniform_in_its_slice(dimension: int) -> None:
    points, along = heights(dimension, 6.0, DRAWS, SeededRandomness(7))
    vector = np.linspace(1.0, 3.0, dimension)
    axis = vector / np.linalg.norm(vector)
    rest = points - along[:, np.newaxis] * axis
    # uniform in a (d-1)-ball: the radius to the power d - 1 is uniform, and independent of the height
    radii = (np.linalg.norm(rest, axis=1) / np.sqrt(1.0 - along**2)) ** (dimension - 1)
    assert stats.kstest(radii, "uniform").pvalue > ALARM
    assert abs(stats.spearmanr(radii, np.abs(along)).statistic) * math.sqrt(len(radii)) < stats.norm.isf(
        ALARM
    )
    # and no direction within the slice is preferred
    other = np.random.default_rng(1).normal(size=dimension)
    other -= (other @ axis) * axis
    if dimension > 2:
        cosines = rest @ (other / np.linalg.norm(other)) / np.linalg.norm(rest, axis=1)
        uniform = stats.beta((dimension - 2) / 2, (dimension - 2) / 2, loc=-1.0, scale=2.0)
        assert stats.kstest(cosines, uniform.cdf).pvalue > ALARM
    else:
        signs = np.sum(np.sign(rest @ other) * np.sign(along))
        assert abs(float(signs)) < stats.norm.isf(ALARM) * math.sqrt(len(along))


@pytest.mark.parametrize("dimension", DIMENSIONS)
@pytest.mark.parametrize("concentration", [0.5, 6.0, 100.0])
def test_rejection_leaves_exactly_the_wanted_density(dimension: int, concentration: float) -> None:
    """Proposal density times acceptance over the target's density is the same everywhere: no statistics needed."""
    axis = [dimension**-0.5] * dimension

    def point(proposed: float, exponential: float) -> list[arb]:
        """Return a point from a normal vector at the proposed angle; a nearly unit axis stands in for a unit one."""
        normal = [arb(proposed * part) for part in axis] + [arb(0), arb(1 - proposed**2).sqrt()]
        found = propose_in_ball(axis, concentration, normal, arb(exponential))
        assert found is not None
        return found

    def height(proposed: float) -> float:
        return float(
            sum((part * unit for part, unit in zip(point(proposed, 700.0), axis, strict=True)), arb(0))
        )

    def log_acceptance(proposed: float) -> float:
        low, high = 0.0, 700.0
        for _ in range(50):
            middle = (low + high) / 2
            low, high = (low, middle) if point(proposed, middle) else (middle, high)
        return -high

    def constant(proposed: float) -> float:
        t, slope = height(proposed), (height(proposed + 1e-5) - height(proposed - 1e-5)) / 2e-5
        power = (dimension - 1) / 2
        proposal = power * math.log(1 - proposed**2) - math.log(slope)
        return proposal + log_acceptance(proposed) - power * math.log(1 - t * t) - concentration * t

    with ctx.workprec(FIRST_BITS):
        constants = [constant(proposed) for proposed in (0.01, 0.1, 0.3, 0.6, 0.9)]
    assert np.ptp(constants) < 1e-5


def test_points_below_the_middle_and_unclear_ones() -> None:
    """The lower half is refused, whatever the exponential draw; a ball across the border says nothing yet."""
    normal = [arb(-0.9), arb(0), arb(0), arb(0.1)]
    assert propose_in_ball([1.0, 0.0], 0.5, normal, arb(700)) == []
    assert propose_in_ball([1.0, 0.0], 6.0, [arb(0.5), arb(0), arb(0), arb(0.5)], arb(0.5, 0.5)) is None
    assert propose_in_ball([1.0, 0.0], 0.0, [arb(0, 1e-9), arb(0), arb(1), arb(0)], arb(700)) is None


def test_bits_read_in_small_pieces_follow_the_same_law(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noise, "FIRST_BITS", 3)
    _, along = heights(2, 6.0, DRAWS, SeededRandomness(9))
    assert p_value(np.abs(along), HeightDistribution(2, 6.0)) > ALARM


@pytest.mark.parametrize("wrong", [0.5, 2.0])
def test_these_tests_notice_a_wrong_rate(wrong: float) -> None:
    for dimension in DIMENSIONS:
        _, along = heights(
            dimension, 12.0 * wrong, DRAWS // 4, SeededRandomness(dimension)
        )  # fewer are enough
        assert p_value(np.abs(along), HeightDistribution(dimension, 12.0)) < ALARM


def test_secure_bits_follow_the_same_law() -> None:
    _, along = heights(5, 6.0, 600, SecureRandomness())
    assert p_value(np.abs(along), HeightDistribution(5, 6.0)) > ALARM


@given(st.integers(1, 8), st.floats(0.0, 1e9), st.integers(0, 1000))
def test_points_are_in_the_ball_and_on_the_grid(dimension: int, rate: float, seed: int) -> None:
    vector = np.random.default_rng(seed).normal(size=dimension) * (seed % 3)  # a third of them zero
    point = choose_in_ball(vector, rate, SeededRandomness(seed))
    assert point @ point <= 1.0
    if np.linalg.norm(point) < 1.0 - 1e-9:  # those at the rim are shortened after rounding
        assert np.array_equal(np.rint(np.ldexp(point, POINT_GRID_BITS)), np.ldexp(point, POINT_GRID_BITS))


sources = pytest.mark.parametrize(
    "source", [SecureRandomness, lambda: SeededRandomness(3)], ids=["secure", "seeded"]
)


@sources
@pytest.mark.parametrize(
    "scores", [[0.0], [1.0, 0.0, -1.0, 0.5], [5.0] * 7, [0.0, -3.0, 2.0, 2.0, -1.0, 1.99]]
)
def test_rows_are_chosen_by_their_weights(source: Callable[[], Randomness], scores: list[float]) -> None:
    randomness, values = source(), np.array(scores)
    weights = exponential_weights(values, 1.0)
    drawn = np.bincount([choose_row(weights, randomness) for _ in range(3000)], minlength=len(scores))
    expected = np.exp(values - np.max(values))
    assert len(scores) == 1 or stats.chisquare(drawn, 3000 * expected / expected.sum()).pvalue > ALARM


def test_row_counts_notice_a_doubled_score() -> None:
    values, randomness = np.array([1.0, 0.0, -1.0, 0.5]), SeededRandomness(3)
    drawn = np.bincount(
        [choose_row(exponential_weights(values, 2.0), randomness) for _ in range(3000)], minlength=4
    )
    expected = np.exp(values)
    assert stats.chisquare(drawn, 3000 * expected / expected.sum()).pvalue < ALARM


class Counting:
    """Every string of bits in turn: exact probabilities by enumeration, for draws that end within it."""

    description, secure = "enumeration", False

    def __init__(self, bits: str) -> None:
        self.left = bits

    def bits(self, count: int) -> int:
        if count > len(self.left):
            raise EOFError
        taken, self.left = self.left[:count], self.left[count:]
        return int(taken or "0", 2)

    def discrete_gaussian(self, scale: float, size: int) -> NDArray[np.int64]:
        raise AssertionError("a choice is made of bits alone")

    def discrete_laplace(self, scale: float, size: int) -> NDArray[np.int64]:
        raise AssertionError("a choice is made of bits alone")


def test_the_choice_is_exact_not_only_nearly_so() -> None:
    """Dyadic weights 1, 1/2, 1/2, 1/4, 1/4 have mantissa 1/2: the accepting bit is the mantissa's first."""
    weights = np.array([1.0, 0.5, 0.5, 0.25, 0.25])
    counts = np.zeros(5)
    for prefix in range(2**6):  # 4 bits choose the level, one the row, one accepts
        try:
            counts[choose_row(weights, Counting(f"{prefix:06b}" + "0" * 52))] += 1
        except EOFError:
            continue
    assert counts[0] > 0
    assert counts / counts[0] == pytest.approx([1.0, 0.5, 0.5, 0.25, 0.25])


def test_hopeless_rows_keep_a_weight_and_huge_scores_do_not_overflow() -> None:
    assert choose_row(exponential_weights(np.array([-1e300, 0.0, -1e300]), 1.0), SeededRandomness(0)) == 1
    assert choose_row(exponential_weights(np.array([1e300, 0.0]), 1.0), SecureRandomness()) == 0

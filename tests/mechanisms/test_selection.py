"""Both samplers of the exponential mechanism against their laws. Alarms are 1e-6 quantiles."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from privlearn.audit.samplers import HeightLaw
from privlearn.mechanisms.noise import GAMMA_GRID_BITS
from privlearn.mechanisms.selection import choose_in_ball, choose_row
from privlearn.randomness import Randomness, SecureRandomness, SeededRandomness

Array = NDArray[np.float64]
ALARM = 1e-6
DIMENSIONS = (1, 2, 5, 50)
DRAWS = 2000


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
    assert stats.kstest(np.abs(ball[:, 0]), HeightLaw(5, 0.0).cdf).pvalue > ALARM


@pytest.mark.parametrize("dimension", DIMENSIONS)
@pytest.mark.parametrize("concentration", [0.0, 6.0, 40.0, 3000.0])
def test_height_follows_the_numerically_integrated_law(dimension: int, concentration: float) -> None:
    # where all mass is near 1, integrate there
    law = HeightLaw(
        dimension, concentration, 1.0 - np.geomspace(1.0, 1e-7, 401) if concentration > 1000.0 else None
    )
    _, along = heights(dimension, concentration, DRAWS, SeededRandomness(dimension))
    assert stats.kstest(np.abs(along), law.cdf).pvalue > ALARM
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


class Scripted:
    """Proposes one given height, with one given exponential draw; a second proposal means the first was refused."""

    description, secure = "scripted", False

    def __init__(self, proposed: float, exponential: float, axis: Array) -> None:
        across = np.append(np.zeros(len(axis) + 1), math.sqrt(1.0 - proposed**2))
        self.normals = [np.append(proposed * axis, (0.0, 0.0)) + across]
        self.exponential = exponential

    def discrete_gaussian(self, scale: float, size: int) -> NDArray[np.int64]:
        if not self.normals:
            raise EOFError
        return np.rint(scale * self.normals.pop()).astype(np.int64)

    def discrete_laplace(self, scale: float, size: int) -> NDArray[np.int64]:
        return np.array([round(scale * self.exponential)])

    def bits(self, count: int) -> int:
        return 1


@pytest.mark.parametrize("dimension", DIMENSIONS)
@pytest.mark.parametrize("concentration", [0.5, 6.0, 100.0])
def test_rejection_leaves_exactly_the_wanted_density(dimension: int, concentration: float) -> None:
    """Proposal density times acceptance over the target's density is the same everywhere: no statistics needed."""
    axis = np.ones(dimension) / math.sqrt(dimension)

    def height(proposed: float, exponential: float = 700.0) -> float:
        return float(axis @ choose_in_ball(axis, concentration, Scripted(proposed, exponential, axis)))

    def log_acceptance(proposed: float) -> float:
        def accepts(exponential: float) -> bool:
            try:
                return height(proposed, exponential) > 0
            except EOFError:
                return False

        low, high = 0.0, 700.0
        for _ in range(50):
            middle = (low + high) / 2
            low, high = (low, middle) if accepts(middle) else (middle, high)
        return -high

    def constant(proposed: float) -> float:
        t, slope = height(proposed), (height(proposed + 1e-5) - height(proposed - 1e-5)) / 2e-5
        power = (dimension - 1) / 2
        proposal = power * math.log(1 - proposed**2) - math.log(slope)
        return proposal + log_acceptance(proposed) - power * math.log(1 - t * t) - concentration * t

    constants = [constant(proposed) for proposed in (0.01, 0.1, 0.3, 0.6, 0.9)]
    assert np.ptp(constants) < 1e-5


@pytest.mark.parametrize("wrong", [0.5, 2.0])
def test_these_tests_notice_a_wrong_rate(wrong: float) -> None:
    for dimension in DIMENSIONS:
        _, along = heights(dimension, 12.0 * wrong, DRAWS, SeededRandomness(dimension))
        assert stats.kstest(np.abs(along), HeightLaw(dimension, 12.0).cdf).pvalue < ALARM


def test_secure_bits_follow_the_same_law() -> None:
    _, along = heights(5, 6.0, 600, SecureRandomness())
    assert stats.kstest(np.abs(along), HeightLaw(5, 6.0).cdf).pvalue > ALARM


@given(st.integers(1, 8), st.floats(0.0, 1e9), st.integers(0, 1000))
def test_points_are_in_the_ball_and_on_the_grid(dimension: int, rate: float, seed: int) -> None:
    vector = np.random.default_rng(seed).normal(size=dimension) * (seed % 3)  # a third of them zero
    point = choose_in_ball(vector, rate, SeededRandomness(seed))
    assert point @ point <= 1.0
    if np.linalg.norm(point) < 1.0 - 1e-9:  # those at the rim are shortened after rounding
        assert np.array_equal(np.rint(np.ldexp(point, GAMMA_GRID_BITS)), np.ldexp(point, GAMMA_GRID_BITS))


sources = pytest.mark.parametrize(
    "source", [SecureRandomness, lambda: SeededRandomness(3)], ids=["secure", "seeded"]
)


@sources
@pytest.mark.parametrize(
    "scores", [[0.0], [1.0, 0.0, -1.0, 0.5], [5.0] * 7, [0.0, -3.0, 2.0, 2.0, -1.0, 1.99]]
)
def test_rows_are_chosen_by_their_weights(source: Callable[[], Randomness], scores: list[float]) -> None:
    randomness, values = source(), np.array(scores)
    drawn = np.bincount([choose_row(values, randomness) for _ in range(3000)], minlength=len(scores))
    expected = np.exp(values - np.max(values))
    assert len(scores) == 1 or stats.chisquare(drawn, 3000 * expected / expected.sum()).pvalue > ALARM


def test_row_counts_notice_a_doubled_score() -> None:
    values, randomness = np.array([1.0, 0.0, -1.0, 0.5]), SeededRandomness(3)
    drawn = np.bincount([choose_row(2.0 * values, randomness) for _ in range(3000)], minlength=4)
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
    scores = np.log([1.0, 0.5, 0.5, 0.25, 0.25])
    assert np.array_equal(np.frexp(np.exp(scores))[0], [0.5] * 5)
    counts = np.zeros(5)
    for prefix in range(2**6):  # 4 bits choose the level, one the row, one accepts
        try:
            counts[choose_row(scores, Counting(f"{prefix:06b}" + "0" * 52))] += 1
        except EOFError:
            continue
    assert counts[0] > 0
    assert counts / counts[0] == pytest.approx([1.0, 0.5, 0.5, 0.25, 0.25])


def test_hopeless_rows_keep_a_weight_and_huge_scores_do_not_overflow() -> None:
    assert choose_row(np.array([-1e300, 0.0, -1e300]), SeededRandomness(0)) == 1
    assert choose_row(np.array([1e300, 0.0]), SecureRandomness()) == 0

"""The path's integers: their exact law, and that its covariance is nowhere below the kernel's."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from privlearn.arrays import Array
from privlearn.features import kernel_from_name
from privlearn.mechanisms.session.function_release import (
    BLOCK,
    CAPACITY,
    DRAW_BITS,
    FACTOR_BITS,
    FACTOR_JITTER,
    PATH_BITS,
    VALUE_JITTER,
    GaussianPaths,
    _exact_sums,
    rounding_bound,
)
from privlearn.randomness import Randomness, SecureRandomness, SeededRandomness
from tests.support.session_support import SURPRISE, least_p_value, points_in_ball


class ScriptedRandomness(SeededRandomness):
    """Remembers what it drew and at which scales."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.drawn: list[tuple[float, list[int]]] = []

    def discrete_gaussian(self, scale: float, size: int) -> np.ndarray:
        draws = super().discrete_gaussian(scale, size)
        self.drawn.append((scale, draws.tolist()))
        return draws


def walk(kernel: Array, batches: list[int], randomness: Randomness) -> tuple[Array, list[int]]:
    """Return the path at all points of a kernel matrix, in batches: the factor, and the noise in units of 2^-60."""
    path, factor, noises, start = GaussianPaths(), np.zeros_like(kernel), [], 0
    for size in batches:
        now = slice(start, start + size)
        for step in path.draw(kernel[now, :start], kernel[now, now], randomness):
            factor[len(path), : len(step.row)] = step.row
            noises.append(step.noises[0])
            path.remember(step.row, step.draws)
        start += size
    return factor, noises


HARD = {
    "rbf": (kernel_from_name("rbf", gamma=2.0), points_in_ball(700, 5, 1)),
    "saturated": (kernel_from_name("linear"), points_in_ball(700, 3, 2)),
    "polynomial": (kernel_from_name("polynomial", degree=3), points_in_ball(700, 4, 3)),
    "nearly equal": (kernel_from_name("rbf", gamma=0.5), 1e-9 * points_in_ball(700, 2, 4)),
}


@pytest.mark.parametrize("name", HARD)
def test_the_noise_is_nowhere_below_the_kernel(name: str) -> None:
    kernel, points = HARD[name]
    matrix = kernel(points, points) / kernel.bound
    factor, _ = walk(matrix, [1, 99, 1, 4 * BLOCK, 87], SeededRandomness(0))
    difference = np.linalg.eigvalsh(factor @ factor.T - matrix)
    assert difference[0] >= FACTOR_JITTER - rounding_bound(len(points)) - 1e-12
    assert difference[-1] <= FACTOR_JITTER + rounding_bound(len(points)) + 1e-12


def test_the_rounding_bound_is_below_the_jitter_for_every_path() -> None:
    assert rounding_bound(CAPACITY) < FACTOR_JITTER / 2.0


def test_sums_beyond_64_bits_are_exact() -> None:
    rng = np.random.default_rng(0)
    factors = rng.choice([-(2**FACTOR_BITS), 2**FACTOR_BITS, 2**FACTOR_BITS - 1, 3], CAPACITY)
    for draws in (np.sign(factors) * (2**27 - 1), rng.integers(-(2**27), 2**27, CAPACITY)):
        exact = sum(int(draw) * int(factor) for draw, factor in zip(draws, factors, strict=True))
        assert _exact_sums(np.array([draws, -draws]), factors) == [exact, -exact]


def test_the_noise_is_an_integer_matrix_times_integer_draws() -> None:
    """Nothing is rounded: recomputed in rational numbers it is the same."""
    points = points_in_ball(40, 3, 5)
    matrix = kernel_from_name("rbf", gamma=3.0)(points, points)
    randomness = ScriptedRandomness(3)
    factor, noises = walk(matrix, [7, 1, 32], randomness)
    draws = [draw for _, batch in randomness.drawn[0::2] for draw in batch]
    jitter = [draw for _, batch in randomness.drawn[1::2] for draw in batch]
    for place, noise in enumerate(noises):
        exact = sum(Fraction(factor[place, i]) * 2**FACTOR_BITS * draws[i] for i in range(place + 1))
        assert noise == exact + jitter[place]
    assert {scale for scale, _ in randomness.drawn[0::2]} == {2.0**DRAW_BITS}
    assert {scale for scale, _ in randomness.drawn[1::2]} == {VALUE_JITTER**0.5 * 2.0**PATH_BITS}


@pytest.mark.parametrize("source", [SecureRandomness, lambda: SeededRandomness(7)])
def test_the_joint_law_is_the_claimed_gaussian(source: object) -> None:
    points = points_in_ball(10, 2, 6)
    points[5] = points[0] + 1e-3  # nearly the same point: independent noise would be far off
    matrix = kernel_from_name("rbf", gamma=1.0)(points, points)
    randomness = source()  # type: ignore[operator]
    runs = 300
    noises = np.array([walk(matrix, [1, 4, 1, 1, 3], randomness)[1] for _ in range(runs)], dtype=float)
    covariance = matrix + (FACTOR_JITTER + VALUE_JITTER) * np.eye(10)
    assert least_p_value(np.ldexp(noises, -PATH_BITS), covariance) > SURPRISE
    halved = least_p_value(np.ldexp(noises, -PATH_BITS - 1), covariance)
    independent = least_p_value(np.random.default_rng(0).normal(size=(runs, 10)), covariance)
    assert max(halved, independent) < SURPRISE


def test_the_scaled_lattice_is_fine_enough() -> None:
    """The sum over the draws is a Riemann sum of a wide Gaussian: docs/theory/function-release.md, lemma 3."""
    largest_eigenvalue = CAPACITY * (1.0 + FACTOR_JITTER) + rounding_bound(CAPACITY)
    precision = 4.0**-DRAW_BITS + largest_eigenvalue * 4.0**FACTOR_BITS / (VALUE_JITTER * 4.0**PATH_BITS)
    assert 2.0 * np.pi**2 / precision > 100.0 + np.log(CAPACITY)

"""The law of the noise, of both sources of randomness.

Thresholds are 1e-6 quantiles: a false alarm is rare, while a scale wrong by a tenth is caught.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from privlearn.errors import InvalidParameter
from privlearn.mechanisms.noise import (
    ADD_NOISE,
    GAMMA_GRID_BITS,
    GRID_BITS,
    add_gaussian,
    add_laplace,
    add_norm_gamma,
    grid_step,
)
from privlearn.randomness import Randomness, SecureRandomness, SeededRandomness, randomness_from

Array = NDArray[np.float64]
ALARM = 1e-6
SCALE = 0.37  # not a power of two, so that the grid is finer than the bare minimum
DRAWS = 20_000
ROWS = 4000

sources = pytest.mark.parametrize(
    "source", [SecureRandomness, lambda: SeededRandomness(7)], ids=["secure", "seeded"]
)


def follows(sample: Array, law: object) -> bool:
    return bool(stats.kstest(sample, law.cdf).pvalue > ALARM)  # type: ignore[attr-defined]


def between(value: float, law: object) -> bool:
    return bool(law.ppf(ALARM) < value < law.isf(ALARM))  # type: ignore[attr-defined]


@sources
def test_gaussian_noise(source: Callable[[], Randomness]) -> None:
    noise = add_gaussian(np.zeros(DRAWS), SCALE, source())
    assert follows(noise, stats.norm(scale=SCALE))
    assert between(float(np.sum((noise / SCALE) ** 2)), stats.chi2(DRAWS))
    assert between(float(np.sum(noise)), stats.norm(scale=SCALE * math.sqrt(DRAWS)))


@sources
def test_laplace_noise(source: Callable[[], Randomness]) -> None:
    noise = add_laplace(np.zeros(DRAWS), SCALE, source())
    assert follows(noise, stats.laplace(scale=SCALE))
    assert between(float(np.sum(np.abs(noise))) / SCALE, stats.gamma(DRAWS))
    assert between(float(np.sum(np.sign(noise))), stats.norm(scale=math.sqrt(DRAWS)))


@sources
@pytest.mark.parametrize("dimension", [1, 3])
def test_norm_gamma_noise(source: Callable[[], Randomness], dimension: int) -> None:
    noise = add_norm_gamma(np.zeros((ROWS, dimension)), SCALE, source())
    norms = np.linalg.norm(noise, axis=1)
    directions = noise / norms[:, np.newaxis]
    assert follows(norms, stats.gamma(dimension, scale=SCALE))
    assert between(float(np.sum(norms)) / SCALE, stats.gamma(dimension * ROWS))
    resultant = ROWS * dimension * float(np.sum(np.mean(directions, axis=0) ** 2))
    assert between(resultant, stats.chi2(dimension))
    if dimension == 3:  # Archimedes: each coordinate of a uniform direction is uniform on [-1, 1]
        for coordinate in directions.T:
            assert follows(coordinate, stats.uniform(-1.0, 2.0))
        for pair in ((0, 1), (0, 2), (1, 2)):  # E[u_j^2 u_k^2] = 1/15 and the products have mean 0
            product = directions[:, pair[0]] * directions[:, pair[1]]
            assert between(float(np.mean(product)) * math.sqrt(15.0 * ROWS), stats.norm())
        for coordinate in directions.T:
            assert between(float(np.corrcoef(norms, coordinate)[0, 1]) * math.sqrt(ROWS), stats.norm())


@pytest.mark.parametrize("wrong", [0.5, 0.9, 1.1, 2.0])
def test_these_tests_notice_a_wrong_scale(wrong: float) -> None:
    noise = add_gaussian(np.zeros(DRAWS), SCALE * wrong, SeededRandomness(7))
    assert not between(float(np.sum((noise / SCALE) ** 2)), stats.chi2(DRAWS))
    noise = add_laplace(np.zeros(DRAWS), SCALE * wrong, SeededRandomness(7))
    assert not between(float(np.sum(np.abs(noise))) / SCALE, stats.gamma(DRAWS))
    noise = add_norm_gamma(np.zeros((ROWS, 3)), SCALE * wrong, SeededRandomness(7))
    norms = np.linalg.norm(noise, axis=1)
    assert not between(float(np.sum(norms)) / SCALE, stats.gamma(3 * ROWS))


@sources
@pytest.mark.parametrize("name", ADD_NOISE)
@pytest.mark.parametrize("scale", [1e-9, 0.37, 1.0, 1e6])
def test_results_lie_on_a_public_grid_and_differ(
    source: Callable[[], Randomness], name: str, scale: float
) -> None:
    values = np.random.default_rng(1).normal(scale=scale, size=(3, 50))
    noisy = ADD_NOISE[name](values, scale, source())
    step = grid_step(scale, GAMMA_GRID_BITS if name == "norm_gamma" else GRID_BITS)
    assert noisy.shape == values.shape
    assert np.array_equal(np.rint(noisy / step), noisy / step)
    assert len(np.unique(noisy)) == noisy.size
    assert not np.array_equal(noisy, ADD_NOISE[name](values, scale, source())) or isinstance(
        source(), SeededRandomness
    )


@pytest.mark.parametrize("name", ADD_NOISE)
def test_values_shift_the_noise_and_do_not_shape_it(name: str) -> None:
    values = np.random.default_rng(1).normal(size=(3, 50))
    noise = ADD_NOISE[name](np.zeros((3, 50)), 1.0, SeededRandomness(5))
    shifted = ADD_NOISE[name](values, 1.0, SeededRandomness(5))
    assert shifted - values == pytest.approx(noise, abs=2.0**-39)


@pytest.mark.parametrize("scale", [1e-300, 1.0, math.nextafter(2.0, 0.0), 3.0, 1e300])
def test_grid_step_is_a_power_of_two_and_fine_enough(scale: float) -> None:
    step = grid_step(scale)
    assert math.frexp(step)[0] == 0.5
    assert scale * 2.0 ** -(GRID_BITS + 1) < step <= scale * 2.0**-GRID_BITS


@pytest.mark.parametrize("scale", [0.0, -1.0, math.inf, math.nan])
@pytest.mark.parametrize("name", ADD_NOISE)
def test_no_noise_is_refused(name: str, scale: float) -> None:
    with pytest.raises(InvalidParameter, match="noise scale"):
        ADD_NOISE[name](np.zeros(3), scale, SecureRandomness())


def test_only_the_operating_systems_bits_are_called_secure() -> None:
    assert randomness_from(None).secure
    for seed in (0, np.random.default_rng(), np.random.RandomState(3)):
        source = randomness_from(seed)
        assert not source.secure
        assert "not private" in source.description


def test_secure_draws_do_not_follow_numpys_seed() -> None:
    draws = []
    for _ in range(2):
        np.random.seed(0)  # noqa: NPY002
        draws.append(SecureRandomness().discrete_gaussian(2.0**44, 4).tolist())
    assert draws[0] != draws[1]

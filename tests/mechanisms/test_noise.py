"""The law of the noise, of both sources of randomness."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from privlearn.audit import audit_samplers, samplers
from privlearn.audit.samplers import SAMPLERS
from privlearn.errors import InvalidParameter
from privlearn.mechanisms import ADD_NOISE, grid_step
from privlearn.mechanisms.noise import GAMMA_GRID_BITS, GRID_BITS, add_laplace, add_norm_gamma
from privlearn.randomness import Integers, Randomness, SecureRandomness, SeededRandomness, randomness_from

ALARM = 1e-6
DRAWS = 20_000

sources = pytest.mark.parametrize(
    "source", [SecureRandomness, lambda: SeededRandomness(7)], ids=["secure", "seeded"]
)


class Rescaled:
    """A source whose draws are too small or too large by a factor."""

    description, secure = "rescaled", False

    def __init__(self, factor: float) -> None:
        self.factor, self.source = factor, SeededRandomness(7)

    def discrete_gaussian(self, scale: float, size: int) -> Integers:
        return self.source.discrete_gaussian(self.factor * scale, size)

    def discrete_laplace(self, scale: float, size: int) -> Integers:
        return self.source.discrete_laplace(self.factor * scale, size)

    def bits(self, count: int) -> int:
        return self.source.bits(count)


def test_every_sampler_of_the_secure_source_follows_its_law() -> None:
    report = audit_samplers(SecureRandomness(), draws=1000, level=ALARM)
    assert report.passed, report
    assert len(report.findings) == len(SAMPLERS)


def test_every_sampler_of_the_seeded_source_follows_its_law() -> None:
    report = audit_samplers(SeededRandomness(7), draws=8000)
    assert report.passed, report


@pytest.mark.parametrize("wrong", [0.5, 0.9, 1.1, 2.0])
@pytest.mark.parametrize("name", [name for name in SAMPLERS if "noise" in name or "gaussian process" in name])
def test_these_tests_notice_a_wrong_scale(wrong: float, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(  # it is made of bits, which have no scale
        samplers,
        "add_norm_gamma",
        lambda values, scale, source: add_norm_gamma(values, wrong * scale, source),
    )
    assert min(SAMPLERS[name](Rescaled(wrong), DRAWS).values()) < ALARM


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


class FarOut(Rescaled):
    """A draw that no double holds: one in 10^111."""

    def discrete_laplace(self, scale: float, size: int) -> Integers:
        return np.full(size, 2**53 + 1)


def test_rare_draws_are_added_before_anything_is_rounded() -> None:
    """Rounded first, the draw would leave the value's own last digits in the sum."""
    step = grid_step(1.0)
    noisy = add_laplace(np.array([-(2.0**53)]) * step, 1.0, FarOut(1.0))
    assert noisy[0] == step


@pytest.mark.parametrize("scale", [1e-300, 1e-9, 1.0, 1e290])
@pytest.mark.parametrize("size", [1e-3, 1.0, 2.0**9, 2.0**18, 2.0**30, 1e15])
def test_sums_of_any_size_are_exact_and_rounded_once(scale: float, size: float) -> None:
    """Vectors of 64-bit integers where these hold the sums, Python's integers where they do not."""
    values = np.array([1.0, -1.0, 0.7, -0.3, 0.0]) * size * scale
    step = grid_step(scale)
    noisy = ADD_NOISE["laplace"](values, scale, SeededRandomness(3))
    draws = SeededRandomness(3).discrete_laplace(scale / step, 5).tolist()
    for value, drawn, found in zip(values.tolist(), draws, noisy.tolist(), strict=True):
        assert found == float((round(Fraction(value) / Fraction(step)) + drawn) * Fraction(step))


@pytest.mark.parametrize("name", ADD_NOISE)
def test_numbers_that_are_not_finite_get_no_noise(name: str) -> None:
    for value in (math.nan, math.inf):
        with pytest.raises(InvalidParameter, match="finite numbers"):
            ADD_NOISE[name](np.array([0.0, value]), 1.0, SeededRandomness(0))


@pytest.mark.parametrize("scale", [1e-300, 1.0, math.nextafter(2.0, 0.0), 3.0, 1e300])
def test_grid_step_is_a_power_of_two_and_fine_enough(scale: float) -> None:
    step = grid_step(scale)
    assert math.frexp(step)[0] == 0.5
    assert scale * 2.0 ** -(GRID_BITS + 1) < step <= scale * 2.0**-GRID_BITS


@pytest.mark.parametrize("scale", [0.0, 1e-310, -1.0, math.inf, math.nan])
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

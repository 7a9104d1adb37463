"""The norm-Gamma sampler cell by cell: enumerated in one dimension, by quadrature in two and three."""

from __future__ import annotations

import itertools
import math

import mpmath
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import stats

from privlearn.arrays import Array
from privlearn.errors import InvalidParameter
from privlearn.guarantee import Guarantee
from privlearn.mechanisms import OutputPerturbation, Task, grid_step, noise
from privlearn.mechanisms.noise import FIRST_BITS, GAMMA_GRID_BITS, add_norm_gamma, uniforms_of_norm_gamma
from privlearn.randomness import Integers, SeededRandomness
from privlearn.solvers import loss_from_name

ALARM = 1e-6


class Bits:
    """A source whose bits are given; it has no other draws, so a sampler that uses them fails here."""

    description, secure = "given bits", False

    def discrete_gaussian(self, scale: float, size: int) -> Integers:
        raise AssertionError("norm-Gamma noise is made of bits alone")

    discrete_laplace = discrete_gaussian


class Scripted(Bits):
    """First bits of each uniform real; all later ones are 0."""

    def __init__(self, *first: int) -> None:
        self.first = list(first)

    def bits(self, count: int) -> int:
        assert count <= 2**13, "so many bits settle every rounding"
        return self.first.pop(0) if self.first else 0


class Streams(Bits):
    """One string of bits for each of some uniform reals, which may be read in pieces of any length."""

    length = 2**13

    def __init__(self, count: int, seed: int) -> None:
        source = SeededRandomness(seed)
        self.reals = [source.bits(self.length) for _ in range(count)]
        self.read, self.calls = [0] * count, 0

    def bits(self, count: int) -> int:
        turn = self.calls % len(self.reals)
        self.calls += 1
        self.read[turn] += count
        return self.reals[turn] >> (self.length - self.read[turn]) & ((1 << count) - 1)


# One dimension: the noise is sign * -log(u) * scale, so a cell's probability is a length, found by bisection.


def steps_from_zero(value: float, scale: float, uniform: int, sign: int) -> int:
    """Return the cell that a length's uniform leads to; cos(pi / 4) and cos(3 pi / 4) give the sign."""
    source = Scripted(uniform, 1 << (FIRST_BITS - 1), (1 if sign > 0 else 3) << (FIRST_BITS - 3))
    noisy = float(add_norm_gamma(np.array([value]), scale, source)[0])
    return round(noisy / grid_step(scale, GAMMA_GRID_BITS))


def uniforms_beyond(value: float, scale: float, cell: int, sign: int) -> int:
    """Count the uniforms from 0 to 2**128 - 1 that lead to this cell or farther from zero noise: the small ones."""
    low, high = -1, 1 << FIRST_BITS  # the first leads there, the second does not
    while high - low > 1:
        middle = (low + high) // 2
        beyond = sign * (steps_from_zero(value, scale, middle, sign) - cell) >= 0
        low, high = (middle, high) if beyond else (low, middle)
    return high


def cell_mass(value: float, scale: float, cell: int) -> float:
    """Probability of a cell, in units of 2**-129: exact but for the last unit."""
    counts = (
        uniforms_beyond(value, scale, cell, sign) - uniforms_beyond(value, scale, cell + sign, sign)
        for sign in (1, -1)
    )
    return float(sum(counts))


def exact_mass(value: float, scale: float, cell: int) -> mpmath.mpf:
    step, half = mpmath.mpf(grid_step(scale, GAMMA_GRID_BITS)), mpmath.mpf(1) / 2

    def below(end: mpmath.mpf) -> mpmath.mpf:
        away = (end * step - mpmath.mpf(value)) / mpmath.mpf(scale)
        return mpmath.exp(away) / 2 if away < 0 else 1 - mpmath.exp(-away) / 2

    return below(cell + half) - below(cell - half)


@pytest.mark.parametrize("epsilon", [0.1, 0.01, 0.001])
def test_no_cell_tells_more_than_epsilon_in_one_dimension(epsilon: float) -> None:
    """Lengths on a grid have 8 to 16 atoms per cell: ratios far above epsilon, total variation 0.0187 at 0.01."""
    task = Task(
        loss=loss_from_name("logistic"), total=1000, dimension=1, problems=1, regularization=0.01,
        tolerance=1e-10, neighbours="replace_one",
    )  # fmt: skip
    mechanism = OutputPerturbation.calibrate(task, Guarantee(epsilon), "norm_gamma", "tight")
    scale, one = mechanism.noise_scale, 0.3
    other = one + mechanism.sensitivity
    step = grid_step(scale, GAMMA_GRID_BITS)
    places = one + np.random.default_rng(1).laplace(0.0, scale, 12)
    losses = []
    for place in [*places, one, other, (one + other) / 2]:
        cell = round(place / step)
        losses.append(math.log(cell_mass(one, scale, cell) / cell_mass(other, scale, cell)))
        with mpmath.workdps(60):
            wanted = float(exact_mass(one, scale, cell) * mpmath.mpf(2) ** (FIRST_BITS + 1))
        assert cell_mass(one, scale, cell) == pytest.approx(wanted, rel=1e-12)
    assert np.max(np.abs(losses)) <= epsilon
    assert np.max(np.abs(losses)) >= epsilon * (1.0 - 1e-6)  # nothing is wasted either


# Two and three dimensions: with a grid as coarse as the noise the cells are few, and quadrature gives their masses.

CORNER = {1: [0.3], 2: [0.3, -1.1], 3: [0.3, -1.1, 5.25]}
SCALE = 1.37


def quadrature_masses(value: list[float], scale: float, step: float) -> dict[tuple[int, ...], float]:
    """Return the mass of every cell that matters, by Gauss-Legendre quadrature, cut at the density's kink."""
    nodes, weights = np.polynomial.legendre.leggauss(20)
    dimension = len(value)
    total = math.gamma(dimension) * 2.0 * math.pi ** (dimension / 2) / math.gamma(dimension / 2)

    def pieces(cell: int, centre: float) -> tuple[Array, Array]:
        low, high = (cell - 0.5) * step - centre, (cell + 0.5) * step - centre
        ends = [low, 0.0, high] if low < 0.0 < high else [low, high]
        sizes = np.diff(ends)[:, np.newaxis] / 2.0
        middles = np.add(ends[:-1], ends[1:])[:, np.newaxis] / 2.0
        return (middles + sizes * nodes).ravel(), (sizes * weights).ravel()

    found = {}
    reach = math.ceil(4.0 * scale / step)
    for offsets in itertools.product(range(-reach, reach + 1), repeat=dimension):
        cells = tuple(round(v / step) + offset for v, offset in zip(value, offsets, strict=True))
        axes = [pieces(cell, v) for cell, v in zip(cells, value, strict=True)]
        grids = np.meshgrid(*(places for places, _ in axes), indexing="ij")
        sizes = math.prod(np.meshgrid(*(shares for _, shares in axes), indexing="ij"), start=1.0)
        density = np.exp(-np.sqrt(sum(grid**2 for grid in grids)) / scale) / (total * scale**dimension)
        found[cells] = float(np.sum(sizes * density))
    return found


def p_value(sample: Array, masses: dict[tuple[int, ...], float], step: float) -> float:
    """Chi-square test of the cells that enough should fall into; the others are put together."""
    drawn = [tuple(row) for row in np.rint(sample / step).astype(int).tolist()]
    wanted = {cell: mass * len(drawn) for cell, mass in masses.items() if mass * len(drawn) >= 10.0}
    counts = [drawn.count(cell) for cell in wanted]
    return float(
        stats.chisquare(
            [*counts, len(drawn) - sum(counts)], [*wanted.values(), len(drawn) - sum(wanted.values())]
        ).pvalue
    )


@pytest.fixture
def coarse(monkeypatch: pytest.MonkeyPatch) -> float:
    """Cells of the noise's own size."""
    monkeypatch.setattr(noise, "GAMMA_GRID_BITS", 0)
    return grid_step(SCALE, 0)


@pytest.mark.parametrize("first_bits", [3, FIRST_BITS])
@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_cells_have_the_masses_of_the_continuous_law(
    dimension: int, first_bits: int, coarse: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where nearly every draw has to ask for more bits."""
    monkeypatch.setattr(noise, "FIRST_BITS", first_bits)
    value = CORNER[dimension]
    masses = quadrature_masses(value, SCALE, coarse)
    rows = np.tile(value, (4000, 1))
    assert p_value(add_norm_gamma(rows, SCALE, SeededRandomness(5)), masses, coarse) > ALARM
    for wrong in (0.5, 2.0):  # the check bites
        scaled = rows + wrong * (add_norm_gamma(rows, SCALE, SeededRandomness(5)) - rows)
        assert p_value(scaled, masses, coarse) < ALARM


@pytest.mark.parametrize("dimension", [2, 3])
def test_no_cell_tells_more_than_epsilon_by_quadrature(dimension: int, coarse: float) -> None:
    moved = np.array([0.2, 0.1, -0.05][:dimension])
    one = quadrature_masses(CORNER[dimension], SCALE, coarse)
    other = quadrature_masses((np.array(CORNER[dimension]) + moved).tolist(), SCALE, coarse)
    losses = [abs(math.log(one[cell] / other[cell])) for cell in one.keys() & other.keys()]
    distance = float(np.linalg.norm(moved)) / SCALE
    assert 0.7 * distance < max(losses) <= distance


# The same reals, read in other pieces, and the same rounding computed another way.


@pytest.mark.parametrize("dimension", [1, 2, 5])
def test_how_many_bits_are_read_at_once_changes_nothing(
    dimension: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = uniforms_of_norm_gamma(dimension)
    for seed in range(10):
        found = []
        for first_bits in (1, 7, 64, FIRST_BITS, 1000):
            monkeypatch.setattr(noise, "FIRST_BITS", first_bits)
            source = Streams(count, seed)
            found.append(add_norm_gamma(np.full(dimension, 0.1), 1.3, source).tolist())
            assert (source.calls > count) is (first_bits < 60)
        assert all(row == found[0] for row in found)


def sum_by_mpmath(row: list[float], scale: float, source: Streams) -> list[float]:
    """Return the same sum with 2**13 bits of each real, by mpmath's functions."""
    with mpmath.workprec(source.length):
        reals = [mpmath.ldexp(mpmath.mpf(digits), -source.length) for digits in source.reals]
        dimension = len(row)
        length = -sum(map(mpmath.log, reals[:dimension]))
        pairs = zip(reals[dimension::2], reals[dimension + 1 :: 2], strict=True)
        polar = [(mpmath.sqrt(-2 * mpmath.log(one)), 2 * mpmath.pi * other) for one, other in pairs]
        normal = [part for r, a in polar for part in (r * mpmath.cos(a), r * mpmath.sin(a))][:dimension]
        stretch = mpmath.mpf(scale) * length / mpmath.sqrt(sum(part**2 for part in normal))
        step = mpmath.mpf(grid_step(scale, GAMMA_GRID_BITS))
        sums = [(v + stretch * part) / step for v, part in zip(row, normal, strict=True)]
        return [float(mpmath.nint(value) * step) for value in sums]


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(st.floats(-1e300, 1e300), min_size=1, max_size=3),
    st.one_of(st.floats(1e-3, 1e3), st.floats(1e-300, 1e300)),
    st.integers(0, 1000),
)
def test_sums_of_any_size_are_rounded_correctly(row: list[float], scale: float, seed: int) -> None:
    count = uniforms_of_norm_gamma(len(row))
    found = add_norm_gamma(np.array(row), scale, Streams(count, seed))
    assert found.tolist() == sum_by_mpmath(row, scale, Streams(count, seed))


def test_numbers_that_are_none_are_refused() -> None:
    for value in (math.nan, math.inf):
        with pytest.raises(InvalidParameter, match="finite numbers"):
            add_norm_gamma(np.array([0.0, value]), 1.0, SeededRandomness(0))

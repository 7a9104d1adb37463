"""Noisy centre and spread: what one person moves, how much noise there is, the cost with a fit, and the quantiles."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from privlearn import Guarantee
from privlearn.data import ArrayEncoder
from privlearn.errors import InvalidParameter
from privlearn.estimators import MemoryOracle, NumberTargets, TrainingRows
from privlearn.guarantee import RELATIONS
from privlearn.mechanisms import ObjectivePerturbation, OutputPerturbation, Task
from privlearn.mechanisms.noise import ADD_NOISE
from privlearn.mechanisms.statistics import Grid, Locations, location_of, scale_of_cost
from privlearn.mechanisms.statistics.locations import CELLS, ROUNDS, Location
from privlearn.randomness import SeededRandomness
from privlearn.solvers import Huber
from tests.support.combinations import hockey_stick

ALARM = 1e-6
GRID = Grid.between(0.0, 1000.0, 64)
GRIDS = [GRID, GRID.around(Location(100.0, 80.0)), GRID.around(Location(130.0, 2.0))]
"""Of each round."""


class Targets:
    """A column of numbers that remembers the grids in which it was counted."""

    def __init__(self, numbers: np.ndarray[Any, Any]) -> None:
        self.numbers, self.grids = numbers, list[Grid]()

    def target_counts(self, grids: Sequence[Grid]) -> np.ndarray[Any, Any]:
        (grid,) = grids
        self.grids.append(grid)
        return grid.count(self.numbers)


def locations(noise: str = "gaussian", scale: float = 5.0, columns: int = 1) -> Locations:
    return Locations.on([GRID] * columns, noise, scale)


def task_of(neighbours: str = "zero_out", **parameters: Any) -> Task:
    default: dict[str, Any] = {"loss": Huber(0.2), "total": 50_000, "dimension": 3, "problems": 1}
    return Task(**default | {"regularization": 0.01, "tolerance": 1e-9} | parameters, neighbours=neighbours)


@given(st.integers(0, 2**32 - 1), st.booleans(), st.integers(1, 4))
@settings(deadline=None, max_examples=60)
def test_one_person_moves_the_histograms_by_no_more_than_is_declared(
    seed: int, replaced: bool, columns: int
) -> None:
    rng = np.random.default_rng(seed)
    numbers = rng.exponential(100.0, size=(30, columns))
    other = numbers.copy()
    other[0] = 1e9 if replaced else numbers[0]
    start = 0 if replaced else 1
    one, two = (
        np.concatenate([grid.count(column) for grid in GRIDS for column in table.T])
        for table in (numbers, other[start:])
    )
    relation = RELATIONS["replace_one" if replaced else "zero_out"]
    declared = locations("gaussian", 1.0, columns).ratio(relation)
    assert np.linalg.norm(one - two) == pytest.approx(declared)
    assert np.abs(one - two).sum() == pytest.approx(locations("laplace", 1.0, columns).epsilon(relation))


def test_the_averaged_rows_of_a_person_count_one_together() -> None:
    counts = GRID.count(np.linspace(0.0, 900.0, 9), np.full(9, 1.0 / 9.0))
    assert np.count_nonzero(counts) > 5
    assert 1.0 - 9 * 2.0**-20 <= counts.sum() <= 1.0


def test_the_oracle_counts_targets_in_their_own_unit() -> None:
    encoder = ArrayEncoder(1.0, 1, fit_intercept=False)
    values = np.array([10.0, 10.0, 700.0])
    targets = NumberTargets(2.0 * values / 1000.0 - 1.0, (0.0, 1000.0))
    rows = TrainingRows(encoder.encode(np.zeros((3, 1))), encoder, targets, 3)
    assert np.array_equal(MemoryOracle(rows, task_of()).target_counts([GRID]), GRID.count(values))


@pytest.mark.parametrize(("noise", "law"), [("gaussian", "norm"), ("laplace", "laplace")])
def test_noise_is_as_declared(noise: str, law: str) -> None:
    """Fails if it is halved or doubled."""
    randomness = SeededRandomness(np.random.default_rng(1))
    counts = [np.arange(64.0)] * ROUNDS
    statistic = locations(noise, 7.0)
    runs = [np.array(statistic.add_noise(counts, randomness)) - counts[0] for _ in range(20)]
    assert stats.kstest(np.ravel(runs) / 7.0, law).pvalue > ALARM
    assert np.array_equal(locations(noise, 0.0).add_noise(counts, randomness)[0], counts[0])
    assert np.std(runs) == pytest.approx(statistic.deviation, rel=0.1)


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_every_round_is_noisy_and_paid_for(noise: str, monkeypatch: pytest.MonkeyPatch) -> None:
    released: list[Any] = []

    def add_and_record(values: Any, scale: float, randomness: Any) -> Any:
        released.append((scale, add(values, scale, randomness)))
        return released[-1][1]

    add = ADD_NOISE[noise]
    monkeypatch.setitem(ADD_NOISE, noise, add_and_record)
    statistic = Locations.on([GRID], noise, 7.0)
    oracle = Targets(np.full(2000, 300.0))
    statistic.run(oracle, 2000, SeededRandomness(np.random.default_rng(1)))
    assert [scale for scale, _ in released] == [7.0] * len(statistic.cells)
    assert statistic.numbers == sum(len(table) for _, table in released)
    # A later grid follows from what was released alone.
    located = [
        location_of(table, grid, 2000, statistic.sum_deviation)
        for (_, table), grid in zip(released, oracle.grids, strict=True)
    ]
    assert oracle.grids == [GRID, *map(GRID.around, located[:-1])]


@pytest.mark.parametrize("neighbours", RELATIONS)
@pytest.mark.parametrize("problems", [1, 3])
def test_gaussian_ratios_add_up_in_squares(neighbours: str, problems: int) -> None:
    """The deltas, by the theorem written out a second time; of several numbers, the exact composition is below."""
    epsilon, delta = 1.3, 1e-4
    guarantee = Guarantee(epsilon, delta, neighbours)
    task = task_of(neighbours, problems=problems, target_locations=locations(scale=25.0, columns=problems))
    spent = math.sqrt(3 * problems) * (math.sqrt(2.0) if neighbours == "replace_one" else 1.0) / 25.0
    output = OutputPerturbation.calibrate(task, guarantee, "gaussian", "tight")
    ratio = math.sqrt(problems) * output.sensitivity / output.noise_scale
    assert hockey_stick(epsilon, math.hypot(ratio, spent)) == pytest.approx(delta, rel=1e-4)
    objective = ObjectivePerturbation.calibrate(task, guarantee, "gaussian", "tight")
    other = 2.0 * objective.solver_distance / objective.tolerance_noise_scale
    own = task.gradient_sensitivity / objective.noise_scale
    joint = math.sqrt(problems * (own**2 + other**2) + spent**2)  # as if all signs were known: a lower bound
    assert hockey_stick(epsilon - problems * objective.slack, joint) <= delta
    free = dataclasses.replace(objective, task=objective.task.without_statistics())
    for mechanism in (output, objective):
        assert 0.98 * delta < mechanism.spends().delta <= delta
    assert free.spends().delta < 0.95 * delta
    assert objective.renyi(3.0) - free.renyi(3.0) == pytest.approx(3.0 * spent**2 / 2.0)


@pytest.mark.parametrize("neighbours", RELATIONS)
@pytest.mark.parametrize("rows_per_person", [1, 3])
def test_pure_costs_add_up(neighbours: str, rows_per_person: int) -> None:
    guarantee = Guarantee(1.0, 0.0, neighbours)
    task = task_of(
        neighbours, rows_per_person=rows_per_person, target_locations=locations("laplace", scale=100.0)
    )
    spent = 3 * rows_per_person * (2.0 if neighbours == "replace_one" else 1.0) / 100.0
    assert task.other_epsilon == pytest.approx(spent)
    for kind in (OutputPerturbation, ObjectivePerturbation):
        mechanism: Any = kind.calibrate(task, guarantee, "norm_gamma", "tight")
        free = dataclasses.replace(mechanism, task=mechanism.task.without_statistics())
        assert 0.99 < mechanism.spends().epsilon <= 1.0
        assert mechanism.spends().epsilon - free.spends().epsilon == pytest.approx(spent)


def test_a_noisy_cell_of_each_round_keeps_the_guarantee_exactly() -> None:
    """One record in a cell or not: the divergence of the two laws by quadrature is the declared one.

    Three Gaussian cells next to each other are one at sqrt(3) times the distance, and Laplace losses add up.
    """
    x, width = np.linspace(-80.0, 80.0, 160_001, retstep=True)
    relation = RELATIONS["zero_out"]
    for noise, law in (("gaussian", stats.norm), ("laplace", stats.laplace)):
        statistic = locations(noise, 4.0)
        here, there = (
            law.logpdf(x, centre, 4.0) for centre in (0.0, math.sqrt(3.0) if noise == "gaussian" else 1.0)
        )
        divergence = float(np.maximum(np.exp(here) - np.exp(0.2 + there), 0.0).sum() * width)
        if noise == "gaussian":
            assert divergence == pytest.approx(hockey_stick(0.2, statistic.ratio(relation)), rel=1e-3)
        else:
            assert divergence > 0.0
            assert 3 * np.max(here - there) == pytest.approx(statistic.epsilon(relation))


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
@pytest.mark.parametrize("neighbours", RELATIONS)
def test_a_cost_becomes_a_scale_and_back(noise: str, neighbours: str) -> None:
    relation = RELATIONS[neighbours]
    statistic = locations(noise, scale_of_cost(noise, 0.03, 2 * ROUNDS, relation), 2)
    assert statistic.ratio(relation) + statistic.epsilon(relation) == pytest.approx(0.03)


@pytest.mark.parametrize("upper", [4e4, 1e6, 1e9])
@pytest.mark.parametrize("law", ["normal", "lognormal"])
def test_centre_and_spread_of_wide_bounds(upper: float, law: str) -> None:
    """A noise of 25 in each cell and 20,000 records: bounds far too wide hardly matter."""
    rng = np.random.default_rng(3)
    numbers = (
        rng.normal(5500.0, 1500.0, 20_000) if law == "normal" else 5500.0 * np.exp(rng.normal(0, 0.5, 20_000))
    )
    statistic = Locations.on([Grid.between(0.0, upper, CELLS)], "gaussian", 25.0)
    (found,) = statistic.run(Targets(numbers), 20_000, SeededRandomness(rng))
    quartiles = np.quantile(numbers, [0.25, 0.5, 0.75])
    assert found.centre == pytest.approx(quartiles[1], rel=0.15)
    assert found.spread == pytest.approx((quartiles[2] - quartiles[0]) / 1.349, rel=0.3)


@pytest.mark.parametrize(
    ("centre", "spread", "bounds"),
    [
        (20.0, 1.0, (0, 193)),
        (36.7, 0.6, (30, 45)),
        (1000.0, 10.0, (0, 5000)),
        (130.0, 18.0, (0, 300)),
        (-1e5, 3000.0, (-1e6, 1e6)),
    ],
)
def test_numbers_far_from_0_compared_with_their_spread(
    centre: float, spread: float, bounds: tuple[float, float]
) -> None:
    """The noise of epsilon 1 for 6,000 records: a grid around 0 has cells of up to 25 times the spread."""
    statistic = Locations.on([Grid.between(*bounds, CELLS)], "gaussian", 33.0)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        numbers = rng.normal(centre, spread, 6000)
        (found,) = statistic.run(Targets(numbers), 6000, SeededRandomness(rng))
        assert abs(found.centre - centre) < 0.25 * spread
        assert found.spread == pytest.approx(spread, rel=0.35)


def test_drowned_tails_are_not_read() -> None:
    """2,000 records below a bound that is 200 times too wide: the tails hold noise, and the quartiles do not."""
    statistic = Locations.on([Grid.between(0.0, 1e6, CELLS)], "gaussian", 10.0)
    for seed in range(40):
        rng = np.random.default_rng(seed)
        oracle = Targets(rng.normal(5500.0, 1500.0, 2000))
        (found,) = statistic.run(oracle, 2000, SeededRandomness(rng))
        assert found.spread == pytest.approx(1500.0, rel=0.25)


def test_exact_histograms_of_exact_numbers() -> None:
    numbers = np.random.default_rng(0).normal(300.0, 40.0, 100_000)
    grid = Grid.between(-1000.0, 1000.0, 256)
    found = location_of(grid.count(numbers), grid, len(numbers))
    assert (found.centre, found.spread) == pytest.approx((300.0, 40.0), rel=0.05)


def test_mostly_equal_numbers_have_a_spread() -> None:
    rng = np.random.default_rng(0)
    numbers = np.where(rng.random(10_000) < 0.8, 0.0, rng.exponential(50.0, 10_000))
    found = location_of(GRID.count(numbers), GRID, len(numbers))
    assert found.centre < 1.0 < 5.0 < found.spread < 50.0
    constant = location_of(GRID.count(np.full(500, 70.0)), GRID, 500)
    assert constant.spread > 0.0


@given(st.integers(0, 2**32 - 1), st.floats(1.0, 1e6), st.integers(1, 1000))
@settings(deadline=None, max_examples=60)
def test_drowned_histograms_give_a_location_within_the_bounds(seed: int, scale: float, total: int) -> None:
    noisy = np.random.default_rng(seed).normal(0.0, scale, GRID.cells)
    found = location_of(noisy, GRID, total)
    assert 0.0 <= found.centre <= 1000.0
    assert 0.0 < found.spread <= 1000.0


@pytest.mark.parametrize("bounds", [(0.0, 1e6), (-50.0, 1e300), (100.0, 200.0), (-7.0, -3.0), (-1e-9, 1e-9)])
@pytest.mark.parametrize("typical", [None, 120.0])
def test_edges_increase_between_the_bounds(bounds: tuple[float, float], typical: float | None) -> None:
    grid = Grid.between(*bounds, 256, typical)
    assert (grid.edges[0], grid.edges[-1]) == bounds
    assert (np.diff(grid.edges) > 0.0).all()
    assert grid.count(np.array([-math.inf, math.inf, *bounds])).sum() == 4.0


@pytest.mark.parametrize("scale", [-1.0, math.nan, math.inf, 2.0**44])
def test_a_scale_without_a_theorem(scale: float) -> None:
    with pytest.raises(InvalidParameter):
        locations(scale=scale)


def test_the_json_form_is_complete() -> None:
    for noise in ("gaussian", "laplace"):
        statistic = locations(noise, 3.0, 2)
        assert Locations.from_dict(statistic.to_dict()) == statistic
        with pytest.raises(InvalidParameter, match="3 times"):
            Locations.from_dict(statistic.to_dict() | {"cells": [64, 64]})

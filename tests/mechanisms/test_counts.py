"""Noisy counts: what a person moves, the exact law on neighbours, and the noise that is drawn."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.stats import norm

from privlearn.accounting import GaussianCurve, PureCurve
from privlearn.arrays import Array
from privlearn.errors import InvalidParameter
from privlearn.guarantee import RELATIONS, Guarantee
from privlearn.mechanisms import MECHANISMS, NoisyCounts
from privlearn.mechanisms.statistics import count
from privlearn.randomness import Randomness, SecureRandomness, SeededRandomness

ALARM = 1e-6
RELATED = ("replace_one", "zero_out", "add_remove")


def planned(
    epsilon: float = 1.0,
    delta: float = 0.0,
    neighbours: str = "replace_one",
    rows: int = 1,
    cells: tuple[int, ...] = (4,),
    weights: tuple[float, ...] | None = None,
) -> NoisyCounts:
    guarantee = Guarantee(epsilon, delta, neighbours)
    return NoisyCounts.calibrate(guarantee, records=1000, rows_per_person=rows, cells=cells, weights=weights)


def gaussian(plan: NoisyCounts) -> NoisyCounts:
    """Return counts whose calibration chose Gaussian noise."""
    assert plan.noise == "gaussian"
    return plan


def worst_moves(plan: NoisyCounts) -> list[Array]:
    """Return the worst moves by hand: a person's rows leave the first cell, and join the second if replaced."""
    moves = []
    for cells in plan.cells:
        move = np.zeros(cells)
        move[0] = -plan.rows_per_person
        if plan.guarantee.neighbours == "replace_one":
            move[1] = plan.rows_per_person
        moves.append(move)
    return moves


def test_it_is_listed() -> None:
    assert MECHANISMS["counts"] is NoisyCounts


@pytest.mark.parametrize("neighbours", RELATED)
@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize(("cells", "weights"), [((4,), None), ((40, 4, 6), None), ((64, 4), (3.0, 1.0))])
def test_laplace_noise_loses_epsilon_and_not_more(
    neighbours: str, rows: int, cells: tuple[int, ...], weights: tuple[float, ...] | None
) -> None:
    """The log-ratio of the product law at its worst output, from the noise that each table really gets."""
    plan = planned(0.7, 0.0, neighbours, rows, cells, weights)
    assert plan.noise == "laplace"
    moved = zip(worst_moves(plan), plan.scales, strict=True)
    loss = sum(float(np.abs(move).sum()) / scale for move, scale in moved)
    assert 0.7 * (1 - 1e-8) < loss <= 0.7
    assert loss <= plan.spends().epsilon <= 0.7
    assert plan.curve() == PureCurve(plan.spends().epsilon)


def exact_delta(plan: NoisyCounts, epsilon: float) -> float:
    """Return delta of Gaussian tables from the shift in each coordinate: the loss is normal."""
    moved = zip(worst_moves(plan), plan.scales, strict=True)
    shift = math.sqrt(sum(float(np.sum((move / scale) ** 2)) for move, scale in moved))
    return float(
        norm.cdf(shift / 2 - epsilon / shift) - math.exp(epsilon) * norm.cdf(-shift / 2 - epsilon / shift)
    )


@pytest.mark.parametrize("neighbours", RELATED)
@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize(("cells", "weights"), [((9,) * 8, None), ((40, *[4] * 9), (5.0, *[1.0] * 9))])
def test_gaussian_noise_loses_delta_and_not_more(
    neighbours: str, rows: int, cells: tuple[int, ...], weights: tuple[float, ...] | None
) -> None:
    plan = gaussian(planned(0.5, 1e-5, neighbours, rows, cells, weights))
    assert 0.999 * 1e-5 < exact_delta(plan, 0.5) <= 1e-5
    assert exact_delta(plan, 0.5) <= plan.spends().delta <= 1e-5
    curve = plan.curve()
    assert isinstance(curve, GaussianCurve)
    assert plan.renyi(3.0) == pytest.approx(1.5 * curve.ratio**2)


@pytest.mark.parametrize(("tables", "noise"), [(1, "laplace"), (2, "laplace"), (20, "gaussian")])
def test_the_smaller_noise_is_taken(tables: int, noise: str) -> None:
    plan = planned(0.5, 1e-6, cells=(4,) * tables)
    assert plan.noise == noise
    assert plan.spends() <= plan.guarantee


def test_what_the_page_says_of_the_noise() -> None:
    """docs/theory/counts.md."""
    one = planned(0.5, 1e-6).deviations[0]
    eight = gaussian(planned(0.5, 1e-6, cells=(4,) * 8)).deviations[0]
    assert (round(one, 1), round(eight)) == (5.7, 32)
    assert round(eight / math.sqrt(8), 1) == 11.4
    assert round(planned(0.5, 0.0, cells=(4,) * 8).deviations[0]) == 45


@pytest.mark.parametrize("weak", [0.5, 0.99])
@pytest.mark.parametrize(
    "plan", [planned(), planned(0.5, 1e-6, cells=(4,) * 20)], ids=["laplace", "gaussian"]
)
def test_less_noise_does_not_support_the_claim(plan: NoisyCounts, weak: float) -> None:
    assert plan.spends() <= plan.guarantee
    careless = dataclasses.replace(plan, noise_scale=weak * plan.noise_scale)
    assert not careless.spends() <= plan.guarantee


def neighbours_of(cell: Any, weights: Array, owner: Any, neighbours: str, source: np.random.Generator) -> Any:
    """Everything that one person owns is replaced, or gone."""
    mine = owner == source.integers(owner.max() + 1)
    if neighbours == "replace_one":
        return np.where(mine, source.integers(0, 2, len(cell)), cell), weights
    return cell[~mine], weights[~mine]


@pytest.mark.parametrize("neighbours", RELATED)
@pytest.mark.parametrize("averaged", [False, True])
def test_what_a_person_moves(neighbours: str, averaged: bool) -> None:
    """Random tables, people of up to 3 rows: never beyond the bound of the relation, sometimes there."""
    source, rows, relation = np.random.default_rng(5), 3, RELATIONS[neighbours]
    bound = relation.counts * (1 if averaged else rows)
    farthest = 0.0
    for _ in range(400):
        owner = np.repeat(np.arange(4), source.integers(1, rows + 1, 4))
        cell = source.integers(0, 2, len(owner))
        weights = 1.0 / np.bincount(owner)[owner] if averaged else np.ones(len(owner))
        other, other_weights = neighbours_of(cell, weights, owner, neighbours, source)
        apart = count(cell, 2, weights) - count(other, 2, other_weights)
        assert np.abs(apart).sum() <= relation.gradients * (1 if averaged else rows)
        farthest = max(farthest, float(np.linalg.norm(apart)))
    assert 0.999 * bound < farthest <= bound


def test_counts_are_exact_and_rows_without_a_cell_are_in_none() -> None:
    assert count(np.array([0, 2, -1, 2]), 4).tolist() == [1, 0, 2, 0]
    thirds = np.full(9, 1 / 3)
    cell = np.zeros(9, dtype=np.int64)
    found = count(cell, 1, thirds)[0]
    assert found == 9 * math.floor(2**20 / 3) / 2**20
    assert found == count(cell[::-1], 1, thirds)[0] <= 3


def drawn(plan: NoisyCounts, randomness: Randomness) -> list[Array]:
    """Return the noise in each table over its deviation, by the layout of `test_noise`."""
    tables = [np.full(cells, 7.0) for cells in plan.cells]
    return [noisy - 7.0 for noisy in plan.run(tables, randomness)]


def p_values(plan: NoisyCounts, expected: NoisyCounts, randomness: Randomness) -> list[float]:
    law: Any = {"gaussian": stats.norm, "laplace": stats.laplace}[expected.noise]
    noise = zip(drawn(plan, randomness), expected.scales, strict=True)
    return [float(stats.kstest(table, law(scale=scale).cdf).pvalue) for table, scale in noise]


PLANS = {
    "laplace": planned(cells=(2000, 1000), weights=(3.0, 1.0)),
    "gaussian": planned(0.5, 1e-6, cells=(2000, 1000, *[4] * 9), weights=(3.0, 2.0, *[1.0] * 9)),
}


@pytest.mark.parametrize("source", [lambda: SeededRandomness(1), SecureRandomness], ids=["seeded", "secure"])
@pytest.mark.parametrize("noise", PLANS)
def test_noise_has_its_law_in_every_table(noise: str, source: Callable[[], Randomness]) -> None:
    found = p_values(PLANS[noise], PLANS[noise], source())
    assert len(found) * min(found) > ALARM


@pytest.mark.parametrize("wrong", [0.5, 2.0])
@pytest.mark.parametrize("noise", PLANS)
def test_the_test_before_notices_wrong_noise(noise: str, wrong: float) -> None:
    plan = PLANS[noise]
    other = dataclasses.replace(plan, noise_scale=wrong * plan.noise_scale)
    assert max(p_values(other, plan, SeededRandomness(1))[:2]) < ALARM


def test_cells_have_noise_of_their_own() -> None:
    noise = drawn(PLANS["gaussian"], SeededRandomness(3))
    assert abs(np.corrcoef(noise[0][:1000], noise[1])[0, 1]) < 0.15
    assert len(np.unique(noise[0])) == 2000


def test_no_promise_no_noise() -> None:
    plan = planned(math.inf)
    table = np.array([1.0, 2.0, 3.0, 4.0])
    assert plan.run([table], SeededRandomness(1))[0].tolist() == table.tolist()
    assert plan.spends() == plan.guarantee


def test_certificates_can_rebuild_it() -> None:
    plan = PLANS["gaussian"]
    constants = plan.constants()
    assert constants == {
        "records": 1000,
        "rows_per_person": 1,
        "cells": list(plan.cells),
        "shares": list(plan.shares),
        "noise_scale": plan.noise_scale,
    }
    assert "noisy counts" in plan.covers
    assert "How many" not in plan.covers
    assert "How many records there are is covered" in planned(neighbours="add_remove").covers


def test_what_cannot_be_planned() -> None:
    with pytest.raises(InvalidParameter, match="weight 1 must be"):
        planned(cells=(2, 2), weights=(1.0, 0.0))
    with pytest.raises(InvalidParameter, match="one number for each table"):
        planned(cells=(2, 2), weights=(1.0,))
    with pytest.raises(InvalidParameter, match="rounding"):
        planned(1e-14)
    with pytest.raises(InvalidParameter, match="add up to 1"):
        dataclasses.replace(planned(), shares=(0.5,))
    with pytest.raises(InvalidParameter, match="the tables do not have the sizes"):
        planned().run([np.zeros(3)], SeededRandomness(1))
    with pytest.raises(InvalidParameter, match="noise_scale must be 0"):
        dataclasses.replace(planned(math.inf), noise_scale=1.0)


def test_very_many_tables_are_planned_at_once() -> None:
    """A table per pair of 300 columns; their shares add up to 1 but for rounding."""
    plan = NoisyCounts.calibrate(
        Guarantee(1.0, 1e-6), records=1000, rows_per_person=1, cells=[2] * 45_000, weights=[0.3] * 45_000
    )
    assert plan.spends() <= plan.guarantee

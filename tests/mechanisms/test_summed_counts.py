"""Counts of several holders as one vector: what a person moves it by, what that costs, and what is refused."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from privlearn.accounting import gaussian_delta
from privlearn.arrays import Array
from privlearn.errors import InvalidParameter
from privlearn.guarantee import Guarantee
from privlearn.mechanisms import MECHANISMS, SummedCounts
from privlearn.mechanisms.statistics import count
from privlearn.mechanisms.summed import NoisySum
from privlearn.parties import Cohort, NoiseShare

CELLS, WEIGHTS = (4, 3, 5), (2.0, 1.0, 1.0)
RELATED = ("replace_one", "zero_out", "add_remove")


def planned(neighbours: str = "replace_one", rows: int = 1, **changes: Any) -> SummedCounts:
    usual: dict[str, Any] = {"records": 1000, "rows_per_person": rows, "cells": CELLS, "weights": WEIGHTS}
    usual |= {"parties": 5, "noise_shares": 3}
    return SummedCounts.calibrate(Guarantee(1.0, 1e-5, neighbours), **usual | changes)


def counted(plan: SummedCounts, cells: list[NDArray[np.int64]]) -> Array:
    return plan.answer([count(cell, size) for cell, size in zip(cells, plan.cells, strict=True)])


def test_it_is_listed() -> None:
    assert MECHANISMS["summed_counts"] is SummedCounts


@pytest.mark.parametrize("neighbours", RELATED)
@pytest.mark.parametrize("rows", [1, 3])
def test_no_person_moves_the_vector_further_and_some_person_does(neighbours: str, rows: int) -> None:
    plan, generator = planned(neighbours, rows), np.random.default_rng(3)
    others = [generator.integers(0, cells, 50) for cells in CELLS]
    # by hand: all rows of a person are in one cell of each table, and go to another if they are replaced
    person = [np.zeros(rows, dtype=np.int64) for _ in CELLS]
    another = [np.ones(rows, dtype=np.int64) for _ in CELLS]
    present = counted(plan, [np.append(o, p) for o, p in zip(others, person, strict=True)])
    if neighbours == "replace_one":
        absent = counted(plan, [np.append(o, a) for o, a in zip(others, another, strict=True)])
    else:
        absent = counted(plan, others)
    by_hand = rows * math.sqrt(2.0 if neighbours == "replace_one" else 1.0)
    moved = float(np.linalg.norm(present - absent))
    assert moved == pytest.approx(by_hand)
    assert moved <= (plan._loss - math.sqrt(sum(CELLS)) * 2.0**-32) * plan.noise_scale
    for _ in range(200):
        mine = [generator.integers(-1, cells, rows) for cells in CELLS]
        instead = counted(plan, [np.append(o, m) for o, m in zip(others, mine, strict=True)])
        reference = present if neighbours == "replace_one" else counted(plan, others)
        assert np.linalg.norm(instead - reference) <= by_hand * (1.0 + 1e-12)


@pytest.mark.parametrize("neighbours", RELATED)
def test_it_costs_what_it_promises_and_hardly_less(neighbours: str) -> None:
    plan = planned(neighbours)
    spent = plan.spends()
    assert spent.delta <= 1e-5
    assert spent.delta > 0.999e-5
    assert spent.delta == gaussian_delta(plan._loss, 1.0)
    halved = dataclasses.replace(plan, noise_scale=plan.noise_scale / 2.0)
    assert halved.spends().delta > 1e-3
    assert plan.renyi_of((), 3.0) == plan.epsilon_of(()) == 0.0
    assert plan.epsilon_after(1) == 1.0


def test_the_grid_of_the_shares_is_in_the_price() -> None:
    """What the secure sum's own theorem says of these shares is no more than what is promised."""
    plan = planned()
    share = NoiseShare(plan.noise_scale, Cohort(5, dropouts=1, colluding=1))
    rho = share.zcdp(sensitivity=math.sqrt(2.0), dimension=sum(CELLS))
    assert rho <= plan.renyi(1.0)


def test_tables_come_back() -> None:
    plan, generator = planned(), np.random.default_rng(5)
    tables = [generator.integers(0, 100, cells).astype(float) for cells in CELLS]
    for told, table in zip(plan.tables(NoisySum(plan.answer(tables), 1000, 5)), tables, strict=True):
        np.testing.assert_allclose(told, table, rtol=1e-12)


def test_one_question_and_its_bound() -> None:
    plan = planned()
    question = plan.question(0)
    everybody = [np.append(np.zeros(cells - 1), 1000.0) for cells in CELLS]
    assert np.abs(plan.answer(everybody)).max() <= question.bound
    assert (question.length, plan.kinds) == (sum(CELLS), ("counts",))
    assert question.noise[0].scale == plan.noise_scale
    with pytest.raises(InvalidParameter):
        plan.question(1)


@pytest.mark.parametrize(
    "changes",
    [
        {"noise_shares": 6},
        {"parties": 0},
        {"records": 2**27},
        {"records": 2**20, "rows_per_person": 2**10},
        {"cells": (4, 3)},
    ],
    ids=str,
)
def test_what_cannot_be_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        planned(**changes)


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.0), (math.inf, 0.0), (1e-9, 1e-9)])
def test_gaussian_noise_needs_a_delta_and_room_for_rounding(epsilon: float, delta: float) -> None:
    with pytest.raises(InvalidParameter):
        SummedCounts.calibrate(
            Guarantee(epsilon, delta),
            records=10,
            rows_per_person=1,
            cells=(10**7,),
            weights=(1.0,),
            parties=2,
            noise_shares=1,
        )


def test_tables_of_another_shape_are_refused() -> None:
    with pytest.raises(InvalidParameter):
        planned().answer([np.zeros(4), np.zeros(3)])

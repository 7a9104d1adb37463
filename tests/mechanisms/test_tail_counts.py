"""Tails from cells of four sizes: exact without noise, sums of as many counts as is said, edges as promised."""

from __future__ import annotations

import numpy as np
import pytest

from privlearn.arrays import Array
from privlearn.mechanisms.statistics.tail_counts import (
    EDGES,
    SIZES,
    below_edge,
    bounds,
    cells_of_all_sizes,
    cells_per_tail,
    edges,
    from_edge,
)


def counted(numbers: Array, at: Array) -> list[Array]:
    smallest = np.bincount(np.searchsorted(at, numbers, side="right"), minlength=SIZES[-1])
    return cells_of_all_sizes(smallest.astype(float))


@pytest.mark.parametrize("between", [None, (0.0, 120.0)])
def test_tails_are_those_of_the_numbers(between: tuple[float, float] | None) -> None:
    at = edges(between)
    numbers = np.concatenate([np.random.default_rng(1).normal(40, 30, 2000), at[::500], [-np.inf, np.inf]])
    counts = counted(numbers, at)
    np.testing.assert_array_equal(from_edge(counts), [(numbers >= edge).sum() for edge in at])
    np.testing.assert_array_equal(below_edge(counts), [(numbers < edge).sum() for edge in at])


def test_edges_are_in_order_and_fill_the_cells() -> None:
    assert len(edges()) == len(edges((0, 1))) == EDGES
    assert (np.diff(edges()) > 0).all()
    assert {0.0, 1.0, -64.0, 2.0**63}.issubset(edges())
    positive = edges()[edges() > 0]
    assert (positive[1:] / positive[:-1] <= 1 + 1 / 16).all()


def test_a_tail_has_the_variance_that_is_said() -> None:
    generator = np.random.default_rng(2)
    drawn = np.array([from_edge([generator.standard_normal(size) for size in SIZES]) for _ in range(800)])
    assert drawn.var(axis=0) == pytest.approx(cells_per_tail(), rel=0.3)
    assert cells_per_tail().max() == 28
    assert below_edge([np.ones(size) for size in SIZES])[::-1] == pytest.approx(cells_per_tail())


def test_without_noise_bounds_hold_all_numbers() -> None:
    at, numbers = edges(), np.array([18.0, 30.0, 41.5, 90.0])
    lower, upper = bounds(counted(numbers, at), at, 0.0, 2.0)
    assert (lower, upper) == (18.0, 92.0)  # a bound belongs to the cell above it


def test_bounds_of_nothing_are_numbers_all_the_same() -> None:
    generator = np.random.default_rng(3)
    lower, upper = bounds([generator.normal(0, 5, size) for size in SIZES], edges(), 5.0, 2.0)
    assert lower <= upper


def test_numbers_beyond_all_edges() -> None:
    at = edges((0.0, 1.0))
    assert bounds(counted(np.full(100, 7.0), at), at, 0.5, 2.0)[1] == 1.0
    assert bounds(counted(np.full(100, -7.0), at), at, 0.5, 2.0)[0] == 0.0

"""One person moves the minimiser, the gradients and the Jacobian by no more than the task says."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privlearn.arrays import Array
from privlearn.guarantee import RELATIONS
from privlearn.mechanisms import Task
from privlearn.solvers import (
    Hinge,
    HuberHinge,
    Logistic,
    Multinomial,
    Problem,
    losses_of,
    minimise,
    minimise_multinomial,
)

LOSSES = losses_of("margin")

LONGEST = 1.0 - 1e-12

smooth_losses = pytest.mark.parametrize(
    "loss", [kind() for kind in LOSSES.values() if math.isfinite(kind().smoothness)], ids=str
)


@dataclass(frozen=True)
class Neighbouring:
    """Two data sets that differ in one person, and the task they belong to. Rows are sign * x."""

    task: Task
    one: tuple[Array, Array]  # rows, weights
    other: tuple[Array, Array]


@st.composite
def neighbouring(draw: Any, loss: Any) -> Neighbouring:
    """Return a few random rows and their neighbours: one person's are exchanged, deleted, or not counted."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    dimension, total = draw(st.integers(1, 3)), draw(st.integers(2, 6))
    neighbours: str = draw(st.sampled_from(list(RELATIONS)))
    kind = draw(st.sampled_from(["single", "several", "averaged"]))
    owned = 1 if kind == "single" else draw(st.integers(1, 3))
    by_class, by_row = draw(st.sampled_from([(1.0, 1.0), (0.3, 1.0), (5.0, 1.0), (1.0, 4.0), (3.0, 0.5)]))
    weight_bound = by_class * by_row
    counted = total + owned if kind == "several" else total
    task = Task(
        loss,
        counted
        if neighbours != "add_remove"
        else draw(st.integers(1, 12)),  # a guess, too small or too large
        dimension,
        1,
        draw(st.sampled_from([0.01, 0.3, 2.0])),
        1e-10,
        neighbours,
        by_class,
        owned if kind == "several" else 1,
        kind == "averaged",
        row_weight_bound=by_row,
    )
    share = 1.0 / owned if kind == "averaged" else 1.0
    others = _rows(rng, total, dimension), rng.uniform(0.1, weight_bound, total)
    mine = [(_rows(rng, owned, dimension), np.full(owned, share * weight_bound)) for _ in range(2)]
    if neighbours == "zero_out":
        mine[1] = mine[1][0], 0.0 * mine[1][1]
    if neighbours == "add_remove":
        mine[1] = mine[1][0][:0], mine[1][1][:0]
    one, other = ((np.vstack([rows, others[0]]), np.append(w, others[1])) for rows, w in mine)
    return Neighbouring(task, one, other)


def _rows(rng: np.random.Generator, count: int, dimension: int) -> Array:
    rows = rng.normal(size=(count, dimension))
    lengths = np.where(rng.random(count) < 0.7, LONGEST, rng.random(count))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True) * lengths[:, np.newaxis]


def margin_loss(task: Task) -> Any:
    """Return a loss of margins, with more than the properties that a task needs."""
    return task.loss


def solve(task: Task, data: tuple[Array, Array]) -> Array:
    rows, weights = data
    problem = Problem(rows, np.ones(len(rows)), margin_loss(task), task.regularization, task.total, weights)
    return minimise(problem, tolerance=task.tolerance).coefficients


def gradient_sum(task: Task, data: tuple[Array, Array], w: Array) -> Array:
    rows, weights = data
    return np.asarray((weights * margin_loss(task).first_derivative(rows @ w)) @ rows)


def log_determinant(task: Task, data: tuple[Array, Array], w: Array) -> float:
    rows, weights = data
    curved = rows * (weights * margin_loss(task).second_derivative(rows @ w))[:, np.newaxis]
    ridge = task.total * task.regularization * np.eye(task.dimension)
    return float(np.linalg.slogdet(curved.T @ rows + ridge)[1])


@pytest.mark.parametrize("loss", [kind() for kind in LOSSES.values()], ids=str)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_minimiser_moves_no_further_than_stated(loss: Any, data: Any) -> None:
    case = data.draw(neighbouring(loss))
    task = case.task
    moved = float(np.linalg.norm(solve(task, case.one) - solve(task, case.other)))
    assert moved <= task.minimiser_sensitivity + 2.0 * task.solver_distance


@pytest.mark.parametrize("loss", [kind() for kind in LOSSES.values()], ids=str)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_gradients_move_no_further_than_stated(loss: Any, data: Any) -> None:
    case = data.draw(neighbouring(loss))
    for size in (0.0, 1.0, 30.0):
        w = size * np.ones(case.task.dimension)
        moved = gradient_sum(case.task, case.one, w) - gradient_sum(case.task, case.other, w)
        assert np.linalg.norm(moved) <= case.task.gradient_sensitivity


@smooth_losses
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_jacobian_moves_no_further_than_stated(loss: Any, data: Any) -> None:
    case = data.draw(neighbouring(loss))
    slack = case.task.jacobian_slack(case.task.regularization)
    for size in (0.0, 0.5, 1.0):
        w = size * np.ones(case.task.dimension)
        moved = log_determinant(case.task, case.one, w) - log_determinant(case.task, case.other, w)
        assert abs(moved) <= slack + 1e-12


def _extreme(neighbours: str, owned: int, averaged: bool, loss: Any) -> Neighbouring:
    """Everyone else silent; one person's rows all the same, turned round or deleted; the largest weight."""
    weight_bound, total = 3.0, 50
    counts = 1 if averaged else owned
    task = Task(
        loss, total, 2, 1, 1.0, 1e-10, neighbours, 1.5, counts, averaged, row_weight_bound=weight_bound / 1.5
    )
    rows = np.tile([LONGEST, 0.0], (owned, 1))
    weights = np.full(owned, weight_bound / (owned if averaged else 1))
    others = {
        "replace_one": (-rows, weights),
        "zero_out": (rows, 0.0 * weights),
        "add_remove": (rows[:0], weights[:0]),
    }
    return Neighbouring(task, (rows, weights), others[neighbours])


@pytest.mark.parametrize("neighbours", RELATIONS)
@pytest.mark.parametrize(("owned", "averaged"), [(1, False), (3, False), (3, True)])
@pytest.mark.parametrize("loss", [HuberHinge(), Hinge()], ids=str)
def test_worst_person_moves_the_minimiser_as_far_as_stated(
    neighbours: str, owned: int, averaged: bool, loss: Any
) -> None:
    case = _extreme(neighbours, owned, averaged, loss)
    moved = float(np.linalg.norm(solve(case.task, case.one) - solve(case.task, case.other)))
    assert moved >= 0.99 * case.task.minimiser_sensitivity


@pytest.mark.parametrize("neighbours", RELATIONS)
@pytest.mark.parametrize(("owned", "averaged"), [(1, False), (3, True)])
def test_worst_person_moves_the_jacobian_as_far_as_stated(
    neighbours: str, owned: int, averaged: bool
) -> None:
    """At w = 0 the logistic loss has its full curvature; a record of zeros has none."""
    case = _extreme(neighbours, owned, averaged, Logistic())
    silent = (0.0 * case.one[0], case.one[1])
    w = np.zeros(2)
    moved = log_determinant(case.task, case.one, w) - log_determinant(case.task, silent, w)
    assert moved >= 0.98 * case.task.jacobian_slack(case.task.regularization)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 4), st.sampled_from(["replace_one", "add_remove"]))
def test_multinomial_minimiser_moves_no_further_than_stated(seed: int, classes: int, neighbours: str) -> None:
    """All classes together: one vector of classes x features, with sqrt(2) as the slope of a record."""
    rng = np.random.default_rng(seed)
    task = Task(Multinomial(), 5, 2 * classes, 1, 0.1, 1e-10, neighbours)
    rows, labels = _rows(rng, 5, 2), rng.integers(0, classes, 5)
    other_rows, other_labels = rows[1:], labels[1:]
    if neighbours == "replace_one":
        other_rows, other_labels = rows.copy(), labels.copy()
        other_rows[0], other_labels[0] = -rows[0], (labels[0] + 1) % classes
    found = [
        minimise_multinomial(x, y, classes, regularization=0.1, total=5).coefficients
        for x, y in ((rows, labels), (other_rows, other_labels))
    ]
    assert np.linalg.norm(found[0] - found[1]) <= task.minimiser_sensitivity + 2e-9

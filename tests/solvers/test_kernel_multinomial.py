"""The softmax over a kernel's space: the right minimiser, and a certificate that never understates the distance."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privlearn.errors import SolverError
from privlearn.solvers import KernelProblem, Multinomial, default_gap, min_kernel_gap, minimise_multinomial
from privlearn.solvers.kernel import dual, minimise_kernel_multinomial


def case(count: int, classes: int, seed: int, gamma: float = 1.0) -> tuple[Any, Any, Any]:
    random = np.random.default_rng(seed)
    points = random.normal(size=(count, 3))
    points /= np.maximum(1.0, np.linalg.norm(points, axis=1, keepdims=True))
    labels = np.argmax(
        points @ random.normal(size=(3, classes)) + 0.3 * random.gumbel(size=(count, classes)), axis=1
    )
    gram = np.exp(-gamma * np.sum((points[:, np.newaxis] - points) ** 2, axis=2))
    return points, labels, gram


def problem_of(gram: Any, regularization: float, **settings: Any) -> KernelProblem:
    return KernelProblem(gram, np.ones(len(gram)), Multinomial(), regularization, len(gram), **settings)  # type: ignore[arg-type]


@pytest.mark.parametrize("regularization", [0.3, 1e-2, 1e-4])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_linear_kernel_gives_the_linear_machine(regularization: float, weighted: bool) -> None:
    points, labels, _ = case(80, 4, seed=1)
    weights = np.linspace(0.0, 2.0, 80) if weighted else None
    problem = problem_of(points @ points.T, regularization, row_weights=weights)
    found = minimise_kernel_multinomial(problem, labels, 4, gap=default_gap(regularization))
    best = minimise_multinomial(
        points, labels, 4, regularization=regularization, total=80, row_weights=weights, tolerance=1e-12
    )
    apart = np.linalg.norm(found.dual @ points - best.coefficients)
    assert apart <= found.distance + best.distance
    assert found.distance <= math.sqrt(2.0 * default_gap(regularization) / regularization)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 5), st.sampled_from([1e-1, 1e-3, 1e-6]))
def test_the_certificate_never_understates_the_distance(seed: int, classes: int, gap: float) -> None:
    """Rough solutions, against a fine one."""
    _, labels, gram = case(40, classes, seed)
    rough = minimise_kernel_multinomial(problem_of(gram, 0.01), labels, classes, gap=gap)
    fine = minimise_kernel_multinomial(problem_of(gram, 0.01), labels, classes, gap=1e-13)
    change = (rough.dual - fine.dual).astype(np.longdouble)
    square = float(np.einsum("ki,ij,kj->", change, gram.astype(np.longdouble), change))
    assert rough.gap <= gap
    assert math.sqrt(max(square, 0.0)) <= rough.distance + fine.distance


@pytest.mark.parametrize("regularization", [1e-1, 1e-3, 1e-4])
def test_what_every_table_reaches_is_reached(regularization: float) -> None:
    """Of rows that are all alike, of one class only, far apart, and of no weight."""
    apart = np.eye(50)
    alike = np.ones((50, 50))
    labels = np.arange(50) % 3
    least = min_kernel_gap(Multinomial(), regularization, rows=50, classes=3)
    for gram in (apart, alike, np.zeros((50, 50)), case(50, 3, seed=2, gamma=1e-3)[2]):
        for truth in (labels, np.zeros(50, dtype=np.int64)):
            found = minimise_kernel_multinomial(problem_of(gram, regularization), truth, 3, gap=least)
            assert found.gap <= least
    weightless = problem_of(alike, regularization, row_weights=np.zeros(50))
    assert np.all(minimise_kernel_multinomial(weightless, labels, 3, gap=least).dual == 0.0)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("regularization", [1e-1, 1e-3, 1e-5])
def test_rows_of_no_length_do_not_stop_the_solver(seed: int, regularization: float) -> None:
    """Half of the rows are zero, so that the Gram matrix has rank one and whole rows of zeros."""
    random = np.random.default_rng(seed)
    rows = np.zeros((40, 1))
    rows[:20] = 1.0
    least = max(
        default_gap(regularization), min_kernel_gap(Multinomial(), regularization, rows=40, classes=3)
    )
    for first in range(3):
        labels = random.integers(0, 3, 40)
        labels[0] = first
        found = minimise_kernel_multinomial(problem_of(rows @ rows.T, regularization), labels, 3, gap=least)
        assert found.gap <= least


def test_the_linear_machine_helps_where_the_first_way_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    _, labels, gram = case(60, 3, seed=3)
    wanted = minimise_kernel_multinomial(problem_of(gram, 0.01), labels, 3, gap=1e-12).dual
    monkeypatch.setattr(dual, "MAX_STEPS", 2)
    found = minimise_kernel_multinomial(problem_of(gram, 0.01), labels, 3, gap=1e-12)
    assert found.dual == pytest.approx(wanted, abs=1e-5)
    monkeypatch.setattr(dual, "MAX_STEPS", 1)
    with pytest.raises(SolverError, match="larger gap"):
        minimise_kernel_multinomial(problem_of(gram, 0.01), labels, 3, gap=1e-30)


@pytest.mark.parametrize("neighbours", ["replace_one", "zero_out"])
def test_one_record_moves_all_functions_together_by_no_more_than_the_root_of_two(neighbours: str) -> None:
    _, labels, gram = case(40, 3, seed=4)
    for regularization in (0.3, 0.01):
        bound = (2.0 if neighbours == "replace_one" else 1.0) * math.sqrt(2.0) / (40 * regularization)
        base = minimise_kernel_multinomial(problem_of(gram, regularization), labels, 3, gap=1e-13)
        moved = []
        for place in range(10):
            if neighbours == "zero_out":
                weights = np.ones(40)
                weights[place] = 0.0
                problem, other = problem_of(gram, regularization, row_weights=weights), labels
            else:
                problem, other = problem_of(gram, regularization), labels.copy()
                other[place] = (other[place] + 1) % 3
            found = minimise_kernel_multinomial(problem, other, 3, gap=1e-13)
            change = found.dual - base.dual
            moved.append(math.sqrt(max(float(np.einsum("ki,ij,kj->", change, gram, change)), 0.0)))
        assert max(moved) <= bound + 1e-5
        assert max(moved) >= 0.2 * bound

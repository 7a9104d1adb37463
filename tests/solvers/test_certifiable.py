"""A tolerance chosen from public numbers is reached on every table, or the regularization is refused for all."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from privlearn.arrays import Array
from privlearn.solvers import (
    Hinge,
    Huber,
    HuberHinge,
    KernelProblem,
    Logistic,
    Loss,
    Multinomial,
    Objective,
    Problem,
    Rows,
    default_gap,
    loss_from_name,
    losses_of,
    min_kernel_gap,
    minimise,
    minimise_kernel,
    minimise_multinomial,
)
from privlearn.solvers import solve as solve_module
from privlearn.solvers.certifiable import (
    MAX_LEVELS,
    MIN_HINGE_REGULARIZATION,
    PIECE,
    min_gap,
    min_tolerance,
    minimiser_norm_bound,
    product_chain,
)
from privlearn.solvers.problem import pairwise_sum, row_products

MARGINS: list[Any] = [loss_from_name(name) for name in losses_of("margin")]
NARROW = {"huber": 0.01}  # harder than its default
LOSSES: list[Any] = MARGINS + [loss_from_name(name, NARROW.get(name)) for name in losses_of("residual")]
STRENGTHS = [10.0**exponent for exponent in range(-12, 2)]
KINDS = (
    "random", "separable", "twins", "equal", "nearly equal", "zero", "one class", "one long", "tiny", "scales",
    "one row", "two rows",
)  # fmt: skip


def table(kind: str, columns: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return rows of norm at most 1 and their signs, of one of the kinds that solvers find hard."""
    rows = _unit(rng.normal(size=(40, columns))) * rng.uniform(size=(40, 1))
    signs = np.where(rng.random(40) < 0.5, 1.0, -1.0)
    if kind in ("separable", "twins"):
        signs = np.where(rows[:, 0] > 0, 1.0, -1.0)
    match kind:
        case "twins":  # one record replaced by another's twin with the other label
            rows[0], signs[0] = rows[1], -signs[1]
        case "equal":
            rows[:] = _unit(rows[:1])
        case "nearly equal":
            rows = _unit(_unit(rows[:1]) + 1e-8 * rows)
        case "zero":
            rows[:] = 0.0
        case "one class":
            signs[:] = 1.0
        case "one long":
            rows *= 1e-3
            rows[0] = np.eye(columns)[0]
        case "tiny":
            rows *= 1e-160
        case "scales":
            rows = _unit(rng.normal(size=(40, columns)) * 10.0 ** rng.uniform(-12, 0, (1, columns)))
        case "one row":
            return rows[:1], signs[:1]
        case "two rows":
            return np.repeat(_unit(rows[:1]), 2, axis=0), np.array([1.0, -1.0])
    return rows, signs


def _unit(rows: Array) -> Array:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def tables(columns: int, seed: int) -> Iterator[tuple[Array, Array]]:
    rng = np.random.default_rng(seed)
    for kind in KINDS:
        yield table(kind, columns, rng)


@pytest.mark.parametrize("columns", [1, 12])
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_every_table_is_solved_or_none(loss: Loss, columns: int) -> None:
    rng = np.random.default_rng(columns)
    for regularization in STRENGTHS:
        for pull in (0.0,) if math.isinf(loss.smoothness) else (0.0, 3.0):
            tolerance, gap = _reachable(loss, regularization, columns, pull)
            if math.isinf(max(tolerance, gap)):
                continue  # refused, whatever the rows are
            for rows, signs in tables(columns, seed=1):
                linear = _unit(rng.normal(size=(1, columns)))[0] * pull if pull else None
                residual = loss.argument == "residual"
                offsets = rng.uniform(-1.0, 1.0, len(rows)) if residual else None
                signs = np.ones(len(rows)) if residual else signs
                problem = Problem(rows, signs, loss, regularization, len(rows), None, linear, offsets=offsets)
                found = minimise(problem, tolerance=tolerance, gap=gap)
                if math.isfinite(loss.smoothness):
                    assert found.gradient_norm <= tolerance


def _reachable(loss: Loss, regularization: float, columns: int, pull: float = 0.0) -> tuple[float, float]:
    if math.isinf(loss.smoothness):
        return 1e-10, max(1e-12, min_gap(regularization, dimension=columns))
    least = min_tolerance(loss, regularization, dimension=columns, linear_norm=pull)
    return max(1e-10, least), 1e-12


@pytest.mark.parametrize(
    ("columns", "pull", "strengths"),
    [
        (1, 0.0, STRENGTHS),
        (1, 0.3, STRENGTHS),
        (6, 0.0, STRENGTHS),
        (6, 0.3, STRENGTHS[3:]),
        pytest.param(6, 0.3, STRENGTHS[:3], marks=pytest.mark.slow),  # ten seconds for one of the tables
    ],
)
def test_every_table_of_many_classes_is_solved_or_none(
    columns: int, pull: float, strengths: list[float]
) -> None:
    linear = np.full((3, columns), pull / math.sqrt(3 * columns))
    linear[0] *= -1.0
    for regularization in strengths:
        least = min_tolerance(Multinomial(), regularization, dimension=3 * columns, linear_norm=pull)
        tolerance = max(1e-10, least)
        if math.isinf(tolerance):
            continue
        for rows, signs in tables(columns, seed=2):
            labels = (signs > 0).astype(int) + (np.arange(len(rows)) % 7 == 0)
            found = minimise_multinomial(
                rows,
                labels,
                3,
                regularization=regularization,
                total=len(rows),
                linear=linear,
                tolerance=tolerance,
            )
            assert found.gradient_norm <= tolerance


@settings(max_examples=300, deadline=None)
@given(
    loss=st.sampled_from(LOSSES),
    kind=st.sampled_from(KINDS),
    columns=st.integers(1, 12),
    exponent=st.floats(-11.0, 1.0),
    seed=st.integers(0, 2**32 - 1),
    weighted=st.booleans(),
)
def test_any_table_is_solved(
    loss: Loss, kind: str, columns: int, exponent: float, seed: int, weighted: bool
) -> None:
    rng = np.random.default_rng(seed)
    rows, signs = table(kind, columns, rng)
    tolerance, gap = _reachable(loss, 10.0**exponent, columns)
    if math.isinf(max(tolerance, gap)):
        return
    weights = rng.uniform(0.0, 1.0, len(rows)) if weighted else None
    minimise(Problem(rows, signs, loss, 10.0**exponent, len(rows), weights), tolerance=tolerance, gap=gap)


@pytest.mark.parametrize("loss", MARGINS, ids=str)
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_every_kernel_machine_is_solved_or_none(loss: Loss, kernel: str) -> None:
    error = 1e-14
    for regularization in STRENGTHS[3:]:
        gap = max(
            default_gap(regularization), min_kernel_gap(loss, regularization, rows=40, gram_error=error)
        )
        if math.isinf(gap):
            continue
        for rows, signs in tables(2, seed=3):
            squares = np.sum((rows[:, np.newaxis] - rows[np.newaxis]) ** 2, axis=-1)
            gram = np.exp(-squares) if kernel == "rbf" else rows @ rows.T
            problem = KernelProblem(
                (gram + gram.T) / 2.0, signs, loss, regularization, len(rows), gram_error=error
            )
            assert minimise_kernel(problem, gap=gap).gap <= gap


@pytest.mark.parametrize("seed", [31, 40, 48, 111])
def test_three_rows_whose_values_look_alike(seed: int) -> None:
    """Found among many thousands: near the minimiser float64 cannot tell the objective's values apart."""
    rng = np.random.default_rng(seed)
    rows = _unit(rng.normal(size=(1, 2)) + 1e-5 * rng.normal(size=(3, 2)))
    tolerance, _ = _reachable(HuberHinge(0.01), 1e-9, 2)
    problem = Problem(rows, np.array([-1.0, 1.0, -1.0]), HuberHinge(0.01), 1e-9, 3)
    assert minimise(problem, tolerance=tolerance).iterations < 100


@pytest.mark.parametrize("seed", [15, 62, 84, 126])
@pytest.mark.parametrize("limit", [0, 4000])
def test_equal_rows_do_not_make_the_descent_jump_across_corners(
    seed: int, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found among many thousands: beside its corners the Huber loss has no curvature."""
    monkeypatch.setattr(solve_module, "FACTORISED_LIMIT", limit)
    rng = np.random.default_rng(seed)
    rows = np.repeat(_unit(rng.normal(size=(1, 3))), 40, axis=0)
    targets, linear = rng.uniform(-1, 1, 40), _unit(rng.normal(size=(1, 3)))[0] * 0.1
    for regularization in (1e-11, 1e-8, 1e-7):
        tolerance, _ = _reachable(Huber(0.01), regularization, 3, 0.1)
        problem = Problem(rows, np.ones(40), Huber(0.01), regularization, 40, None, linear, offsets=targets)
        assert minimise(problem, tolerance=tolerance).iterations < 60


def test_rows_on_which_long_steps_to_the_boundary_fail() -> None:
    """Found among many thousands."""
    rng = np.random.default_rng(1818)
    direction = rng.normal(size=(1, 5))
    rows = _unit(direction + 1e-6 * rng.normal(size=(200, 5)) * 10.0 ** rng.uniform(-6, 0, (1, 5)))
    signs = np.where(rng.random(200) < 0.1, 1.0, -1.0)
    minimise(Problem(rows, signs, Hinge(), 2e-9, 200), gap=min_gap(2e-9, dimension=5))


def test_a_small_regularization_has_no_tolerance() -> None:
    assert math.isinf(min_tolerance(Logistic(), 1e-18, dimension=10))
    assert math.isinf(min_gap(0.9 * MIN_HINGE_REGULARIZATION, dimension=10))
    assert math.isinf(min_kernel_gap(Logistic(), 1e-12, rows=100, gram_error=1e-14))


@pytest.mark.parametrize("records", [10**4, 10**8])
@pytest.mark.parametrize("dimension", [10, 2**18])
def test_the_default_tolerance_is_hardly_raised(records: int, dimension: int) -> None:
    least = min_tolerance(Logistic(), 20.0 / records, dimension=dimension)
    assert least <= (1e-10 if records == 10**4 else 1e-9)


@pytest.mark.parametrize("loss", [loss for loss in LOSSES if math.isfinite(loss.smoothness)], ids=str)
def test_the_public_bound_covers_the_bound_at_the_point_returned(loss: Loss) -> None:
    for regularization in (1e-8, 1e-4, 1.0):
        tolerance = min_tolerance(loss, regularization, dimension=5)
        longest = minimiser_norm_bound(loss, regularization, dimension=5)
        for rows, signs in tables(5, seed=4):
            problem = Problem(rows, signs, loss, regularization, len(rows))
            found = minimise(problem, tolerance=tolerance)
            objective = Objective(problem)
            assert np.linalg.norm(found.coefficients) <= longest + tolerance / regularization
            assert 4.0 * objective.rounding(objective.at(found.coefficients)) <= tolerance


def test_a_linear_term_may_lengthen_the_minimiser_by_its_norm_over_lambda() -> None:
    exact = minimiser_norm_bound(Logistic(), 0.5, dimension=1, linear_norm=3.0)
    found = minimise(Problem(np.ones((1, 1)), np.ones(1), Logistic(), 0.5, 1, None, np.array([-3.0])))
    assert 6.0 < abs(found.coefficients[0]) <= exact <= 8.0


def _long_rows(columns: int) -> Any:
    rng = np.random.default_rng(5)
    rows = sparse.csr_array(sparse.random_array((6, columns), density=0.9, rng=rng))
    return sparse.csr_array(sparse.vstack([rows, sparse.csr_array((1, columns)), rows[:2]]))


@pytest.mark.parametrize("columns", [PIECE - 1, PIECE, PIECE + 1, 5 * PIECE + 3])
@pytest.mark.parametrize("vectors", [(), (3,)])
def test_long_rows_are_multiplied_in_pieces(columns: int, vectors: tuple[int, ...]) -> None:
    rows = _long_rows(columns)
    factor = np.random.default_rng(6).normal(size=(columns, *vectors))
    expected = rows.toarray() @ factor
    for block in (rows, rows.toarray()):
        np.testing.assert_allclose(row_products(block, factor), expected, rtol=1e-12, atol=1e-12)


def test_a_chain_of_additions_is_as_short_as_stated() -> None:
    # With a tiny addend that a chain of naive additions to 1 would lose: few roundings keep most of it.
    columns = 2**18
    row = np.full((1, columns), 2.0**-53)
    row[0, 0] = 1.0
    exact = 1.0 + (columns - 1) * 2.0**-53
    for block in (row, sparse.csr_array(row)):
        computed = row_products(block, np.ones(columns))[0]
        assert abs(computed - exact) <= product_chain(columns) * 2.0**-53 * exact
    assert product_chain(columns) == PIECE + columns // PIECE
    terms = [np.array([value]) for value in (1.0, *[2.0**-53] * 2**14)]
    assert abs(float(pairwise_sum(iter(terms), 1)[0]) - (1.0 + 2.0**-39)) <= MAX_LEVELS * 2.0**-53


def test_no_rows_add_up_to_nothing() -> None:
    assert Rows(np.empty((0, 3)), 1.0).transpose_times(np.empty(0)).tolist() == [0.0, 0.0, 0.0]

"""The minimiser is the minimiser, and what it certifies is true."""

from __future__ import annotations

import math
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import optimize, sparse
from sklearn.linear_model import LogisticRegression

from privlearn.errors import InvalidParameter, SolverError
from privlearn.solvers import (
    Logistic,
    Loss,
    Objective,
    Problem,
    certified_distance,
    loss_from_name,
    losses_of,
    minimise,
)
from privlearn.solvers import solve as solve_module
from tests.support.erm_problems import exact_gradient_norm, simulate

LOSSES = losses_of("margin")

SMOOTH = [loss_from_name(name) for name in LOSSES if math.isfinite(loss_from_name(name).smoothness)]
SMOOTH_IDS = [loss.name for loss in SMOOTH]
KINDS: dict[str, Callable[[Any], Any]] = {
    "dense": np.asarray,
    "csr": sparse.csr_array,
    "csr_matrix": sparse.csr_matrix,
    "fortran": np.asfortranarray,
}


def by_scipy(problem: Problem) -> NDArray[Any]:
    """Minimise the same objective, written again, by scipy."""
    weights = np.ones(len(problem.signs)) if problem.row_weights is None else problem.row_weights
    linear = 0.0 if problem.linear is None else problem.linear

    def residual(w: NDArray[Any]) -> NDArray[Any]:
        slopes = (
            weights * problem.signs * problem.loss.first_derivative(problem.signs * (problem.features @ w))
        )
        return problem.features.T @ slopes / problem.total + problem.regularization * w + linear

    def jacobian(w: NDArray[Any]) -> NDArray[Any]:
        bends = weights * problem.loss.second_derivative(problem.signs * (problem.features @ w))
        ridge = problem.regularization * np.eye(len(w))
        return (problem.features.T * bends) @ problem.features / problem.total + ridge

    found = optimize.root(residual, np.zeros(problem.features.shape[1]), jac=jacobian, tol=1e-13)
    assert np.linalg.norm(residual(found.x)) < 1e-11
    return np.asarray(found.x)


@pytest.mark.parametrize("solver", ["factorised", "matrix_free"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("loss", SMOOTH, ids=SMOOTH_IDS)
def test_agrees_with_scipy(loss: Loss, kind: str, solver: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if solver == "matrix_free":
        monkeypatch.setattr(solve_module, "FACTORISED_LIMIT", 0)
    features, signs = simulate(400, 7)
    rng = np.random.default_rng(1)
    weights, linear = rng.uniform(0.0, 3.0, 400), 0.02 * rng.normal(size=7)
    plain = Problem(features, signs, loss, 0.02, 500, row_weights=weights, linear=linear)
    found = minimise(replace(plain, features=KINDS[kind](features)))
    np.testing.assert_allclose(found.coefficients, by_scipy(plain), atol=1e-8)
    assert found.gradient_norm <= 1e-10
    assert found.distance <= certified_distance(loss, 0.02, 1e-10, 1e-12) == 1e-10 / 0.02


@pytest.mark.parametrize("regularization", [1e-1, 1e-3, 1e-5])
def test_agrees_with_scikit_learn(regularization: float) -> None:
    features, signs = simulate(3000, 12)
    peer = LogisticRegression(
        C=1 / (3000 * regularization), fit_intercept=False, solver="newton-cholesky", tol=1e-12
    )
    peer.fit(features, signs)
    found = minimise(Problem(features, signs, Logistic(), regularization, 3000))
    np.testing.assert_allclose(found.coefficients, peer.coef_[0], atol=1e-8)


@pytest.mark.parametrize("loss", SMOOTH, ids=SMOOTH_IDS)
@pytest.mark.parametrize("single", [False, True])
def test_certified_norm_bounds_the_exact_one(loss: Loss, single: bool) -> None:
    features, signs = simulate(5000, 40)
    kept = (0.999 * features).astype(np.float32) if single else features
    problem = Problem(kept, signs, loss, 1e-4, 5000)
    found = minimise(problem)
    assert exact_gradient_norm(problem, found.coefficients) <= found.gradient_norm <= 1e-10


@pytest.mark.parametrize("loss", SMOOTH, ids=SMOOTH_IDS)
@pytest.mark.parametrize("size", [0.0, 1.0, 100.0, 1e4])
def test_rounding_bound_holds_anywhere_and_is_not_idle(loss: Loss, size: float) -> None:
    features, signs = simulate(5000, 30)
    linear = np.random.default_rng(5).normal(size=30)
    problem = Problem(features, signs, loss, 0.3, 5000, linear=linear)
    objective = Objective(problem)
    w = size * np.random.default_rng(3).normal(size=30)
    point = objective.at(w)
    exact = exact_gradient_norm(problem, w)
    assert exact <= objective.certified_norm(point)
    assert abs(point.gradient_norm - exact) <= objective.rounding(point) + 1e-15 * exact
    assert objective.rounding(point) <= 1e-12 * (1.0 + 100.0 * size)


@pytest.mark.parametrize("loss", SMOOTH, ids=SMOOTH_IDS)
def test_rounding_bound_covers_margins_that_cancel(loss: Loss) -> None:
    rng = np.random.default_rng(6)
    axis, across = np.linalg.qr(rng.normal(size=(30, 2)))[0].T
    features = rng.uniform(0.5, 1.0, size=(500, 1)) * axis
    problem = Problem(features, np.ones(500), loss, 1e-12, 500)
    w = 1e8 * across + axis
    objective = Objective(problem)
    point = objective.at(w)
    error = abs(point.gradient_norm - exact_gradient_norm(problem, w))
    assert 1e-12 < error <= objective.rounding(point)


def test_rounding_bound_stays_small_for_large_problems() -> None:
    rows, columns = 500_000, 300
    one_row = np.broadcast_to(np.full(columns, 1 / math.sqrt(columns)), (rows, columns))
    objective = Objective(Problem(one_row, np.ones(rows), loss_from_name("huber_hinge"), 1e-6, rows))
    w = np.full(columns, 100.0 / math.sqrt(columns))
    assert objective.rounding(objective.at(w)) < 1e-11


@pytest.mark.parametrize("loss", SMOOTH, ids=SMOOTH_IDS)
@pytest.mark.parametrize("regularization", [1e3, 1e-5, 1e-8, 1e-10])
def test_hard_cases(loss: Loss, regularization: float) -> None:
    features, signs = simulate(3000, 12, noise=0.0)
    features[:, 3] = 0.2
    features[:, 5] = features[:, 4]
    features[:, 6] = 0.0
    features[:4] = 0.0
    features[100:200] = features[200:300]
    features /= 2.0
    problem = Problem(features, signs, loss, regularization, 3000)
    found = minimise(problem)
    assert exact_gradient_norm(problem, found.coefficients) <= found.gradient_norm <= 1e-10
    assert found.coefficients[4] == pytest.approx(found.coefficients[5], abs=2 * found.distance)
    assert found.coefficients[6] == pytest.approx(0.0, abs=found.distance)


@settings(max_examples=150, deadline=None)
@given(
    loss=st.sampled_from(SMOOTH),
    rows=st.integers(0, 6),
    columns=st.integers(1, 4),
    exponent=st.floats(-8, 3),
    matrix_free=st.booleans(),
    data=st.data(),
)
def test_tiny_problems(
    loss: Loss, rows: int, columns: int, exponent: float, matrix_free: bool, data: st.DataObject
) -> None:
    entries = st.sampled_from([0.0, 0.5, -0.5, 0.25, 1e-9])
    features = np.array(data.draw(st.lists(entries, min_size=rows * columns, max_size=rows * columns)))
    features = features.reshape(rows, columns)
    signs = np.array(data.draw(st.lists(st.sampled_from([-1.0, 1.0]), min_size=rows, max_size=rows)))
    linear = np.array(data.draw(st.lists(st.floats(-0.1, 0.1), min_size=columns, max_size=columns)))
    regularization = 10.0**exponent
    linear = linear * min(1.0, regularization * 1e3)
    problem = Problem(features, signs, loss, regularization, max(rows, 1), linear=linear)
    given_features = sparse.csr_array(features) if matrix_free and rows else features
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(solve_module, "FACTORISED_LIMIT", 0 if matrix_free else 4000)
        found = minimise(replace(problem, features=given_features))
    assert exact_gradient_norm(problem, found.coefficients) <= found.gradient_norm <= 1e-10


@pytest.mark.parametrize("with_linear", [False, True])
def test_empty_columns_are_solved_too(with_linear: bool) -> None:
    features, signs = simulate(100, 3)
    wide = np.zeros((100, 40))
    wide[:, [4, 17, 39]] = features
    linear = np.random.default_rng(0).normal(size=40) if with_linear else None
    problem = Problem(wide, signs, Logistic(), 0.01, 100, linear=linear)
    found = minimise(replace(problem, features=sparse.csr_array(wide)))
    np.testing.assert_allclose(found.coefficients, minimise(problem).coefficients, atol=2e-8)
    assert exact_gradient_norm(problem, found.coefficients) <= found.gradient_norm <= 1e-10
    too_much = replace(problem, features=sparse.csr_array(wide), linear=np.full(40, 1e7))
    with pytest.raises(SolverError, match="larger tolerance"):
        minimise(too_much)


@pytest.mark.parametrize("limit", [0, 4000])
def test_flat_directions_do_not_make_the_descent_zigzag(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solve_module, "FACTORISED_LIMIT", limit)
    features = np.array([[0.0, 0.0, 0.0, 0.0], [0.0, 0.25, 0.0, 0.25], [0.0, 0.25, 0.0, 0.5]])
    problem = Problem(features, np.array([-1.0, -1.0, 1.0]), loss_from_name("huber_hinge"), 1e-7, 3)
    assert minimise(problem).gradient_norm <= 1e-10


@pytest.mark.parametrize(("limit", "value"), [("MIN_SAMPLE_ROWS", 10**9), ("WARM_ITERATIONS", 1)])
def test_warm_start_changes_the_way_not_the_end(
    limit: str, value: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without one, or with one that takes too long, the descent begins at zero."""
    features, signs = simulate(8000, 5)
    problem = Problem(features, signs, Logistic(), 1e-3, 8000, row_weights=np.linspace(0, 2, 8000))
    from_warm: list[float] = []
    warm = minimise(problem, progress=lambda _, norm: from_warm.append(norm))
    monkeypatch.setattr(solve_module, limit, value)
    from_zero: list[float] = []
    cold = minimise(problem, progress=lambda _, norm: from_zero.append(norm))
    assert from_warm[0] < 0.2 * from_zero[0]
    assert np.linalg.norm(warm.coefficients - cold.coefficients) <= warm.distance + cold.distance


@pytest.mark.parametrize("limit", [0, 4000])
def test_what_cannot_be_certified_fails_loudly(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solve_module, "FACTORISED_LIMIT", limit)
    features, signs = simulate(200, 3)
    with pytest.raises(SolverError, match="larger tolerance or a stronger regularization"):
        minimise(Problem(features, signs, Logistic(), 1e-3, 200), tolerance=1e-30)


def test_progress_sees_the_norm_fall() -> None:
    features, signs = simulate(200, 3)
    seen: list[tuple[int, float]] = []
    found = minimise(
        Problem(features, signs, Logistic(), 1e-3, 200), progress=lambda *news: seen.append(news)
    )
    assert seen[-1] == (found.iterations, found.gradient_norm)
    assert seen[0][1] > 1e-2


@pytest.mark.parametrize(("renumbered", "vectors"), [(True, 2), (False, 13)])
def test_memory_is_that_of_the_non_zeros(
    renumbered: bool, vectors: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not renumbered:
        monkeypatch.setattr(solve_module, "WORTHWHILE", 0.0)
    rows, columns, in_row = 3000, 1_000_000, 30
    rng = np.random.default_rng(0)
    indices = rng.integers(0, columns, rows * in_row)
    values = np.full(rows * in_row, 0.5 / in_row)
    features = sparse.csr_array(
        (values, indices, np.arange(0, rows * in_row + 1, in_row)), shape=(rows, columns)
    )
    signs = rng.choice([-1.0, 1.0], rows)
    tracemalloc.start()
    found = minimise(Problem(features, signs, Logistic(), 1e-3, rows))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found.gradient_norm <= 1e-10
    assert peak < vectors * 8 * columns + 10 * values.nbytes


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"regularization": 0.0}, "regularization"),
        ({"regularization": math.nan}, "regularization"),
        ({"total": 0}, "total"),
        ({"signs": np.array([0.0, 1.0])}, "signs"),
        ({"signs": np.ones(3)}, "signs"),
        ({"row_weights": np.array([-1.0, 1.0])}, "row_weights"),
        ({"linear": np.ones(3)}, "linear"),
        ({"linear": np.array([math.nan, 0.0])}, "linear"),
        ({"features": [[1.0, 0.0]]}, "numpy array"),
        ({"features": np.ones((2, 2), dtype=int)}, "float64"),
        ({"features": sparse.csc_array(np.eye(2))}, "tocsr"),
        ({"features": np.array([[2.0, 7.125], [0.0, 0.0]])}, "clip"),
        ({"features": np.array([[math.nan, 0.0], [0.0, 0.0]])}, "clip"),
        ({"features": np.array([[math.inf, 0.0], [0.0, 0.0]])}, "clip"),
    ],
)
def test_bad_input_is_refused_without_quoting_it(change: dict[str, Any], words: str) -> None:
    good = {
        "features": np.eye(2),
        "signs": np.array([1.0, -1.0]),
        "loss": Logistic(),
        "regularization": 1,
        "total": 2,
    }
    with pytest.raises(InvalidParameter, match=words) as caught:
        minimise(Problem(**{**good, **change}))
    assert "7.125" not in str(caught.value)

"""The hinge loss: optimal, and the certified gap bounds the true one."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import optimize, sparse
from sklearn.svm import LinearSVC

from privlearn.errors import InvalidParameter, SolverError
from privlearn.solvers import Hinge, Problem, certified_distance, minimise
from privlearn.solvers import hinge as hinge_module
from privlearn.solvers.certifiable import DIMENSION_LIMIT, GAP_TOLERANCE
from tests.support.erm_problems import simulate


def value(problem: Problem, w: NDArray[Any]) -> float:
    weights = np.ones(len(problem.signs)) if problem.row_weights is None else problem.row_weights
    linear = 0.0 if problem.linear is None else float(problem.linear @ w)
    losses = weights * np.maximum(1 - problem.signs * (problem.features @ w), 0)
    return float(np.sum(losses)) / problem.total + 0.5 * problem.regularization * float(w @ w) + linear


def by_slsqp(problem: Problem) -> NDArray[Any]:
    """Solve the primal quadratic programme in (w, slacks), by a method that shares nothing with ours."""
    rows, columns = problem.features.shape
    weights = np.ones(rows) if problem.row_weights is None else problem.row_weights
    linear = np.zeros(columns) if problem.linear is None else problem.linear
    signed = problem.signs[:, np.newaxis] * problem.features
    costs = np.concatenate([linear, weights / problem.total])
    ridge = np.concatenate([np.full(columns, problem.regularization), np.zeros(rows)])

    def with_gradient(v: NDArray[Any]) -> tuple[float, NDArray[Any]]:
        return float(costs @ v + 0.5 * ridge @ v**2), costs + ridge * v

    margins: Any = {
        "type": "ineq",
        "fun": lambda v: signed @ v[:columns] + v[columns:] - 1,
        "jac": lambda v: np.hstack([signed, np.eye(rows)]),
    }
    found = optimize.minimize(
        with_gradient,
        np.concatenate([np.zeros(columns), np.full(rows, 1.5)]),
        jac=True,
        bounds=[*[(None, None)] * columns, *[(0, None)] * rows],
        constraints=margins,
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 500},
    )
    return np.asarray(found.x[:columns])


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("regularization", [0.5, 0.05])
def test_agrees_with_slsqp(regularization: float, kind: Any) -> None:
    features, signs = simulate(40, 4)
    rng = np.random.default_rng(2)
    weights = rng.uniform(0.5, 2.0, 40)
    weights[:5] = 0.0
    linear = 0.05 * rng.normal(size=4)
    problem = Problem(features, signs, Hinge(), regularization, 50, row_weights=weights, linear=linear)
    found = minimise(Problem(kind(features), signs, Hinge(), regularization, 50, weights, linear))
    reference = by_slsqp(problem)
    np.testing.assert_allclose(found.coefficients, reference, atol=2e-5)
    assert value(problem, found.coefficients) <= value(problem, reference) + 1e-12


def test_agrees_with_scikit_learn() -> None:
    features, signs = simulate(300, 6)
    peer = LinearSVC(
        loss="hinge", C=1 / (300 * 0.01), fit_intercept=False, tol=1e-10, max_iter=1_000_000, random_state=0
    )
    peer.fit(features, signs)
    found = minimise(Problem(features, signs, Hinge(), 0.01, 300))
    np.testing.assert_allclose(found.coefficients, peer.coef_[0], atol=1e-5)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    rows=st.integers(1, 30),
    columns=st.integers(1, 5),
    exponent=st.floats(-8, 2),
    noise=st.sampled_from([0.0, 1.0]),
)
def test_two_solutions_of_one_problem_lie_within_their_distances(
    seed: int, rows: int, columns: int, exponent: float, noise: float
) -> None:
    features, signs = simulate(rows, columns, seed, noise)
    features[0] = 0.0
    features[-1] = features[len(features) // 2]
    regularization = 10.0**exponent
    problem = Problem(features, signs, Hinge(), regularization, rows)
    found = minimise(problem)
    bound = certified_distance(Hinge(), regularization, 1e-10, GAP_TOLERANCE)
    assert found.distance <= bound == math.sqrt(2 * GAP_TOLERANCE / regularization)
    assert found.gradient_norm == regularization * found.distance
    rough = minimise(problem, gap=1e-6)
    assert value(problem, rough.coefficients) - value(problem, found.coefficients) <= 1e-6 + 1e-12
    assert np.linalg.norm(found.coefficients - rough.coefficients) <= found.distance + rough.distance


def dual_value(problem: Problem, alpha: NDArray[Any]) -> float:
    pull = problem.features.T @ (problem.signs * alpha) / problem.total
    w = (pull - problem.linear) / problem.regularization
    return float(np.sum(alpha)) / problem.total - 0.5 * problem.regularization * float(w @ w)


def test_the_certified_gap_is_primal_minus_dual_value() -> None:
    features, signs = simulate(60, 3)
    rng = np.random.default_rng(8)
    weights = rng.uniform(0.5, 2.0, 60)
    problem = Problem(features, signs, Hinge(), 0.1, 70, row_weights=weights, linear=rng.normal(size=3))
    solver = hinge_module._InteriorPoint(problem)
    for _ in range(20):
        alpha, w = weights * rng.uniform(size=60), 5.0 * rng.normal(size=3)
        gap = solver.certified_gap(replace(solver._start(), coefficients=w, alpha=alpha))
        exact = value(problem, w) - dual_value(problem, alpha)
        assert exact <= gap <= 1.02 * exact


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("weight", [1e-160, 1e-250, 1e-305, 1e-310, 5e-324])
def test_no_weight_keeps_it_from_its_proof(weight: float) -> None:
    """A refusal would show that there is a row of such a weight."""
    features, signs = simulate(60, 3)
    for tiny in (1, 30, 60):
        weights = np.where(np.arange(60) < tiny, weight, 1.0)
        whole = minimise(Problem(features, signs, Hinge(), 0.01, 60, weights))
        rest = minimise(Problem(features[tiny:], signs[tiny:], Hinge(), 0.01, 60))
        assert np.linalg.norm(whole.coefficients - rest.coefficients) <= whole.distance + rest.distance


def test_refuses_what_it_cannot_do() -> None:
    wide = sparse.csr_array((2, DIMENSION_LIMIT + 1))
    with pytest.raises(InvalidParameter, match="huber_hinge"):
        minimise(Problem(wide, np.ones(2), Hinge(), 1.0, 2))
    features, signs = simulate(60, 3)
    with pytest.raises(SolverError, match="stronger regularization"):
        minimise(Problem(features, signs, Hinge(), 0.1, 60), gap=1e-30)

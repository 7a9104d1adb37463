"""The exact kernel machine: the right minimiser, and a certificate that never understates the distance to it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.svm import SVC

from privlearn.errors import InvalidParameter, SolverError
from privlearn.solvers import (
    Hinge,
    HuberHinge,
    KernelProblem,
    Logistic,
    Loss,
    Problem,
    certified_kernel_distance,
    default_gap,
    loss_from_name,
    losses_of,
    minimise,
    minimise_kernel,
)
from privlearn.solvers.kernel import SignedGram, WeightedLoss, gradient_gap, hinge_gap
from tests.support.erm_problems import simulate

LOSSES = losses_of("margin")

Vector = NDArray[np.float64]
EVERY_LOSS = pytest.mark.parametrize("name", LOSSES)


def rbf(points: Vector, others: Vector, gamma: float = 1.0) -> Vector:
    distances = np.sum((points[:, np.newaxis] - others) ** 2, axis=2)
    return np.asarray(np.exp(-gamma * distances))


def value(problem: KernelProblem, dual: Vector) -> float:
    weights = np.ones(len(dual)) if problem.row_weights is None else problem.row_weights
    scores = problem.gram @ dual
    risk = float(weights @ problem.loss.value(problem.signs * scores)) / problem.total
    return risk + 0.5 * problem.regularization * float(dual @ scores)


def distance(gram: Vector, one: Vector, other: Vector) -> float:
    """Return the distance in extended precision: the square of 1e-9 is below float64's rounding."""
    difference = one.astype(np.longdouble) - other.astype(np.longdouble)
    return math.sqrt(max(float(difference @ gram.astype(np.longdouble) @ difference), 0.0))


@EVERY_LOSS
@pytest.mark.parametrize("regularization", [0.3, 1e-3])
def test_the_linear_kernel_gives_the_linear_machine(name: str, regularization: float) -> None:
    features, signs = simulate(120, 5, noise=0.5)
    weights = np.random.default_rng(0).uniform(0.0, 2.0, 120)
    weights[::7] = 0.0
    loss = LOSSES[name]()
    linear = minimise(Problem(features, signs, loss, regularization, 130, weights))
    gram = features @ features.T
    found = minimise_kernel(KernelProblem(gram, signs, loss, regularization, 130, weights))
    assert np.all(found.dual[::7] == 0)
    apart = float(np.linalg.norm(features.T @ found.dual - linear.coefficients))
    assert apart <= linear.distance + found.distance
    assert found.distance <= certified_kernel_distance(regularization)


@pytest.mark.parametrize("regularization", [1e-1, 1e-2, 1e-3])
def test_the_hinge_agrees_with_scikit_learn(regularization: float) -> None:
    """SVC has an intercept; a row and its mirror image (-row, other sign) have one of zero by symmetry.

    Its matrix is in single precision, which shows in the objective where the regularization is weaker.
    """
    features, signs = simulate(150, 6)
    gram = rbf(features, features)
    mirrored = np.block([[gram, -gram], [-gram, gram]])
    peer = SVC(C=1 / (2 * 150 * regularization), kernel="precomputed", tol=1e-8)
    peer.fit(mirrored, np.concatenate([signs, -signs]))
    both = np.zeros(300)
    both[peer.support_] = peer.dual_coef_[0]
    problem = KernelProblem(gram, signs, Hinge(), regularization, 150)
    found = minimise_kernel(problem)
    theirs, ours = value(problem, both[:150] - both[150:]), value(problem, found.dual)
    assert ours <= theirs + default_gap(problem.regularization)
    assert ours == pytest.approx(theirs, rel=1e-6)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    name=st.sampled_from(sorted(LOSSES)),
    rows=st.integers(1, 40),
    exponent=st.floats(-5, 1),
    rank=st.sampled_from([1, 2, 40]),
)
def test_the_certified_distance_is_an_upper_bound(
    seed: int, name: str, rows: int, exponent: float, rank: int
) -> None:
    features, signs = simulate(rows, rank, seed)
    features[-1] = features[0]  # a duplicate: the Gram matrix is singular whatever the rank
    gram = features @ features.T if rank < 40 else rbf(features, features)
    gram = (gram + gram.T) / 2
    problem = KernelProblem(gram, signs, LOSSES[name](), 10.0**exponent, rows)
    exact, rough = minimise_kernel(problem), minimise_kernel(problem, gap=1e-3)
    assert exact.gap <= default_gap(problem.regularization)
    assert rough.gap <= 1e-3
    assert exact.distance == math.sqrt(2 * exact.gap / problem.regularization)
    assert distance(gram, exact.dual, rough.dual) <= exact.distance + rough.distance
    excess = value(problem, rough.dual) - value(problem, exact.dual)
    assert excess <= rough.gap + 1e-12 * (1 + abs(value(problem, exact.dual)))


@EVERY_LOSS
def test_the_gap_of_a_bad_point_is_not_understated(name: str) -> None:
    features, signs = simulate(60, 4)
    gram = rbf(features, features)
    problem = KernelProblem(gram, signs, LOSSES[name](), 0.01, 60)
    least = value(problem, minimise_kernel(problem).dual)
    signed = SignedGram(gram, signs, 0.01 * 60)
    rng = np.random.default_rng(1)
    for _ in range(20):
        alpha = rng.uniform(0.0, 1.0, 60) ** rng.uniform(0.1, 8.0)
        claimed = certified_gap(signed, problem.loss, alpha)
        assert claimed >= value(problem, signed.dual(alpha)) - least - 1e-12


def test_what_is_claimed_for_the_hinge_is_what_is_proven() -> None:
    """Asked for little more than where the search starts: the gap that it steers by is near enough, but no proof."""
    features, signs = simulate(80, 3)
    gram = rbf(features, features)
    problem = KernelProblem(gram, signs, Hinge(), 1e-3, 80)
    seen: list[float] = []
    minimise_kernel(problem, progress=lambda step, gap: seen.append(gap))
    signed = SignedGram(gram, signs, 1e-3 * 80)
    for more in (1.001, 1.05, 1.5):
        found = minimise_kernel(problem, gap=more * seen[0])
        alpha = np.clip(found.dual * signs * signed.scale, 0.0, 1.0)
        assert found.gap == pytest.approx(hinge_gap(signed, np.ones(80), 80, alpha), rel=1e-3)


@EVERY_LOSS
def test_rounding_is_inside_the_certificate(name: str) -> None:
    """A gap computed in extended precision, where rounding is all that is left."""
    features, signs = simulate(50, 3)
    gram = rbf(features, features, 0.2)
    problem = KernelProblem(gram, signs, LOSSES[name](), 1e-5, 50)
    found = minimise_kernel(problem)
    alpha = np.clip(found.dual * signs * problem.regularization * 50, 0.0, 1.0)
    signed = SignedGram(gram, signs, problem.regularization * 50)
    assert signed.margin_error(alpha) >= float(
        np.max(np.abs(margins_with_fractions(signed, alpha) - signed.times(alpha)))
    )
    rows = np.arange(0, 50, 7)
    margins, error = signed.wide_margins(rows, alpha)
    assert float(np.max(np.abs(margins_with_fractions(signed, alpha)[rows] - margins))) <= error
    assert error < 0.1 * signed.margin_error(alpha) or np.finfo(np.longdouble).eps == np.finfo(float).eps


def margins_with_fractions(signed: SignedGram, alpha: Vector) -> Vector:
    """Exact sums, rounded once."""
    dual = signed.dual(alpha)
    sums = [math.fsum(exact_products(row, dual)) for row in signed._gram]
    return signed.signs * np.array(sums)


def exact_products(row: Vector, dual: Vector) -> list[float]:
    """Return each product as an unevaluated sum of two floats (Dekker's splitting)."""
    parts: list[float] = []
    for a, b in zip(row.tolist(), dual.tolist(), strict=True):
        (a1, a2), (b1, b2) = split(a), split(b)
        parts += [a1 * b1, a1 * b2, a2 * b1, a2 * b2]
    return parts


def split(number: float) -> tuple[float, float]:
    large = 134217729.0 * number
    high = large - (large - number)
    return high, number - high


def certified_gap(signed: SignedGram, loss: Loss, alpha: Vector) -> float:
    weights = np.ones(signed.count)
    if math.isinf(loss.smoothness):
        return hinge_gap(signed, weights, signed.count, alpha)
    losses, margins = WeightedLoss(loss, weights, 0.0 * weights), signed.times(alpha)
    return gradient_gap(signed, losses, signed.count, alpha, margins, target=0.0)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    name=st.sampled_from(sorted(LOSSES)),
    rows=st.integers(2, 25),
    exponent=st.floats(-3, 1),
    bound=st.sampled_from([0.25, 1.0, 9.0]),
)
def test_replacing_a_row_moves_the_function_by_at_most_its_sensitivity(
    seed: int, name: str, rows: int, exponent: float, bound: float
) -> None:
    features, signs = simulate(rows + 1, 3, seed)
    signs[-1] = -signs[0]
    features[-1] *= np.random.default_rng(seed).choice([1.0, -1.0])
    gram = bound * rbf(features, features)
    regularization = 10.0**exponent
    duals, distances = [], []
    for kept in (np.arange(rows), np.append(np.arange(1, rows), rows)):
        part = np.ascontiguousarray(gram[np.ix_(kept, kept)])
        found = minimise_kernel(KernelProblem(part, signs[kept], LOSSES[name](), regularization, rows))
        dual = np.zeros(rows + 1)
        dual[kept] = found.dual
        duals.append(dual)
        distances.append(found.distance)
    sensitivity = 2 * math.sqrt(bound) / (rows * regularization)
    assert distance(gram, *duals) <= (sensitivity + sum(distances)) * (1 + 1e-12)


def test_the_sensitivity_is_reached() -> None:
    """One record replaced by its opposite, too strongly regularised for the corner: both slopes are -1."""
    gram = np.array([[1.0, -1.0], [-1.0, 1.0]])  # a point and its opposite
    found = [
        minimise_kernel(KernelProblem(gram[:1, :1].copy(), np.array([sign]), Hinge(), 5.0, 1)).dual[0]
        for sign in (1.0, -1.0)
    ]
    assert abs(found[0] - found[1]) == pytest.approx(2 / 5.0, rel=1e-9)


@EVERY_LOSS
def test_a_single_record_in_closed_form(name: str) -> None:
    loss, regularization = LOSSES[name](), 0.4
    found = minimise_kernel(KernelProblem(np.array([[2.0]]), np.array([-1.0]), loss, regularization, 1))
    margin = -2.0 * found.dual[0]
    if name == "hinge":
        assert margin == pytest.approx(1.0, abs=1e-6)  # at the corner: 1 / (0.4 * 2) > 1/2
    else:
        slope = float(loss.first_derivative(np.array([margin]))[0])
        assert regularization * found.dual[0] == pytest.approx(slope, abs=1e-6)


@EVERY_LOSS
def test_a_kernel_that_vanishes(name: str) -> None:
    problem = KernelProblem(np.zeros((3, 3)), np.array([1.0, -1.0, 1.0]), LOSSES[name](), 0.1, 3)
    assert minimise_kernel(problem).gap <= default_gap(0.1)


@EVERY_LOSS
def test_large_enough_for_the_warm_start_and_the_working_sets(name: str) -> None:
    features, signs = simulate(700, 8, noise=0.3)
    gram = rbf(features, features, 0.5)
    problem = KernelProblem((gram + gram.T) / 2, signs, LOSSES[name](), 1e-4, 700)
    seen: list[float] = []
    found = minimise_kernel(problem, progress=lambda step, gap: seen.append(gap))
    assert seen[-1] == found.gap <= default_gap(problem.regularization)
    rough = minimise_kernel(problem, gap=1e-5)
    assert distance(problem.gram, found.dual, rough.dual) <= found.distance + rough.distance
    assert value(problem, rough.dual) - value(problem, found.dual) >= -1e-12


@EVERY_LOSS
def test_an_error_of_the_gram_matrix_enters_the_distance(name: str) -> None:
    features, signs = simulate(40, 3)
    true, size = rbf(features, features), 1e-4
    noise = np.triu(np.random.default_rng(0).uniform(-size, size, true.shape))
    computed = true + noise + np.triu(noise, 1).T
    exact = minimise_kernel(KernelProblem(true, signs, LOSSES[name](), 0.01, 40))
    blind = minimise_kernel(KernelProblem(computed, signs, LOSSES[name](), 0.01, 40))
    wary = minimise_kernel(KernelProblem(computed, signs, LOSSES[name](), 0.01, 40, gram_error=size), gap=0.1)
    assert distance(true, wary.dual, exact.dual) <= exact.distance + wary.distance
    assert distance(true, blind.dual, exact.dual) > exact.distance + blind.distance


def test_rounding_may_spoil_the_symmetry_of_the_matrix() -> None:
    features, signs = simulate(30, 3)
    gram = rbf(features, features)
    askew = gram * (1 + 1e-12 * np.triu(np.ones((30, 30)), 1))
    problem = KernelProblem(askew, signs, Logistic(), 0.1, 30)
    assert 1e-13 < problem.asymmetry < 1e-11
    found, exact = minimise_kernel(problem), minimise_kernel(KernelProblem(gram, signs, Logistic(), 0.1, 30))
    assert distance(gram, found.dual, exact.dual) <= found.distance + exact.distance


def test_what_cannot_be_certified_is_refused() -> None:
    features, signs = simulate(40, 3)
    for loss in (Hinge(), HuberHinge()):
        problem = KernelProblem(rbf(features, features), signs, loss, 0.1, 40)
        with pytest.raises(SolverError, match="stronger regularization"):
            minimise_kernel(problem, gap=1e-40)


@pytest.mark.parametrize(
    ("change", "advice"),
    [
        ({"gram": np.eye(3, dtype=np.float32)}, "float64"),
        ({"gram": np.ones((3, 2))}, "square"),
        ({"gram": np.zeros((0, 0))}, "at least one"),
        ({"gram": np.full((3, 3), np.nan)}, "finite"),
        ({"gram": -np.eye(3)}, "no kernel"),
        ({"gram": np.triu(np.ones((3, 3)))}, "symmetric"),
        ({"signs": np.array([1.0, 0.0, 1.0])}, "signs"),
        ({"signs": np.ones(2)}, "signs"),
        ({"regularization": 0.0}, "regularization"),
        ({"total": 0}, "total"),
        ({"row_weights": np.array([1.0, -1.0, 1.0])}, "row_weights"),
        ({"gram_error": -1.0}, "gram_error"),
    ],
)
def test_refuses_what_is_no_problem(change: dict[str, Any], advice: str) -> None:
    usual: dict[str, Any] = {
        "gram": np.eye(3),
        "signs": np.ones(3),
        "loss": Hinge(),
        "regularization": 1.0,
        "total": 3,
    }
    with pytest.raises(InvalidParameter, match=advice):
        KernelProblem(**(usual | change))


@pytest.mark.parametrize(("entry", "advice"), [(np.nan, "finite"), (-np.inf, "finite"), (0.5, "symmetric")])
def test_one_bad_entry_far_from_the_diagonal_is_found(entry: float, advice: str) -> None:
    gram = np.eye(300)
    gram[290, 3] = entry
    with pytest.raises(InvalidParameter, match=advice):
        KernelProblem(gram, np.ones(300), Hinge(), 1.0, 300)


def test_refuses_a_gap_of_nothing() -> None:
    with pytest.raises(InvalidParameter, match="gap"):
        minimise_kernel(KernelProblem(np.eye(1), np.ones(1), Hinge(), 1.0, 1), gap=0.0)


@pytest.mark.parametrize("name", losses_of("residual"))
def test_regression_gives_the_linear_machine_too(name: str) -> None:
    features, _ = simulate(90, 4)
    targets = features @ np.array([1.0, -2.0, 0.5, 0.0]) + 0.3 * np.random.default_rng(3).normal(size=90)
    loss = loss_from_name(name)
    linear = minimise(Problem(features, np.ones(90), loss, 0.01, 90, offsets=targets))
    problem = KernelProblem(features @ features.T, np.ones(90), loss, 0.01, 90, offsets=targets)
    found = minimise_kernel(problem)
    assert np.linalg.norm(features.T @ found.dual - linear.coefficients) <= linear.distance + found.distance
    with pytest.raises(InvalidParameter, match="bounded second derivative"):
        KernelProblem(problem.gram, problem.signs, Hinge(), 0.01, 90, offsets=targets)


def test_coefficients_never_exceed_their_bound() -> None:
    features, signs = simulate(80, 3)
    for name in LOSSES:
        found = minimise_kernel(
            KernelProblem(rbf(features, features), signs, LOSSES[name](), 0.01, 80), gap=0.1
        )
        assert np.all(np.abs(found.dual) <= (1 + 1e-15) / (0.01 * 80))


def test_rows_without_weight_leave_the_zero_function() -> None:
    found = minimise_kernel(KernelProblem(np.eye(2), np.ones(2), Hinge(), 1.0, 2, np.zeros(2)))
    assert found.dual.tolist() == [0.0, 0.0]
    assert found.distance == 0.0

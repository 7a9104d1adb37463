"""RBHT's calculators against the distributions, data sets and proofs that the theorems speak of."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from privlearn.errors import InvalidParameter
from privlearn.papers.bounds import (
    ball_upper_bound,
    finite_private_noise,
    finite_upper_bound,
    finite_useful_noise,
    fourier_features,
    fourier_private_noise,
    fourier_upper_bound,
    fourier_useful_noise,
    frequency_moment,
    linear_accuracy_limit,
    linear_lower_bound,
    rbf_accuracy_limit,
    rbf_lower_bound,
    rbf_packing,
    sensitivity,
)
from privlearn.solvers import Hinge, KernelProblem, Problem, minimise, minimise_kernel

accuracies = st.floats(1e-6, 10.0)
failures = st.floats(1e-9, 0.9)
row_counts = st.integers(2, 10**7)
regularizations = st.floats(1e-6, 10.0)


def test_theorem_10_by_hand() -> None:
    # C = 100, L = 2, kappa = 3, F = 16, n = 1000, beta = 0.5: half of the print's 4 L C kappa sqrt(F) / (beta n)
    assert finite_private_noise(0.5, 1000, 0.01, 16, lipschitz=2, norm_bound=3) == pytest.approx(
        0.5 * 4 * 2 * 100 * 3 * 4 / (0.5 * 1000)
    )


def test_theorem_10_is_the_l1_sensitivity_over_epsilon() -> None:
    """The worst pair of neighbours, all features equal: one record and its opposite, regularised into the slope."""
    features = np.full((1, 4), 0.5)
    found = [
        minimise(Problem(features, np.array([sign]), Hinge(), 2.0, 1)).coefficients for sign in (1.0, -1.0)
    ]
    moved = float(np.sum(np.abs(found[0] - found[1])))
    assert finite_private_noise(0.7, 1, 2.0, 4) * 0.7 == pytest.approx(moved, rel=1e-5)


@given(accuracy=accuracies, failure=failures, features=st.integers(1, 300), entry=st.floats(0.01, 3.0))
def test_theorem_11_keeps_its_promise_by_the_exact_distribution(
    accuracy: float, failure: float, features: int, entry: float
) -> None:
    """A value moves by at most Phi times the sum of F absolute Laplace variables, which is Gamma distributed."""
    noise = finite_useful_noise(accuracy, failure, features, entry_bound=entry)
    assert stats.gamma.sf(accuracy / entry, features, scale=noise) <= failure
    printed = accuracy / (2 * entry * (features + math.log(1 / failure)))
    assert printed <= noise <= printed / math.log(2.0)


@given(
    accuracy=accuracies,
    failure=failures,
    rows=row_counts,
    strength=regularizations,
    features=st.integers(1, 300),
)
def test_corollary_19_is_where_the_two_noises_meet(
    accuracy: float, failure: float, rows: int, strength: float, features: int
) -> None:
    bound = finite_upper_bound(accuracy, failure, rows, strength, features)
    useful = finite_useful_noise(accuracy, failure, features)
    assert finite_private_noise(bound, rows, strength, features) == pytest.approx(useful)
    assert ball_upper_bound(accuracy, failure, rows, strength, features) <= bound


def test_corollary_19_by_hand() -> None:
    # sqrt(F) is there, unlike in print: 4 * C * 1 * 1 * sqrt(9) * (9 log 2 + log 20) / (n accuracy)
    assert finite_upper_bound(0.1, 0.05, 1000, 0.5, 9) == pytest.approx(
        4 * 2 * 3 * (9 * math.log(2) + math.log(20)) / (1000 * 0.1)
    )


def test_the_norm_gamma_bound_is_met_by_sampled_noise() -> None:
    rng = np.random.default_rng(0)
    epsilon = ball_upper_bound(0.3, 0.1, 50, 0.2, 6)
    norms = rng.gamma(6, sensitivity(50, 0.2) / epsilon, size=20_000)
    assert np.mean(norms > 0.3) == pytest.approx(0.1, abs=0.01)


def test_frequencies_have_the_moment_that_is_claimed() -> None:
    """k''(0) = -E w^2 for one column, so the moment can be read from the kernel itself."""
    step, gamma = 1e-4, 1.7
    for kernel, k in (
        ("rbf", lambda x: math.exp(-gamma * x * x)),
        ("cauchy", lambda x: 1 / (1 + (gamma * x) ** 2)),
    ):
        curvature = (k(step) - 2 * k(0.0) + k(-step)) / step**2
        assert frequency_moment(kernel, 1, gamma) == pytest.approx(math.sqrt(-curvature), rel=1e-4)
        assert frequency_moment(kernel, 9, gamma) == pytest.approx(3 * math.sqrt(-curvature), rel=1e-4)
    with pytest.raises(InvalidParameter, match="second moment"):
        frequency_moment("laplacian", 1, 1.0)


def test_theorem_13_by_hand() -> None:
    # C = L = 1: reach 1 + sqrt(6), theta = (accuracy / (2 reach))^4; d = 3, sigma_p = 2, diameter 2
    theta = (0.8 / (2 * (1 + math.sqrt(6)))) ** 4
    wanted = 4 * 5 / theta * math.log(512 * 16 / (0.1 * theta))
    assert fourier_features(0.8, 0.1, 1.0, 3, 2.0) == math.ceil(wanted)


def test_theorem_13_on_a_small_case() -> None:
    """Machines over that many random features stay within half the accuracy of the exact one."""
    rng = np.random.default_rng(0)
    accuracy, failure, strength, gamma = 3.0, 0.2, 1.0, 0.5
    frequencies = fourier_features(accuracy, failure, strength, 1, frequency_moment("rbf", 1, gamma))
    points, signs = rng.uniform(-1, 1, 12), rng.choice([-1.0, 1.0], 12)
    everywhere = np.linspace(-1, 1, 41)
    exact = _values(lambda gaps: np.exp(-gamma * gaps**2), points, signs, strength, everywhere)
    worst = []
    for _ in range(5):
        drawn = rng.normal(0.0, math.sqrt(2 * gamma), frequencies)
        random = _values(lambda gaps, w=drawn: _mean_cosine(gaps, w), points, signs, strength, everywhere)
        worst.append(float(np.max(np.abs(random - exact))))
    assert max(worst) <= accuracy / 2


def _values(
    kernel: Any, points: NDArray[Any], signs: NDArray[Any], strength: float, everywhere: NDArray[Any]
) -> NDArray[Any]:
    gram = kernel(points[:, np.newaxis] - points)
    dual = minimise_kernel(KernelProblem((gram + gram.T) / 2, signs, Hinge(), strength, len(signs))).dual
    return np.asarray(kernel(everywhere[:, np.newaxis] - points) @ dual)


def _mean_cosine(gaps: NDArray[Any], frequencies: NDArray[Any]) -> NDArray[Any]:
    return np.array([[np.mean(np.cos(frequencies * gap)) for gap in row] for row in gaps])


@given(accuracy=accuracies, failure=failures, frequencies=st.integers(1, 10**6))
def test_the_noise_of_theorem_13_by_the_exact_distribution(
    accuracy: float, failure: float, frequencies: int
) -> None:
    """Entries of a row are at most 1 / sqrt(d-hat), and there are 2 d-hat of them."""
    noise = fourier_useful_noise(accuracy, failure, frequencies)
    reached = stats.gamma.sf(accuracy / 2 * math.sqrt(frequencies), 2 * frequencies, scale=noise)
    assert reached <= failure / 2


def test_theorem_21_grows_like_the_fifth_power() -> None:
    """Not like C / accuracy^3, as printed: Corollary 12 and Theorem 13 written out."""
    bounds = [fourier_upper_bound(0.1, 0.05, 1000, strength, 5, 3.0) for strength in (1e-2, 1e-3)]
    assert 1e5 < bounds[1] / bounds[0] < 2e5
    frequencies = fourier_features(0.1, 0.05, 1e-2, 5, 3.0)
    noise = fourier_useful_noise(0.1, 0.05, frequencies)
    assert bounds[0] == pytest.approx(2**1.5 * 100 * math.sqrt(frequencies) / (1000 * noise))
    assert fourier_private_noise(bounds[0], 1000, 1e-2, frequencies) == pytest.approx(noise)


@pytest.mark.parametrize(("rows", "strength"), [(2, 0.25), (7, 0.01), (40, 1.0), (9, 4.0)])
def test_theorem_23_has_its_two_data_sets(rows: int, strength: float) -> None:
    """Lemma 22's construction, trained: in the unit ball, neighbours, and twice the accuracy apart."""
    accuracy = linear_accuracy_limit(rows, strength) * (1 - 1e-6)
    far = 2 * rows * accuracy * strength
    assert far <= 1
    features = np.full((rows, 1), far)
    features[: rows // 2] = -far
    features[-1] = far / 2
    found = []
    for last in (-1.0, 1.0):
        signs = np.where(features[:, 0] < 0, -1.0, 1.0)
        signs[-1] = last
        found.append(minimise(Problem(features, signs, Hinge(), strength, rows)).coefficients[0])
    assert abs(found[0] - found[1]) == pytest.approx(2 * accuracy, rel=1e-3)


@pytest.mark.parametrize(("rows", "strength", "gamma"), [(5, 0.3, 2.0), (30, 0.05, 1.0), (8, 0.5, 0.3)])
def test_theorem_26_has_its_packing(rows: int, strength: float, gamma: float) -> None:
    """Lemma 25's construction, trained: N data sets, one record replaced, all far from each other at that record."""
    packed = rbf_packing(gamma)
    assert packed >= 2
    angles = 2 * np.pi * np.arange(packed) / packed
    ends = np.column_stack([np.cos(angles), np.sin(angles)])
    between = np.exp(-gamma * np.sum((ends[:, np.newaxis] - ends) ** 2, axis=2))
    gram = np.ones((rows, rows))
    gram[-1, :-1] = gram[:-1, -1] = math.exp(-gamma)
    signs = np.append(-np.ones(rows - 1), 1.0)
    last = minimise_kernel(KernelProblem(gram, signs, Hinge(), strength, rows)).dual[-1]
    apart = last * (1 - between[~np.eye(packed, dtype=bool)])  # the other coefficients are the same for all
    assert float(np.min(apart)) >= 2 * rbf_accuracy_limit(rows, strength) * (1 - 1e-4)


def test_lower_bounds_by_hand_and_outside_their_range() -> None:
    assert linear_lower_bound(0.9 * linear_accuracy_limit(100, 0.01), 0.01, 100, 0.01) == pytest.approx(
        math.log(99)
    )
    assert linear_accuracy_limit(100, 0.01) == pytest.approx(10 / 200)
    assert linear_accuracy_limit(100, 4.0) == pytest.approx(0.25 / 200)
    assert linear_lower_bound(linear_accuracy_limit(100, 0.01), 0.01, 100, 0.01) == 0.0
    assert linear_lower_bound(1e-6, 0.6, 100, 0.01) == 0.0
    assert linear_lower_bound(1e-6, 0.01, 1, 0.01) == 0.0
    # sigma = 1/2: (2 / sigma) sqrt(2 / log 2) = 6.79
    assert rbf_packing(2.0) == 6
    assert rbf_lower_bound(0.01, 0.01, 100, 0.02, 2.0) == pytest.approx(math.log(99 * 5))
    assert rbf_lower_bound(0.01, 0.01, 100, 0.01, 2.0) == 0.0  # n = C
    assert rbf_lower_bound(0.125, 0.01, 100, 0.02, 2.0) == 0.0
    assert rbf_lower_bound(0.01, 0.01, 100, 0.02, 0.1) == 0.0  # too wide for two


@settings(max_examples=300)
@given(
    share=st.floats(1e-6, 0.999),
    failure=failures,
    rows=row_counts,
    strength=regularizations,
    columns=st.integers(1, 50),
    gamma=st.floats(0.2, 20.0),
)
def test_no_lower_bound_exceeds_an_upper_bound(
    share: float, failure: float, rows: int, strength: float, columns: int, gamma: float
) -> None:
    accuracy = share * linear_accuracy_limit(rows, strength)
    lower = linear_lower_bound(accuracy, failure, rows, strength)
    assert lower <= ball_upper_bound(accuracy, failure, rows, strength, columns)
    assert lower <= finite_upper_bound(accuracy, failure, rows, strength, columns)
    accuracy = share * rbf_accuracy_limit(rows, strength)
    moment = frequency_moment("rbf", columns + 1, gamma)
    upper = fourier_upper_bound(accuracy, failure, rows, strength, columns + 1, moment)
    assert rbf_lower_bound(accuracy, failure, rows, strength, gamma) <= upper


def test_bounds_move_the_right_way() -> None:
    usual: dict[str, Any] = {"accuracy": 0.1, "failure": 0.05, "rows": 1000, "regularization": 0.01}
    more = {"accuracy": 0.2, "failure": 0.1, "rows": 2000, "regularization": 0.02}
    for name, better in more.items():
        changed: dict[str, Any] = usual | {name: better}
        assert finite_upper_bound(**changed, features=10) < finite_upper_bound(**usual, features=10)
        assert ball_upper_bound(**changed, features=10) < ball_upper_bound(**usual, features=10)
        assert fourier_upper_bound(**changed, dimension=3, moment=2.0) < fourier_upper_bound(
            **usual, dimension=3, moment=2.0
        )
    grown = [finite_upper_bound(**usual, features=features) for features in (1, 2, 10, 100)]
    assert all(before < after for before, after in pairwise(grown))


@pytest.mark.parametrize(
    ("call", "advice"),
    [
        (lambda: finite_private_noise(0.0, 10, 0.1, 3), "epsilon"),
        (lambda: finite_private_noise(1.0, 0, 0.1, 3), "rows"),
        (lambda: finite_private_noise(1.0, 10, math.nan, 3), "regularization"),
        (lambda: finite_private_noise(1.0, 10, 0.1, 2.5), "features"),  # type: ignore[arg-type]
        (lambda: finite_useful_noise(0.1, 1.0, 3), "failure"),
        (lambda: finite_useful_noise(math.inf, 0.1, 3), "accuracy"),
        (lambda: fourier_features(0.1, 0.0, 0.1, 3, 1.0), "failure"),
        (lambda: fourier_features(0.1, 0.1, 0.1, 3, math.inf), "moment"),
        (lambda: fourier_useful_noise(0.1, 0.1, 0), "frequencies"),
        (lambda: linear_lower_bound(-1.0, 0.1, 10, 0.1), "accuracy"),
        (lambda: rbf_lower_bound(0.1, 0.1, 10, 0.1, 0.0), "gamma"),
    ],
)
def test_edge_cases_are_refused(call: Any, advice: str) -> None:
    with pytest.raises(InvalidParameter, match=advice):
        call()

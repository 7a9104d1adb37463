"""Softmax regression against scikit-learn and against extended precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from privlearn.data.sources import ArrayRows, EncodedRows
from privlearn.errors import InvalidParameter, SolverError
from privlearn.solvers import Logistic, Problem, minimise, minimise_multinomial, multinomial
from tests.support.erm_problems import simulate


def three_classes(rows: int = 600, columns: int = 5) -> tuple[NDArray[Any], NDArray[np.int64]]:
    features, _ = simulate(rows, columns)
    rng = np.random.default_rng(4)
    scores = 4 * features @ rng.normal(size=(columns, 3)) + rng.gumbel(size=(rows, 3))
    return features, np.argmax(scores, axis=1)


def exact_gradient_norm(
    features: NDArray[Any],
    labels: NDArray[Any],
    w: NDArray[Any],
    lam: float,
    total: int,
    weights: NDArray[Any],
    linear: NDArray[Any] | float = 0.0,
) -> float:
    x, w = features.astype(np.longdouble), w.astype(np.longdouble)
    powers = np.exp(x @ w.T)
    residuals = powers / powers.sum(axis=1, keepdims=True)
    residuals[np.arange(len(x)), labels] -= 1
    gradient = (weights[:, np.newaxis] * residuals).T @ x / total + np.longdouble(lam) * w + linear
    return float(np.sqrt(np.sum(gradient**2)))


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("lam", [1e-1, 1e-3, 1e-6])
def test_certified_and_equal_to_scikit_learn(kind: Any, lam: float) -> None:
    features, labels = three_classes()
    weights = np.random.default_rng(0).uniform(0.5, 2.0, len(labels))
    found = minimise_multinomial(
        kind(features), labels, 3, regularization=lam, total=600, row_weights=weights
    )
    exact = exact_gradient_norm(features, labels, found.coefficients, lam, 600, weights)
    assert exact <= found.gradient_norm <= 1e-10
    assert found.distance == found.gradient_norm / lam
    peer = LogisticRegression(
        C=1 / (600 * lam), fit_intercept=False, solver="newton-cg", tol=1e-13, max_iter=1000
    )
    peer.fit(features, labels, sample_weight=weights)
    np.testing.assert_allclose(found.coefficients, peer.coef_, atol=max(1e-8, 2e-10 / lam))


def test_encoded_rows_take_directions_from_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    features, labels = three_classes(4800)
    encoded = EncodedRows(ArrayRows(features), np.array, 5, is_sparse=False)
    sizes = []
    product = multinomial.Softmax.product

    def counted(self: multinomial.Softmax, *arguments: Any) -> Any:
        sizes.append(self.rows.count)
        return product(self, *arguments)

    monkeypatch.setattr(multinomial.Softmax, "product", counted)
    for lam in (1e-2, 1e-4):
        found = minimise_multinomial(encoded, labels, 3, regularization=lam, total=4800)
        exact = exact_gradient_norm(features, labels, found.coefficients, lam, 4800, np.ones(4800))
        assert exact <= found.gradient_norm <= 1e-10
    assert set(sizes) == {600}  # products with all rows would expand them each time


def test_two_classes_are_the_logistic_loss() -> None:
    features, signs = simulate(300, 4)
    found = minimise_multinomial(features, (signs > 0).astype(int), 2, regularization=0.02, total=300)
    # w_1 = -w_0 = w / 2, whose penalty is half that of w
    plain = minimise(Problem(features, signs, Logistic(), 0.01, 300))
    np.testing.assert_allclose(found.coefficients[1], plain.coefficients / 2, atol=1e-8)
    np.testing.assert_allclose(found.coefficients.sum(axis=0), 0.0, atol=1e-8)


def test_an_absent_class_is_fitted_too() -> None:
    features, labels = three_classes()
    found = minimise_multinomial(features, labels, 5, regularization=1e-3, total=600)
    assert found.coefficients.shape == (5, 5)
    np.testing.assert_allclose(found.coefficients[3], found.coefficients[4], atol=2 * found.distance)


def test_refusals() -> None:
    features, labels = three_classes(20)
    with pytest.raises(SolverError, match="larger tolerance"):
        minimise_multinomial(features, labels, 3, regularization=1e-3, total=20, tolerance=1e-30)
    for bad in (labels + 1, labels.astype(float), labels[:5], labels - 1):
        with pytest.raises(InvalidParameter, match="labels"):
            minimise_multinomial(features, bad, 3, regularization=1e-3, total=20)
    with pytest.raises(InvalidParameter, match="n_classes"):
        minimise_multinomial(features, labels, 1, regularization=1e-3, total=20)


@pytest.mark.parametrize("most_columns", [0, 3000])
def test_linear_term_is_part_of_what_is_certified(most_columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With either preconditioner."""
    monkeypatch.setattr(multinomial, "MAX_COLUMNS", most_columns)
    features, labels = three_classes()
    linear = np.random.default_rng(1).normal(size=(3, 5)) / 30.0
    found = minimise_multinomial(features, labels, 3, regularization=1e-3, total=600, linear=linear)
    exact = exact_gradient_norm(features, labels, found.coefficients, 1e-3, 600, np.ones(600), linear)
    assert exact <= found.gradient_norm <= 1e-10
    with pytest.raises(InvalidParameter, match="linear"):
        minimise_multinomial(features, labels, 3, regularization=1e-3, total=600, linear=linear[:2])

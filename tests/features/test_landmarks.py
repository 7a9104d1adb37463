"""Landmark features: exact on the public points, a projection elsewhere, for any kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from privlearn.errors import DataError, InvalidParameter
from privlearn.features import Kernel, LandmarkFeatures, kernel_from_name
from tests.support.feature_cases import COLUMNS, VECTOR_KERNELS, WORDS, ball, exact_squares, spectrum

over_kernels = pytest.mark.parametrize("kernel", VECTOR_KERNELS, ids=str)


@over_kernels
def test_the_kernel_is_exact_where_one_point_is_public(kernel: Kernel) -> None:
    public, others = ball(25, 1), ball(40, 2)
    features = LandmarkFeatures(kernel, public)
    at_public, at_others = features.transform(public), features.transform(others)
    assert_allclose(at_others @ at_public.T * kernel.bound, kernel(others, public), atol=1e-7 * kernel.bound)


@over_kernels
def test_elsewhere_it_is_the_projection_on_the_public_points(kernel: Kernel) -> None:
    public, others = ball(12, 1), ball(40, 2)
    psi = LandmarkFeatures(kernel, public).transform(others)
    cross = kernel(others, public)
    projected = cross @ np.linalg.pinv(kernel(public, public), rcond=1e-10, hermitian=True) @ cross.T
    assert_allclose(psi @ psi.T, projected / kernel.bound, atol=1e-7)
    assert np.all(np.sum(psi**2, axis=1) <= kernel.diagonal(others) / kernel.bound + 1e-9)


@over_kernels
@pytest.mark.parametrize("distance", [0.0, 1e-15, 1e-12, 1e-6])
def test_points_that_nearly_repeat_do_no_harm(kernel: Kernel, distance: float) -> None:
    base = 0.9 * ball(10, 1)
    public = np.vstack([base, base + distance, base - distance])
    features = LandmarkFeatures(kernel, public)
    assert features.dimension <= 30
    psi = features.transform(ball(200, 2))
    assert all(square <= 1 for square in exact_squares(psi))
    reference = LandmarkFeatures(kernel, base).transform(ball(200, 2))
    if distance <= 1e-12:
        assert features.dimension == LandmarkFeatures(kernel, base).dimension
        assert_allclose(psi @ psi.T, reference @ reference.T, atol=1e-5)


def test_the_rank_is_the_number_of_features() -> None:
    assert LandmarkFeatures(kernel_from_name("linear"), ball(50)).dimension == COLUMNS
    assert LandmarkFeatures(kernel_from_name("rbf"), ball(20)).dimension == 20


@over_kernels
def test_coefficients_of_the_kernel_give_the_same_predictions(kernel: Kernel) -> None:
    public, others = ball(12, 1), ball(40, 2)
    features = LandmarkFeatures(kernel, public)
    weights = np.random.default_rng(0).normal(size=(3, features.dimension))
    coefficients = features.kernel_coefficients(weights)
    assert coefficients.shape == (3, 12)
    assert_allclose(
        kernel(others, public) @ coefficients.T, features.transform(others) @ weights.T, atol=1e-6, rtol=1e-6
    )
    assert_allclose(features.kernel_coefficients(weights[0]), coefficients[0])


def test_sparse_public_points() -> None:
    public, others = ball(12, 1), ball(20, 2)
    public[:, 1] = 0.0
    kernel = kernel_from_name("rbf")
    dense = LandmarkFeatures(kernel, public).transform(others)
    for points in (others, sparse.csr_array(others)):
        from_sparse = LandmarkFeatures(kernel, sparse.csr_array(public)).transform(points)
        assert_allclose(from_sparse @ from_sparse.T, dense @ dense.T, atol=1e-9)


def test_a_map_keeps_its_own_copy_of_the_points() -> None:
    public = ball(5)
    features = LandmarkFeatures(kernel_from_name("rbf"), public)
    before = features.transform(ball(3, 2))
    public[:] = 0.0
    assert_array_equal(features.transform(ball(3, 2)), before)


def test_short_texts_through_a_kernel_of_the_users_own() -> None:
    """Illnesses spelt in other ways land near their right spelling, and far from other illnesses."""
    features = LandmarkFeatures(Kernel.from_callable(spectrum, bound=1.0), WORDS[:4])
    right, misspelt = (
        features.transform(WORDS[:4]),
        features.transform(["anaemia", "anginna", "astma", "fevver"]),
    )
    assert_array_equal(np.argmax(misspelt @ right.T, axis=1), [0, 1, 2, 3])
    assert_allclose(right @ right.T, spectrum(WORDS[:4], WORDS[:4]), atol=1e-12)
    assert_array_equal(features.transform([""]), 0.0)  # has no letter pair


def test_matrices_computed_elsewhere_give_the_same_features() -> None:
    kernel, public, others = kernel_from_name("polynomial"), ball(12, 1), ball(20, 2)
    precomputed = kernel_from_name("precomputed", bound=kernel.bound)
    features = LandmarkFeatures(precomputed, kernel(public, public))
    assert_array_equal(
        features.transform(kernel(others, public)), LandmarkFeatures(kernel, public).transform(others)
    )


class TestRefusals:
    def test_no_information_in_the_points(self) -> None:
        with pytest.raises(InvalidParameter, match="other points"):
            LandmarkFeatures(kernel_from_name("linear"), np.zeros((3, 2)))

    @pytest.mark.parametrize(
        "gram", [[[0.1, 1.0], [1.0, 0.1]], [[1.0, 0.5], [0.0, 1.0]], [[-1.0, 0.0], [0.0, -1.0]]]
    )
    def test_matrices_that_are_no_kernel(self, gram: Any) -> None:
        with pytest.raises(InvalidParameter, match="positive semidefinite"):
            LandmarkFeatures(kernel_from_name("precomputed", bound=1.0), gram)

    def test_public_points_above_the_bound(self) -> None:
        with pytest.raises(DataError, match="bound"):
            LandmarkFeatures(kernel_from_name("precomputed", bound=0.5), np.eye(2))
        with pytest.raises(DataError, match="bound"):
            LandmarkFeatures(kernel_from_name("polynomial"), [[2.0, 0.0]])

    def test_rows_above_the_bound(self) -> None:
        features = LandmarkFeatures(kernel_from_name("polynomial"), ball(10))
        with pytest.raises(DataError, match="bound"):
            features.transform(np.vstack([ball(3), np.full((1, COLUMNS), 1.0)]))

    def test_a_diagonal_above_the_bound_that_the_projection_would_hide(self) -> None:
        kernel = Kernel.from_callable(lambda X, Z: X @ Z.T, bound=1.0)
        features = LandmarkFeatures(kernel, np.eye(2)[:1])
        with pytest.raises(DataError, match="bound"):
            features.transform(np.array([[0.1, 1.5]]))

    def test_rows_that_contradict_the_public_matrix(self) -> None:
        public = np.array([[1.0, 0.99], [0.99, 1.0]])
        features = LandmarkFeatures(kernel_from_name("precomputed", bound=1.0), public)
        with pytest.raises(DataError, match="contradicts"):
            features.transform([[1.0, -1.0]])


def test_a_kernel_computed_in_single_precision_is_cut_where_its_noise_begins() -> None:
    exact = kernel_from_name("rbf", gamma=0.1)
    rounded = Kernel.from_callable(lambda X, Z: exact(X, Z).astype(np.float32), bound=1.0)
    public, others = ball(200, 1), ball(300, 2)
    coarse, fine = LandmarkFeatures(rounded, public), LandmarkFeatures(exact, public)
    assert coarse.dimension < fine.dimension
    psi = coarse.transform(others)
    assert all(square <= 1 for square in exact_squares(psi))
    assert_allclose(psi @ psi.T, exact(others, others), atol=1e-2)

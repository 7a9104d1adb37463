"""Landmark rows at full length around a public mean; that they are public and row by row: test_feature_maps.py."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from privlearn.data.encoding.arrays import INTERCEPT
from privlearn.features import Kernel, LandmarkFeatures, UnitLandmarkFeatures, kernel_from_name
from tests.support.feature_cases import VECTOR_KERNELS, WORDS, ball, spectrum

over_kernels = pytest.mark.parametrize("kernel", VECTOR_KERNELS, ids=str)
RBF = kernel_from_name("rbf", gamma=2.0)


@over_kernels
def test_every_row_uses_its_norm(kernel: Kernel) -> None:
    rows = UnitLandmarkFeatures(LandmarkFeatures(kernel, ball(25, 1))).transform(ball(200, 2))
    assert_allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-9)
    assert_allclose(rows[:, -1] ** 2, INTERCEPT, atol=1e-9)


@over_kernels
def test_what_a_release_multiplies_is_the_same_function(kernel: Kernel) -> None:
    features = UnitLandmarkFeatures(LandmarkFeatures(kernel, ball(12, 1)))
    weights = np.random.default_rng(0).normal(size=(3, features.dimension))
    kept = features.kernel_coefficients(weights)
    others = ball(40, 2)
    assert_allclose(
        features.kernel_features(others) @ kept.T, features.transform(others) @ weights.T, atol=1e-6
    )
    assert_allclose(features.kernel_coefficients(weights[0]), kept[0])


@over_kernels
def test_each_point_is_seen_as_if_it_were_not_there(kernel: Kernel) -> None:
    """Against maps that are made without it; inner products with the others do not depend on coordinates."""
    points = ball(8, 1)
    whole = LandmarkFeatures(kernel, points)
    seen, all_of_them = whole.leave_one_out_features(), whole.transform(points)
    for place in range(len(points)):
        rest = np.delete(np.arange(len(points)), place)
        without = LandmarkFeatures(kernel, points[rest])
        alone = without.transform(points[place : place + 1])[0]
        assert_allclose(seen[place] @ seen[place], alone @ alone, atol=1e-5)
        assert_allclose(all_of_them[rest] @ seen[place], without.transform(points[rest]) @ alone, atol=1e-5)


def test_the_mean_is_that_of_points_which_are_not_landmarks() -> None:
    landmarks = LandmarkFeatures(RBF, ball(200, 1, columns=40))
    mean = UnitLandmarkFeatures(landmarks).mean
    fresh = landmarks.transform(ball(3000, 2, columns=40))
    of_others = (fresh / np.linalg.norm(fresh, axis=1, keepdims=True)).mean(axis=0)
    of_landmarks = landmarks.transform(landmarks.public_points).mean(axis=0)
    assert np.linalg.norm(mean - of_others) < 0.15 * np.linalg.norm(of_others)
    assert np.linalg.norm(of_landmarks - of_others) > 0.4 * np.linalg.norm(of_others)


def test_points_that_repeat_see_each_other_whole() -> None:
    points = np.repeat(ball(5, 1), 2, axis=0)
    landmarks = LandmarkFeatures(RBF, points)
    assert_allclose(landmarks.leave_one_out_features(), landmarks.transform(points), atol=1e-4)


def test_a_point_that_no_landmark_sees_has_a_row() -> None:
    kernel = Kernel.from_callable(spectrum, bound=1.0)
    features = UnitLandmarkFeatures(LandmarkFeatures(kernel, WORDS[:4]))
    row = features.transform([""])[0]  # no letter pair: all of its kernel values are 0
    assert_allclose(
        row[:-1], -np.sqrt(1 - INTERCEPT) * features.mean / np.linalg.norm(features.mean), atol=1e-9
    )


def test_one_public_point_is_enough() -> None:
    rows = UnitLandmarkFeatures(LandmarkFeatures(RBF, ball(1))).transform(ball(3, 2))
    assert_allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-9)

"""A row's features are a function of that row alone, bit for bit: whoever else is in the table, and where."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from threadpoolctl import threadpool_limits

from privlearn.features import (
    CallableKernel,
    FourierFeatures,
    LandmarkFeatures,
    ScatteringFeatures,
    UnitLandmarkFeatures,
    feature_map,
    kernel_from_name,
)
from privlearn.features.feature_map import ROWS, block_size, in_equal_blocks, rows_alike, with_whole_groups
from privlearn.release import KernelEncoder, row_scores
from tests.support.feature_cases import ball

KERNELS = ("linear", "polynomial", "rbf", "laplacian")


def landmarks(kernel: str, points: int, columns: int) -> LandmarkFeatures:
    return LandmarkFeatures(kernel_from_name(kernel), ball(points, 1, columns))


def features(kind: str, points: int, columns: int) -> Any:
    if kind == "fourier":
        return FourierFeatures(kernel_from_name("rbf"), columns, points, 0).transform
    if kind in KERNELS:
        return landmarks(kind, points, columns).transform
    if kind == "unit":
        return UnitLandmarkFeatures(landmarks("rbf", points, columns)).transform
    mapped = landmarks("rbf", points, columns)
    return KernelEncoder(None, mapped.kernel, mapped.public_points, unit=kind == "released, unit").lift


@pytest.mark.parametrize("kind", ["fourier", *KERNELS, "unit", "released", "released, unit"])
@pytest.mark.parametrize(("points", "columns"), [(7, 3), (300, 50), (203, 50)])
def test_one_row_more_moves_no_other_by_a_bit(kind: str, points: int, columns: int) -> None:
    of, rows = features(kind, points, columns), ball(3 * ROWS + 5, columns=columns)
    whole = of(rows)
    assert_array_equal(of(np.insert(rows, 70, rows[0], axis=0)), np.insert(whole, 70, whole[0], axis=0))
    assert_array_equal(of(rows[1:]), whole[1:])
    assert_array_equal(of(rows[::-1]), whole[::-1])
    assert_array_equal(of(rows[5:6]), whole[5:6])


def test_images_have_the_same_features_after_a_first_use_with_other_threads() -> None:
    """A size of blocks that two threads of BLAS treat alike may not be one that a single thread does."""
    mapped, images = ScatteringFeatures((28, 28)), np.random.default_rng(0).integers(0, 256, (70, 28, 28))
    with threadpool_limits(2, user_api="blas"):
        first = mapped.transform(images)
    with threadpool_limits(1, user_api="blas"):
        assert_array_equal(mapped.transform(images), first)
        assert_array_equal(mapped.transform(images[3:]), first[3:])


def test_a_product_that_treats_places_differently_is_asked_row_by_row(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert block_size([np.eye(3)]) == ROWS
    monkeypatch.setattr(feature_map, "treats_rows_alike", lambda matrix: False)
    assert block_size([np.eye(3)]) == 1
    sizes: list[int] = []

    def squares(block: Any) -> Any:
        sizes.append(len(block))
        return block**2

    assert_array_equal(in_equal_blocks(squares, np.arange(6.0).reshape(3, 2), 1)[:, 0], [0.0, 4.0, 16.0])
    assert sizes == [1, 1, 1]


def test_every_call_gets_a_whole_block_of_objects_too() -> None:
    sizes: list[int] = []

    def lengths(block: list[str]) -> Any:
        sizes.append(len(block))
        return np.array([[float(len(text))] for text in block])

    found = in_equal_blocks(lengths, ["a" * length for length in range(ROWS + 3)], ROWS)
    assert found[:, 0].tolist() == list(range(ROWS + 3))
    assert sizes == [ROWS, ROWS]
    named = pd.Series(["a", "bb", "ccc"], index=[2, 0, 1])
    assert in_equal_blocks(lengths, named, ROWS)[:, 0].tolist() == [1.0, 2.0, 3.0]


def test_added_columns_are_zero() -> None:
    wide = with_whole_groups(np.ones((2, 5)))
    assert wide.shape == (2, 16)
    assert wide.sum() == 10.0
    assert with_whole_groups(wide) is wide


@pytest.mark.parametrize("kind", ["fourier", *KERNELS, "unit"])
def test_the_order_in_memory_moves_nothing(kind: str) -> None:
    of, rows = features(kind, 203, 50), ball(3 * ROWS + 5, columns=50)
    assert_array_equal(of(np.asfortranarray(rows)), of(rows))


def test_sparse_public_points_beside_dense_rows() -> None:
    points, rows = sparse.csr_array(ball(60, 1, 40)), ball(2 * ROWS + 5, columns=40)
    of = LandmarkFeatures(kernel_from_name("linear"), points).transform
    assert_array_equal(of(rows[:-1]), of(rows)[:-1])


def test_scores_of_very_many_columns() -> None:
    rows = np.random.default_rng(0).normal(size=(3, 20_000))
    weights = np.random.default_rng(1).normal(size=(1, 20_000))
    assert_array_equal(
        np.concatenate([row_scores(row[np.newaxis], weights) for row in rows]), row_scores(rows, weights)
    )


def test_a_kernel_of_ones_own_is_asked_about_one_point_at_a_time() -> None:
    """Its rounding may depend on the other points: here the values of a whole block are shifted."""
    sizes: list[int] = []

    def overlap(X: Any, Z: Any) -> Any:
        sizes.append(len(X))
        return np.exp(-np.abs(np.subtract.outer(X, Z))) - 1e-13 * (len(X) - 1)

    mapped = LandmarkFeatures(CallableKernel(overlap, 1.0, "overlap"), np.array([0.0, 1.0, 2.0]))
    sizes.clear()
    rows = np.linspace(-1.0, 3.0, ROWS + 5)
    whole = mapped.kernel_values(rows)
    assert set(sizes) == {1}
    assert_array_equal(mapped.kernel_values(rows[::-1]), whole[::-1])
    assert_array_equal(mapped.transform(rows[3:]), mapped.transform(rows)[3:])


@pytest.mark.parametrize(("most", "expected"), [(64, 16), (8, 8), (4, 4), (3, 1)])
def test_the_most_rows_that_are_treated_alike(most: int, expected: int) -> None:
    """On some processors single-precision products treat 8 rows alike, and not 16: one row at a time is slow."""

    def product(rows: np.ndarray) -> np.ndarray:
        return rows + 1e-7 * (np.arange(len(rows)) >= most)[:, np.newaxis]

    assert rows_alike(product, np.ones((1, 3)), (16, 8, 4)) == expected

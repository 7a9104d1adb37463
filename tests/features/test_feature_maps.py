"""What every feature map promises: norm at most 1 without rounding, one row at a time, the same in pieces."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from privlearn.arrays import shorten
from privlearn.errors import DataError, InvalidParameter
from privlearn.features import FeatureMap, FourierFeatures, LandmarkFeatures
from privlearn.features.feature_map import BLOCK
from tests.support.feature_cases import COLUMNS, SHIFT_INVARIANT, VECTOR_KERNELS, ball, exact_squares, maps

MAPS = maps()
over_maps = pytest.mark.parametrize(
    ("feature_map", "points"), [m[1:] for m in MAPS], ids=[m[0] for m in MAPS]
)
over_types = pytest.mark.parametrize("dtype", ["float32", "float64"])
CLOSE = {"float32": 2e-6, "float64": 1e-12}


@over_maps
@over_types
def test_no_row_is_longer_than_one_in_exact_arithmetic(
    feature_map: FeatureMap, points: Any, dtype: Any
) -> None:
    features = feature_map.transform(points, dtype=dtype)
    assert features.shape == (len(points), feature_map.dimension)
    assert features.dtype == dtype
    assert feature_map.norm_bound == 1.0
    assert all(square <= 1 for square in exact_squares(features))
    assert max(exact_squares(features)) > 0.2  # and not so by being next to nothing


@over_maps
def test_single_precision_is_double_precision_rounded(feature_map: FeatureMap, points: Any) -> None:
    assert_allclose(
        feature_map.transform(points, dtype=np.float32), feature_map.transform(points), atol=CLOSE["float32"]
    )


@over_maps
@over_types
def test_a_neighbouring_training_set_changes_one_row_only(
    feature_map: FeatureMap, points: Any, dtype: Any
) -> None:
    neighbour = points.copy()
    neighbour[3] = points[0]
    before, after = feature_map.transform(points, dtype), feature_map.transform(neighbour, dtype)
    changed = np.flatnonzero(np.any(before != after, axis=1))
    assert_array_equal(changed, [3])
    assert not hasattr(feature_map, "fit")


@over_maps
@over_types
@pytest.mark.parametrize("rows", [1, 7, 40, 1000])
def test_pieces_are_those_of_the_whole(feature_map: FeatureMap, points: Any, dtype: Any, rows: int) -> None:
    whole = feature_map.transform(points, dtype=dtype)
    covered = 0
    for part, block in feature_map.blocks(points, rows, dtype):
        assert part.start == covered
        assert len(block) <= rows
        assert block.dtype == dtype
        assert all(square <= 1 for square in exact_squares(block))
        assert_array_equal(block, whole[part])
        covered = part.stop
    assert covered == len(points)


@pytest.mark.parametrize("feature_map", [MAPS[0][1], MAPS[4][1]], ids=["fourier", "landmarks"])
def test_more_rows_than_a_block(feature_map: FeatureMap) -> None:
    points = ball(2 * BLOCK + 5)
    whole = feature_map.transform(points)
    assert_array_equal(whole[-7:], feature_map.transform(points[-7:]))
    assert_array_equal(whole[: BLOCK + 2][-4:], feature_map.transform(points[BLOCK - 2 : BLOCK + 2]))


@pytest.mark.parametrize("feature_map", [m[1] for m in MAPS[:10]], ids=[m[0] for m in MAPS[:10]])
@pytest.mark.parametrize(
    "container", [sparse.csr_array, sparse.csr_matrix, sparse.csc_array, sparse.coo_array]
)
def test_sparse_equals_dense(feature_map: FeatureMap, container: Any) -> None:
    points = ball(30, 5)
    points[np.random.default_rng(0).random(points.shape) < 0.6] = 0.0
    assert_allclose(feature_map.transform(container(points)), feature_map.transform(points), atol=1e-12)


@over_maps
def test_points_are_left_as_they_were(feature_map: FeatureMap, points: Any) -> None:
    before = points.copy()
    feature_map.transform(points, dtype=np.float32)
    assert_array_equal(before, points)


@over_maps
def test_what_cannot_be_used_is_refused(feature_map: FeatureMap, points: Any) -> None:
    for nothing in (points[:0], "text", 3):
        with pytest.raises(DataError):
            feature_map.transform(nothing)
    for dtype in ("float16", int, None):
        with pytest.raises(InvalidParameter, match="dtype must be"):
            feature_map.transform(points, dtype)  # type: ignore[arg-type]
    for rows in (0, -1):
        with pytest.raises(InvalidParameter, match="rows"):
            feature_map.blocks(points, rows)


@pytest.mark.parametrize("feature_map", [MAPS[0][1], MAPS[4][1]], ids=["fourier", "landmarks"])
@pytest.mark.parametrize(
    "wrong", [np.full((2, COLUMNS), np.nan), np.zeros((2, COLUMNS + 1)), np.zeros(COLUMNS)]
)
def test_wrong_arrays_are_refused(feature_map: FeatureMap, wrong: Any) -> None:
    with pytest.raises(DataError):
        feature_map.transform(wrong)


any_number = st.floats(allow_nan=True, allow_infinity=True) | st.floats(-1, 1)
any_rows = st.lists(st.lists(any_number, min_size=2, max_size=2), min_size=1, max_size=4)


@settings(max_examples=150, deadline=None)
@given(
    any_rows,
    st.sampled_from(SHIFT_INVARIANT),
    st.integers(1, 40),
    st.integers(0, 2**70),
    st.sampled_from(["float32", "float64"]),
    st.booleans(),
)
def test_fourier_rows_have_norm_one_or_are_refused(
    rows: Any, kernel: Any, pairs: int, seed: int, dtype: Any, is_sparse: bool
) -> None:
    features = FourierFeatures(kernel, 2, pairs, seed)
    points = np.array(rows)
    try:
        result = features.transform(sparse.csr_array(points) if is_sparse else points, dtype)
    except DataError:
        assert not np.abs(points).max() < 1e280  # NaN, infinite, or so large that a phase overflows
        return
    assert all(1 - 1e-6 < square <= 1 for square in exact_squares(result))


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.lists(any_number, min_size=2, max_size=2), min_size=1, max_size=6),
    any_rows,
    st.sampled_from(VECTOR_KERNELS),
    st.sampled_from(["float32", "float64"]),
)
def test_landmark_rows_have_norm_at_most_one_or_are_refused(
    public: Any, rows: Any, kernel: Any, dtype: Any
) -> None:
    try:
        result = LandmarkFeatures(kernel, public).transform(rows, dtype)
    except (DataError, InvalidParameter):
        in_the_ball = all(math.hypot(*point) <= 1.0 for point in public + rows)
        vanishes = not kernel([[0.0]], [[0.0]]).any()  # and then points at 0 have no features
        assert vanishes or not in_the_ball
        return
    assert all(square <= 1 for square in exact_squares(result))


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.lists(st.floats(-3, 3), min_size=3, max_size=3), min_size=1, max_size=5),
    st.sampled_from([np.float32, np.float64]),
)
def test_long_rows_are_shortened_and_short_ones_untouched(rows: Any, dtype: Any) -> None:
    given_rows = np.array(rows, dtype=dtype)
    shortened = given_rows.copy()
    shorten(shortened)
    for before, after, square in zip(given_rows, shortened, exact_squares(given_rows), strict=True):
        if square <= 1 - 1e-11:
            assert_array_equal(before, after)
        else:
            assert 1 - 1e-6 < exact_squares(after[np.newaxis])[0] <= 1
            assert_allclose(after * np.linalg.norm(before), before, rtol=1e-6, atol=1e-40)

"""Arrays without a schema: clipped to a stated bound, refused when that cannot be done."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from privlearn.data import ArrayEncoder
from privlearn.errors import InvalidParameter
from tests.support.canary import CANARY_NUMBER, CANARY_TEXT
from tests.support.rows import dense, filled

X = np.array([[3.0, 4.0], [0.3, 0.4], [0.0, 0.0], [-30.0, 40.0]])


def test_long_rows_are_clipped_and_short_ones_keep_their_length() -> None:
    encoded = dense(ArrayEncoder(5.0, 2, fit_intercept=False).encode(X))
    assert_allclose(encoded, [[0.6, 0.8], [0.06, 0.08], [0.0, 0.0], [-0.6, 0.8]], atol=1e-11)


def test_the_intercept_shares_the_norm() -> None:
    encoder = ArrayEncoder(5.0, 2)
    encoded = dense(encoder.encode(X))
    assert encoder.dimension == 3
    assert encoder.norm_bound == 1.0
    assert_allclose(encoded[:, 2], math.sqrt(0.05), atol=1e-11)
    assert_allclose(
        dense(ArrayEncoder(5.0, 2, intercept_share=0.5).encode(X))[:, 2], math.sqrt(0.5), atol=1e-11
    )
    assert_allclose(np.linalg.norm(encoded[0]), 1.0, atol=1e-11)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize(
    "container", [sparse.csr_matrix, sparse.csr_array, sparse.coo_array, sparse.csc_array]
)
def test_sparse_rows_come_out_as_the_dense_ones(container: Any, fit_intercept: bool) -> None:
    encoder = ArrayEncoder(5.0, 2, fit_intercept)
    given = container(X)
    before = given.toarray()
    encoded = encoder.encode(given)
    assert isinstance(encoded, sparse.csr_array)
    assert_allclose(filled(encoded), dense(encoder.encode(X)), atol=1e-15)
    assert np.array_equal(given.toarray(), before)


def test_entries_given_twice_are_added_before_they_are_measured() -> None:
    twice = sparse.csr_array((np.array([3.0, 3.0]), np.array([1, 1]), np.array([0, 2])), shape=(1, 2))
    assert_allclose(filled(ArrayEncoder(6.0, 2, False).encode(twice)), [[0.0, 1.0]], atol=1e-11)


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_neither_overflow_nor_underflow(scale: float) -> None:
    scaled, plain = (
        dense(ArrayEncoder(5.0 * by, 2, fit_intercept=False).encode(X * by)) for by in (scale, 1.0)
    )
    assert_allclose(scaled, plain, rtol=1e-10)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("shape", [(), (3,)])
def test_coefficients_in_the_units_of_the_array(
    fit_intercept: bool, shape: tuple[int, ...], random: np.random.Generator
) -> None:
    encoder = ArrayEncoder(100.0, 2, fit_intercept)
    weights = random.normal(size=(*shape, encoder.dimension))
    coefficients, intercept = encoder.unscale(weights)
    assert coefficients.shape == (*shape, 2)
    assert np.shape(intercept) == shape
    assert_allclose(X @ coefficients.T + intercept, encoder.encode(X) @ weights.T, atol=1e-12)


def test_the_array_given_is_not_changed() -> None:
    given = X.copy()
    ArrayEncoder(1.0, 2).encode(given)
    assert np.array_equal(given, X)


@pytest.mark.parametrize(
    "given", [X.astype(np.float32), X.astype(np.int8), pd.DataFrame(X), X.tolist(), X.astype(object)]
)
def test_other_arrays_of_numbers(given: Any) -> None:
    encoder = ArrayEncoder(50.0, 2)
    expected = dense(encoder.encode(np.array(given, dtype=np.float64)))
    assert_allclose(dense(encoder.encode(given)), expected, atol=1e-15)


@pytest.mark.parametrize("bound", [0, -1.0, math.nan, math.inf, True, "1", None, 1j, [1.0]])
def test_a_bound_that_bounds_nothing_is_refused(bound: Any) -> None:
    with pytest.raises(InvalidParameter, match="norm_bound must be a finite number above 0"):
        ArrayEncoder(bound, 2)


HOSTILE = {
    "nan": [[CANARY_NUMBER, math.nan]],
    "infinity": [[CANARY_NUMBER, math.inf]],
    "text": [[CANARY_TEXT, CANARY_TEXT]],
    "mixed": np.array([[CANARY_NUMBER, CANARY_TEXT]], dtype=object),
    "complex": [[CANARY_NUMBER, 1j]],
    "dates": np.array([["2020-01-01", "2020-01-02"]], dtype="datetime64[D]"),
    "ragged": [[CANARY_NUMBER, 1.0], [CANARY_NUMBER]],
    "one dimension": [CANARY_NUMBER, 1.0],
    "three dimensions": [[[CANARY_NUMBER, 1.0]]],
    "too few columns": [[CANARY_NUMBER]],
    "too many columns": [[CANARY_NUMBER, 1, 2]],
    "no rows": np.empty((0, 2)),
    "nothing": None,
    "sparse nan": sparse.csr_array([[CANARY_NUMBER, math.nan]]),
    "sparse infinity": sparse.csr_array([[CANARY_NUMBER, -math.inf]]),
    "sparse too wide": sparse.csr_array([[CANARY_NUMBER, 1.0, 1.0]]),
    "sparse complex": sparse.csr_array([[CANARY_NUMBER, 1j]]),
    "sparse without rows": sparse.csr_array((0, 2)),
}


@pytest.mark.parametrize("given", HOSTILE.values(), ids=HOSTILE)
def test_hostile_arrays_are_refused_without_quoting(given: Any, refused: Callable[..., Any]) -> None:
    with refused("X "):
        ArrayEncoder(1.0, 2).encode(given)

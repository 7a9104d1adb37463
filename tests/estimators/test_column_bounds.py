"""Arrays with bounds per column are tables of number columns; the resolution travels with the release."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone

from privlearn import (
    KernelLearner,
    PrivateLogisticRegression,
    PrivateRegressor,
    PrivateSVC,
    Release,
    Schema,
)
from privlearn.data import Resolution, SchemaEncoder
from privlearn.errors import DataError, InvalidParameter

BOUNDS = [(0.0, 1.0), (-2.0, 2.0), (0.0, 50.0)]
PROMISE: dict[str, Any] = {"epsilon": 8.0, "delta": 1e-5, "neighbours": "zero_out", "random_state": 1}


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    X = random.uniform(size=(9000, 3)) * [1.0, 4.0, 50.0] - [0.0, 2.0, 0.0]
    return X, ((X[:, 0] > 0.5) ^ (X[:, 1] > 0.0)).astype(int)


def schema(**target: Any) -> Schema:
    columns = {
        f"x[{place}]": {"type": "number", "lower": low, "upper": up} for place, (low, up) in enumerate(BOUNDS)
    }
    return Schema.from_dict({"name": "array", "columns": columns, "target": {"name": "y", **target}})


@pytest.mark.parametrize("estimator", [PrivateLogisticRegression, PrivateSVC])
def test_bounds_are_a_schema_of_numbers(estimator: Any, data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    plain = estimator(column_bounds=BOUNDS, classes=[0, 1], **PROMISE).fit(X, y)
    described = estimator(schema=schema(classes=[0, 1]), **PROMISE).fit(X, y)
    np.testing.assert_array_equal(plain.coefficients_, described.coefficients_)
    np.testing.assert_array_equal(plain.decision_function(X), described.decision_function(X))
    np.testing.assert_array_equal(plain.predict(pd.DataFrame(X)), plain.predict(X))
    assert plain.n_features_in_ == 3


def test_regression_too(data: tuple[np.ndarray, np.ndarray]) -> None:
    X, _ = data
    plain = PrivateRegressor(column_bounds=BOUNDS, target_bounds=(0, 50), **PROMISE).fit(X, X[:, 2])
    described = PrivateRegressor(schema=schema(lower=0, upper=50), **PROMISE).fit(X, X[:, 2])
    np.testing.assert_array_equal(plain.predict(X), described.predict(X))


def test_sessions_too(data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = (part[:200] for part in data)
    settings: dict[str, Any] = {"regularization": 0.1}
    plain = KernelLearner(column_bounds=BOUNDS, classes=[0, 1], **settings).fit(X, y)
    described = KernelLearner(schema=schema(classes=[0, 1]), **settings).fit(X, y)
    np.testing.assert_array_equal(plain.decision_function(X), described.decision_function(X))


def test_pairs_find_what_no_sum_of_columns_can(data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    model = PrivateSVC(column_bounds=BOUNDS, classes=[0, 1], **PROMISE).fit(X[:8000], y[:8000])
    assert model.score(X[8000:], y[8000:]) > 0.9


def test_a_release_predicts_at_its_resolution(tmp_path: Path, data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    model = PrivateLogisticRegression(column_bounds=BOUNDS, classes=[0, 1], **PROMISE).fit(X, y)
    model.release_.save(tmp_path / "model.privlearn")
    release = Release.load(tmp_path / "model.privlearn")
    np.testing.assert_array_equal(release.model.decision_function(X), model.decision_function(X))  # type: ignore[union-attr]
    assert release.certificate.encoding["resolution"]["pair_share"] > 0.0


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("records", [300, 100_000])
def test_without_privacy_the_resolution_is_the_limit(delta: float, records: int) -> None:
    columns = {name: {"type": "number", "lower": 0, "upper": 1} for name in "abc"}
    schema = Schema.from_dict({"name": "t", "columns": columns, "target": {"name": "y", "classes": [0, 1]}})
    large, none = (
        PrivateLogisticRegression(schema=schema, epsilon=epsilon, delta=delta, accept_weak_privacy=True)
        for epsilon in (1e9, math.inf)
    )
    assert none.resolution(schema, records) == large.resolution(schema, records)
    assert none.resolution(schema, 100_000).is_centred == (delta == 0.0)


@pytest.mark.parametrize("settings", [{"kernel": "rbf"}, {"public_points": np.ones((2, 3))}])
def test_kernels_read_the_encoding_without_a_resolution(
    settings: dict[str, Any], data: tuple[np.ndarray, np.ndarray]
) -> None:
    X, y = data
    model = PrivateSVC(column_bounds=BOUNDS, classes=[0, 1], **PROMISE, **settings).fit(X, y)
    base: Any = model.release_.model.encoder.base  # type: ignore[union-attr]
    assert isinstance(base, SchemaEncoder)
    assert base.resolution == Resolution()


def test_pure_noise_grows_with_the_features_and_gets_no_fine_ones(
    data: tuple[np.ndarray, np.ndarray],
) -> None:
    X, y = data
    settings: dict[str, Any] = {"column_bounds": BOUNDS, "classes": [0, 1], **PROMISE}
    model = PrivateLogisticRegression(noise="norm_gamma", **settings).fit(X, y)
    assert PrivateLogisticRegression(**settings).fit(X, y).coefficients_.shape[1] > 100
    assert model.coefficients_.shape == (1, 3 * 17 + 1)


def test_parameters_survive_cloning() -> None:
    model = PrivateSVC(column_bounds=BOUNDS, classes=[0, 1], epsilon=1.0)
    assert clone(model).get_params()["column_bounds"] == BOUNDS


@pytest.mark.parametrize("bounds", [[], 3, [(0, 1), (2,)], [(1, 0)], [(0, math.nan)], [("a", "b")]])
def test_bad_bounds_are_refused(bounds: Any) -> None:
    with pytest.raises(InvalidParameter, match="column_bounds"):
        PrivateSVC(column_bounds=bounds, classes=[0, 1], **PROMISE).fit(np.ones((4, 1)), [0, 1, 0, 1])


def test_what_does_not_fit_together_is_refused(data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    with pytest.raises(InvalidParameter, match="Leave out norm_bound"):
        PrivateSVC(column_bounds=BOUNDS, norm_bound=1.0, classes=[0, 1], **PROMISE).fit(X, y)
    with pytest.raises(InvalidParameter, match="Leave out"):
        PrivateSVC(column_bounds=BOUNDS, schema=schema(classes=[0, 1]), **PROMISE).fit(X, y)
    model = PrivateSVC(column_bounds=BOUNDS, classes=[0, 1], **PROMISE)
    with pytest.raises(DataError, match="dense"):
        model.fit(sparse.csr_array(X), y)
    with pytest.raises(DataError, match="3 columns"):
        model.fit(X[:, :2], y)

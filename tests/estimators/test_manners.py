"""What users of scikit-learn expect: prediction from a release, dicts, progress, transformers made of sound parts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures, SplineTransformer, StandardScaler

from privlearn import PrivateGridSearch, PrivateLogisticRegression, PrivateSVC
from privlearn.errors import DataError, InvalidParameter
from privlearn.features import Kernel

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, size=(400, 2))
Y = (X[:, 0] > 0).astype(int)
SCHEMA = {
    "name": "points",
    "columns": {
        "a": {"type": "number", "lower": -1, "upper": 1},
        "b": {"type": "number", "lower": -1, "upper": 1},
    },
    "target": {"name": "y", "classes": [0, 1]},
}


def test_a_release_predicts_tables_and_dicts() -> None:
    table = {"a": X[:, 0], "b": X[:, 1], "y": Y}
    model = PrivateLogisticRegression(schema=SCHEMA, epsilon=2, delta=1e-5, random_state=0).fit(table)
    release = model.release_
    rows = [{"a": float(a), "b": float(b)} for a, b in X[:5]]
    assert release.predict(rows).tolist() == model.predict(table)[:5].tolist()
    assert release.predict(rows[0]).tolist() == model.predict(table)[:1].tolist()
    assert np.array_equal(release.predict_proba(table), model.predict_proba(table))
    assert release.classes_.tolist() == [0, 1]
    assert model.guarantee_ == release.certificate.guarantee


def test_several_classes_of_an_svc_have_probabilities() -> None:
    labels = RNG.integers(0, 3, 400)
    settings: dict[str, Any] = {"epsilon": 2, "delta": 1e-5, "norm_bound": 1.5, "random_state": 0}
    model = PrivateSVC(classes=[0, 1, 2], **settings).fit(X, labels)
    assert np.allclose(model.predict_proba(X).sum(axis=1), 1.0)
    assert not hasattr(PrivateSVC(classes=[0, 1], **settings).fit(X, Y), "predict_proba")


def test_progress_is_drawn(capsys: pytest.CaptureFixture[str]) -> None:
    settings: dict[str, Any] = {"epsilon": 2, "delta": 1e-5, "norm_bound": 1.5, "random_state": 0}
    PrivateLogisticRegression(classes=[0, 1], progress=True, **settings).fit(X, Y)
    assert "iteration" in capsys.readouterr().err
    with pytest.raises(InvalidParameter, match="progress"):
        PrivateLogisticRegression(classes=[0, 1], progress="yes", **settings).fit(X, Y)  # type: ignore[arg-type]


SPLINES = SplineTransformer(knots=np.linspace(-1, 1, 5)[:, np.newaxis].repeat(2, axis=1))
CATEGORIES = OneHotEncoder(categories=[[0, 1]], handle_unknown="ignore", sparse_output=False)


@pytest.mark.parametrize(
    "step",
    [
        PolynomialFeatures(2),
        SPLINES,
        FeatureUnion([("a", PolynomialFeatures(2)), ("b", SPLINES)]),
        make_pipeline(
            PolynomialFeatures(2), SPLINES.__class__(knots=np.linspace(-1, 1, 5)[:, None].repeat(6, 1))
        ),
        ColumnTransformer([("a", PolynomialFeatures(2), [0]), ("b", "passthrough", [1])]),
        ColumnTransformer([("a", CATEGORIES, [0])], remainder="passthrough"),
    ],
)
@pytest.mark.filterwarnings("ignore")  # there is no ledger
def test_transformers_that_read_no_row_are_accepted(step: Any) -> None:
    private = PrivateLogisticRegression(epsilon=2, delta=1e-5, norm_bound=3.0, classes=[0, 1])
    assert make_pipeline(step, private).fit(X, Y).predict(X).shape == (400,)


@pytest.mark.parametrize(
    "step",
    [
        StandardScaler(),
        SplineTransformer(),
        OneHotEncoder(),
        OneHotEncoder(categories=[[0, 1], [0, 1]]),
        make_pipeline(PolynomialFeatures(2), StandardScaler()),
        FeatureUnion([("a", PolynomialFeatures(2)), ("b", StandardScaler())]),
        ColumnTransformer([("a", StandardScaler(), [0])]),
        ColumnTransformer([("a", PolynomialFeatures(2), lambda table: [0])]),
        ColumnTransformer([("a", PolynomialFeatures(2), [0])], remainder=StandardScaler()),
    ],
)
def test_transformers_that_read_rows_are_refused(step: Any) -> None:
    private = PrivateLogisticRegression(epsilon=2, delta=1e-5, norm_bound=3.0, classes=[0, 1])
    with pytest.raises((InvalidParameter, ValueError)):
        make_pipeline(step, private).fit(X, Y)


def test_polars_and_dask_frames_get_the_line_to_type() -> None:
    polars = pytest.importorskip("polars")
    table = {"a": X[:, 0], "b": X[:, 1], "y": Y}
    model = PrivateLogisticRegression(schema=SCHEMA, epsilon=2, delta=1e-5, random_state=0).fit(table)
    with pytest.raises(DataError, match=r"X\.collect\(\)"):
        model.predict(polars.DataFrame(table).lazy())


def test_poly_is_the_polynomial_kernel() -> None:
    model = PrivateSVC(
        kernel="poly",
        public_points=X[:50],
        epsilon=2,
        delta=1e-5,
        norm_bound=1.5,
        classes=[0, 1],
        random_state=0,
    )
    assert model.fit(X, Y).release_.certificate.encoding["landmarks"]["kernel"] == "polynomial"


def test_a_kernel_of_pairs_is_a_matrix_of_them() -> None:
    def overlap(x: str, z: str) -> float:
        return len(set(x) & set(z)) / 10

    kernel = Kernel.from_pairs(overlap, bound=1.0)
    texts = ["abc", "bcd", "xyz"]
    assert kernel.name == "overlap"
    assert np.array_equal(kernel(texts, texts[:2]), [[0.3, 0.2], [0.2, 0.3], [0.0, 0.0]])
    assert np.array_equal(kernel.diagonal(texts), [0.3, 0.3, 0.3])
    model = PrivateSVC(
        kernel=kernel, public_points=texts, classes=[0, 1], epsilon=2, delta=1e-5, random_state=0
    )
    assert model.fit(["ab", "yz"] * 50, [0, 1] * 50).predict(["abc"]).shape == (1,)


def test_the_candidates_of_a_search_are_public_and_their_scores_are_not() -> None:
    private = PrivateLogisticRegression(norm_bound=3.0, classes=[0, 1])
    search = PrivateGridSearch(
        private, {"regularization": [0.01, 0.1]}, epsilon=2, delta=1e-5, random_state=0
    )
    assert search.fit(X, Y).cv_results_ == {"params": [{"regularization": 0.01}, {"regularization": 0.1}]}

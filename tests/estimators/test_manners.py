"""What users of scikit-learn expect: prediction from a release, dicts, progress, transformers made of sound parts."""

from __future__ import annotations

import inspect
import sys
from typing import Any

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures, SplineTransformer, StandardScaler
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection

from privlearn import (
    Guarantee,
    KernelLearner,
    PrivateGridSearch,
    PrivateLogisticRegression,
    PrivateRegressor,
    PrivateSVC,
)
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
    assert model.predict(rows).tolist() == model.predict(table)[:5].tolist()
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


def test_progress_is_drawn(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    settings: dict[str, Any] = {"epsilon": 2, "delta": 1e-5, "norm_bound": 1.5, "random_state": 0}
    PrivateLogisticRegression(classes=[0, 1], progress=True, **settings).fit(X, Y)
    assert "iteration" in capsys.readouterr().err
    monkeypatch.setattr("privlearn.estimators.training_rows.PROGRESS_DELAY_SECONDS", 0.0)
    PrivateLogisticRegression(classes=[0, 1], **settings).fit(X, Y)
    assert capsys.readouterr().err == ""
    # As in a notebook, whose file stores what is shown.
    monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
    PrivateLogisticRegression(classes=[0, 1], **settings).fit(X, Y)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)  # as in a shell
    PrivateLogisticRegression(classes=[0, 1], **settings).fit(X, Y)
    assert "iteration" in capsys.readouterr().err
    PrivateLogisticRegression(classes=[0, 1], progress=False, **settings).fit(X, Y)
    assert capsys.readouterr().err == ""
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
        RBFSampler(random_state=0),
        GaussianRandomProjection(2, random_state=0),
        SparseRandomProjection(2, random_state=0),
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
        RBFSampler(gamma="scale", random_state=0),
        RBFSampler(random_state=np.random.RandomState(0)),
        Nystroem(n_components=5, random_state=0),
        GaussianRandomProjection(random_state=0, eps=0.9),
        GaussianRandomProjection(2),
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
    arrays = PrivateLogisticRegression(norm_bound=1.5, classes=[0, 1], epsilon=2, delta=1e-5)
    with pytest.raises(DataError, match=r"X\.collect\(\)"):
        arrays.fit(polars.DataFrame({"a": X[:, 0], "b": X[:, 1]}).lazy(), Y)


@pytest.mark.parametrize("kind", [PrivateLogisticRegression, PrivateSVC, PrivateRegressor, KernelLearner])
def test_help_lists_every_parameter(kind: type) -> None:
    section = str(kind.__doc__).partition("Parameters\n")[2].partition("Attributes\n")[0]
    lines = [line.strip() for line in section.splitlines() if line[:4].strip() or line[:8].strip()]
    named = {name for line in lines for name in line.partition(" : ")[0].replace("``", "").split(", ")}
    assert set(inspect.signature(kind).parameters) <= named | {"guarantee", "column_bounds", "neighbours"}


def test_absent_attributes_say_why() -> None:
    settings: dict[str, Any] = {"epsilon": 2, "delta": 1e-5, "random_state": 0}
    plain = PrivateLogisticRegression(norm_bound=1.5, classes=[0, 1], **settings).fit(X, Y)
    table = PrivateLogisticRegression(schema=SCHEMA, **settings).fit({"a": X[:, 0], "b": X[:, 1], "y": Y})
    assert plain.coef_.shape == (1, 2)
    with pytest.raises(AttributeError, match="get_feature_names_out"):
        _ = table.coef_
    with pytest.raises(AttributeError, match="depends on the private records"):
        _ = plain.n_iter_  # type: ignore[attr-defined]


def test_a_refused_grid_search_says_why_on_one_line() -> None:
    private = PrivateLogisticRegression(epsilon=2, delta=1e-5, norm_bound=3.0, classes=[0, 1])
    with pytest.raises(InvalidParameter, match="PrivateGridSearch") as refusal:
        GridSearchCV(private, {"regularization": [0.01, 0.1]}, cv=2).fit(X, Y)
    assert "\n" not in str(refusal.value)


def test_a_kernel_learner_takes_epsilon_and_delta() -> None:
    settings: dict[str, Any] = {"norm_bound": 1.5, "classes": [0, 1]}
    stated = KernelLearner(epsilon=1, delta=1e-5, **settings).read(X, Y).freeze()
    assert stated.task == KernelLearner(guarantee=Guarantee(1, 1e-5), **settings).read(X, Y).freeze().task
    with pytest.raises(InvalidParameter, match="not both"):
        KernelLearner(epsilon=1, guarantee=Guarantee(1), **settings).read(X, Y)


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

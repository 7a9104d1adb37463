"""The estimators keep scikit-learn's protocol: its own checks, and the tools people build with it."""

from __future__ import annotations

import math
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from privlearn import PrivateLogisticRegression, PrivateSVC
from tests.support.estimator_checks import OF_ALL, OF_WEIGHTS, with_checks

Data = tuple[np.ndarray, np.ndarray]
DECLARED = "labels are declared as public, never read from y; this check brings labels of its own"
SIGN = "classes go by the sign of the score, probabilities by counts of scores: as in scikit-learn's own SVC"

OF_SCORED = {"check_classifiers_train": SIGN}
OF_PRIVATE = dict.fromkeys(
    (
        "check_class_weight_classifiers",
        "check_classifier_data_not_an_array",
        "check_classifiers_classes",
        "check_classifiers_train",
        "check_dict_unchanged",
        "check_dont_overwrite_parameters",
        "check_estimator_sparse_array",
        "check_estimator_sparse_matrix",
        "check_estimator_sparse_tag",
        "check_estimators_dtypes",
        "check_estimators_fit_returns_self",
        "check_estimators_overwrite_params",
        "check_f_contiguous_array_estimator",
        "check_fit2d_1feature",
        "check_fit2d_predict1d",
        "check_fit_score_takes_y",
        "check_methods_sample_order_invariance",
        "check_methods_subset_invariance",
        "check_n_features_in_after_fitting",
        "check_positive_only_tag_during_fit",
        "check_readonly_memmap_input",
        "check_supervised_y_2d",
    ),
    DECLARED,
)

PLAIN: list[PrivateLogisticRegression | PrivateSVC] = [
    PrivateLogisticRegression(epsilon=math.inf),
    PrivateLogisticRegression(epsilon=math.inf, loss="multinomial"),
    PrivateLogisticRegression(epsilon=math.inf, kernel="rbf", gamma=4.0),
    PrivateSVC(epsilon=math.inf),
    PrivateSVC(epsilon=math.inf, loss="hinge"),
    PrivateSVC(epsilon=math.inf, probability=True),
]
PRIVATE: list[PrivateLogisticRegression | PrivateSVC] = [
    PrivateLogisticRegression(epsilon=50.0, delta=1e-3, norm_bound=10.0, classes=[0, 1], random_state=0),
    PrivateSVC(epsilon=50.0, delta=1e-3, norm_bound=10.0, classes=[0, 1], random_state=0),
    PrivateSVC(epsilon=50.0, delta=1e-3, norm_bound=10.0, classes=[0, 1], random_state=0, probability=True),
]


def cannot_pass(estimator: PrivateLogisticRegression | PrivateSVC) -> dict[str, str]:
    assert estimator.epsilon is not None
    if math.isfinite(estimator.epsilon):
        return OF_ALL | OF_WEIGHTS | OF_PRIVATE
    return OF_ALL | OF_SCORED if estimator.probability else OF_ALL


@with_checks(PLAIN + PRIVATE, cannot_pass)
def test_scikit_learns_own_checks(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.fixture
def data() -> Data:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    return X, (X @ [1.0, -2.0, 0.5] > 0).astype(int)


def private(**parameters: Any) -> PrivateLogisticRegression:
    usual: dict[str, Any] = {"epsilon": 2.0, "delta": 1e-4, "norm_bound": 3.0, "classes": [0, 1]}
    return PrivateLogisticRegression(**usual | {"random_state": 0} | parameters)


def test_pipeline_cross_validation_and_grid(data: Data) -> None:
    X, y = data
    pipeline = make_pipeline(FunctionTransformer(np.tanh), private())
    assert cross_val_score(pipeline, X, y, cv=3).mean() > 0.8
    search = GridSearchCV(private(), {"regularization": [0.01, 0.1]}, cv=3).fit(X, y)
    assert search.best_params_["regularization"] in (0.01, 0.1)


def test_clone_keeps_every_parameter_and_no_result(data: Data) -> None:
    model = private(class_weight={1: 2.0}).fit(*data)
    twin = clone(model)
    assert twin.get_params() == model.get_params()
    assert not hasattr(twin, "release_")


def test_seeded_fits_repeat_and_secure_ones_do_not(data: Data) -> None:
    assert np.array_equal(private().fit(*data).coefficients_, private().fit(*data).coefficients_)
    first, second = (private(random_state=None).fit(*data).coefficients_ for _ in range(2))
    assert (first != second).all()


def test_importing_an_estimator_imports_neither_scikit_learn_nor_a_database() -> None:
    program = "import sys, privlearn; privlearn.PrivateLogisticRegression(); print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout.split()
    assert "privlearn.estimators.classifiers" in loaded
    assert not {"sklearn", "pandas", "sqlalchemy", "scipy.stats"} & set(loaded)


def test_metadata_routing_passes_weights(data: Data) -> None:
    X, y = data
    weights = np.where(X[:, 0] > 0, 1.0, 0.0)
    with config_context(enable_metadata_routing=True):
        model = (
            private(max_weight=1.0).set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        )
        routed = make_pipeline(FunctionTransformer(np.tanh), clone(model))
        routed.fit(X, y, sample_weight=weights)
        assert 0 <= routed.score(X, y, sample_weight=weights) <= 1
    direct = private(max_weight=1.0).fit(np.tanh(X), y, sample_weight=weights)
    assert np.array_equal(routed[-1].coefficients_, direct.coefficients_)


def test_a_representation_has_the_parameters_that_were_set() -> None:
    assert repr(private(kernel="rbf", epsilon=1.0)).startswith(
        "PrivateLogisticRegression(classes=[0, 1], delta=0.0001, epsilon=1.0, kernel='rbf'"
    )
    many = PrivateLogisticRegression(public_points=list(range(1000)))
    assert len(repr(many)) < 200


def test_an_unknown_parameter_is_named() -> None:
    with pytest.raises(ValueError, match="Invalid parameter 'epsilom'"):
        private().set_params(epsilom=1.0)

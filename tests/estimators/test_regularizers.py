"""Regularization towards a public model, and scikit-learn's C: other regularizers under the same theorems."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression

import privlearn
from privlearn import (
    Guarantee,
    InteractivePredictor,
    KernelLearner,
    Ledger,
    PrivateGridSearch,
    PrivateLogisticRegression,
    PrivateRegressor,
    PrivateSVC,
    Release,
    verify,
)
from privlearn.errors import InvalidParameter
from privlearn.mechanisms import ReleaseMechanism, Task, mechanisms_of
from privlearn.release import LinearModel, check_agreement
from privlearn.solvers import Logistic, losses_of

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 3)) / 3.0
Y = (X[:, 0] + 0.3 * RNG.normal(size=300) > 0.1).astype(int)
T = X @ np.array([0.5, -0.2, 0.1]) + 0.1
W0 = np.array([[2.0, -1.0, 0.5, 0.3]])
ARRAYS: dict[str, Any] = {"norm_bound": 2.0, "classes": [0, 1]}
CLASSES = [PrivateLogisticRegression, PrivateSVC]


def encoded(model: Any, rows: NDArray[Any]) -> NDArray[np.float64]:
    return np.asarray(model.release_.model.encoder.encode(rows))


@pytest.mark.parametrize("name", [name for name in losses_of("margin") if name != "hinge"])
def test_without_noise_it_minimises_the_distance_to_the_public_model(name: str) -> None:
    kind = PrivateLogisticRegression if name == "logistic" else PrivateSVC
    model = kind(epsilon=math.inf, loss=name, regularization=0.05, regularize_towards=W0, **ARRAYS).fit(X, Y)
    rows, signs, loss = encoded(model, X), 2.0 * Y - 1.0, losses_of("margin")[name]()

    def objective(w: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        margins = signs * (rows @ w)
        value = loss.value(margins).mean() + 0.025 * np.sum((w - W0[0]) ** 2)
        return value, rows.T @ (signs * loss.first_derivative(margins)) / len(rows) + 0.05 * (w - W0[0])

    best = minimize(objective, np.zeros(4), jac=True, method="BFGS", options={"gtol": 1e-10}).x
    assert model.coefficients_[0] == pytest.approx(best, abs=1e-6)


def test_a_regression_too() -> None:
    settings: dict[str, Any] = {"norm_bound": 2.0, "target_bounds": (-2.0, 2.0), "epsilon": math.inf}
    near, far = (
        PrivateRegressor(regularization=strength, regularize_towards=W0, **settings).fit(X, T)
        for strength in (1e-6, 1e4)
    )
    plain = PrivateRegressor(regularization=1e-6, regularize_towards=0.0 * W0, **settings).fit(X, T)
    assert near.coefficients_ == pytest.approx(plain.coefficients_, abs=1e-3)
    assert far.coefficients_ == pytest.approx(W0, abs=1e-3)


@pytest.mark.parametrize("mechanism", ["objective", "output"])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_constants_are_those_without_a_public_model(mechanism: str, delta: float) -> None:
    settings = ARRAYS | {"epsilon": 1.0, "delta": delta, "mechanism": mechanism, "regularization": 0.1}
    settings |= {"centre": False, "random_state": 1}
    plain = PrivateLogisticRegression(**settings).fit(X, Y).certificate_
    found = PrivateLogisticRegression(regularize_towards=W0, **settings).fit(X, Y).certificate_
    ours, theirs = (fit.mechanism.constants()["noise_scale"] for fit in (found, plain))
    assert ours == pytest.approx(theirs, rel=1e-6)
    assert found.task.gradient_sensitivity == plain.task.gradient_sensitivity
    assert found.task.prior_norm == pytest.approx(np.linalg.norm(W0))
    assert "prior_norm" in found.to_dict()["task"]
    assert "prior_norm" not in plain.to_dict()["task"]


@pytest.mark.parametrize("neighbours", ["replace_one", "zero_out", "add_remove"])
@pytest.mark.parametrize("kind", CLASSES)
def test_one_record_moves_the_minimiser_by_no_more_than_the_sensitivity(neighbours: str, kind: Any) -> None:
    """The worst record: misclassified by the public model by far, so that its slope is the largest."""
    settings = ARRAYS | {"epsilon": 1.0, "delta": 1e-6, "mechanism": "output", "neighbours": neighbours}
    settings |= {"regularization": 0.3, "regularize_towards": 20.0 * W0, "random_state": 3}
    settings["expected_records"] = 30 if neighbours == "add_remove" else None
    rows, labels = X[:30].copy(), Y[:30].copy()
    rows[0], labels[0] = [2.0, -1.0, 0.5], 0
    less, fewer = rows.copy(), labels.copy()
    if neighbours == "replace_one":
        fewer[0] = 1  # about which the public model is sure: one gradient of the two
    elif neighbours == "zero_out":
        less[0] = 0.0
    else:
        less, fewer = rows[1:], labels[1:]
    fits = [kind(**settings).fit(*table) for table in ((rows, labels), (less, fewer))]
    moved = float(np.linalg.norm(fits[0].coefficients_ - fits[1].coefficients_))
    allowed = fits[0].certificate_.mechanism.constants()["sensitivity"]
    if neighbours == "zero_out":
        allowed *= 2.0  # the row of zeros still has its constant feature
    assert 0.3 * allowed < moved <= allowed


def test_a_search_scores_what_the_model_predicts() -> None:
    """The mechanism's coefficients are about the distance to the public model: at 0 its mistakes are counted."""
    work = PrivateSVC(epsilon=1.0, regularize_towards=W0, **ARRAYS).prepare(X, Y, True)
    mistakes = np.count_nonzero((np.asarray(work.rows.features) @ W0[0] > 0) != Y)
    assert work.mistakes(np.zeros_like(W0)) == mistakes > 0


def test_the_release_is_verified_and_predicts(tmp_path: Any) -> None:
    model = PrivateLogisticRegression(
        epsilon=1.0, delta=1e-6, regularize_towards=W0, random_state=0, **ARRAYS
    ).fit(X, Y)
    path = tmp_path / "model.privlearn"
    model.release_.save(path)
    verify(path)
    again = Release.load(path)
    assert np.array_equal(again.model.predict(X), model.predict(X))
    assert again.certificate.task.prior_norm == model.certificate_.task.prior_norm
    assert model.certificate_.task.centring is None


def test_a_release_of_the_same_features_is_taken_and_another_is_not() -> None:
    first = PrivateLogisticRegression(epsilon=math.inf, **ARRAYS).fit(X, Y).release_
    strong: dict[str, Any] = {"epsilon": math.inf, "regularization": 1e5, "regularize_towards": first}
    assert PrivateLogisticRegression(**strong, **ARRAYS).fit(X, Y).coefficients_ == pytest.approx(
        first.model.coefficients, abs=1e-4
    )
    near = PrivateLogisticRegression(**strong, **ARRAYS).fit(X, Y)
    assert isinstance(first.model, LinearModel)
    assert near.decision_function(X) == pytest.approx(first.model.decision_function(X), abs=1e-3)
    check_agreement(near.release_.model, near.certificate_)  # with the offsets of the public model
    for other in ({"norm_bound": 1.0}, {"classes": ["0", "1"]}, {"fit_intercept": False}):
        labels = Y.astype(str) if "classes" in other else Y
        with pytest.raises(InvalidParameter, match="other features, bounds or classes"):
            PrivateLogisticRegression(**strong, **ARRAYS | other).fit(X, labels)


def test_what_is_not_covered_is_refused() -> None:
    usual = ARRAYS | {"epsilon": 1.0, "delta": 1e-6, "regularize_towards": W0}
    with pytest.raises(InvalidParameter, match="not available for the multinomial loss"):
        PrivateSVC(**usual | {"classes": [0, 1, 2]}).fit(X, Y)
    with pytest.raises(InvalidParameter, match="not available for the hinge loss"):
        PrivateSVC(loss="hinge", **usual).fit(X, Y)
    with pytest.raises(InvalidParameter, match="public_points"):
        PrivateSVC(kernel="rbf", public_points=X[:5], **usual).fit(X, Y)
    with pytest.raises(InvalidParameter, match="Leave centre out"):
        PrivateSVC(centre=True, **usual).fit(X, Y)
    for wrong in (W0[:, :2], W0 * np.nan, "w0", [[1.0], [2.0, 3.0]]):
        with pytest.raises(InvalidParameter, match="regularize_towards must"):
            PrivateSVC(**usual | {"regularize_towards": wrong}).fit(X, Y)
    for name, kind in mechanisms_of(ReleaseMechanism).items():
        if kind.answers_questions and name.startswith("tdil"):
            with pytest.raises(InvalidParameter, match="regularize_towards goes with"):
                PrivateSVC(mechanism=name, **usual).fit(X, Y)
    search = PrivateGridSearch(PrivateSVC(**ARRAYS), {"regularize_towards": [W0]}, epsilon=1.0)
    with pytest.raises(InvalidParameter, match="cannot be searched"):
        search.fit(X, Y)


def test_one_class_against_the_rest() -> None:
    labels = np.digitize(X[:, 0], [-0.1, 0.1])
    settings = ARRAYS | {"classes": [0, 1, 2], "epsilon": math.inf, "loss": "logistic"}
    towards = np.arange(12.0).reshape(3, 4)
    model = PrivateLogisticRegression(regularization=1e6, regularize_towards=towards, **settings).fit(
        X, labels
    )
    assert model.coefficients_ == pytest.approx(towards, abs=1e-4)


def test_c_is_scikit_learns() -> None:
    """On rows that need no clipping, without an intercept: the same minimiser as LogisticRegression's."""
    model = PrivateLogisticRegression(epsilon=math.inf, C=3.0, fit_intercept=False, **ARRAYS).fit(X, Y)
    theirs = LogisticRegression(C=3.0, fit_intercept=False, tol=1e-12).fit(encoded(model, X), Y)
    assert model.certificate_.task.regularization == pytest.approx(1.0 / (3.0 * len(X)))
    assert model.coefficients_ == pytest.approx(theirs.coef_, abs=1e-5)


def test_c_counts_the_public_number_of_records() -> None:
    settings = ARRAYS | {"epsilon": 1.0, "neighbours": "add_remove", "expected_records": 1000}
    model = PrivateSVC(C=0.5, random_state=0, **settings).fit(X, Y)
    assert model.certificate_.task.regularization == pytest.approx(1.0 / (1000 * 0.5))


def test_c_in_a_search_and_in_a_session(tmp_path: Any) -> None:
    search = PrivateGridSearch(
        PrivateSVC(**ARRAYS), {"C": [0.01, 0.1]}, epsilon=50.0, random_state=0, accept_weak_privacy=True
    ).fit(X, Y)
    assert search.best_params_["C"] in (0.01, 0.1)
    learner = KernelLearner(C=0.2, **ARRAYS).fit(X, Y)
    session = InteractivePredictor(learner, Guarantee(1.0, 1e-6), state=tmp_path / "s.db", random_state=0)
    assert session.certificate.task.regularization == pytest.approx(1.0 / (300 * 0.2))


@pytest.mark.parametrize("wrong", [0.0, -1.0, math.inf, math.nan, "1", True])
def test_a_wrong_c_is_refused(wrong: Any) -> None:
    with pytest.raises(InvalidParameter, match="C must be a finite number above 0"):
        PrivateSVC(epsilon=1.0, C=wrong, **ARRAYS).fit(X, Y)


TOO_FAR = [5e-324, 1e-310, 1e-300, 1e-101, 1e101, 1e300, 1.7e308]
PROMISES: list[dict[str, Any]] = [{"epsilon": 1.0, "delta": 1e-6}, {"epsilon": 1.0}]


@pytest.mark.parametrize("value", TOO_FAR)
@pytest.mark.parametrize("name", ["C", "regularization"])
@pytest.mark.parametrize("loss", ["logistic", "huber_hinge", "hinge"])
def test_an_extreme_strength_is_refused_before_anything_is_charged(
    value: float, name: str, loss: str, tmp_path: Any
) -> None:
    kind = PrivateLogisticRegression if loss == "logistic" else PrivateSVC
    ledger = Ledger.create(tmp_path / "budgets.db", "x", Guarantee(5.0, 1e-5))
    for promise in PROMISES:
        for mechanism in ("output",) if loss == "hinge" else ("objective", "output"):
            settings = ARRAYS | promise | {"loss": loss, "mechanism": mechanism, name: value}
            with pytest.raises(InvalidParameter, match=r"1e-100 to 1e\+100"):
                kind(ledger=ledger, **settings).fit(X, Y)
    assert ledger.statement().entries == ()


@pytest.mark.parametrize("mechanism", ["objective", "output"])
@pytest.mark.parametrize("promise", PROMISES, ids=["delta", "pure"])
def test_the_largest_strength_is_learnt_and_verified(mechanism: str, promise: dict[str, Any]) -> None:
    settings = ARRAYS | promise | {"mechanism": mechanism, "regularization": 1e100, "centre": False}
    release = PrivateLogisticRegression(**settings).fit(X, Y).release_
    assert Release.from_bytes(release.to_bytes()).digest == release.digest


def test_a_learner_of_sessions_refuses_an_extreme_strength() -> None:
    for value in TOO_FAR:
        with pytest.raises(InvalidParameter, match=r"1e-100 to 1e\+100"):
            KernelLearner(regularization=value, **ARRAYS).fit(X, Y)


def test_only_one_of_the_two_may_be_given() -> None:
    with pytest.raises(InvalidParameter, match="Leave one of them out"):
        PrivateSVC(epsilon=1.0, C=1.0, regularization=0.1, **ARRAYS).fit(X, Y)


WEIGHTS = [1.0, 4.0, 100.0]


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("towards", [None, W0], ids=["zero", "w0"])
def test_without_noise_weights_are_those_of_the_regularizer(form: Any, towards: Any) -> None:
    model = PrivateLogisticRegression(
        epsilon=math.inf,
        regularization=0.05,
        regularization_weights=WEIGHTS,
        regularize_towards=towards,
        **ARRAYS,
    ).fit(form(X), Y)
    rows, signs, loss = encoded(model, X), 2.0 * Y - 1.0, losses_of("margin")["logistic"]()
    ridge, centre = np.array([*WEIGHTS, 1.0]), np.zeros(4) if towards is None else W0[0]

    def objective(w: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        margins = signs * (rows @ w)
        value = loss.value(margins).mean() + 0.025 * np.sum(ridge * (w - centre) ** 2)
        slopes = rows.T @ (signs * loss.first_derivative(margins)) / len(rows)
        return value, slopes + 0.05 * ridge * (w - centre)

    best = minimize(objective, np.zeros(4), jac=True, method="BFGS", options={"gtol": 1e-10}).x
    assert model.coefficients_[0] == pytest.approx(best, abs=1e-6)


@pytest.mark.parametrize("mechanism", ["objective", "output"])
def test_weights_change_no_constant_and_shrink_the_noise_of_a_column(mechanism: str) -> None:
    settings = ARRAYS | {"epsilon": 1.0, "delta": 1e-6, "mechanism": mechanism, "regularization": 0.1}
    settings["centre"] = False
    plain = PrivateLogisticRegression(random_state=1, **settings).fit(X, Y)
    weighted = PrivateLogisticRegression(random_state=1, regularization_weights=WEIGHTS, **settings).fit(X, Y)
    for name in ("noise_scale", "effective_regularization"):
        ours, theirs = (getattr(fit.certificate_.mechanism, name) for fit in (weighted, plain))
        assert ours == pytest.approx(theirs, rel=1e-9)
    assert weighted.certificate_.to_dict()["task"]["largest_ridge"] == pytest.approx(100.0)
    assert abs(weighted.coefficients_[0, 2]) < abs(plain.coefficients_[0, 2])


@pytest.mark.parametrize("neighbours", ["replace_one", "zero_out", "add_remove"])
def test_weighted_rows_stay_in_the_ball_and_one_record_within_the_sensitivity(neighbours: str) -> None:
    """In the coordinates sqrt(g) w, in which the noise is drawn; the record lies along the lightest column."""
    settings = ARRAYS | {"epsilon": 1.0, "delta": 1e-6, "mechanism": "output", "neighbours": neighbours}
    settings |= {"regularization": 3.0, "regularization_weights": WEIGHTS, "random_state": 3}
    settings["expected_records"] = 30 if neighbours == "add_remove" else None
    rows, labels = X[:30].copy(), Y[:30].copy()
    rows[0], labels[0] = [2.0, 0.0, 0.0], 0
    fewer, less = (labels[1:], rows[1:]) if neighbours == "add_remove" else (labels.copy(), rows.copy())
    if neighbours == "replace_one":
        fewer[0] = 1
    elif neighbours == "zero_out":
        less[0] = 0.0  # its constant feature, a twentieth of a squared norm, stays
    fits = [PrivateSVC(**settings).fit(*table) for table in ((rows, labels), (less, fewer))]
    moved = np.linalg.norm((fits[0].coefficients_ - fits[1].coefficients_) * np.sqrt([*WEIGHTS, 1.0]))
    allowed = fits[0].certificate_.mechanism.constants()["sensitivity"]
    assert 0.9 * allowed < moved <= allowed * (1.0 + 1e-9)


def test_probabilities_are_learnt_on_the_same_scores() -> None:
    settings = ARRAYS | {"epsilon": math.inf, "probability": True, "regularization": 0.01}
    model = PrivateSVC(regularization_weights=WEIGHTS, **settings).fit(X, Y)
    scores = model.decision_function(X)
    assert np.corrcoef(model.predict_proba(X)[:, 1], scores)[0, 1] > 0.8
    assert model.score(X, Y) > 0.75


@pytest.mark.parametrize(
    "wrong", [[1.0, 2.0], [0.5, 1.0, 1.0], [1.0, 1.0, math.inf], [1.0, 1.0, math.nan], "abc"]
)
def test_wrong_weights_are_refused(wrong: Any) -> None:
    with pytest.raises(InvalidParameter, match="regularization_weights must be"):
        PrivateSVC(epsilon=1.0, regularization_weights=wrong, **ARRAYS).fit(X, Y)


def test_weights_of_other_features_are_refused() -> None:
    bounds: dict[str, Any] = {"column_bounds": [(-3.0, 3.0)] * 3, "classes": [0, 1], "epsilon": 1.0}
    with pytest.raises(InvalidParameter, match="array under norm_bound"):
        PrivateSVC(regularization_weights=WEIGHTS, **bounds).fit(X, Y)
    with pytest.raises(InvalidParameter, match="array under norm_bound"):
        PrivateSVC(kernel="rbf", epsilon=1.0, regularization_weights=WEIGHTS, **ARRAYS).fit(X, Y)


@pytest.mark.parametrize(
    "settings", [{"regularize_towards": W0}, {"regularization_weights": WEIGHTS}], ids=["w0", "weights"]
)
def test_intervals_are_refused_where_their_theory_does_not_reach(settings: Any) -> None:
    model = PrivateLogisticRegression(epsilon=1.0, delta=1e-6, random_state=0, **settings, **ARRAYS).fit(X, Y)
    with pytest.raises(InvalidParameter, match="regularizer has weights or a public model"):
        privlearn.intervals(model.release_)


def test_rounding_of_a_long_public_model_is_inside_the_tolerance() -> None:
    """Scores of a million have rounding errors that a tolerance made for scores of the fit alone does not cover."""
    short, long = (
        Task(Logistic(), 300, 4, 1, 0.1, 1e-15, "replace_one", prior_norm=norm).certifiable().tolerance
        for norm in (0.0, 1e6)
    )
    assert long > 10 * short

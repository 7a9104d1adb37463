"""Probabilities that a support vector machine buys, and the loss that is chosen where they cannot be bought."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import log_loss

from privlearn import (
    Guarantee,
    InteractivePredictor,
    InvalidParameter,
    KernelLearner,
    PrivateGridSearch,
    PrivateLogisticRegression,
    PrivateSVC,
    Release,
    verify,
)
from privlearn.arrays import Array
from privlearn.data import Schema, census_schema, simulated_census

rng = np.random.default_rng(5)
X = rng.normal(size=(6000, 3)) / 2.0
CHANCES = 1.0 / (1.0 + np.exp(-6.0 * X[:, 0]))
Y = (rng.uniform(size=len(X)) < CHANCES).astype(int)
FACTS: dict[str, Any] = {
    "epsilon": 1.0,
    "delta": 1e-5,
    "norm_bound": 2.0,
    "classes": [0, 1],
    "random_state": 0,
}


def probabilities(model: PrivateSVC) -> Array:
    found: Array = model.fit(X, Y).predict_proba(X)
    return found


@pytest.mark.parametrize("kernel", [{}, {"kernel": "rbf", "gamma": 4.0}])
@pytest.mark.parametrize("epsilon", [1.0, math.inf])
def test_they_are_near_the_true_ones(kernel: dict[str, Any], epsilon: float) -> None:
    found = probabilities(PrivateSVC(**FACTS | {"epsilon": epsilon}, **kernel, probability=True))
    assert found.shape == (len(X), 2)
    assert found.sum(axis=1) == pytest.approx(1.0)
    assert log_loss(Y, found) < log_loss(Y, np.column_stack([1.0 - CHANCES, CHANCES])) + 0.03
    assert np.mean(np.abs(found[:, 1] - CHANCES)) < 0.08


def test_classes_go_by_the_sign_of_the_score() -> None:
    model = PrivateSVC(**FACTS, probability=True).fit(X, Y)
    assert np.array_equal(model.predict(X), (model.decision_function(X) > 0).astype(int))
    assert np.allclose(model.predict_log_proba(X), np.log(model.predict_proba(X)))


def test_without_the_word_there_are_none() -> None:
    for model in (PrivateSVC(**FACTS), PrivateSVC(**FACTS).fit(X, Y)):
        assert not hasattr(model, "predict_proba")
        assert not hasattr(model, "predict_log_proba")
        with pytest.raises(AttributeError, match=r"probability=True.*PrivateLogisticRegression"):
            model.predict_proba(X)
    assert PrivateSVC(**FACTS).fit(X, Y).certificate_.task.score_counts is None
    with pytest.raises(InvalidParameter, match=r"PrivateSVC\(probability=True\)"):
        PrivateSVC(**FACTS).fit(X, Y).release_.model.predict_proba(X)  # type: ignore[union-attr]


def test_several_classes_have_them_from_softmax() -> None:
    labels = np.digitize(X[:, 0], [-0.3, 0.3])
    model = PrivateSVC(**FACTS | {"classes": [0, 1, 2]}, probability=True).fit(X, labels)
    assert model.certificate_.task.score_counts is None
    assert model.predict_proba(X).shape == (len(X), 3)


@pytest.mark.parametrize(
    "changed",
    [
        {"delta": 0.0},
        {"noise": "norm_gamma"},
        {"calibration": "ra12"},
        {"loss": "huber_hinge", "classes": [0, 1, 2]},
    ],
)
def test_what_no_theorem_covers_is_refused_and_says_what_to_take(changed: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter, match=r"probability=True needs .* PrivateLogisticRegression"):
        PrivateSVC(**FACTS | changed, probability=True).fit(X, Y)


def test_it_is_a_yes_or_no() -> None:
    with pytest.raises(InvalidParameter, match="probability must be True or False"):
        PrivateSVC(**FACTS | {"probability": "yes"}).fit(X, Y)


def test_searches_do_not_buy_them() -> None:
    search = PrivateGridSearch(
        PrivateSVC(norm_bound=2.0, classes=[0, 1], probability=True),
        {"regularization": [0.01, 0.1]},
        epsilon=1.0,
        delta=1e-5,
    )
    with pytest.raises(InvalidParameter, match="Leave probability out"):
        search.fit(X, Y)


def loss_of(model: Any, labels: Any = Y) -> str:
    return str(model.fit(X, labels).certificate_.task.loss.name)


def test_the_loss_is_chosen_from_public_facts() -> None:
    """Huber's hinge, but logistic where probabilities are wanted and no theorem lets them be bought."""
    pure = FACTS | {"delta": 0.0}
    assert loss_of(PrivateSVC(**FACTS, loss="auto")) == "huber_hinge"
    assert loss_of(PrivateSVC(**FACTS, loss="auto", probability=True)) == "huber_hinge"
    assert loss_of(PrivateSVC(**pure, loss="auto")) == "huber_hinge"
    assert loss_of(PrivateSVC(**pure, loss="auto", probability=True)) == "logistic"
    assert loss_of(PrivateSVC(**FACTS, loss="auto", probability=True, noise="norm_gamma")) == "logistic"
    assert loss_of(PrivateLogisticRegression(**pure, loss="auto")) == "logistic"
    three = FACTS | {"classes": [0, 1, 2]}
    for kind in (PrivateSVC, PrivateLogisticRegression):
        assert loss_of(kind(**three, loss="auto")) == "multinomial"
    plain = pure | {"epsilon": math.inf}
    assert loss_of(PrivateSVC(**plain, loss="auto", probability=True)) == "huber_hinge"


def test_persons_with_several_rows_have_them() -> None:
    schema = census_schema().to_dict()
    schema.pop("one_row_per_person", None)
    several = Schema.from_dict(schema | {"rows_per_person": 2})
    model = PrivateSVC(epsilon=2.0, delta=1e-5, schema=several, loss="auto", probability=True, random_state=0)
    table = simulated_census(2000, seed=1)
    certificate = model.fit(table).certificate_
    assert certificate.task.loss.name == "huber_hinge"
    task = certificate.task
    assert task.centring is not None
    assert task.score_counts is not None
    alone = math.hypot(*(part.ratio(task.relation) for part in (task.centring, task.score_counts)))
    assert task.other_ratio == pytest.approx(2.0 * alone)  # one person moves two rows
    assert model.predict_proba(table).shape == (2000, 2)


POINTS = rng.normal(size=(60, 3)) / 2.0


@pytest.mark.parametrize("public_points", [None, POINTS])
def test_kernel_logistic_regression_has_them(public_points: Any, tmp_path: Path) -> None:
    facts = FACTS | {"kernel": "rbf", "gamma": 4.0, "public_points": public_points, "fourier_pairs": 100}
    model = PrivateLogisticRegression(**facts).fit(X, Y)
    found = model.predict_proba(X)
    assert log_loss(Y, found) < log_loss(Y, np.column_stack([1.0 - CHANCES, CHANCES])) + 0.03
    model.release_.save(tmp_path / "kernel.privlearn")
    assert verify(tmp_path / "kernel.privlearn").is_private is False  # seeded
    read = Release.load(tmp_path / "kernel.privlearn").model
    assert np.allclose(read.predict_proba(X), found)  # type: ignore[union-attr]


def test_kernel_logistic_regression_of_several_classes() -> None:
    labels = np.digitize(X[:, 0], [-0.3, 0.3])
    model = PrivateLogisticRegression(**FACTS | {"classes": [0, 1, 2]}, kernel="rbf", gamma=4.0)
    assert model.fit(X, labels).score(X, labels) > 0.6
    assert model.predict_proba(X).sum(axis=1) == pytest.approx(1.0)


@pytest.mark.parametrize("classes", [[0, 1], [0, 1, 2]])
@pytest.mark.parametrize("mechanism", ["function_release", "pinp"])
def test_sessions_answer_with_probabilities(classes: list[int], mechanism: str, tmp_path: Path) -> None:
    """Of the scores that they release anyway."""
    if mechanism == "pinp" and len(classes) > 2:
        pytest.skip("pinp answers for one function")
    promise = Guarantee(2.0, 1e-5)
    learner = KernelLearner(loss="logistic", norm_bound=2.0, classes=classes, guarantee=promise)
    learner.fit(X[:400], np.digitize(X[:400, 0], [-0.3, 0.3][: len(classes) - 1]))
    exact = learner.predict_proba(POINTS)
    assert exact.shape == (60, len(classes))
    with InteractivePredictor(
        learner, promise, mechanism, state=tmp_path / "session", random_state=0
    ) as session:
        found = session.predict_proba(POINTS[:20])
        scores = session.decide(POINTS[:20]).scores
        assert found.shape == (20, len(classes))
        assert found.sum(axis=1) == pytest.approx(1.0)
        assert np.array_equal(session.predict_proba(POINTS[3]), found[3])
        if len(classes) == 2:
            assert found[:, 1] == pytest.approx(1.0 / (1.0 + np.exp(-scores)))


def test_a_margin_has_no_probability(tmp_path: Path) -> None:
    promise = Guarantee(2.0, 1e-5)
    learner = KernelLearner(norm_bound=2.0, classes=[0, 1], guarantee=promise).fit(X[:100], Y[:100])
    with pytest.raises(InvalidParameter, match="loss='logistic'"):
        learner.predict_proba(X)
    with InteractivePredictor(learner, promise, state=tmp_path / "session", random_state=0) as session:
        with pytest.raises(InvalidParameter, match="loss='logistic'"):
            session.predict_proba(X[0])
        assert "0 answers" in repr(session)  # refused before anything was answered

"""Sessions on landmarks: more records than an exact kernel machine takes, in the span of public points."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privlearn.arrays import Array
from privlearn.errors import InvalidParameter, SessionError
from privlearn.estimators import KernelLearner, kernel_learner
from privlearn.estimators.kernel_machine import GRID_BITS, SessionLandmarks
from privlearn.features import kernel_from_name
from privlearn.guarantee import Guarantee
from privlearn.sessions import InteractivePredictor
from tests.support.session_support import letter_kernel, random_texts

PROMISE = Guarantee(4.0, 1e-6)


def ring(count: int, seed: int) -> tuple[Array, Any]:
    X = np.random.default_rng(seed).uniform(-1, 1, size=(count, 2))
    return X, (np.linalg.norm(X, axis=1) < 0.8).astype(np.int64)


def learner(**settings: Any) -> KernelLearner:
    usual: dict[str, Any] = {"gamma": 4.0, "regularization": 0.01, "norm_bound": 1.5, "classes": [0, 1]}
    return KernelLearner(**usual | {"public_points": ring(60, 7)[0]} | settings)


def test_more_records_than_an_exact_machine_takes(tmp_path: Path) -> None:
    X, y = ring(kernel_learner.MAX_EXACT_ROWS + 1, 0)
    with pytest.raises(
        InvalidParameter, match=r"at most 32768 records\. Fit on fewer, or pass public_points"
    ):
        learner(public_points=None).fit(X, y)
    path, settings = tmp_path / "a.session", {"regularization": "auto", "guarantee": PROMISE}
    session = InteractivePredictor(learner(**settings).fit(X, y), PROMISE, state=path, random_state=0)
    test, truth = ring(150, 5)
    answers = session.decide(test)
    assert np.mean(answers.predictions == truth) > 0.85
    stated = session.certificate.to_dict()["learner"]
    assert stated["kernel"] == {"kernel": "linear"}
    assert stated["encoding"]["landmarks"] == {"kernel": "rbf", "gamma": 4.0}
    assert stated["encoding"]["public_points"] == 60
    session.close()
    with InteractivePredictor.reopen(path, learner(**settings).read(X, y), random_state=1) as again:
        assert again.decide(test[::-1]).scores.tolist() == answers.scores[::-1].tolist()
        assert again.decide(test[0]).scores == answers.scores[0]
    with pytest.raises(SessionError, match="learner"):
        InteractivePredictor.reopen(path, learner(**settings, public_points=ring(60, 8)[0]).read(X, y))


@pytest.mark.parametrize("neighbours", ["replace_one", "zero_out"])
@pytest.mark.parametrize("loss", ["huber_hinge", "hinge", "logistic"])
def test_one_record_moves_every_answer_by_no_more_than_the_sensitivity(loss: str, neighbours: str) -> None:
    """The changed record sits on a landmark, where we look, with the other label; zeroed out it moves half of that."""
    X, y = ring(60, 0)
    X[0] = ring(60, 7)[0][0]
    probes = np.vstack([X[:1], ring(100, 9)[0]])
    for regularization in (0.005, 0.3):
        one = learner(loss=loss, regularization=regularization).fit(X, y)
        two = learner(loss=loss, regularization=regularization).fit(X, np.where(np.arange(60) == 0, 1 - y, y))
        moved = np.max(np.abs(one.decision_function(probes) - two.decision_function(probes)))
        allowed = one.freeze().kernel_task("replace_one").sensitivity
        assert moved <= allowed
        assert one.freeze().kernel_task(neighbours).solver_distance > 0.0
        assert (
            one.freeze().kernel_task(neighbours).solver_distance
            == one.freeze().kernel_task("replace_one").solver_distance
        )


def test_with_all_records_as_landmarks_the_function_is_the_exact_machines() -> None:
    """Made-up rows are not private: so the error of the projection is nothing, and the grid's is small."""
    X, y = ring(80, 0)
    on_landmarks = learner(public_points=X).fit(X, y)
    exact = learner(public_points=None).fit(X, y)
    probes = ring(50, 9)[0]
    difference = on_landmarks.decision_function(probes) - exact.decision_function(probes)
    assert np.max(np.abs(difference)) < 1e-3


def test_features_are_on_the_grid_and_no_longer_than_1() -> None:
    points, rows = ring(40, 1)[0] / 1.5, ring(500, 2)[0] / 1.5
    landmarks = SessionLandmarks(kernel_from_name("rbf", gamma=4.0), points)
    features = landmarks.of_records(np.vstack([points, rows]))
    whole = np.ldexp(features, GRID_BITS)
    assert np.array_equal(whole, np.rint(whole))
    assert np.max(np.linalg.norm(features, axis=1)) <= 1.0
    products = whole.astype(np.int64) @ whole.astype(np.int64).T
    assert np.array_equal(features @ features.T, np.ldexp(products.astype(float), -2 * GRID_BITS))


def test_texts_on_landmarks(tmp_path: Path) -> None:
    texts = random_texts(300, 1)
    labels = np.array([text.count("a") > text.count("b") for text in texts]).astype(int)
    settings: dict[str, Any] = {"kernel": letter_kernel, "kernel_bound": 1.0, "norm_bound": None}
    fitted = learner(**settings, public_points=random_texts(30, 3)).fit(texts, labels)
    with InteractivePredictor(fitted, PROMISE, state=tmp_path / "a.session", random_state=0) as session:
        asked = random_texts(30, 4)
        scores = session.decide(asked).scores
        assert session.decide(asked[3]).scores == scores[3]
        assert session.decide(asked[::-1]).scores.tolist() == scores[::-1].tolist()

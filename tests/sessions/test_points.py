"""Sessions on texts and other objects: one answer for each, one noise for all, and refusals that fit."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from privlearn.errors import DataError, InvalidParameter, SessionError
from privlearn.estimators import KernelLearner
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.session.function_release import FACTOR_JITTER, VALUE_JITTER
from privlearn.sessions import InteractivePredictor
from tests.support.session_support import (
    SURPRISE,
    least_p_value,
    letter_kernel,
    noise_scale,
    open_session,
    random_texts,
    written_texts,
)

PROMISE = Guarantee(8.0, 1e-5)
TEXTS = random_texts(400, 1)
LABELS = np.array([text.count("a") > text.count("b") for text in TEXTS]).astype(int)
KINDS = [("function_release", "tight"), ("pinp", "tight"), ("pinp", "paper")]


def learner(**settings: Any) -> KernelLearner:
    usual: dict[str, Any] = {
        "kernel": letter_kernel,
        "kernel_bound": 1.0,
        "classes": [0, 1],
        "guarantee": PROMISE,
    }
    return KernelLearner(**usual | settings)


def test_texts_from_fit_to_reopening(tmp_path: Path) -> None:
    path = tmp_path / "a.session"
    session = InteractivePredictor(learner().fit(TEXTS, LABELS), PROMISE, state=path, random_state=0)
    asked = random_texts(50, 2)
    labels = session.predict(asked)
    assert np.mean(labels == [text.count("a") > text.count("b") for text in asked]) > 0.7
    assert session.predict(asked[0]) == labels[0]
    assert session.predict(pd.Series(asked)).tolist() == labels.tolist()
    assert repr(session).endswith("50 answers>")
    assert session.certificate.to_dict()["learner"]["encoding"] == {"objects": "as the kernel reads them"}
    session.close()
    with InteractivePredictor.reopen(path, learner().read(TEXTS, LABELS), random_state=1) as again:
        assert again.decide(asked[::-1]).predictions.tolist() == labels[::-1].tolist()
    for texts, answers in ((TEXTS[::-1], LABELS), (TEXTS, 1 - LABELS)):
        with pytest.raises(SessionError, match="other records"):
            InteractivePredictor.reopen(path, learner().read(texts, answers))


@pytest.mark.parametrize(("mechanism", "mode"), KINDS)
def test_a_reopened_session_on_texts_is_where_it_was(tmp_path: Path, mechanism: str, mode: str) -> None:
    """Given the same random bits: the noise of later texts is drawn given the earlier ones, read from the state."""

    def run(path: Path, generator: np.random.Generator, pause: bool) -> list[float]:
        texts = written_texts(total=10**8, regularization=0.1)
        session = open_session(path, texts, mechanism=mechanism, mode=mode, random_state=generator)
        scores = [session.decide(text).scores for text in TEXTS[:10]]
        if pause:
            session.close()
            session = InteractivePredictor.reopen(path, texts, random_state=generator)
        return scores + [session.decide(text).scores for text in TEXTS[:30]]

    whole = run(tmp_path / "whole", np.random.default_rng(3), pause=False)
    assert whole == run(tmp_path / "parts", np.random.default_rng(3), pause=True)
    assert whole[:10] == whole[10:20]


def test_the_noise_has_the_kernels_covariance(tmp_path: Path) -> None:
    """A hundred functions are a hundred paths; asked one text at a time, half of it after reopening."""
    many, asked = written_texts(functions=100), TEXTS[:12]
    session = open_session(tmp_path / "a.session", many, random_state=5)
    scores = [session.decide(text).scores for text in asked[:6]]
    session = InteractivePredictor.reopen(tmp_path / "a.session", many, random_state=6)
    scores += [session.decide(text).scores for text in asked[6:]]
    noises = (np.array(scores) - many.values(asked)).T / noise_scale(session)
    covariance = letter_kernel(asked, asked) + (FACTOR_JITTER + VALUE_JITTER) * np.eye(len(asked))
    assert least_p_value(noises, covariance) > SURPRISE
    assert least_p_value(1.2 * noises, covariance) < SURPRISE


def graph_kernel(X: list[Any], Z: list[Any]) -> Any:
    """Return the kernel of graphs as lists of edges: shares of common edges."""
    return np.array([[len(set(x) & set(z)) / max(len(x), len(z), 1) for z in Z] for x in X]) / 2.0


def test_graphs_by_a_key(tmp_path: Path) -> None:
    """A set of edges has no order, so the key sorts them; the kernel reads the key."""
    graphs = [{(i % 5, (i + 1) % 7), (i % 3, i % 4), (i % 2, 6)} for i in range(60)]
    settings: dict[str, Any] = {"kernel": graph_kernel, "regularization": 0.1, "key": sorted}
    fitted = learner(**settings).fit(graphs, np.arange(60) % 2)
    with InteractivePredictor(fitted, PROMISE, state=tmp_path / "a.session", random_state=0) as session:
        first = session.decide({(0, 1), (2, 6)}).scores
        assert session.decide({(2, 6), (0, 1)}).scores == first
        assert session.decide([{(2, 6), (0, 1)}, {(0, 2)}]).scores[0] == first
        assert session.decide({(0, 1), (2, 5)}).scores != first
    with pytest.raises(DataError, match="key=, a function"):
        learner(**settings | {"key": None}).fit(graphs, np.arange(60) % 2)


def test_wrong_inputs_get_errors_that_fit(tmp_path: Path) -> None:
    with InteractivePredictor(learner().fit(TEXTS, LABELS), PROMISE, state=tmp_path / "a.session") as session:
        for bad in (datetime.date(2020, 2, 2), ["a", float("nan")], {"a", "b"}):
            with pytest.raises(DataError, match="key="):
                session.predict(bad)
        with pytest.raises(DataError, match="kernel 'letter_kernel' failed"):
            session.predict(3.5)
        assert repr(session).endswith("0 answers>")
    numbers = learner(kernel="rbf", kernel_bound=None, norm_bound=1.0, regularization=0.1)
    for texts in (TEXTS, np.array(TEXTS)):
        with pytest.raises(DataError, match="texts or other objects, not rows of numbers"):
            numbers.fit(texts, LABELS)
    fitted = numbers.fit(np.eye(20), np.arange(20) % 2)
    with InteractivePredictor(fitted, PROMISE, state=tmp_path / "b.session", random_state=0) as session:
        for text in ("goal", ["goal"]):
            with pytest.raises(DataError, match="texts or other objects, not rows of numbers"):
                session.predict(text)
    with pytest.raises(InvalidParameter, match="key= is for objects"):
        learner(kernel="rbf", kernel_bound=None, norm_bound=1.0, key=str).fit(np.eye(20), np.arange(20) % 2)
    with pytest.raises(DataError, match="norm_bound"):
        learner().fit(np.eye(400), LABELS)


def test_no_record_stands_in_an_error() -> None:
    """Neither the object that is refused, nor what a key or a kernel says of it."""

    def blab(value: Any) -> Any:
        raise ValueError(f"cannot read {value}")

    for settings in ({"key": blab}, {"kernel": lambda X, Z: blab(X)}):
        with pytest.raises(DataError) as refusal:
            learner(**settings).fit(["patient 4711"] * 20, np.arange(20) % 2)
        assert "4711" not in str(refusal.value)
        assert refusal.value.__context__ is None

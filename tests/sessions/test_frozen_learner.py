"""A session answers from the records it was opened with, whatever happens to its learner before or after."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from privlearn import (
    Guarantee,
    InteractivePredictor,
    InvalidParameter,
    KernelLearner,
    Ledger,
    PrivlearnError,
    Schema,
    SessionError,
)
from privlearn.data import split
from tests.support.session_support import letter_kernel, random_texts

NO_PRIVACY = Guarantee(float("inf"), 1e-5)
PRIVATE_COUNT = Guarantee(1.0, 1e-3, "add_remove")
rng = np.random.default_rng(0)
X = rng.uniform(-0.5, 0.5, (200, 2))
Y = (X[:, 0] > 0).astype(int)
POINTS = rng.uniform(-0.5, 0.5, (20, 2))
PROBES = rng.uniform(-0.5, 0.5, (8, 2))


def learner(**settings: Any) -> KernelLearner:
    usual: dict[str, Any] = {"norm_bound": 1.0, "classes": [0, 1], "regularization": 0.1}
    return KernelLearner(**usual | settings)


CHANGES: dict[str, Callable[[KernelLearner], Any]] = {
    "fitted on other labels": lambda fitted: fitted.fit(X, 1 - Y),
    "fitted on other rows": lambda fitted: fitted.fit(X[:50] / 2, Y[:50]),
    "other records read": lambda fitted: fitted.read(X, 1 - Y),
    "another encoder": lambda fitted: fitted.set_params(norm_bound=3.0).fit(X, Y),
    "parameters of another task": lambda fitted: fitted.set_params(
        classes=None, target_bounds=(0, 1), loss="huber"
    ),
    "attributes": lambda fitted: vars(fitted).update(
        vars(learner().fit(X, 1 - Y)) | {"encoder_": None, "kernel_": None}
    ),
}


@pytest.mark.parametrize("public_points", [None, POINTS], ids=["exact", "on landmarks"])
@pytest.mark.parametrize("mechanism", ["function_release", "pinp"])
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_of_the_learner_does_not_reach_an_open_session(
    change: Callable[[KernelLearner], Any], mechanism: str, public_points: Any, tmp_path: Path
) -> None:
    """Compare with a session whose learner is left alone: the answers are the same to the last bit."""

    def answers(change: Callable[[KernelLearner], Any], name: str) -> Any:
        fitted = learner(public_points=public_points).fit(X, Y)
        promise = NO_PRIVACY if mechanism == "function_release" else Guarantee(1e5, 1e-5)
        with InteractivePredictor(
            fitted,
            promise,
            mechanism,
            state=tmp_path / name,
            random_state=0,
            accept_weak_privacy=True,
        ) as session:
            first = session.decide(PROBES[:2])
            change(fitted)
            second = session.decide(PROBES[2:])
            again = session.decide(PROBES[:2])
            assert "noisy" in second.sources
            assert np.array_equal(first.scores, again.scores)
            return first.scores, second.scores, second.predictions

    for changed, same in zip(answers(change, "a"), answers(lambda _: None, "b"), strict=True):
        assert np.array_equal(changed, same)


OTHER_PARAMETERS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "columns without bounds": (
        {"norm_bound": None, "column_bounds": [(-0.5, 0.5)] * 2},
        {"norm_bound": 1.0, "column_bounds": None},
    ),
    "a schema": ({}, {"norm_bound": None, "schema": {"name": "a", "columns": {}}}),
    "another key": (
        {"norm_bound": None, "kernel": letter_kernel, "kernel_bound": 1.0},
        {"key": lambda text: "a"},
    ),
}


@pytest.mark.parametrize(("before", "after"), OTHER_PARAMETERS.values(), ids=OTHER_PARAMETERS)
def test_points_are_read_as_the_records_were(
    before: dict[str, Any], after: dict[str, Any], tmp_path: Path
) -> None:
    """Parameters set between reading and opening, or afterwards, do not change how points are read."""
    records, points = (random_texts(200, 1), random_texts(8, 2)) if "kernel" in before else (X, PROBES)
    plain = learner(**before).fit(records, Y).decision_function(points)[:, 0]
    for early in (True, False):
        fitted = learner(**before).fit(records, Y)
        if early:
            fitted.set_params(**after)
        with InteractivePredictor(
            fitted, NO_PRIVACY, state=tmp_path / f"{early}", random_state=0, accept_weak_privacy=True
        ) as session:
            fitted.set_params(**after)
            assert session.decide(points).scores == pytest.approx(plain)


def test_another_session_of_the_learner_does_not_change_an_open_one(tmp_path: Path) -> None:
    """A reopened session has the function of its state, which need not be that of the learner to the last bit."""
    fitted = learner().fit(X, Y)
    settings: dict[str, Any] = {"random_state": 0, "accept_weak_privacy": True}
    with InteractivePredictor(fitted, NO_PRIVACY, state=tmp_path / "a", **settings):
        pass
    with InteractivePredictor(fitted, NO_PRIVACY, state=tmp_path / "b", **settings) as session:
        before = session._learner.function_bytes()
        with InteractivePredictor.reopen(tmp_path / "a", fitted, random_state=0) as again:
            assert again._learner is not session._learner
        assert session._learner.function_bytes() == before
        assert fitted.freeze().function_bytes() == before


def test_what_the_learner_hands_out_cannot_be_changed_copied_or_seen() -> None:
    machine = learner().fit(X, Y).freeze()
    with pytest.raises(dataclasses.FrozenInstanceError):
        machine.function = None  # type: ignore[misc]
    for function in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(SessionError, match="private rows"):
            function(machine)
    assert "0." not in repr(machine)


def test_records_changed_in_place_do_not_reach_an_open_session(tmp_path: Path) -> None:
    own_X, own_y, probes = X.copy(), Y.copy(), PROBES.copy()
    read = learner(fit_intercept=False).read(own_X, own_y)
    digest = read.freeze().training_digest()
    own_X[:], own_y[:] = 0.0, 0
    assert read.freeze().training_digest() == digest
    with InteractivePredictor(
        read, NO_PRIVACY, state=tmp_path / "s", random_state=0, accept_weak_privacy=True
    ) as session:
        plain = learner(fit_intercept=False).fit(X, Y).decision_function(probes)
        assert session.decide(probes).scores == pytest.approx(plain[:, 0])


SCHEMA = Schema.from_dict(
    {
        "name": "a",
        "one_row_per_person": True,
        "columns": {"u": {"type": "number", "lower": -1, "upper": 1}},
        "target": {"name": "t", "classes": ["n", "y"]},
    }
)


def table(rows: int = 300) -> pd.DataFrame:
    u = np.random.default_rng(1).uniform(-1, 1, rows)
    return pd.DataFrame({"u": u, "t": np.where(u > 0, "y", "n")})


@pytest.mark.parametrize("failing", ["read", "fit"])
def test_a_read_that_fails_leaves_records_and_part_together(failing: str, tmp_path: Path) -> None:
    """The part that is charged is the part whose rows answer."""
    parts = split(table(), SCHEMA, test=0.2)
    ledger = Ledger.create(tmp_path / "budgets.db", "a", Guarantee(2.0, 1e-5))
    reader = KernelLearner(schema=SCHEMA, regularization=0.1).read(parts.train)
    before = reader.freeze()
    with pytest.raises(PrivlearnError):
        getattr(reader, failing)(parts.test, y=["n"])
    assert reader.freeze() is before
    assert reader.encoder_ is before.reader.encoder
    InteractivePredictor(reader, Guarantee(1.0, 1e-5), state=tmp_path / "s", ledger=ledger).close()
    (entry,) = ledger.statement().entries
    assert entry.part == "train"


def test_a_first_read_that_fails_leaves_nothing(tmp_path: Path) -> None:
    reader = KernelLearner(schema=SCHEMA, regularization=0.1)
    with pytest.raises(PrivlearnError):
        reader.read(split(table(), SCHEMA, test=0.2).train, y=["n"])
    with pytest.raises(ValueError, match="not fitted"):
        InteractivePredictor(reader, Guarantee(1.0, 1e-5), state=tmp_path / "s")
    assert not (tmp_path / "s").exists()


def test_the_count_stays_as_private_as_it_was_read(tmp_path: Path) -> None:
    """The exact number cannot enter a certificate that promises to protect it, nor an expected one replace it."""
    exact = learner(public_points=POINTS).read(X, Y)
    exact.set_params(guarantee=PRIVATE_COUNT, expected_records=10)
    expected = learner(public_points=POINTS, guarantee=PRIVATE_COUNT, expected_records=10).read(X, Y)
    expected.set_params(guarantee=None, expected_records=None)
    for read, promise in ((exact, PRIVATE_COUNT), (expected, Guarantee(1.0, 1e-3))):
        with pytest.raises(InvalidParameter, match="before it reads"):
            InteractivePredictor(read, promise, state=tmp_path / "s", accept_weak_privacy=True)
    with InteractivePredictor(
        expected, PRIVATE_COUNT, state=tmp_path / "s", accept_weak_privacy=True
    ) as session:
        assert session.certificate.mechanism.kernel_task.task.total == 10

"""What is durable, who may continue a session, and what is refused."""

from __future__ import annotations

import pickle
import sqlite3
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privlearn import Ledger
from privlearn.errors import BudgetExceeded, DataError, InvalidParameter, SessionError
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.session.function_release import CAPACITY
from privlearn.sessions import InteractivePredictor, machines, state
from tests.support.session_support import PROMISE, noise_scale, open_session, points_in_ball, written_learner

POINTS = points_in_ball(30, 3, 8)
KINDS = [("function_release", "tight"), ("pinp", "tight"), ("pinp", "paper")]


@pytest.mark.parametrize(("mechanism", "mode"), KINDS)
def test_a_reopened_session_is_where_it_was(tmp_path: Path, mechanism: str, mode: str) -> None:
    """Interrupted after ten points, it answers the rest as if it had not been, given the same random bits."""

    def learner() -> Any:
        return written_learner(total=10**8, regularization=0.1)

    def run(path: Path, generator: np.random.Generator, pause: bool) -> list[float]:
        session = open_session(path, learner(), mechanism=mechanism, mode=mode, random_state=generator)
        scores = [session.decide(point).scores for point in POINTS[:10]]
        if pause:
            session.close()
            session = InteractivePredictor.reopen(path, learner(), random_state=generator)
        scores += [session.decide(point).scores for point in POINTS]
        session.close()
        return scores

    whole = run(tmp_path / "whole.session", np.random.default_rng(3), pause=False)
    parts = run(tmp_path / "parts.session", np.random.default_rng(3), pause=True)
    assert whole == parts
    assert whole[:10] == whole[10:20]


def test_a_point_is_its_numbers(tmp_path: Path) -> None:
    session = open_session(tmp_path / "a.session")
    point = np.array([0.0, 0.25, 0.0])
    first = session.decide(point).scores
    assert session.decide(np.array([-0.0, 0.25, -0.0])).scores == first
    assert session.decide(np.array([point, point, -point])).scores[:2].tolist() == [first, first]
    assert session.decide(point.astype(np.float32)).scores == first
    near = session.decide(np.nextafter(point, 1.0)).scores
    assert near != first
    assert abs(near - first) < 0.1 * noise_scale(session)


def test_labels_and_shapes(tmp_path: Path) -> None:
    session = open_session(tmp_path / "a.session")
    answers = session.decide(POINTS)
    assert session.predict(POINTS).tolist() == ["yes" if score > 0 else "no" for score in answers.scores]
    assert session.predict(POINTS[0]) == answers.predictions[0]
    assert session.predict(list(POINTS[0])) == answers.predictions[0]
    assert set(answers.sources) == {"noisy"}


def test_the_state_is_private_append_only_and_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "a.session"
    session = open_session(path)
    session.predict(POINTS)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with pytest.raises(SessionError, match="reopen"):
        open_session(path)
    session.close()
    connection = sqlite3.connect(path)
    for statement in (
        "DELETE FROM session_answers",
        "UPDATE session_answers SET scores = x''",
        "UPDATE session_states SET header = ''",
    ):
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            connection.execute(statement)
    connection.close()


def test_without_its_state_a_session_cannot_go_on(tmp_path: Path) -> None:
    """Deleting it is no way to fresh noise: the cost has been spent, and a new session costs again."""
    path = tmp_path / "a.session"
    ledger = Ledger.create(tmp_path / "budget.db", "records", Guarantee(1.5, 1e-4))
    session = open_session(path, ledger=ledger)
    session.close()
    path.unlink()
    with pytest.raises(SessionError, match="no session"):
        InteractivePredictor.reopen(path, written_learner())
    with pytest.raises(BudgetExceeded):
        open_session(path, ledger=ledger)
    assert not path.exists()


@pytest.mark.parametrize("mechanism", ["function_release", "pinp"])
def test_the_ledger_is_charged_once_and_before_the_first_answer(tmp_path: Path, mechanism: str) -> None:
    for composition in ("basic", "renyi"):
        ledger = Ledger.create(
            tmp_path / f"{composition}.db", "records", Guarantee(3.0, 1e-4), composition=composition
        )
        path = tmp_path / f"{composition}.session"
        session = open_session(path, mechanism=mechanism, ledger=ledger)
        spent = ledger.statement().spent.epsilon
        assert spent > 0
        session.predict(POINTS)
        session.close()
        InteractivePredictor.reopen(path, written_learner()).close()
        assert ledger.statement().spent.epsilon == spent


def test_what_is_refused_costs_nothing_and_leaves_no_file(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "budget.db", "records", Guarantee(3.0, 1e-4))
    path = tmp_path / "a.session"
    wrong: list[dict[str, Any]] = [
        {"mechanism": "magic"},
        {"mode": "loose"},
        {"mode": "paper"},
        {"guarantee": Guarantee(1.0)},
        {"random_state": "seed"},
    ]
    for settings in wrong:
        with pytest.raises(InvalidParameter):
            open_session(path, ledger=ledger, **settings)
    with pytest.raises(SessionError, match="cannot create"):
        open_session(tmp_path / "no such folder" / "a.session")
    assert not path.exists()
    assert ledger.statement().spent.epsilon == 0
    assert ledger.statement().reserved.epsilon == 0


def test_bad_points_change_nothing(tmp_path: Path) -> None:
    session = open_session(tmp_path / "a.session")
    before = session.decide(POINTS).scores
    for bad in (np.full((1, 3), np.nan), np.full((2, 3), 7.0), np.zeros((1, 5))):
        with pytest.raises(DataError):
            session.predict(bad)
    assert np.array_equal(session.decide(POINTS).scores, before)
    session.predict(POINTS / 2)


@pytest.mark.parametrize(
    "other",
    [
        lambda: written_learner(total=2001),
        lambda: written_learner(regularization=0.02),
        lambda: _with_other_rows(),
        lambda: _with_other_kernel(),
    ],
)
def test_another_learner_is_refused(tmp_path: Path, other: Callable[[], Any]) -> None:
    path = tmp_path / "a.session"
    open_session(path).close()
    with pytest.raises(SessionError, match="learner"):
        InteractivePredictor.reopen(path, other())
    InteractivePredictor.reopen(path, written_learner()).close()  # and the refusal let go of the file


def _with_other_rows() -> Any:
    learner = written_learner()
    learner.centres = learner.centres / 2
    return learner


def _with_other_kernel() -> Any:
    from privlearn.features import kernel_from_name

    return written_learner(kernel=kernel_from_name("rbf", gamma=2.5))


def test_the_function_is_the_one_the_session_began_with(tmp_path: Path) -> None:
    """A learner solved again stops elsewhere within its tolerance; mixing both would be a second function."""
    path = tmp_path / "a.session"
    open_session(path).close()
    learner = written_learner()
    learner.coefficients = learner.coefficients + 1e-9
    with InteractivePredictor.reopen(path, learner) as again:
        assert again._learner.function_bytes() == written_learner().function_bytes()


def test_a_secure_session_stays_secure(tmp_path: Path) -> None:
    path = tmp_path / "a.session"
    session = open_session(path, random_state=None)
    assert session.certificate.is_private
    session.close()
    with pytest.raises(SessionError, match="without random_state"):
        InteractivePredictor.reopen(path, written_learner(), random_state=1)
    seeded = tmp_path / "b.session"
    open_session(seeded, random_state=1).close()
    assert not InteractivePredictor.reopen(seeded, written_learner()).certificate.is_private


def test_what_is_not_a_session_is_refused(tmp_path: Path) -> None:
    empty, other = tmp_path / "empty", tmp_path / "other"
    empty.touch()
    other.write_bytes(b"not a database, but long enough to be read as one" * 40)
    for path in (empty, other):
        with pytest.raises(SessionError):
            InteractivePredictor.reopen(path, written_learner())


def test_private_values_stay_inside(tmp_path: Path) -> None:
    session = open_session(tmp_path / "a.session", random_state=None)
    session.predict(POINTS)
    with pytest.raises(SessionError, match="pickled"):
        pickle.dumps(session)
    assert repr(session) == f"<InteractivePredictor function_release, {PROMISE}, 30 answers>"
    shown = str(session.certificate) + repr(session.certificate.to_dict())
    learner = written_learner()
    assert not any(repr(float(value)) in shown for value in learner.values(POINTS)[:, 0])


def test_a_full_session_still_knows_what_it_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert vars(machines)["CAPACITY"] == CAPACITY
    monkeypatch.setattr(machines, "CAPACITY", 30)
    session = open_session(tmp_path / "a.session")
    before = session.decide(POINTS).scores
    with pytest.raises(SessionError, match="different points"):
        session.predict(POINTS / 2)
    assert np.array_equal(session.decide(POINTS).scores, before)


def test_what_could_not_be_written_was_not_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.session"
    session = open_session(path, random_state=None)
    said = session.decide(POINTS[0]).scores

    def fail(*_: object) -> None:
        raise SessionError("disk full")

    monkeypatch.setattr(state.LockedSharedState, "append", fail)
    with pytest.raises(SessionError, match="disk full"):
        session.predict(POINTS[1])
    monkeypatch.undo()
    answers = session.decide(POINTS[:3]).scores
    assert answers[0] == said
    session.close()
    with InteractivePredictor.reopen(path, written_learner()) as again:
        assert again.decide(POINTS[:3]).scores.tolist() == answers.tolist()


def test_a_closed_session_says_how_to_go_on(tmp_path: Path) -> None:
    path = tmp_path / "a.session"
    with open_session(path) as session:
        first = session.decide(POINTS[0]).scores
    for point in POINTS[:2]:  # known or new
        with pytest.raises(SessionError, match="closed: continue it"):
            session.predict(point)
    with InteractivePredictor.reopen(path, written_learner()) as again:
        assert again.decide(POINTS[0]).scores == first


def test_a_state_deleted_under_an_open_session_ends_it(tmp_path: Path) -> None:
    path = tmp_path / "a.session"
    session = open_session(path)
    session.predict(POINTS[0])
    path.unlink()
    with pytest.raises(SessionError, match="deleted or moved"):
        session.predict(POINTS[1])
    session.close()
    with pytest.raises(SessionError, match="no session"):
        InteractivePredictor.reopen(path, written_learner())


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"learner": object()}, "KernelLearner"),
        ({"guarantee": 1.0}, "Guarantee\\(1.0, 1e-6\\)"),
        ({"guarantee": (1.0, 1e-6)}, "Guarantee\\(1.0, 1e-6\\)"),
    ],
)
def test_what_is_no_learner_and_no_promise_is_refused(tmp_path: Path, settings: Any, says: str) -> None:
    with pytest.raises(InvalidParameter, match=says):
        open_session(tmp_path / "a.session", **settings)


def test_a_folder_is_no_state(tmp_path: Path) -> None:
    with pytest.raises(SessionError, match="is a directory"):
        open_session(tmp_path)


def test_points_of_different_lengths_are_refused(tmp_path: Path) -> None:
    session = open_session(tmp_path / "a.session")
    with pytest.raises(DataError, match="different lengths"):
        session.predict([[0.1, 0.2, 0.3], [0.1]])
    session.close()


def test_a_replaced_state_is_noticed(tmp_path: Path) -> None:
    """Another session's noise is not this one's."""
    path, other = tmp_path / "a.session", tmp_path / "b.session"
    session = open_session(path)
    open_session(other).close()
    other.replace(path)
    with pytest.raises(SessionError, match="another session"):
        session.predict(POINTS[0])


def test_a_state_that_has_forgotten_answers_is_noticed(tmp_path: Path) -> None:
    path, older = tmp_path / "a.session", tmp_path / "older.session"
    session = open_session(path)
    older.write_bytes(path.read_bytes())
    session.predict(POINTS)
    older.replace(path)
    with pytest.raises(SessionError, match="answers of this session are missing"):
        session.predict(POINTS / 2)


def test_two_openings_take_turns(tmp_path: Path) -> None:
    path = tmp_path / "a.session"
    with open_session(path) as first, InteractivePredictor.reopen(path, written_learner()) as second:
        said = first.decide(POINTS[:10]).scores.tolist()
        assert second.decide(POINTS[5:15]).scores.tolist()[:5] == said[5:]
        assert first.decide(POINTS[10:15]).scores.tolist() == second.decide(POINTS[10:15]).scores.tolist()

"""Callers that wait for the same session share a commit; nothing leaves before it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privlearn.errors import DataError, LedgerError, SessionError
from privlearn.sessions import InteractivePredictor, LockedSharedState
from privlearn.sessions.interactive import Admission
from tests.support.session_support import open_session, points_in_ball, written_learner

POINTS = points_in_ball(20, 3, 8)


@contextmanager
def held(session: InteractivePredictor, waiting: int) -> Iterator[None]:
    """Keep the session until so many points wait for it."""
    with session._lock:
        yield
        while len(session._waiting) < waiting:
            time.sleep(0.001)


def ask_at_once(session: InteractivePredictor, points: list[Any]) -> list[Future[Any]]:
    with ThreadPoolExecutor(len(points)) as pool, held(session, len(points)):
        return [pool.submit(session.decide, point) for point in points]


def count_turns(session: InteractivePredictor, monkeypatch: pytest.MonkeyPatch) -> list[None]:
    turns: list[None] = []
    lock = session._state.lock

    def counted() -> Any:
        turns.append(None)
        return lock()

    monkeypatch.setattr(session._state, "lock", counted)
    return turns


def test_waiting_callers_share_a_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = open_session(tmp_path / "a.session", random_state=None)
    turns = count_turns(session, monkeypatch)
    scores = [answer.result().scores for answer in ask_at_once(session, list(POINTS))]
    assert len(turns) == 1
    with InteractivePredictor.reopen(tmp_path / "a.session", written_learner()) as again:
        assert again.decide(POINTS).scores.tolist() == scores


def test_points_that_wait_count_as_answered(tmp_path: Path) -> None:
    """Otherwise callers that come at the same time would together get past a limit on points."""
    session = open_session(tmp_path / "a.session", random_state=None)
    session.decide(POINTS[:5])
    told: list[tuple[int, int]] = []
    with ThreadPoolExecutor(2) as pool, held(session, 7):
        pool.submit(session.decide, POINTS[5:12])
        while len(session._waiting) < 7:
            time.sleep(0.001)
        pool.submit(session.decide, POINTS[3:9], Admission(lambda *counts: told.append(counts)))
        while not told:
            time.sleep(0.001)
    assert told[0] == (0, 12)
    assert session.answer_count == 12


def test_pinp_answers_one_caller_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    learner = written_learner(total=10**8, regularization=0.1)
    session = open_session(tmp_path / "a.session", learner, mechanism="pinp", random_state=None)
    turns = count_turns(session, monkeypatch)
    ask_at_once(session, list(POINTS[:5]))
    assert len(turns) == 5


def test_nobody_is_refused_for_another_callers_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = open_session(tmp_path / "a.session", random_state=None)
    values = session._learner.values

    def picky(points: Any) -> Any:
        if np.any(points == POINTS[3, 0]):
            raise DataError("the kernel failed")
        return values(points)

    monkeypatch.setattr(session._learner, "values", picky)
    answers = ask_at_once(session, list(POINTS[:6]))
    failed = [isinstance(answer.exception(), DataError) for answer in answers]
    assert failed == [place == 3 for place in range(6)]


def test_what_was_not_committed_is_never_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The commit fails after drawing and writing: those draws are gone, and later answers are the durable ones."""
    session = open_session(tmp_path / "a.session", random_state=None)
    lock = session._state.lock

    @contextmanager
    def uncommitted() -> Iterator[LockedSharedState]:
        with lock() as ours:
            yield ours
            raise LedgerError("disk full")

    monkeypatch.setattr(session._state, "lock", uncommitted)
    with pytest.raises(SessionError, match="its disk has space"):
        session.predict(POINTS[0])
    monkeypatch.undo()
    said = session.decide(POINTS[0]).scores
    with InteractivePredictor.reopen(tmp_path / "a.session", written_learner()) as again:
        assert again.decide(POINTS[0]).scores == said

"""A session that several processes answer: one answer per point, and one noise for all of them."""

from __future__ import annotations

import dataclasses
import os
import shutil
import signal
import struct
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privlearn import Ledger
from privlearn.errors import LedgerError, SessionError
from privlearn.guarantee import Guarantee
from privlearn.sessions import InteractivePredictor, LockedSharedState, SharedStore, interactive
from privlearn.sessions.interactive import Admission
from tests.support.forked import fork
from tests.support.postgresql_cluster import Cluster
from tests.support.raw_store import Refused, execute, is_file
from tests.support.session_support import PROMISE, noise_scale, open_session, points_in_ball, written_learner

POINTS = points_in_ball(24, 3, 8)
POOL = points_in_ball(60, 3, 21)
LINE = struct.Struct("<qd")
KINDS = [("function_release", "tight"), ("pinp", "tight"), ("pinp", "paper")]


def learner() -> Any:
    """PINP updates now and then with these facts."""
    return written_learner(total=10**8, regularization=0.1)


@pytest.fixture
def place(store: str) -> SharedStore:
    """Beside a ledger, as in a service."""
    Ledger.create(store, "census", Guarantee(3.0, 1e-4))
    return SharedStore(store, "a session")


def reopened(place: SharedStore, **settings: Any) -> InteractivePredictor:
    return InteractivePredictor.reopen(place, learner(), **settings)


def reopened_plain(place: SharedStore) -> InteractivePredictor:
    return InteractivePredictor.reopen(place, written_learner())


@pytest.mark.parametrize(("mechanism", "mode"), KINDS)
def test_two_that_alternate_answer_as_one(
    place: SharedStore, tmp_path: Path, mechanism: str, mode: str
) -> None:
    """Given the same random bits: so the noise of each is drawn given all answers of the other."""
    settings: dict[str, Any] = {"mechanism": mechanism, "mode": mode}
    alone = open_session(tmp_path / "alone", learner(), random_state=np.random.default_rng(3), **settings)
    bits = np.random.default_rng(3)
    first = open_session(place, learner(), random_state=bits, **settings)
    second = reopened(place, random_state=bits)
    for start, asked in zip(
        range(0, len(POINTS), 4), [first, second, second, first, second, first], strict=True
    ):
        some = POINTS[start : start + 4]
        together, by_one = asked.decide(some), alone.decide(some)
        assert together.scores.tolist() == by_one.scores.tolist()
        assert together.sources.tolist() == by_one.sources.tolist()
    everything = alone.decide(POINTS).scores.tolist()
    assert first.decide(POINTS).scores.tolist() == second.decide(POINTS).scores.tolist() == everything
    assert reopened(place).decide(POINTS).scores.tolist() == everything


def test_secure_draws_are_those_of_one_path(place: SharedStore) -> None:
    """At points that are nearly the same, two processes' noises are nearly the same."""
    first = open_session(place, random_state=None)
    second = reopened_plain(place)
    scale = noise_scale(first)
    for point in POINTS:
        difference = first.decide(point).scores - second.decide(np.nextafter(point, 1.0)).scores
        assert 0 < abs(difference) < 0.1 * scale


def test_the_ledger_is_charged_once(place: SharedStore) -> None:
    ledger = Ledger.open(place.store, "census")
    assert not place.exists()
    session = open_session(place, ledger=ledger)
    assert place.exists()
    reopened_plain(place).predict(POINTS)
    with pytest.raises(SessionError, match="exists: continue it"):
        open_session(place, ledger=ledger)
    assert ledger.statement().spent.epsilon == PROMISE.epsilon
    assert ledger.statement().reserved.epsilon == 0.0
    assert session.certificate.to_dict() == reopened_plain(place).certificate.to_dict()


def test_sessions_of_one_store_are_apart(place: SharedStore) -> None:
    other = SharedStore(place.store, "another")
    one, two = open_session(place, random_state=1), open_session(other, random_state=2)
    assert one.decide(POINTS).scores.tolist() != two.decide(POINTS).scores.tolist()
    assert len(execute(place.store, "SELECT 1 FROM session_answers")) == 2 * len(POINTS)


def test_what_is_known_needs_no_lock(place: SharedStore, monkeypatch: pytest.MonkeyPatch) -> None:
    session = open_session(place)
    before = session.decide(POINTS).scores.tolist()

    def no_lock() -> None:
        raise AssertionError("the lock was taken")

    monkeypatch.setattr(session._state, "lock", no_lock)
    assert session.decide(POINTS).scores.tolist() == before
    with pytest.raises(AssertionError):
        session.predict(POINTS / 2)


def test_the_tables_are_append_only(place: SharedStore) -> None:
    open_session(place).predict(POINTS)
    changes = [
        "DELETE FROM session_answers",
        "UPDATE session_answers SET source = 'guess'",
        "UPDATE session_states SET header = ''",
        "DELETE FROM session_states",
    ]
    replacing = [
        "REPLACE INTO session_answers SELECT * FROM session_answers",
        "REPLACE INTO session_states SELECT * FROM session_states",
    ]
    truncating = ["TRUNCATE session_answers"]
    for change in changes + (replacing if is_file(place.store) else truncating):
        with pytest.raises(Refused, match="append-only"):
            execute(place.store, change)


def test_a_refused_row_is_not_quoted(place: SharedStore) -> None:
    """Neither in the message nor where a log would show the reason: it holds the noise."""
    session = open_session(place)
    session.predict(POINTS[:1])
    known = session._state.records()[0]
    with pytest.raises(LedgerError) as refusal, session._state.lock() as locked:
        locked.append([dataclasses.replace(known, memory=b"noise drawn", source=None)])  # type: ignore[arg-type]
    shown = "".join(traceback.format_exception(refusal.value))
    for private in ("noise drawn", b"noise drawn".hex(), known.point.hex()):
        assert private not in shown


def test_what_is_refused_on_opening(place: SharedStore) -> None:
    with pytest.raises(SessionError, match="no session"):
        reopened_plain(place)
    open_session(place)
    with pytest.raises(SessionError, match="learner"):
        InteractivePredictor.reopen(place, written_learner(total=2001))
    for name in ("", "x" * 37, "two\nlines"):
        with pytest.raises(SessionError, match="1 to 36"):
            SharedStore(place.store, name)


def test_a_database_of_another_program_takes_no_session_and_no_cost(
    place: SharedStore, tmp_path: Path
) -> None:
    foreign = str(tmp_path / "patients.db")
    execute(foreign, "CREATE TABLE patients (name TEXT)")
    ledger = Ledger.open(place.store, "census")
    with pytest.raises(LedgerError, match="is not a ledger"):
        open_session(SharedStore(foreign, "a session"), ledger=ledger)
    assert ledger.statement().entries == ()


def test_a_closed_or_forked_session_says_how_to_go_on(place: SharedStore) -> None:
    session = open_session(place)

    def ask() -> None:
        with pytest.raises(SessionError, match="Reopen it in this one"):
            session.predict(POINTS[0])

    assert os.waitpid(fork(ask), 0)[1] == 0
    session.close()
    with pytest.raises(SessionError, match="is closed"):
        session.predict(POINTS[0])


def test_a_store_that_has_forgotten_answers_ends_the_session(tmp_path: Path) -> None:
    path, backup = tmp_path / "budgets.db", tmp_path / "backup.db"
    Ledger.create(path, "census", Guarantee(3.0, 1e-4))
    session = open_session(SharedStore(str(path), "a session"))
    shutil.copy(path, backup)
    session.predict(POINTS)
    shutil.copy(backup, path)
    with pytest.raises(SessionError, match="are missing in the store"):
        session.predict(POINTS / 2)


def test_a_turn_that_fails_leaves_nothing_and_the_session_goes_on(
    server: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection is lost between drawing and writing: those draws are gone, and were never seen."""
    store = server.new_place()
    Ledger.create(store, "census", Guarantee(3.0, 1e-4))
    session = open_session(SharedStore(store, "a session"), random_state=None)
    answer = session._session.answer

    def cut_off(points: Any) -> Any:
        server.execute(
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE application_name = 'privlearn'"
        )
        return answer(points)

    monkeypatch.setattr(session._session, "answer", cut_off)
    with pytest.raises(LedgerError, match="cannot be used"):
        session.predict(POINTS)
    monkeypatch.undo()
    assert execute(store, "SELECT * FROM session_answers") == []
    given = session.decide(POINTS).scores.tolist()
    assert (
        InteractivePredictor.reopen(SharedStore(store, "a session"), written_learner())
        .decide(POINTS)
        .scores.tolist()
        == given
    )


def test_a_turn_that_was_recorded_without_our_knowing_is_taken_up(
    place: SharedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection is lost where we would learn that the turn is durable."""
    session = open_session(place, random_state=None)
    lock = session._state.lock

    @contextmanager
    def lost() -> Iterator[LockedSharedState]:
        with lock() as ours:
            yield ours
        raise LedgerError("lost")

    monkeypatch.setattr(session._state, "lock", lost)
    with pytest.raises(LedgerError, match="lost"):
        session.predict(POINTS)
    monkeypatch.undo()
    recorded = reopened_plain(place).decide(POINTS).scores.tolist()
    assert len(execute(place.store, "SELECT 1 FROM session_answers")) == len(POINTS)
    assert session.decide(POINTS).scores.tolist() == recorded


def _ask(place: SharedStore, seed: int, pipe: int, rounds: int) -> None:
    """Points of a pool, in small batches; each answer is told as soon as it is known."""
    session = reopened(place)
    rng = np.random.default_rng(seed)
    for _ in range(rounds):
        chosen = rng.integers(len(POOL), size=rng.integers(1, 4))
        scores = session.decide(POOL[chosen]).scores
        os.write(pipe, b"".join(LINE.pack(place, score) for place, score in zip(chosen, scores, strict=True)))


def _heard(reader: int) -> dict[int, set[float]]:
    with closing(os.fdopen(reader, "rb")) as source:
        content = source.read()
    said: dict[int, set[float]] = {}
    for number, score in LINE.iter_unpack(content[: len(content) // LINE.size * LINE.size]):
        said.setdefault(number, set()).add(score)
    return said


def _started(child: Callable[[int, int], None], count: int) -> tuple[list[int], int]:
    reader, writer = os.pipe()
    children = [fork(lambda number=number: child(number, writer)) for number in range(count)]  # type: ignore[misc]
    os.close(writer)
    return children, reader


@pytest.mark.parametrize("mechanism", ["function_release", "pinp"])
def test_processes_that_ask_at_once_hear_one_answer_per_point(place: SharedStore, mechanism: str) -> None:
    """One of them is killed on the way; a line has 16 bytes, so that lines of several processes do not mix."""
    open_session(place, learner(), mechanism=mechanism, random_state=None)
    children, reader = _started(lambda number, pipe: _ask(place, number, pipe, 40), 3)
    while len(execute(place.store, "SELECT 1 FROM session_answers")) < 5:
        time.sleep(0.01)
    os.kill(children[0], signal.SIGKILL)
    ends = [os.waitpid(child, 0)[1] for child in children]
    assert ends[1:] == [0, 0]
    said = _heard(reader)
    assert len(said) > 30
    assert all(len(scores) == 1 for scores in said.values())
    again = reopened(place).decide(POOL[list(said)]).scores
    assert again.tolist() == [score for scores in said.values() for score in scores]


def test_killed_in_its_turn_a_process_leaves_nothing_and_no_lock(place: SharedStore) -> None:
    session = open_session(place, learner(), random_state=None)
    before = session.decide(POINTS[:3]).scores.tolist()

    def stop_in_the_turn(_: int, pipe: int) -> None:
        mine = reopened(place)
        with mine._state.lock() as locked:
            locked.append(mine._session.answer(POINTS[3:6]))
            os.write(pipe, b"drawn")
            time.sleep(3600)

    (child,), reader = _started(stop_in_the_turn, 1)
    assert os.read(reader, 5) == b"drawn"
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(reader)
    assert len(execute(place.store, "SELECT 1 FROM session_answers")) == 3
    given = session.decide(POINTS[:6]).scores.tolist()
    assert given[:3] == before
    assert reopened(place).decide(POINTS[:6]).scores.tolist() == given


def at_most(limit: int) -> Admission:
    """Refuse new points beyond a limit, as a server does."""

    def check(new: int, before: int) -> None:
        if new and before + new > limit:
            raise SessionError("the limit")

    return Admission(check)


def test_processes_together_keep_a_limit_of_points(place: SharedStore) -> None:
    """Each knows of the other's answers only what it reads in the transaction that stores its own."""
    first = open_session(place)
    second = reopened_plain(place)
    limit = at_most(5)
    first.decide(POINTS[:3], limit)
    with pytest.raises(SessionError, match="the limit"):
        second.decide(POINTS[3:6], limit)
    second.decide(POINTS[3:5], limit)
    with pytest.raises(SessionError, match="the limit"):
        first.decide(POINTS[5], limit)
    assert first.decide(POINTS[:5], limit).scores.tolist() == second.decide(POINTS[:5], limit).scores.tolist()
    assert len(execute(place.store, "SELECT 1 FROM session_answers")) == 5


def test_a_long_request_keeps_the_limit_as_a_whole(
    place: SharedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is answered in several transactions; none of them is begun if the last one could not be admitted."""
    monkeypatch.setattr(interactive, "POINTS_PER_LOCK", 2)
    first = open_session(place)
    second = reopened_plain(place)
    first.decide(POINTS[:3])
    with pytest.raises(SessionError, match="the limit"):
        second.decide(POINTS[3:9], at_most(8))
    assert len(execute(place.store, "SELECT 1 FROM session_answers")) == 3


def test_callers_that_share_a_transaction_keep_the_limit(place: SharedStore) -> None:
    """Points of another caller of the same process join a transaction only if the limit admits both."""
    first = open_session(place)
    second = reopened_plain(place)
    first.decide(POINTS[:4])
    second._waiting = {second._key(point): (point, True) for point in POINTS[10:12]}
    second.decide(POINTS[4], at_most(8))
    assert len(execute(place.store, "SELECT 1 FROM session_answers")) == 7
    second._waiting = {second._key(point): (point, True) for point in POINTS[12:14]}
    with pytest.raises(SessionError, match="the limit"):
        second.decide(POINTS[5], at_most(8))  # with those that wait; before anything is read
    second._waiting = {}
    second.decide(POINTS[5], at_most(8))
    assert len(execute(place.store, "SELECT 1 FROM session_answers")) == 8

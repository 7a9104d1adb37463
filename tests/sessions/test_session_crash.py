"""kill -9 during a stream of queries: no point ever gets two different answers."""

from __future__ import annotations

import os
import signal
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privlearn.errors import SessionError
from privlearn.sessions import InteractivePredictor
from privlearn.sessions.machines import SessionLearner
from tests.support.forked import fork
from tests.support.session_support import (
    open_session,
    points_in_ball,
    random_texts,
    written_learner,
    written_texts,
)

POOL = points_in_ball(400, 3, 21)
POOLS: dict[str, list[Any]] = {"numbers": list(POOL), "texts": random_texts(400, 21)}
LEARNERS: dict[str, Callable[..., SessionLearner]] = {"numbers": written_learner, "texts": written_texts}
LINE = struct.Struct("<qd")


def _ask_forever(path: Path, kind: str, round_number: int, pipe: int) -> None:
    """Points of a pool, one by one and in small batches; each answer is told as soon as it is known."""
    session = InteractivePredictor.reopen(path, learner(kind))
    rng, pool = np.random.default_rng(round_number), POOLS[kind]
    while True:
        chosen = rng.integers(len(pool), size=rng.integers(1, 4))
        scores = session.decide([pool[place] for place in chosen]).scores
        os.write(pipe, b"".join(LINE.pack(place, score) for place, score in zip(chosen, scores, strict=True)))


def learner(kind: str) -> SessionLearner:
    return LEARNERS[kind](total=10**8, regularization=0.1)


def _interrupted(path: Path, kind: str, round_number: int) -> list[tuple[int, float]]:
    """Return the output of a process before it was killed at a random moment."""
    reader, writer = os.pipe()
    process = fork(lambda: _ask_forever(path, kind, round_number, writer))
    os.close(writer)
    heard = os.read(reader, LINE.size)  # it is up and answering
    time.sleep(np.random.default_rng(1000 + round_number).uniform(0.0, 0.15))
    os.kill(process, signal.SIGKILL)
    while part := os.read(reader, 1 << 16):
        heard += part
    os.close(reader)
    assert os.WIFSIGNALED(os.waitpid(process, 0)[1])
    return list(LINE.iter_unpack(heard[: len(heard) // LINE.size * LINE.size]))


def _kill(path: Path, times: int, mechanism: str, kind: str) -> None:
    open_session(path, learner(kind), mechanism=mechanism, random_state=None).close()
    said: dict[int, set[float]] = {}
    for round_number in range(times):
        for place, score in _interrupted(path, kind, round_number):
            said.setdefault(place, set()).add(score)
    assert all(len(scores) == 1 for scores in said.values())
    session = InteractivePredictor.reopen(path, learner(kind))
    again = session.decide([POOLS[kind][place] for place in said]).scores
    assert again.tolist() == [score for scores in said.values() for score in scores]
    session.close()


@pytest.mark.parametrize("kind", ["numbers", "texts"])
@pytest.mark.parametrize("mechanism", ["function_release", "pinp"])
def test_no_point_gets_two_answers_when_killed(tmp_path: Path, mechanism: str, kind: str) -> None:
    _kill(tmp_path / "a.session", 10, mechanism, kind)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["numbers", "texts"])
@pytest.mark.parametrize("mechanism", ["function_release", "pinp"])
def test_no_point_gets_two_answers_when_killed_a_hundred_times(
    tmp_path: Path, mechanism: str, kind: str
) -> None:
    _kill(tmp_path / "a.session", 100, mechanism, kind)


def test_processes_take_turns_and_children_inherit_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.session"
    session = open_session(path)
    first = session.decide(POOL[0]).scores

    def ask_too() -> None:
        with InteractivePredictor.reopen(path, written_learner()) as mine:
            assert mine.decide(POOL[0]).scores == first
            mine.predict(POOL[1])

    def ask_with_the_parents() -> None:
        with pytest.raises(SessionError, match="belongs to the process"):
            session.predict(POOL[1])

    for child in (ask_too, ask_with_the_parents):
        assert os.waitpid(fork(child), 0)[1] == 0
    assert session.decide(POOL[:2]).scores[0] == first


def test_two_processes_cannot_both_create(tmp_path: Path) -> None:
    path = tmp_path / "a.session"
    codes = []
    for process in [fork(lambda: open_session(path)) for _ in range(4)]:
        codes.append(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]))
    assert sorted(codes) == [0, 1, 1, 1]

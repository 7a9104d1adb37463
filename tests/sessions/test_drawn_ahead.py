"""Noise drawn ahead: every draw of the source is given once, in its order."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from privlearn.sessions import InteractivePredictor, drawn_ahead
from privlearn.sessions.drawn_ahead import DrawnAhead
from tests.support.session_support import open_session, points_in_ball, written_learner


class Counted:
    """Gives 0, 1, 2, ... of each scale."""

    def __init__(self) -> None:
        self.given: dict[float, int] = {}

    def discrete_gaussian(self, scale: float, size: int) -> NDArray[np.int64]:
        start = self.given.get(scale, 0)
        self.given[scale] = start + size
        return np.arange(start, start + size, dtype=np.int64)


@pytest.fixture(autouse=True)
def slow_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawn_ahead, "LONGEST", 1e9)


def test_what_was_drawn_long_ago_or_before_another_answered_is_not_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A machine that was copied in between has the same draws in its memory."""
    ahead = DrawnAhead(Counted())
    assert ahead.discrete_gaussian(2.0, 1).tolist() == [0]
    ahead.forget()
    assert ahead.discrete_gaussian(2.0, 1).tolist() == [64]
    monkeypatch.setattr(drawn_ahead, "LONGEST", -1.0)
    assert ahead.discrete_gaussian(2.0, 1).tolist() == [128]


def test_an_answer_of_another_process_ends_what_was_drawn_ahead(tmp_path: Path) -> None:
    path = tmp_path / "shared.session"
    first = open_session(path, random_state=None)
    points = points_in_ball(4, 3, 5)
    first.decide(points[0])
    kept = first._session._randomness
    assert isinstance(kept, DrawnAhead)
    assert kept._kept
    with InteractivePredictor.reopen(path, written_learner()) as second:
        second.decide(points[1])
    with first._state.turn() as turn:
        first._take_up(turn.missed(len(first._known)))
    assert not kept._kept
    first.close()


def test_each_draw_is_given_once() -> None:
    ahead = DrawnAhead(Counted())
    sizes = [1, 3, 64, 1, 200, 0, 7, 60]
    for scale in (2.0, 5.0):
        drawn = np.concatenate([ahead.discrete_gaussian(scale, size) for size in sizes])
        assert drawn.tolist() == list(range(sum(sizes)))


def test_the_source_is_asked_seldom() -> None:
    source = Counted()
    ahead = DrawnAhead(source)
    for _ in range(64):
        ahead.discrete_gaussian(2.0, 1)
    assert source.given == {2.0: 64}

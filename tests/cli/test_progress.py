"""Progress appears for long work only."""

from __future__ import annotations

import io
import time

import pytest
from rich.console import Console

from privlearn.cli import terminal


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    shown = io.StringIO()
    monkeypatch.setattr(terminal, "messages", Console(file=shown, force_terminal=True))
    return shown


def test_short_work_shows_nothing(screen: io.StringIO) -> None:
    with terminal.LateProgress("training") as progress:
        progress.describe("training: step 1")
        progress.advance()
    assert screen.getvalue() == ""


def test_long_work_shows_where_it_is(screen: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "_PROGRESS_DELAY_SECONDS", 0.0)
    with terminal.LateProgress("training", total=3) as progress:
        while "training" not in screen.getvalue():
            time.sleep(0.01)
        progress.describe("training: step 7")
        while "step 7" not in screen.getvalue():
            time.sleep(0.01)


def test_an_error_takes_the_bar_away(screen: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "_PROGRESS_DELAY_SECONDS", 0.0)
    progress = terminal.LateProgress("training")
    with pytest.raises(ValueError, match="unsolvable"):
        _fail_once_shown(progress, screen)
    assert not progress._bar.live.is_started


def _fail_once_shown(progress: terminal.LateProgress, screen: io.StringIO) -> None:
    with progress:
        while "training" not in screen.getvalue():
            time.sleep(0.01)
        raise ValueError("unsolvable")

"""Whoever stops a command, with Ctrl-C or SIGTERM, reads what became of its cost: in a real process."""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from privlearn import Ledger
from privlearn.cli import main
from tests.support.cli_support import Census
from tests.support.forked import child_context

BEFORE = "privlearn.data.encoding.packed_cells.PackedCells.add"
AFTER = "privlearn.mechanisms.release.objective.ObjectivePerturbation.run"


def _stopped(files: Census, where: str, number: signal.Signals) -> tuple[int, str]:
    """Return the exit code and the output of a training that stops where a method is called."""
    options = ["--schema", files.schema, "--out", files / "m.privlearn", "--ledger", files.ledger]
    arguments = ["train", files.table, *options, "--epsilon", 1, "--delta", "1e-6"]
    screen = files / "screen"
    screen.touch()
    process = child_context().Process(target=_train, args=(where, list(map(str, arguments)), str(screen)))
    process.start()
    while "waiting\n" not in screen.read_text():
        assert process.is_alive(), screen.read_text()
        time.sleep(0.02)
    os.kill(process.pid, number)
    process.join(120)
    return process.exitcode, screen.read_text()


def _train(where: str, arguments: list[str], screen: str) -> None:
    """The command, which waits where the method is called."""
    written = os.open(screen, os.O_WRONLY | os.O_APPEND)
    os.dup2(written, 1)
    os.dup2(written, 2)
    owner, name = where.rsplit(".", 1)
    module, kind = owner.rsplit(".", 1)
    setattr(getattr(importlib.import_module(module), kind), name, _wait)
    main(arguments)


def _wait(*_: object, **__: object) -> None:
    print("waiting", flush=True)
    time.sleep(60)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_before_the_charge_nothing_was_charged(budgeted: Census, number: signal.Signals) -> None:
    code, said = _stopped(budgeted, BEFORE, number)
    assert code == 128 + number
    assert "error: stopped: nothing was charged to a ledger" in said
    assert Ledger.open(budgeted.ledger, "census").statement().entries == ()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_after_the_charge_its_cost_stays_reserved(budgeted: Census, number: signal.Signals) -> None:
    code, said = _stopped(budgeted, AFTER, number)
    assert code == 128 + number
    assert "error: stopped: its cost stays reserved: (epsilon = 1, delta = 1e-06)" in said
    (entry,) = Ledger.open(budgeted.ledger, "census").statement().entries
    assert entry.state == "reserved"


def test_while_modules_are_imported_nothing_is_said(tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text("import time\nprint('importing', flush=True)\ntime.sleep(60)\n")
    with subprocess.Popen(
        [sys.executable, "-m", "privlearn", "--help"],
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=30) == (b"", b"")
    assert process.returncode == -signal.SIGINT


def _stop(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def _asked(monkeypatch: pytest.MonkeyPatch, answer: Callable[..., Any]) -> None:
    """`privlearn ask release`, stopped: the server takes the job, or ``answer`` is all there is."""
    pytest.importorskip("httpx2")
    from privlearn.client.connection import Connection

    monkeypatch.setenv("PRIVLEARN_KEY", "pl_1_x")
    monkeypatch.setattr(Connection, "get", _stop)
    monkeypatch.setattr(Connection, "send", answer)
    with pytest.raises(SystemExit) as ended:
        main(["ask", "release", "clinic", "--epsilon", "0.6", "--out", "never.privlearn"])
    assert ended.value.code == 128 + signal.SIGINT


def test_a_job_goes_on_at_the_server(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    record = {"id": "5f0c", "state": "waiting_for_approval", "stage": "waiting"}
    _asked(monkeypatch, lambda *_, **__: SimpleNamespace(json=lambda: record))
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("Job 5f0c runs on the server")
    assert "stopped: job 5f0c goes on at the server, and pays when it is done" in told.err
    assert "`privlearn ask cancel 5f0c` ends it" in told.err
    assert "nothing was charged" not in told.err


def test_a_request_that_was_being_sent_may_have_arrived(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _asked(monkeypatch, _stop)
    told = capsys.readouterr().err
    assert "stopped: the request may have reached the server" in told
    assert "nothing was charged" not in told

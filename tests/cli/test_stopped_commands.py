"""Whoever stops a command, with Ctrl-C or SIGTERM, reads what the ledger says of it: in a real process."""

from __future__ import annotations

import importlib
import os
import signal
import time

import pytest

from privlearn.cli import main
from privlearn.ledger import Ledger
from tests.support.cli_support import Census
from tests.support.forked import child_context

BEFORE = "privlearn.data.encode.packed_cells.PackedCells.add"
AFTER = "privlearn.mechanisms.release.objective.ObjectivePerturbation.run"


def _stopped(files: Census, where: str, number: signal.Signals) -> tuple[int, str]:
    """The exit code and what was said, of a training that is stopped where a method is called."""
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

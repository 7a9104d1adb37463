"""Whoever stops a command, with Ctrl-C or SIGTERM, reads what the ledger says of it: in a real process."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from privlearn.ledger import Ledger
from tests.support.cli_support import Census

_TRAIN = """
import importlib, sys, time
owner, name = sys.argv.pop(1).rsplit(".", 1)
module, kind = owner.rsplit(".", 1)

def wait(*_, **__):
    print("waiting", flush=True)
    time.sleep(60)

setattr(getattr(importlib.import_module(module), kind), name, wait)
from privlearn.cli import main
main()
"""
BEFORE = "privlearn.data.encode.packed_cells.PackedCells.add"
AFTER = "privlearn.mechanisms.release.objective.ObjectivePerturbation.run"


def _stopped(files: Census, where: str, number: signal.Signals) -> tuple[int, str]:
    """The exit code and what was said, of a training that is stopped where a method is called."""
    options = ["--schema", files.schema, "--out", files / "m.privlearn", "--ledger", files.ledger]
    arguments = ["train", files.table, *options, "--epsilon", 1, "--delta", "1e-6"]
    with subprocess.Popen(
        [sys.executable, "-c", _TRAIN, where, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "waiting\n"
        process.send_signal(number)
        _, said = process.communicate(timeout=120)
        return process.returncode, said


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

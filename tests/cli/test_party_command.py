"""`privlearn party --give-back`: after a kill, what nothing was sent for; and never while the run's process lives."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from privlearn import Ledger
from privlearn.cli import app
from privlearn.errors import InvalidParameter
from privlearn.parties import JointTraining
from privlearn.parties.run import PartyMemory, RunBudget
from tests.support.process_cases import Site
from tests.support.run_cases import SCHEMA

pytest.importorskip("flwr", reason="the extra `multiparty` is not installed")


def test_what_a_killed_process_left_is_given_back_and_its_file_forgotten(tmp_path: Path) -> None:
    """Its file is in the folder that the settings name: a service may not write where they are."""
    site = Site(tmp_path)
    (tmp_path / "state").mkdir()
    with (tmp_path / "north.toml").open("a") as settings:
        settings.write('state = "state"\n')
    plan = JointTraining.load(tmp_path / "plan.toml")
    RunBudget(plan, "north", Ledger.open(tmp_path / "north.ledger", SCHEMA.name)).reserve()
    path = tmp_path / "state" / f"north.{plan.digest}.run"
    memory = PartyMemory(path)
    memory.write({})
    command = ["party", str(tmp_path / "north.toml"), "--give-back"]
    with pytest.raises(InvalidParameter, match="another process works on the run"):
        CliRunner().invoke(app, command, catch_exceptions=False)
    assert [entry.state for entry in site.statement("north").entries] == ["reserved"]
    memory.close()
    shown = CliRunner().invoke(app, command, catch_exceptions=False)
    assert "Gave back 1 reservations" in shown.output
    assert [entry.state for entry in site.statement("north").entries] == ["cancelled"]
    assert not path.exists()

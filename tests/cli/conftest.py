"""The command line run in this process, and a small simulated census to run it on."""

from __future__ import annotations

from pathlib import Path

import pytest

from privlearn.cli import main
from privlearn.data import census_schema, simulated_census, write_table
from tests.support.cli_support import Census, Result, Run


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """``run("verify", path)``: what the real entry point printed and its exit code."""

    def run_main(*arguments: object) -> Result:
        capsys.readouterr()
        with pytest.raises(SystemExit) as exit_:
            main([str(argument) for argument in arguments])
        told = capsys.readouterr()
        return Result(int(exit_.value.code or 0), told.out, told.err)

    return run_main


@pytest.fixture
def census(tmp_path: Path) -> Census:
    files = Census(tmp_path)
    write_table(simulated_census(400, seed=1), files.table)
    write_table(simulated_census(50, seed=2).drop_columns(["income"]), files.new_rows)
    census_schema().save(files.schema)
    return files


@pytest.fixture
def budgeted(census: Census, run: Run) -> Census:
    """Return the census with a budget of epsilon 2, delta 1e-5."""
    created = run("budget", "create", "census", "--ledger", census.ledger, "--epsilon", 2, "--delta", "1e-5")
    assert created.code == 0
    return census


@pytest.fixture
def train(census: Census, run: Run) -> Run:
    """``train("--epsilon", 1, out="a.privlearn")``: `privlearn train` on the census, by default with delta 0."""

    def run_train(*arguments: object, out: str = "income.privlearn") -> Result:
        if "--delta" not in arguments:
            arguments += ("--delta", 0)
        return run("train", census.table, "--schema", census.schema, "--out", census / out, *arguments)

    return run_train

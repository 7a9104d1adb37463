"""privlearn check: the holder's list of everything that does not fit."""

from __future__ import annotations

from tests.support.cli_support import Census, Run


def test_a_table_that_fits(census: Census, run: Run) -> None:
    told = run("check", census.table, "--schema", census.schema)
    assert told.code == 0
    assert "400 rows, 7 columns: nothing stops a training" in told.stdout
    assert "PRIVATE" in told.stderr


def test_a_table_that_does_not(census: Census, run: Run) -> None:
    text = census.table.read_text().replace("hours", "hour", 1)
    census.table.write_text(text)
    told = run("check", census.table, "--schema", census.schema)
    assert told.code == 1
    assert "is not in the table. Did you mean 'hour'?" in told.stdout
    assert "1 problem would stop a training" in told.stdout

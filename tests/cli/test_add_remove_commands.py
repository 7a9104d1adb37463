"""The commands under add/remove: they ask for an expected number of records, and tell no other."""

from __future__ import annotations

import pytest

from privlearn import Release
from privlearn.data import read_table, write_table
from tests.support.cli_support import Census, Run

PROMISE = ("--epsilon", 1, "--delta", "1e-6", "--neighbours", "add_remove")


def test_train_says_what_was_expected(census: Census, run: Run) -> None:
    table = read_table(census.table)
    told = set()
    for count in (0, 1, table.num_rows - 1, table.num_rows):
        write_table(table.slice(0, count), census / "rows.csv")
        trained = run(
            "train", census / "rows.csv", "--schema", census.schema, *PROMISE, "--expected-records", 2500,
            "--out", census / "model.privlearn", "--force",
        )  # fmt: skip
        assert trained.code == 0, trained.told
        verified = run("verify", census / "model.privlearn")
        assert verified.code == 0
        told.add(trained.stdout + verified.stdout)
    assert len(told) == 1
    assert "an expected 2500 records" in told.pop()
    assert Release.load(census / "model.privlearn").certificate.task.total == 2500


def test_audit_of_such_a_release(census: Census, run: Run) -> None:
    run(
        "train", census.table, "--schema", census.schema, *PROMISE, "--expected-records", 2500,
        "--out", census / "model.privlearn",
    )  # fmt: skip
    assert run("audit", census / "model.privlearn").code == 0


@pytest.mark.parametrize(
    "arguments", [PROMISE, (*PROMISE[:4], "--expected-records", 10)], ids=["missing", "public"]
)
def test_refused_before_the_table_is_read(arguments: tuple[object, ...], census: Census, run: Run) -> None:
    for command in ("train", "discover"):
        told = run(
            command,
            census / "nowhere.csv",
            "--schema",
            census.schema,
            *arguments,
            "--out",
            census / "out.yaml",
        )
        assert told.code == 2
        assert "expected" in told.stderr
        assert "nowhere.csv" not in told.stderr


def test_plan_and_budget(census: Census, run: Run) -> None:
    planned = run("plan", "--schema", census.schema, "--rows", 30000, *PROMISE)
    assert planned.code == 0, planned.told
    made = run("budget", "create", "census", "--ledger", census / "b.db", *PROMISE)
    assert made.code == 0
    assert "add_remove" in made.stdout

"""Describing a table from the shell: a file, a page, one charge."""

from __future__ import annotations

from privlearn import Ledger
from tests.support.cli_support import Census, Run


def test_one_charge_a_file_and_a_page(budgeted: Census, run: Run) -> None:
    told = run(
        "describe", budgeted.table, "--schema", budgeted.schema, "--epsilon", 1, "--delta", "1e-6",
        "--ledger", budgeted.ledger, "--out", budgeted / "census.description", "--page", budgeted / "census.html",
    )  # fmt: skip
    assert told.code == 0, told.stderr
    assert "correlation of age and hours" in told.stdout
    assert "false alarms" not in told.stdout
    assert Ledger.open(budgeted.ledger, "census").statement().spent.epsilon == 1.0
    assert "false alarms" in run("verify", budgeted / "census.description").stdout
    assert "occupation" in run("inspect", budgeted / "census.description").stdout
    assert (budgeted / "census.html").read_text().startswith("<!DOCTYPE html>")


def test_what_is_wrong_is_said_and_nothing_is_charged(budgeted: Census, run: Run) -> None:
    common = ("describe", budgeted.table, "--schema", budgeted.schema, "--ledger", budgeted.ledger)
    out = ("--out", budgeted / "census.description")
    (budgeted / "bad.csv").write_text("age,hours\nx,1\n")
    attempts = (
        (*common, "--epsilon", -1, *out),
        (*common, "--epsilon", 100, "--accept-weak-privacy", *out),
        (*common, "--epsilon", 1, "--out", budgeted.table),
        (*common, "--epsilon", 1, *out, "--page", budgeted / "census.description"),
        ("describe", budgeted / "bad.csv", *common[2:], "--epsilon", 1, *out),
        (*common, "--epsilon", 1, "--part", "train", *out),
    )
    for attempt in attempts:
        assert run(*attempt).code != 0
    assert Ledger.open(budgeted.ledger, "census").statement().entries == ()
    assert not (budgeted / "census.description").exists()

"""What the ledger says of a command: which file it paid for, and the note that was given."""

from __future__ import annotations

import pytest

from privlearn import Ledger
from tests.support.cli_support import Census, Run

PRICE = ("--epsilon", 1, "--delta", "1e-6")


def test_an_entry_has_the_file_and_the_note(train: Run, budgeted: Census, run: Run) -> None:
    told = train(*PRICE, "--ledger", budgeted.ledger, "--note", "for the [b]oard", out="board.privlearn")
    assert told.code == 0, told.told
    (entry,) = Ledger.open(budgeted.ledger, "census").statement().entries
    assert (entry.file_name, entry.note) == ("board.privlearn", "for the [b]oard")
    shown = run("budget", "--ledger", budgeted.ledger).stdout
    for word in ("file", "note", "board", "[b]oard"):
        assert word in shown


def test_without_a_note_there_is_no_column_for_it(train: Run, budgeted: Census, run: Run) -> None:
    assert train(*PRICE, "--ledger", budgeted.ledger).code == 0
    (entry,) = Ledger.open(budgeted.ledger, "census").statement().entries
    assert (entry.file_name, entry.note) == ("income.privlearn", "")
    shown = run("budget", "--ledger", budgeted.ledger).stdout
    assert "file" in shown
    assert "note" not in shown


def test_what_is_bought_carries_them_too(budgeted: Census, run: Run) -> None:
    wanted = budgeted / "wanted.schema.yaml"
    wanted.write_text(
        "name: census\ncolumns:\n  age: {type: number, lower: estimate, upper: estimate}\n", encoding="utf-8"
    )
    told = run("discover", budgeted.table, "--schema", wanted, "--epsilon", 1, "--out", budgeted / "age.yaml",
               "--ledger", budgeted.ledger, "--note", "bounds")  # fmt: skip
    assert told.code == 0, told.told
    (entry,) = Ledger.open(budgeted.ledger, "census").statement().entries
    assert (entry.file_name, entry.note) == ("age.yaml", "bounds")


def test_a_budget_without_delta_says_what_it_does_not_allow(train: Run, census: Census, run: Run) -> None:
    create = ("budget", "create", "census", "--ledger", census.ledger, "--epsilon", 2)
    assert "This budget has no delta" in run(*create).told
    assert "`privlearn budget show` shows it" in run(*create).told
    told = " ".join(train(*PRICE, "--ledger", census.ledger).stderr.split())
    assert "Delta is missing, not epsilon: 0 is left and 1e-06 was requested" in told
    assert "This budget has no delta" not in run(*create, "--delta", "1e-6").told


@pytest.mark.parametrize("note", ["two\nlines", "x" * 201, " "])
def test_a_note_that_cannot_be_kept_costs_nothing(train: Run, budgeted: Census, note: str) -> None:
    told = train(*PRICE, "--ledger", budgeted.ledger, "--note", note)
    assert told.code == 1
    assert "the note must be one line of 1 to 200 printable characters" in " ".join(told.stderr.split())
    assert Ledger.open(budgeted.ledger, "census").statement().entries == ()


def test_a_note_needs_a_ledger(train: Run) -> None:
    told = train(*PRICE, "--note", "for the board")
    assert told.code == 2
    assert "--note needs a ledger. Add --ledger PATH." in " ".join(told.stderr.split())

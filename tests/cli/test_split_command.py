"""Splitting from the shell: two files, their notes, and a ledger that charges the larger price."""

from __future__ import annotations

import pyarrow as pa

from privlearn import Ledger
from privlearn.data import read_table, write_table
from tests.support.cli_support import Census, Run


def split(run: Run, census: Census, *more: object) -> None:
    told = run(
        "split", census.table, "--schema", census.schema, "--test", 0.25, "--seed", "autumn",
        "--out-train", census / "train.csv", "--out-test", census / "test.csv", *more,
    )  # fmt: skip
    assert told.code == 0, told.stderr
    assert "300 records to train and 100 records to test" in told.stdout


def test_training_on_one_part_and_evaluating_on_the_other_costs_the_larger_price(
    budgeted: Census, run: Run
) -> None:
    split(run, budgeted)
    charged = ("--ledger", budgeted.ledger)
    trained = run(
        "train", budgeted / "train.csv", "--schema", budgeted.schema, "--epsilon", 1, "--delta", 0, *charged,
        "--part", "train", "--out", budgeted / "income.privlearn",
    )  # fmt: skip
    assert trained.code == 0, trained.stderr
    measured = run(
        "evaluate", budgeted / "income.privlearn", budgeted / "test.csv", "--epsilon", 1.5, *charged,
        "--part", "test", "--out", budgeted / "income.evaluation",
    )  # fmt: skip
    assert measured.code == 0, measured.stderr
    assert "part 'test'" in measured.stdout
    assert Ledger.open(budgeted.ledger, "census").statement().spent.epsilon == 1.5
    shown = run("budget", "show", *charged).stdout
    assert "train" in shown
    assert "test" in shown


def test_the_cells_are_as_they_were(census: Census, run: Run) -> None:
    split(run, census)
    before = read_table(census.table)
    after = pa.concat_tables([read_table(census / name) for name in ("train.csv", "test.csv")])
    assert after.column_names == before.column_names
    order = [(name, "ascending") for name in before.column_names]
    assert after.sort_by(order).equals(before.sort_by(order))


def test_text_keeps_its_spelling(census: Census, run: Run) -> None:
    table = read_table(census.table).append_column("code", pa.array(["007", "NA"] * 200))
    write_table(table, census.table)
    split(run, census)
    assert {'"007"', '"NA"'} == {
        line.rsplit(",", 1)[1] for line in (census / "test.csv").read_text().splitlines()[1:]
    }


def test_what_is_wrong_is_said_and_nothing_is_charged(budgeted: Census, run: Run) -> None:
    split(run, budgeted)
    common = ("--schema", budgeted.schema, "--epsilon", 1, "--delta", 0, "--out", budgeted / "m.privlearn")
    attempts: dict[str, tuple[str, ...]] = {
        "is the part 'test', not 'train'": ("test.csv", "--part", "train", "--ledger", str(budgeted.ledger)),
        "not a part of a split": ("census.csv", "--part", "train", "--ledger", str(budgeted.ledger)),
        "--part needs a ledger": ("train.csv", "--part", "train"),
    }
    for words, (table, *more) in attempts.items():
        told = run("train", budgeted / table, *common, *more)
        assert told.code != 0
        assert words in told.stderr
    assert Ledger.open(budgeted.ledger, "census").statement().entries == ()


def test_nothing_is_replaced_unasked(census: Census, run: Run) -> None:
    split(run, census)
    settings = (
        "split",
        census.table,
        "--schema",
        census.schema,
        "--out-test",
        census / "other.csv",
        "--out-train",
    )
    assert "exists" in run(*settings, census / "train.csv").stderr
    assert "same file" in run(*settings, census / "other.csv").stderr
    assert ".csv or .parquet" in run(*settings, census / "train.csv.gz").stderr
    split(run, census, "--force")


def test_a_split_in_secret_is_not_said_to_have_a_seed_that_repeats_it(census: Census, run: Run) -> None:
    files = ("--out-train", census / "train.csv", "--out-test", census / "test.csv")
    secret = run("split", census.table, "--schema", census.schema, *files)
    assert "drawn in secret" in secret.stdout
    assert ", seed " not in secret.stdout
    again = run("split", census.table, "--schema", census.schema, *files, "--seed", "autumn", "--force")
    assert "seed autumn" in again.stdout

"""`privlearn discover`, and `privlearn train` with a schema that has gaps."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml

from privlearn import Ledger, Release, Schema
from privlearn.data import simulated_census, write_table
from tests.support.cli_support import Census, Result, Run

PRICE = ("--epsilon", 2, "--delta", "1e-5")
HALF = ("--split", "bounds=0.5,fit=0.5")


@pytest.fixture
def wanted(census: Census) -> Path:
    """Return the census with 2000 people, and its schema with gaps."""
    write_table(simulated_census(2000, seed=1), census.table)
    content = yaml.safe_load(census.schema.read_text())
    content["columns"]["age"] |= {"lower": "estimate", "upper": "estimate"}
    content["columns"]["hours"]["upper"] = "estimate"
    content["columns"]["occupation"] = {"type": "category", "values": "estimate"}
    content["target"]["classes"] = "estimate"
    (census / "wanted.yaml").write_text(yaml.safe_dump(content))
    return census / "wanted.yaml"


@pytest.fixture
def discover(census: Census, wanted: Path, run: Run) -> Run:
    def run_discover(*arguments: object, out: str = "bought.yaml") -> Result:
        return run("discover", census.table, "--schema", wanted, "--out", census / out, *arguments)

    return run_discover


@pytest.fixture
def train_wanted(census: Census, wanted: Path, run: Run) -> Run:
    def run_train(*arguments: object) -> Result:
        return run("train", census.table, "--schema", wanted, "--out", census / "m.privlearn", *arguments)

    return run_train


def spent(census: Census) -> list[tuple[str, str, float]]:
    entries = Ledger.open(census.ledger, "census").statement().entries
    return [(entry.purpose, entry.state, entry.amount.epsilon) for entry in entries]


def test_discover_writes_a_schema_that_trains(budgeted: Census, discover: Run, run: Run) -> None:
    told = discover(*PRICE, "--ledger", budgeted.ledger)
    assert told.code == 0, told.told
    assert re.search(r"age +lower [\d.]+, upper [\d.]+", told.stdout)
    assert re.search(r"hours +upper [\d.]+", told.stdout)
    assert "income" in told.stdout
    assert "high, low" in told.stdout
    assert "Guarantee: (epsilon = 2, delta = 1e-05)" in told.stdout
    assert spent(budgeted) == [("discover: 3 bounds, 2 lists", "committed", 2.0)]
    schema = Schema.load(budgeted / "bought.yaml")
    assert schema.columns["hours"].lower == 0.0  # type: ignore[union-attr]
    model = budgeted / "later.privlearn"
    trained = run(
        "train",
        budgeted.table,
        "--schema",
        budgeted / "bought.yaml",
        "--epsilon",
        1,
        "--delta",
        "1e-6",
        "--out",
        model,
    )
    assert trained.code == 0, trained.told
    assert "Together with the private bounds of the schema: (epsilon = 3, delta = 1.1e-05)" in trained.stdout


def test_the_word_for_what_is_left_to_buy(census: Census, wanted: Path, run: Run) -> None:
    told = run("compare", census.table, "--schema", wanted, "--out", census / "page.html")
    assert told.code == 1
    assert "privlearn discover" in told.stderr


def test_train_buys_and_trains_for_one_total(budgeted: Census, train_wanted: Run, run: Run) -> None:
    told = train_wanted(*PRICE, "--split", "bounds=0.4,fit=0.6", "--ledger", budgeted.ledger)
    assert told.code == 0, told.told
    plan, purchase, wrote = (told.stdout.index(word) for word in ("bounds      40%", "Guarantee:", "Wrote"))
    assert plan < purchase < wrote
    assert spent(budgeted) == [
        ("discover: 3 bounds, 2 lists", "committed", 0.8),
        ("PrivateLogisticRegression.fit", "committed", 1.2),
    ]
    release = Release.load(budgeted / "m.privlearn")
    assert release.certificate.guarantee.epsilon == 1.2
    assert release.certificate.together.epsilon == 2.0
    verified = run("verify", budgeted / "m.privlearn")
    assert verified.code == 0
    assert "with schema (epsilon = 2, delta = 1e-05)" in verified.stdout
    shown = run("inspect", budgeted / "m.privlearn").stdout
    assert "encoding: private bounds" in shown
    assert "trade, or other" in shown


def test_a_tenth_is_the_default(budgeted: Census, train_wanted: Run) -> None:
    told = train_wanted("--epsilon", 20, "--delta", "1e-5")
    assert told.code == 0, told.told
    assert "bounds      10%          2      1e-06" in told.stdout


def test_a_search_takes_selection_and_fit_together(budgeted: Census, train_wanted: Run) -> None:
    split = ("--split", "bounds=0.5,selection=0.1,fit=0.4", "--search", "regularization=0.01,0.1")
    told = train_wanted(*PRICE, *split, "--ledger", budgeted.ledger)
    assert told.code == 0, told.told
    assert [entry[2] for entry in spent(budgeted)] == [1.0, 1.0]


FREE = {
    "misspelt loss": ("--loss", "nonsense"),
    "no such noise": ("--mechanism", "objective", "--noise", "laplace"),
    "bad regularization": ("--regularization", "-1"),
    "bad split": ("--split", "bounds=0.5,fit=0.6"),
    "no share": ("--split", "fit=1"),
    "selection without a search": ("--split", "bounds=0.2,selection=0.2,fit=0.6"),
    "more than is left": ("--epsilon", "2.5"),
    "too little for bounds": ("--split", "bounds=0.001,fit=0.999"),
    "bad grid": ("--search", "regularization=0.1,0"),
    "another target": ("--target", "age"),
    "no such model": ("--model", "tree"),
}


@pytest.mark.parametrize("arguments", FREE.values(), ids=FREE)
def test_what_would_stop_the_training_costs_nothing(
    arguments: tuple[str, ...], budgeted: Census, train_wanted: Run
) -> None:
    told = train_wanted(*PRICE, *HALF, *arguments, "--ledger", budgeted.ledger)
    assert told.code in (1, 2)
    assert "error:" in told.stderr
    assert "defect" not in told.stderr
    assert spent(budgeted) == []


def test_a_split_needs_marks(census: Census, train: Run) -> None:
    told = train("--epsilon", 1, "--split", "bounds=0.1,fit=0.9")
    assert told.code == 2
    assert "this schema is complete" in told.stderr


def test_a_crash_between_the_stages_wastes_only_what_was_bought(
    budgeted: Census, train_wanted: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("privlearn.mechanisms.release.objective.ObjectivePerturbation.run", crash)
    told = train_wanted(*PRICE, *HALF, "--ledger", budgeted.ledger)
    assert told.code == 130
    assert "is spent; its cost stays reserved: (epsilon = 1" in told.stderr
    assert [(state, epsilon) for _, state, epsilon in spent(budgeted)] == [
        ("committed", 1.0),
        ("reserved", 1.0),
    ]
    assert not (budgeted / "m.privlearn").exists()


def test_a_list_of_whole_numbers_is_bought_if_the_draft_says_so(
    budgeted: Census, wanted: Path, run: Run
) -> None:
    table = simulated_census(2000, seed=1)
    numbered = [label == "high" for label in table["income"].to_pylist()]
    path = budgeted / "census.parquet"
    write_table(table.set_column(7, "income", pa.array(numbered).cast(pa.int64())), path)
    training = ("train", path, "--schema", wanted, *PRICE, *HALF, "--out", budgeted / "m.privlearn")
    assert "`estimate whole numbers`" in run(*training).stderr
    content = yaml.safe_load(wanted.read_text())
    content["target"]["classes"] = "estimate whole numbers"
    wanted.write_text(yaml.safe_dump(content, sort_keys=False))
    told = run(*training)
    assert told.code == 0, told.told
    assert list(Release.load(budgeted / "m.privlearn").model.classes) == [0, 1]  # type: ignore[union-attr]


def test_seeds_are_not_private(census: Census, discover: Run) -> None:
    told = discover(*PRICE, "--seed", 1)
    assert told.code == 0
    assert "NOT PRIVATE" in told.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--epsilon", 2), "needs delta > 0"),
        (("--epsilon", "0.01", "--delta", "1e-6"), "give noise only"),
        (("--epsilon", "inf", "--delta", "1e-6"), "finite epsilon"),
        ((*PRICE, "--dataset", "x"), "--ledger PATH"),
    ],
    ids=["pure", "scarce", "infinite", "no ledger"],
)
def test_discover_refuses(arguments: tuple[object, ...], message: str, census: Census, discover: Run) -> None:
    told = discover(*arguments)
    assert told.code == 2
    assert message in told.stderr
    assert not (census / "bought.yaml").exists()


def test_where_the_schema_goes(census: Census, discover: Run) -> None:
    assert "must end in" in discover(*PRICE, out="bought.txt").stderr
    (census / "bought.yaml").write_text("mine")
    told = discover(*PRICE)
    assert "--force" in told.stderr
    assert (census / "bought.yaml").read_text() == "mine"

"""On the command line: a weak promise needs its word, says what it is, and what is not recorded is said."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from privlearn import Guarantee, Ledger, Release
from tests.support.cli_support import Census, Run

WORD = "--accept-weak-privacy"
NOT_RECORDED = "No cost was recorded"


@pytest.mark.parametrize("promise", [("--epsilon", 30), ("--epsilon", 1, "--delta", 0.01)])
def test_train_needs_a_word_and_verify_says_it(
    census: Census, train: Run, run: Run, promise: tuple[Any, ...]
) -> None:
    refused = train(*promise)
    assert refused.code == 2
    assert "hardly private" in refused.stderr
    assert WORD in refused.stderr
    assert not (census / "income.privlearn").exists()
    accepted = train(*promise, WORD)
    assert accepted.code == 0, accepted.stderr
    assert "This guarantee is hardly private" in accepted.stderr
    verified = run("verify", census / "income.privlearn")
    assert verified.code == 0
    assert "is consistent, but hardly private: " in verified.stderr
    assert "and private" not in verified.told
    inspected = run("inspect", census / "income.privlearn")
    assert "strength" in inspected.stdout
    assert "This guarantee is hardly private" in inspected.stderr
    stated = json.loads(run("inspect", census / "income.privlearn", "--json").stdout)
    assert stated["weakness"].startswith("hardly private")


def test_a_seeded_training_makes_no_promise(census: Census, train: Run) -> None:
    told = train("--epsilon", 30, "--seed", 1)
    assert told.code == 0
    assert "NOT PRIVATE" in told.stderr
    assert NOT_RECORDED not in told.told


def test_a_search_takes_the_word_along(census: Census, train: Run) -> None:
    asked = ("--epsilon", 30, "--delta", "1e-6", "--search", "regularization=0.01,0.1")
    assert train(*asked).code == 2
    assert train(*asked, WORD).code == 0
    assert "hardly private" in str(Release.load(census / "income.privlearn").certificate.weakness)


def draft(census: Census) -> None:
    """The schema with one bound to be bought."""
    content = yaml.safe_load(census.schema.read_text())
    content["columns"]["age"]["upper"] = "estimate"
    census.schema.write_text(yaml.safe_dump(content))


def test_a_total_is_judged_before_its_first_part_is_bought(census: Census, train: Run) -> None:
    """Neither 2.1 for a bound nor 18.9 for the model is above 20, but their sum is."""
    draft(census)
    ledger = Ledger.create(census.ledger, "census", Guarantee(100.0, 1e-3))
    charged = ("--epsilon", 21, "--delta", "1e-6", "--ledger", census.ledger)
    told = train(*charged)
    assert told.code == 2
    assert "epsilon 21 is above 20" in told.stderr
    assert not ledger.statement().entries
    assert train(*charged, WORD).code == 0
    assert len(ledger.statement().entries) == 2


def test_discover_needs_the_word(census: Census, run: Run) -> None:
    draft(census)
    asked = (
        "discover",
        census.table,
        "--schema",
        census.schema,
        "--epsilon",
        30,
        "--out",
        census / "bought.yaml",
    )
    refused = run(*asked)
    assert refused.code == 2
    assert "hardly private" in refused.stderr
    accepted = run(*asked, WORD)
    assert accepted.code == 0, accepted.stderr
    assert "This guarantee is hardly private" in accepted.stderr


def test_what_is_not_recorded_is_said(census: Census, train: Run) -> None:
    told = train("--epsilon", 1)
    assert told.stderr.count(NOT_RECORDED) == 1
    assert "--ledger" in told.stderr
    Ledger.create(census.ledger, "census", Guarantee(5.0))
    assert NOT_RECORDED not in train("--epsilon", 1, "--ledger", census.ledger, "--force").told
    assert NOT_RECORDED not in train("--epsilon", "inf", "--force").told


def test_epsilon_has_no_default(census: Census, run: Run) -> None:
    told = run("train", census.table, "--schema", census.schema, "--out", census / "income.privlearn")
    assert told.code == 2
    assert "--epsilon" in told.stderr


def test_delta_has_no_default_either(census: Census, run: Run) -> None:
    typed = (
        "train",
        census.table,
        "--schema",
        census.schema,
        "--out",
        census / "income.privlearn",
        "--epsilon",
    )
    told = run(*typed, 1)
    assert told.code == 2
    assert "--delta 1e-6" in told.stderr
    assert "--delta 0" in told.stderr
    assert run(*typed, "inf").code == 0


def test_plan_says_it(run: Run) -> None:
    told = run("plan", "--columns", 5, "--rows", 100, "--epsilon", 1, "--delta", 0.01)
    assert told.code == 0
    assert "WEAK: this guarantee is hardly private: delta 0.01 is not below 1/100" in told.stdout
    numbers = run("plan", "--columns", 5, "--rows", 100, "--epsilon", 1, "--delta", "1e-6", "--json")
    assert json.loads(numbers.stdout)["weakness"] is None


def test_an_epsilon_that_would_help_but_hardly_protect_is_called_so(run: Run) -> None:
    told = run("plan", "--columns", 5, "--rows", 300, "--epsilon", 1, "--delta", "1e-6")
    assert ", hardly private, with 300 records" in told.stdout

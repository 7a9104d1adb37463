"""Tuning from the shell."""

from __future__ import annotations

import pytest

from privlearn import Ledger, Release
from privlearn.data import simulated_census, write_table
from privlearn.mechanisms.search import SearchResult
from tests.support.cli_support import Census, Run

CANDIDATES = ("--search", "regularization=0.01,0.1,auto", "--mechanism", "output")


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (("--delta", "1e-6"), "every_candidate"),
        (("--delta", "1e-6", "--search-method", "random_stopping"), "random_stopping"),
        (("--search-method", "partition"), "partition"),
        (("--public-validation", "public.csv"), "public"),
    ],
)
def test_a_search_is_one_charge_and_verifies(
    arguments: tuple[str, ...], name: str, budgeted: Census, train: Run, run: Run
) -> None:
    write_table(simulated_census(60, seed=3), budgeted / "public.csv")
    arguments = tuple(str(budgeted / word) if word.endswith(".csv") else word for word in arguments)
    told = train("--epsilon", 1, *CANDIDATES, *arguments, "--ledger", budgeted.ledger)
    assert told.code == 0, told.stderr
    assert "of 3 candidates" in told.stdout
    assert "own share" in told.stdout
    assert Ledger.open(budgeted.ledger, "census").statement().spent.epsilon == 1.0
    certificate = Release.load(budgeted / "income.privlearn").certificate
    assert isinstance(certificate.mechanism, SearchResult)
    assert certificate.mechanism.search.name == name
    assert run("verify", budgeted / "income.privlearn").code == 0
    inspected = run("inspect", budgeted / "income.privlearn")
    assert "chosen" in inspected.stdout


def test_several_names_make_a_grid(census: Census, train: Run) -> None:
    told = train(
        "--epsilon", 1, "--search", "regularization=0.01,0.1", "--search", "fit-intercept=true,false", "--seed", 0,
        "--mechanism", "output",
    )  # fmt: skip
    assert told.code == 0, told.stderr
    mechanism = Release.load(census / "income.privlearn").certificate.mechanism
    assert isinstance(mechanism, SearchResult)
    assert [p["fit_intercept"] for p in mechanism.parameters] == [True, True, False, False]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--search", "regularization"), "has the wrong form"),
        (("--search", "=1,2"), "has the wrong form"),
        (("--search", "gamma=1,2", "--search", "gamma=3"), "has the wrong form"),
        (("--search", "regularization="), "empty"),
        (("--search", "regularization=1_0,0.1"), "'1_0' is not a valid number"),
        (("--search", "regularization=0.1"), "one candidate"),
        (("--search", "regularization=0.1,nan"), "NaN"),
        (("--search", "epsilon=0.1,1"), "as a whole"),
        (("--search", "depth=1,2"), "no parameter 'depth'"),
        (("--search", "regularization=0.1,1", "--search-method", "luck"), "method must be"),
        (("--public-validation", "public.csv"), "needs a search"),
    ],
)
def test_bad_searches_cost_nothing(
    arguments: tuple[str, ...], words: str, budgeted: Census, train: Run
) -> None:
    before = budgeted.ledger.read_bytes()
    told = train("--epsilon", 1, *arguments, "--ledger", budgeted.ledger)
    assert told.code == 2
    assert words in told.stderr
    assert budgeted.ledger.read_bytes() == before
    assert not (budgeted / "income.privlearn").exists()

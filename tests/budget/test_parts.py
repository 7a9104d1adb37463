"""Parts of a split data set in its ledger: the larger price counts, for the people of each part."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from privlearn import BudgetExceeded, Guarantee, Ledger, LedgerError, Schema, split
from privlearn.budget import Cost
from privlearn.data import Split
from tests.support.raw_store import Refused, execute

SCHEMA = Schema.from_dict({"name": "clinic", "columns": {"age": {"type": "number", "lower": 0, "upper": 9}}})


def cost(epsilon: float, delta: float = 0.0) -> Cost:
    return Cost(Guarantee(epsilon, delta), renyi=lambda order: order * epsilon**2 / 2.0)


@cache
def made(seed: str = "x") -> Split:
    return split({"age": [1] * 10}, SCHEMA, seed=seed).split


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "budgets.db", "clinic", Guarantee(1.0, 1e-5))


def test_the_larger_price_counts_and_not_the_sum(ledger: Ledger) -> None:
    train, test = (ledger.of_part(made().part(name)) for name in ("train", "test"))
    train.reserve(cost(0.7, 1e-6), "a model").commit()
    test.reserve(cost(0.9, 2e-6), "its error").commit()
    assert train.statement().left.epsilon == 0.3
    assert test.statement().left.epsilon == 0.1
    whole = ledger.statement()
    assert (whole.spent.epsilon, whole.left.epsilon, whole.left.delta) == (0.9, 0.1, 8e-6)
    assert [(part.name, part.left.epsilon) for part in whole.parts] == [("test", 0.1), ("train", 0.3)]
    assert "part train" in str(whole)


def test_what_is_about_the_whole_counts_for_everybody(ledger: Ledger) -> None:
    train, test = (ledger.of_part(made().part(name)) for name in ("train", "test"))
    ledger.reserve(cost(0.5), "a description")
    train.reserve(cost(0.5), "a model")
    with pytest.raises(BudgetExceeded, match="left: epsilon 0"):
        train.reserve(cost(0.1), "another")
    test.reserve(cost(0.3), "its error")
    with pytest.raises(BudgetExceeded):
        ledger.reserve(cost(0.1), "of all: those of train have nothing left")
    test.reserve(cost(0.2), "exactly what they have left")
    assert ledger.statement().left.epsilon == 0.0


def test_tenths_add_up_exactly_in_each_part(ledger: Ledger) -> None:
    for name in ("train", "test"):
        for _ in range(10):
            ledger.of_part(made().part(name)).reserve(cost(0.1), "a tenth")
        with pytest.raises(BudgetExceeded):
            ledger.of_part(made().part(name)).reserve(cost(1e-12), "one too many")


def test_epsilon_and_delta_of_the_whole_are_those_of_whoever_has_the_least(ledger: Ledger) -> None:
    ledger.of_part(made().part("train")).reserve(cost(0.2, 9e-6), "a model")
    ledger.of_part(made().part("test")).reserve(cost(0.9), "its error")
    left = ledger.statement().left
    assert (left.epsilon, left.delta) == (0.1, 1e-6)
    ledger.reserve(cost(0.1, 1e-6), "what is shown as left does fit")


def test_a_renyi_ledger_adds_divergences_in_each_part(tmp_path: Path) -> None:
    total = Guarantee(1.0, 1e-5)
    plain = Ledger.create(tmp_path / "one.db", "clinic", total, composition="renyi")
    parted = Ledger.create(tmp_path / "two.db", "clinic", total, composition="renyi")
    for _ in range(3):
        plain.reserve(cost(0.05), "a model")
        for name in ("train", "test"):
            parted.of_part(made().part(name)).reserve(cost(0.05), "a model")
    assert parted.statement().left == plain.statement().left
    assert parted.statement().left.renyi == parted.statement().parts[0].left.renyi


def test_a_data_set_is_split_once(ledger: Ledger) -> None:
    ledger.of_part(made().part("train")).reserve(cost(0.1), "a model")
    before = ledger.statement()
    with pytest.raises(LedgerError, match="already has a different split"):
        ledger.of_part(made("another seed").part("test")).reserve(cost(0.1), "its error")
    assert ledger.statement() == before
    ledger.of_part(made().part("test")).reserve(cost(0.1), "the same split")


def test_a_refusal_records_no_split(ledger: Ledger) -> None:
    with pytest.raises(BudgetExceeded):
        ledger.of_part(made().part("train")).reserve(cost(2.0), "too much")
    ledger.of_part(made("another seed").part("train")).reserve(cost(0.1), "the first that counts")


def test_a_cancelled_price_comes_back_to_its_part(ledger: Ledger) -> None:
    train = ledger.of_part(made().part("train"))
    train.reserve(cost(0.8), "a model").cancel()
    train.reserve(cost(1.0), "all of it")


def test_the_parts_are_those_of_the_budgets_neighbours(tmp_path: Path) -> None:
    other = Ledger.create(tmp_path / "budgets.db", "clinic", Guarantee(1.0, 0.0, "zero_out"))
    with pytest.raises(LedgerError, match="split for 'replace_one' neighbours"):
        other.of_part(made().part("train"))


def test_the_parts_are_those_of_the_budgets_data_set(tmp_path: Path) -> None:
    """Parts of another table are not disjoint from this one's, and its split would be recorded for good."""
    other = Ledger.create(tmp_path / "budgets.db", "registry", Guarantee(1.0, 1e-5))
    with pytest.raises(
        LedgerError, match="split is of data set 'clinic', and this is the budget of 'registry'"
    ):
        other.of_part(made().part("train"))


def test_the_share_of_an_account_counts_parts_alike(ledger: Ledger) -> None:
    train, test = (
        ledger.of_account("ann", Guarantee(0.5)).of_part(made().part(name)) for name in ("train", "test")
    )
    train.reserve(cost(0.5), "a model")
    test.reserve(cost(0.5), "its error")
    share = train.statement().share
    assert share is not None
    assert share.left.epsilon == 0.0
    with pytest.raises(BudgetExceeded, match="share of 'ann'"):
        test.reserve(cost(0.1), "more")


def test_an_id_stands_for_one_part(ledger: Ledger) -> None:
    ledger.of_part(made().part("train")).reserve(cost(0.1), "a model", id="one")
    with pytest.raises(LedgerError, match="part or cost"):
        ledger.of_part(made().part("test")).reserve(cost(0.1), "a model", id="one")
    with pytest.raises(LedgerError, match="part or cost"):
        ledger.reserve(cost(0.1), "a model", id="one")


def test_the_database_keeps_the_split_for_ever(ledger: Ledger) -> None:
    ledger.of_part(made().part("train")).reserve(cost(0.1), "a model")
    for change in (
        "UPDATE splits SET digest = 'x'",
        "DELETE FROM splits",
        "REPLACE INTO splits SELECT * FROM splits",
    ):
        with pytest.raises(Refused, match="append-only"):
            execute(ledger.store, change)


def test_an_id_is_not_resumed_for_another_split(ledger: Ledger) -> None:
    ledger.of_part(made("a").part("train")).reserve(cost(0.1), "a model", id="x1")
    with pytest.raises(LedgerError):
        ledger.of_part(made("b").part("train")).reserve(cost(0.1), "a model", id="x1")

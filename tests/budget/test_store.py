"""What is written, what can be read, and what the database itself refuses, in both kinds of store."""

from __future__ import annotations

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sklearn import clone
from sklearn.base import BaseEstimator

from privlearn import Ledger
from privlearn.budget import Cost
from privlearn.budget.storage import LEDGER, MARKS
from privlearn.errors import BudgetExceeded, LedgerError
from privlearn.guarantee import Guarantee
from tests.support.raw_store import Refused, execute, is_file

COST = Cost(Guarantee(0.1, 1e-8, "zero_out"))
TOTAL = Guarantee(1.0, 1e-6, "zero_out")


@pytest.fixture
def ledger(store: str) -> Ledger:
    return Ledger.create(store, "census", TOTAL)


@pytest.fixture
def used(ledger: Ledger) -> Ledger:
    """Return a ledger with one committed and one open reservation."""
    ledger.reserve(COST, "a test", schema_digest="sha256:abc").commit()
    ledger.reserve(COST, "a test")
    return ledger


def test_what_was_created_is_what_is_opened(used: Ledger) -> None:
    statement = Ledger.open(used.store, "census").statement()
    assert statement.total == Guarantee(1.0, 1e-6, "zero_out")
    assert statement.composition == "basic"
    assert [(e.state, e.purpose, e.schema_digest) for e in statement.entries] == [
        ("committed", "a test", "sha256:abc"),
        ("reserved", "a test", ""),
    ]
    first, second = statement.entries
    now = datetime.now(UTC)
    moments = map(datetime.fromisoformat, (first.reserved_at, first.settled_at, second.reserved_at))
    assert all(timedelta() <= now - moment < timedelta(minutes=5) for moment in moments)
    assert second.settled_at == ""
    assert "spent     epsilon 0.1, delta 1e-08" in str(statement)


@pytest.mark.parametrize("number", [0.1, 1 / 3, 5e-324, 0.1 + 0.2, 1e-6 / 7])
def test_numbers_read_back_exactly(store: str, number: float) -> None:
    ledger = Ledger.create(store, "census", Guarantee(number, number))
    ledger.reserve(Cost(Guarantee(number, number)), "a test")
    statement = ledger.statement()
    assert (statement.total.epsilon, statement.total.delta) == (number, number)
    assert (statement.entries[0].amount.epsilon, statement.entries[0].amount.delta) == (number, number)


def test_a_data_set_gets_one_budget_only(ledger: Ledger) -> None:
    with pytest.raises(LedgerError, match="already has a budget"):
        Ledger.create(ledger.store, "census", Guarantee(100.0, 1e-6))
    assert ledger.statement().total.epsilon == 1.0


def test_data_sets_of_one_store_do_not_share(ledger: Ledger) -> None:
    other = Ledger.create(ledger.store, "another", Guarantee(0.1, 1e-6, "zero_out"))
    other.reserve(COST, "a test").commit()
    assert Ledger.datasets(ledger.store) == ["another", "census"]
    assert ledger.statement().spent.epsilon == 0.0
    with pytest.raises(BudgetExceeded, match="'another'"):
        other.reserve(COST, "a test")


def test_a_missing_budget_says_how_to_create_it(ledger: Ledger) -> None:
    with pytest.raises(LedgerError, match="privlearn budget create 'my data' --ledger"):
        Ledger.open(ledger.store, "my data")


CHANGES = [
    "UPDATE budgets SET epsilon = 1000",
    "DELETE FROM budgets",
    "UPDATE entries SET epsilon = 0.01",
    "DELETE FROM entries WHERE kind = 'reserved'",
    "UPDATE ledger_format SET version = 0",
    "DELETE FROM ledger_format",
    "UPDATE sums SET reserved_epsilon = '0'",
    "DELETE FROM sums",
]
TEXTS = ", ".join(["''"] * 6)
FILE_CHANGES = [
    "REPLACE INTO sums SELECT dataset, account, part, number, entry, '0', '0', NULL, '0', '0', NULL FROM sums",
    "REPLACE INTO budgets SELECT dataset, 1000, delta, neighbours, composition, NULL, NULL FROM budgets",
    f"REPLACE INTO entries SELECT id, dataset, reservation, kind, time, 1e-9, 0, NULL, {TEXTS} FROM entries",
    f"REPLACE INTO entries SELECT NULL, dataset, reservation, kind, time, 1e-9, 0, NULL, {TEXTS} FROM entries"
    " WHERE kind = 'reserved'",
    f"REPLACE INTO entries SELECT NULL, dataset, reservation, 'cancelled', time, NULL, NULL, NULL, {TEXTS}"
    " FROM entries WHERE kind = 'committed'",
]
SERVER_CHANGES = [
    "TRUNCATE sums",
    "TRUNCATE entries, sums",
    "TRUNCATE budgets CASCADE",
    "TRUNCATE ledger_format",
    "INSERT INTO budgets SELECT * FROM budgets ON CONFLICT (dataset) DO UPDATE SET epsilon = 1000",
    "WITH gone AS (DELETE FROM entries RETURNING *) SELECT * FROM gone",
    "INSERT INTO entries (dataset, reservation, kind, time)"
    " SELECT dataset, reservation, 'cancelled', time FROM entries WHERE kind = 'committed'",
]


def test_the_database_refuses_every_change(used: Ledger) -> None:
    before = used.statement()
    for change in CHANGES + (FILE_CHANGES if is_file(used.store) else SERVER_CHANGES):
        with pytest.raises(Refused, match=r"append-only|entries_settled"):
            execute(used.store, change)
        assert used.statement() == before, change


def test_a_reservation_settles_once(ledger: Ledger) -> None:
    committed, cancelled = ledger.reserve(COST, "a test"), ledger.reserve(COST, "a test")
    committed.commit()
    committed.commit()
    cancelled.cancel()
    cancelled.cancel()
    before = ledger.statement()
    with pytest.raises(LedgerError, match="any more"):
        committed.cancel()
    with pytest.raises(LedgerError, match="any more"):
        cancelled.commit()
    assert ledger.statement() == before


def test_many_creators_make_one_budget(store: str) -> None:
    def create(epsilon: float) -> str:
        try:
            return Ledger.create(store, "census", Guarantee(epsilon, 1e-6)).dataset
        except LedgerError as refusal:
            return str(refusal)

    with ThreadPoolExecutor(4) as creators:
        outcomes = list(creators.map(create, [1.0, 2.0, 3.0, 4.0]))
    assert outcomes.count("census") == 1
    assert sum("already has a budget" in outcome for outcome in outcomes) == 3


def test_leaving_the_block_without_commit_keeps_the_cost(ledger: Ledger) -> None:
    with ledger.reserve(COST, "left"):
        pass
    with pytest.raises(ZeroDivisionError), ledger.reserve(COST, "failed"):
        raise ZeroDivisionError
    with ledger.reserve(COST, "committed") as reservation:
        reservation.commit()
    assert [(e.purpose, e.state) for e in ledger.statement().entries] == [
        ("left", "reserved"),
        ("failed", "reserved"),
        ("committed", "committed"),
    ]


def test_once_rows_may_have_been_read_nothing_comes_back(ledger: Ledger) -> None:
    reservation = ledger.reserve(COST, "a test")
    with reservation, pytest.raises(LedgerError, match="the cost stands"):
        reservation.cancel()
    with pytest.raises(LedgerError, match="the cost stands"):
        reservation.cancel()
    assert ledger.statement().reserved.epsilon == 0.1


@pytest.mark.parametrize("text", ["", "  ", "two\nlines", "x" * 201])
def test_names_and_purposes_are_one_short_line(ledger: Ledger, text: str) -> None:
    with pytest.raises(LedgerError, match="one line"):
        ledger.reserve(COST, text)
    with pytest.raises(LedgerError, match="one line"):
        Ledger.create(ledger.store, text, Guarantee(1.0))
    assert ledger.statement().entries == ()


def test_a_database_of_another_program_is_left_alone(store: str) -> None:
    execute(store, "CREATE TABLE patients (name TEXT)")
    for attempt in (lambda: Ledger.create(store, "census", TOTAL), lambda: Ledger.open(store, "census")):
        with pytest.raises(LedgerError, match="is not a ledger"):
            attempt()
    with pytest.raises(Exception, match=r"budgets"):
        execute(store, "SELECT * FROM budgets")


def test_a_newer_format_is_refused(ledger: Ledger) -> None:
    execute(ledger.store, f"INSERT INTO ledger_format VALUES ({LEDGER.newest + 1})")
    attempts = (
        ledger.statement,
        lambda: ledger.reserve(COST, "a test"),
        lambda: Ledger.create(ledger.store, "new", Guarantee(1.0)),
    )
    for attempt in attempts:
        with pytest.raises(LedgerError, match="newer privlearn"):
            attempt()


def test_a_ledger_is_made_beside_tables_of_other_parts(store: str) -> None:
    for mark in MARKS - {"ledger_format"}:
        execute(store, f"CREATE TABLE {mark} (version INTEGER)")
    ledger = Ledger.create(store, "census", TOTAL)
    assert Ledger.open(store, "census") == ledger


ADDRESSES = [
    "mysql://me:secret@host/db",
    "postgres://me:secret@host/db",
    "postgresql://me:secret@host/db",
    "postgresql://me@host/db?password=secret",
    "postgresql://me@host/db?options=secret",
    "postgresql://me:secret@host:port/db",
    "postgresql+asyncpg://me:secret@host/db",
    Path("postgresql://me:secret@host/db"),
    Path("postgres://me:secret@host/db"),
]


@pytest.mark.parametrize("address", ADDRESSES, ids=str)
def test_an_address_with_a_password_is_refused_and_not_repeated(address: str | Path) -> None:
    for attempt in (lambda: Ledger.open(address, "census"), lambda: Ledger.create(address, "census", TOTAL)):
        with pytest.raises(LedgerError) as refusal:
            attempt()
        assert "secret" not in str(refusal.value)


class Holder(BaseEstimator):
    def __init__(self, ledger: Ledger | None = None) -> None:
        self.ledger = ledger


def test_copies_spend_from_the_same_budget(ledger: Ledger) -> None:
    ledger.reserve(COST, "a test")
    copies = [copy.deepcopy(ledger), pickle.loads(pickle.dumps(ledger)), clone(Holder(ledger)).ledger]
    for each in copies:
        each.reserve(COST, "a test").commit()
    assert ledger.statement().spent.epsilon == 0.3

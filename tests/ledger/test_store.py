"""What is written, what can be read, and what the database itself refuses."""

from __future__ import annotations

import copy
import os
import pickle
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sklearn import clone
from sklearn.base import BaseEstimator

from privlearn.errors import BudgetExceeded, LedgerError
from privlearn.guarantee import Guarantee
from privlearn.ledger import Cost, Ledger
from privlearn.ledger import store as stores

COST = Cost(Guarantee(0.1, 1e-8))


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "budgets.db", "census", Guarantee(1.0, 1e-6, "zero_out"))


@pytest.fixture
def raw(ledger: Ledger) -> Iterator[sqlite3.Connection]:
    """The file as any other program sees it, with one committed and one open reservation."""
    cost = Cost(Guarantee(0.1, 1e-8, "zero_out"))
    ledger.reserve(cost, "a test", schema_digest="sha256:abc").commit()
    ledger.reserve(cost, "a test")
    with closing(sqlite3.connect(ledger.store, isolation_level=None)) as connection:
        yield connection


def test_what_was_created_is_what_is_opened(ledger: Ledger, raw: sqlite3.Connection) -> None:
    statement = Ledger.open(ledger.store, "census").statement()
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
def test_numbers_read_back_exactly(tmp_path: Path, number: float) -> None:
    ledger = Ledger.create(tmp_path / "budgets.db", "census", Guarantee(number, number))
    ledger.reserve(Cost(Guarantee(number, number)), "a test")
    statement = ledger.statement()
    assert (statement.total.epsilon, statement.total.delta) == (number, number)
    assert (statement.entries[0].amount.epsilon, statement.entries[0].amount.delta) == (number, number)


def test_a_data_set_gets_one_budget_only(ledger: Ledger) -> None:
    with pytest.raises(LedgerError, match="has a budget already"):
        Ledger.create(ledger.store, "census", Guarantee(100.0, 1e-6))
    assert ledger.statement().total.epsilon == 1.0


def test_data_sets_of_one_store_do_not_share(ledger: Ledger) -> None:
    other = Ledger.create(ledger.store, "another", Guarantee(0.1, 1e-6))
    other.reserve(COST, "a test").commit()
    assert Ledger.datasets(ledger.store) == ["another", "census"]
    assert ledger.statement().spent.epsilon == 0.0
    with pytest.raises(BudgetExceeded, match="'another'"):
        other.reserve(COST, "a test")


def test_a_missing_budget_says_how_to_create_it(ledger: Ledger, tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="privlearn budget create 'my data' --ledger"):
        Ledger.open(ledger.store, "my data")
    with pytest.raises(LedgerError, match="privlearn budget create"):
        Ledger.open(tmp_path / "missing.db", "census")
    with pytest.raises(LedgerError, match="privlearn budget create"):
        Ledger.datasets(tmp_path / "missing.db")
    assert not (tmp_path / "missing.db").exists()


CHANGES = [
    "UPDATE budgets SET epsilon = 1000",
    "DELETE FROM budgets",
    "REPLACE INTO budgets SELECT dataset, 1000, delta, neighbours, composition, NULL, NULL FROM budgets",
    "UPDATE entries SET epsilon = 0.01",
    "DELETE FROM entries WHERE kind = 'reserved'",
    "REPLACE INTO entries SELECT id, dataset, reservation, kind, time, 1e-9, 0, NULL, '', '' FROM entries",
    "REPLACE INTO entries SELECT NULL, dataset, reservation, kind, time, 1e-9, 0, NULL, '', '' FROM entries"
    " WHERE kind = 'reserved'",
    "REPLACE INTO entries SELECT NULL, dataset, reservation, 'cancelled', time, NULL, NULL, NULL, '', ''"
    " FROM entries WHERE kind = 'committed'",
    "UPDATE ledger_format SET version = 0",
    "DELETE FROM ledger_format",
]


@pytest.mark.parametrize("change", CHANGES)
def test_the_database_refuses_every_change(ledger: Ledger, raw: sqlite3.Connection, change: str) -> None:
    before = ledger.statement()
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        raw.execute(change)
    assert ledger.statement() == before


def test_a_reservation_settles_once(ledger: Ledger, raw: sqlite3.Connection) -> None:
    cost = Cost(Guarantee(0.1, 0.0, "zero_out"))
    committed, cancelled = ledger.reserve(cost, "a test"), ledger.reserve(cost, "a test")
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


def test_leaving_the_block_without_commit_keeps_the_cost(ledger: Ledger) -> None:
    cost = Cost(Guarantee(0.1, 0.0, "zero_out"))
    with ledger.reserve(cost, "left"):
        pass
    with pytest.raises(ZeroDivisionError), ledger.reserve(cost, "failed"):
        raise ZeroDivisionError
    with ledger.reserve(cost, "committed") as reservation:
        reservation.commit()
    assert [(e.purpose, e.state) for e in ledger.statement().entries] == [
        ("left", "reserved"),
        ("failed", "reserved"),
        ("committed", "committed"),
    ]


def test_once_rows_may_have_been_read_nothing_comes_back(ledger: Ledger) -> None:
    reservation = ledger.reserve(Cost(Guarantee(0.1, 0.0, "zero_out")), "a test")
    with reservation, pytest.raises(LedgerError, match="the cost stands"):
        reservation.cancel()
    with pytest.raises(LedgerError, match="the cost stands"):
        reservation.cancel()
    assert ledger.statement().reserved.epsilon == 0.1


def test_a_reservation_lost_with_its_store_cannot_be_committed(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "budgets.db", "census", Guarantee(1.0, 1e-6))
    backup = Path(ledger.store).read_bytes()
    reservation = ledger.reserve(COST, "a test")
    Path(ledger.store).write_bytes(backup)
    with pytest.raises(LedgerError, match="reserve again"):
        reservation.commit()


def test_a_vanished_store_is_not_replaced_by_an_empty_one(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "budgets.db", "census", Guarantee(1.0, 1e-6))
    reservation = ledger.reserve(COST, "a test")
    os.remove(ledger.store)
    with pytest.raises(LedgerError):
        reservation.commit()
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("content", [b"not a database, but long enough to be one" * 100, b""])
def test_a_file_that_is_no_ledger(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "table.csv"
    path.write_bytes(content)
    for attempt in (lambda: Ledger.open(path, "census"), lambda: Ledger.datasets(path)):
        with pytest.raises(LedgerError, match="ledger"):
            attempt()
    assert path.read_bytes() == content


def test_a_database_of_another_program_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE patients (name TEXT)")
    before = path.read_bytes()
    with pytest.raises(LedgerError, match="is not a ledger"):
        Ledger.create(path, "census", Guarantee(1.0, 1e-6))
    assert path.read_bytes() == before


def test_a_torn_file_is_an_error(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "budgets.db", "census", Guarantee(1.0, 1e-6))
    content = Path(ledger.store).read_bytes()
    Path(ledger.store).write_bytes(content[:4096] + os.urandom(len(content) - 4096))
    with pytest.raises(LedgerError, match="cannot be used"):
        Ledger.open(ledger.store, "census")


def test_a_newer_format_is_refused(ledger: Ledger, raw: sqlite3.Connection) -> None:
    raw.execute("INSERT INTO ledger_format VALUES (2)")
    for attempt in (ledger.statement, lambda: Ledger.create(ledger.store, "new", Guarantee(1.0))):
        with pytest.raises(LedgerError, match="newer privlearn"):
            attempt()


def test_an_unreadable_place(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="cannot be used"):
        Ledger.open(tmp_path, "census")
    with pytest.raises(LedgerError, match="cannot create"):
        Ledger.create(tmp_path / "no folder" / "budgets.db", "census", Guarantee(1.0))


@pytest.mark.parametrize(
    "store", ["", ":memory:", "sqlite://", "sqlite:///:memory:", "sqlite:///a.db?mode=ro"]
)
def test_stores_that_do_not_last(store: str) -> None:
    with pytest.raises(LedgerError, match="path"):
        Ledger.create(store, "census", Guarantee(1.0))


def test_an_address_with_a_password_is_not_repeated() -> None:
    with pytest.raises(LedgerError) as refusal:
        Ledger.open("mysql://me:secret@host/db", "census")
    assert "secret" not in str(refusal.value)


def test_a_url_and_a_relative_path_mean_the_same_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ledger = Ledger.create("odd name %20?#.db", "census", Guarantee(1.0, 1e-6))
    monkeypatch.chdir("/")
    ledger.reserve(COST, "a test")
    assert os.listdir(tmp_path) == ["odd name %20?#.db"]
    plain = Ledger.create(tmp_path / "plain.db", "census", Guarantee(1.0, 1e-6))
    assert Ledger.open(f"sqlite:///{plain.store}", "census") == plain


@pytest.mark.parametrize("text", ["", "  ", "two\nlines", "x" * 201])
def test_names_and_purposes_are_one_short_line(ledger: Ledger, text: str) -> None:
    with pytest.raises(LedgerError, match="one line"):
        ledger.reserve(Cost(Guarantee(0.1, neighbours="zero_out")), text)
    with pytest.raises(LedgerError, match="one line"):
        Ledger.create(ledger.store, text, Guarantee(1.0))
    assert ledger.statement().entries == ()


def test_only_the_owner_may_read_the_file(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        ledger = Ledger.create(tmp_path / "budgets.db", "census", Guarantee(1.0, 1e-6))
    finally:
        os.umask(before)
    assert stat.S_IMODE(os.stat(ledger.store).st_mode) == 0o600


def test_settings_of_every_connection(ledger: Ledger) -> None:
    """Power loss cannot be tried here; these are the settings that SQLite documents as durable."""
    with stores.reading(ledger.store) as connection:
        settings = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("synchronous", "journal_mode", "busy_timeout", "foreign_keys")
        }
    assert settings == {"synchronous": 3, "journal_mode": "delete", "busy_timeout": 30_000, "foreign_keys": 1}


class Holder(BaseEstimator):
    def __init__(self, ledger: Ledger | None = None) -> None:
        self.ledger = ledger


def test_copies_spend_from_the_same_budget(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "budgets.db", "census", Guarantee(1.0, 1e-6))
    ledger.reserve(COST, "a test")
    copies = [copy.deepcopy(ledger), pickle.loads(pickle.dumps(ledger)), clone(Holder(ledger)).ledger]
    for each in copies:
        each.reserve(COST, "a test").commit()
    assert ledger.statement().spent.epsilon == 0.3

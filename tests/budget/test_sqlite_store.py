"""What holds for a file: where it may be, who reads it, and what happens when it is damaged."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from privlearn import Ledger
from privlearn.budget import Cost
from privlearn.budget import tables as stores
from privlearn.errors import LedgerError
from privlearn.guarantee import Guarantee

COST = Cost(Guarantee(0.1, 1e-8))


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "budgets.db", "census", Guarantee(1.0, 1e-6))


def test_a_missing_file_is_not_made_by_reading(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="privlearn budget create"):
        Ledger.open(tmp_path / "missing.db", "census")
    with pytest.raises(LedgerError, match="privlearn budget create"):
        Ledger.datasets(tmp_path / "missing.db")
    assert not (tmp_path / "missing.db").exists()


def test_a_reservation_lost_with_its_store_cannot_be_committed(ledger: Ledger, tmp_path: Path) -> None:
    backup = Path(ledger.store).read_bytes()
    reservation = ledger.reserve(COST, "a test")
    Path(ledger.store).write_bytes(backup)
    with pytest.raises(LedgerError, match="Reserve again"):
        reservation.commit()


def test_a_vanished_store_is_not_replaced_by_an_empty_one(ledger: Ledger, tmp_path: Path) -> None:
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


def test_a_torn_file_is_an_error(ledger: Ledger, tmp_path: Path) -> None:
    content = Path(ledger.store).read_bytes()
    Path(ledger.store).write_bytes(content[:4096] + os.urandom(len(content) - 4096))
    with pytest.raises(LedgerError, match="cannot be used"):
        Ledger.open(ledger.store, "census")


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

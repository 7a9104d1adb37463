"""A store in an SQLite file, for one machine. Its settings:

- A transaction that writes begins with BEGIN IMMEDIATE, so that of two processes one waits (up to 30 seconds)
  and then reads what the other wrote.
- A rollback journal with synchronous=EXTRA. A process killed at any moment leaves a journal that the next
  reader rolls back. For power loss, FULL is not enough in this mode: the commit is the removal of the
  journal, and only EXTRA also syncs the directory; without it a commit may be undone and its cost forgotten.
  Write-ahead logging would be as durable, but leaves side files that a copy of the store forgets,
  and does not work on network file systems.
- Each process reuses its connection for the next transaction as long as no other process writes: opening one costs as
  much as the transaction of a session's answer. If the file has changed in between, it is opened again.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from datetime import UTC, datetime
from functools import lru_cache
from sqlite3 import Connection as SQLiteConnection
from typing import Any
from urllib.parse import quote

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.exc import DisconnectionError
from sqlalchemy.pool import QueuePool

from privlearn.budget.storage.shared import BUSY_SECONDS, is_writing
from privlearn.errors import LedgerError

SYNCHRONOUS = "EXTRA"
ADVICE = (
    "that it is a ledger, that you may write it, that its disk has space and that no other program locks it"
)


def check_present(path: str) -> None:
    """Raise LedgerError unless the file exists."""
    if not os.path.exists(path):
        raise LedgerError(f"no ledger found at {path}. Create one with `privlearn budget create`.")


def prepare(path: str) -> None:
    """Create an empty file that only its owner may read; SQLite gives its journal the same mode."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        pass
    except OSError as error:
        raise LedgerError(f"cannot create a ledger at {path}: {error.strerror}") from error


def engine(path: str) -> Engine:
    """Return the connections of this process, which SQLite forbids other processes to use."""
    return _engine(os.getpid(), path)


@lru_cache(maxsize=32)
def _engine(_process: int, path: str) -> Engine:
    # mode=rw: a store that has vanished is an error, never silently an empty new one.
    url = URL.create("sqlite", database=f"file:{quote(path)}", query={"mode": "rw", "uri": "true"})
    created = create_engine(url, hide_parameters=True, connect_args={"timeout": BUSY_SECONDS}, **_POOL)

    def note_file(_connection: object, record: Any) -> None:
        record.info["file"] = _file_at(path)

    def refuse_changed_file(_connection: object, record: Any, _proxy: object) -> None:
        now = _file_at(path)
        if record.info.get("file", now) != now:
            raise DisconnectionError  # the pool opens a new one

    event.listen(created, "checkin", note_file)
    event.listen(created, "checkout", refuse_changed_file)
    event.listen(created, "connect", _configure)
    event.listen(created, "begin", _begin)
    return created


def _file_at(path: str) -> tuple[int, ...] | None:
    """Return the identity and state of the file, so that one that was replaced or overwritten is noticed; None
    without it."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def exclude_others(connection: Connection, what: str) -> None:
    """Do nothing: BEGIN IMMEDIATE has excluded every other writer of the file."""


def clock(connection: Connection) -> datetime:
    """Return this machine's time: no other machine uses the file."""
    return datetime.now(UTC)


def allow_rebuilding(connection: Connection) -> None:
    """Allow a table that others refer to to be replaced, until the transaction has ended."""
    connection.detach()  # no later transaction gets this connection
    # Not through SQLAlchemy, which would begin a transaction, in which this has no effect.
    driver: SQLiteConnection = connection.connection.dbapi_connection  # type: ignore[assignment]
    driver.execute("PRAGMA foreign_keys = OFF")


def exclude_readers(connection: Connection, tables: Collection[str]) -> None:
    """Do nothing: SQLite commits when no other process reads."""


def check_rebuilt(connection: Connection) -> None:
    """Raise LedgerError if a row has lost the row that it refers to."""
    if connection.exec_driver_sql("PRAGMA foreign_key_check").first() is not None:
        raise LedgerError(
            "rows would have lost what they refer to, so nothing was changed. Report this as a bug."
        )


def _configure(connection: SQLiteConnection, _record: object) -> None:
    connection.isolation_level = None  # the driver must not begin transactions itself
    connection.execute(f"PRAGMA synchronous = {SYNCHRONOUS}")
    connection.execute("PRAGMA foreign_keys = ON")


def _begin(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE" if is_writing(connection) else "BEGIN")


# Unlimited overflow: a transaction that is opened inside another must not wait for it to end.
_POOL: dict[str, Any] = {"poolclass": QueuePool, "pool_size": 8, "max_overflow": -1}

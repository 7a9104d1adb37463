"""Where ledgers are kept: connections, transactions and their durability.

A store is an SQLite file. Its settings:

- A transaction that writes begins with BEGIN IMMEDIATE, so that of two processes one waits (up to 30 seconds)
  and then reads what the other wrote. Locking the budget's row (FOR UPDATE, which is
  left out for SQLite) does the same on servers that lock rows.
- A rollback journal with synchronous=EXTRA. A process killed at any moment leaves a journal that the next
  reader rolls back. For power loss, FULL is not enough in this mode: the commit is the removal of the
  journal, and only EXTRA also syncs the directory; without it a commit may be undone and its cost forgotten.
  Write-ahead logging would be as durable, but leaves side files that a copy of the store forgets,
  and does not work on network file systems.

Connections are opened for one transaction and closed after it: nothing is shared with a forked process.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from sqlite3 import Connection as SQLiteConnection
from urllib.parse import quote

from sqlalchemy import URL, Connection, Engine, create_engine, event, func, insert, inspect, make_url, select
from sqlalchemy.exc import ArgumentError, DatabaseError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from privlearn.errors import LedgerError
from privlearn.ledger import tables

BUSY_SECONDS = 30


def locate(store: str | Path) -> str:
    """The absolute path of a store given as a path or as ``sqlite:///path``."""
    if isinstance(store, str) and "://" in store:
        store = _path_of_url(store)
    if not os.fspath(store) or Path(store).name == ":memory:":
        raise LedgerError("a ledger must outlive its process: give the path of a file, not memory")
    return os.path.abspath(store)


def _path_of_url(text: str) -> str:
    # The address is not repeated in the message: it may contain a password.
    try:
        url = make_url(text)
    except ArgumentError:
        raise LedgerError("the ledger's address cannot be read: give a path or sqlite:///path") from None
    if url.get_backend_name() != "sqlite" or url.query:
        raise LedgerError("ledgers live in SQLite files: give a path or sqlite:///path, without options")
    return url.database or ""


@contextmanager
def reading(path: str) -> Iterator[Connection]:
    """A transaction that sees one state of the ledger."""
    if not os.path.exists(path):
        raise LedgerError(f"there is no ledger at {path}: create one with `privlearn budget create`")
    with _explained(path), _engine(path).connect() as connection, connection.begin():
        _check_format(connection, path)
        yield connection


@contextmanager
def writing(path: str, *, create: bool = False) -> Iterator[Connection]:
    """A transaction that excludes every other writer, and is durable once the block is left."""
    if create:
        _create_file(path)
    with _explained(path), _engine(path).connect() as connection:
        connection.execution_options(**{_BEGIN: "BEGIN IMMEDIATE"})
        with connection.begin():
            if create and not inspect(connection).get_table_names():
                tables.create_all(connection)
                connection.execute(insert(tables.formats).values(version=tables.FORMAT))
            _check_format(connection, path)
            yield connection


def _create_file(path: str) -> None:
    """An empty file that only its owner may read; SQLite gives its journal the same mode."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        pass
    except OSError as error:
        raise LedgerError(f"cannot create a ledger at {path}: {error.strerror}") from error


def _check_format(connection: Connection, path: str) -> None:
    version = None
    if inspect(connection).has_table(tables.formats.name):
        version = connection.scalar(select(func.max(tables.formats.c.version)))
    if version is None:
        raise LedgerError(
            f"{path} is not a ledger: give another path, or create one with `privlearn budget create`"
        )
    if version > tables.FORMAT:
        raise LedgerError(f"{path} was written by a newer privlearn (format {version}): install that version")


@lru_cache(maxsize=32)
def _engine(path: str) -> Engine:
    # mode=rw: a store that has vanished is an error, never silently an empty new one.
    url = URL.create("sqlite", database=f"file:{quote(path)}", query={"mode": "rw", "uri": "true"})
    engine = create_engine(url, poolclass=NullPool, connect_args={"timeout": BUSY_SECONDS})
    event.listen(engine, "connect", _configure)
    event.listen(engine, "begin", _begin)
    return engine


def _configure(connection: SQLiteConnection, _record: object) -> None:
    connection.isolation_level = None  # the driver must not begin transactions of its own
    connection.execute("PRAGMA synchronous = EXTRA")
    connection.execute("PRAGMA foreign_keys = ON")


def _begin(connection: Connection) -> None:
    connection.exec_driver_sql(connection.get_execution_options().get(_BEGIN, "BEGIN"))


@contextmanager
def _explained(path: str) -> Iterator[None]:
    """Database errors as ledger errors, without the statement and its parameters."""
    try:
        yield
    except SQLAlchemyError as error:
        reason = error.orig if isinstance(error, DatabaseError) else type(error).__name__
        raise LedgerError(
            f"the ledger at {path} cannot be used: {reason}. Check that it is a ledger, that it may be "
            "written, that its disk has room and that no other program holds it"
        ) from error


_BEGIN = "privlearn_begin"

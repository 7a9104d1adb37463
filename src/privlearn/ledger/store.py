"""Where ledgers are kept: an SQLite file or a PostgreSQL database, and transactions on either.

Connections are opened for one transaction and closed after it: nothing is shared with a forked process.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from sqlalchemy import Connection, Engine, func, insert, inspect, make_url, select
from sqlalchemy.exc import ArgumentError, DatabaseError, SQLAlchemyError

from privlearn.errors import LedgerError
from privlearn.ledger import postgresql, sqlite, tables
from privlearn.ledger.waiting import announce_writing


class Backend(Protocol):
    """What the modules `sqlite` and `postgresql` offer."""

    ADVICE: str

    def check_present(self, store: str, /) -> None: ...
    def prepare(self, store: str, /) -> None: ...
    def engine(self, store: str, /) -> Engine: ...
    def exclude_others(self, connection: Connection, what: str, /) -> None: ...


def locate(store: str | Path) -> str:
    """The absolute path of a store given as a path or as ``sqlite:///path``, or the address of a database."""
    text = os.fspath(store)
    if re.match(r"[a-z+]{2,}:/[^/]", text):
        raise LedgerError("give the ledger's address as text: a Path loses one of its slashes")
    if isinstance(store, str) and "://" in store:
        text = _of_url(store)
    if postgresql.is_address(text):
        return text
    if not text or Path(text).name == ":memory:":
        raise LedgerError("a ledger must outlive its process: give the path of a file, not memory")
    return os.path.abspath(text)


def _of_url(text: str) -> str:
    # The address is not repeated in the message: it may contain a password.
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        raise LedgerError(f"the ledger's address cannot be read: give {_KINDS}") from None
    if url.drivername in ("postgresql", "postgresql+psycopg"):
        return postgresql.address(url)
    if url.get_backend_name() != "sqlite" or url.query:
        raise LedgerError(
            f"ledgers live in SQLite files or PostgreSQL databases: give {_KINDS}, a path without options"
        )
    return url.database or ""


@contextmanager
def reading(store: str) -> Iterator[Connection]:
    """A transaction that sees one state of the ledger."""
    with _connected(store) as connection, connection.begin():
        _check_format(connection, store)
        yield connection


@contextmanager
def writing(store: str, dataset: str) -> Iterator[Connection]:
    """A transaction that excludes every other writer of the data set, and is durable once the block is left."""
    with _excluding(store, f"data set {dataset}") as connection:
        _check_format(connection, store)
        yield connection


@contextmanager
def creating(store: str) -> Iterator[Connection]:
    """A transaction that gives a data set its budget, one at a time; an empty store gets its tables."""
    _backend(store).prepare(store)
    with _excluding(store, "budgets") as connection:
        if not inspect(connection).get_table_names():
            tables.create_all(connection)
            connection.execute(insert(tables.formats).values(version=tables.FORMAT))
        _check_format(connection, store)
        yield connection


@contextmanager
def _excluding(store: str, what: str) -> Iterator[Connection]:
    with _connected(store) as connection:
        announce_writing(connection)
        with connection.begin():
            _backend(store).exclude_others(connection, what)
            yield connection


@contextmanager
def _connected(store: str) -> Iterator[Connection]:
    """A connection whose database errors become ledger errors, without the statement and its parameters."""
    backend = _backend(store)
    backend.check_present(store)
    try:
        with backend.engine(store).connect() as connection:
            yield connection
    except SQLAlchemyError as error:
        reason = error.orig if isinstance(error, DatabaseError) else type(error).__name__
        raise LedgerError(
            f"the ledger at {store} cannot be used: {' '.join(str(reason).split())}. Check {backend.ADVICE}"
        ) from error


def _backend(store: str) -> Backend:
    return postgresql if postgresql.is_address(store) else sqlite


def _check_format(connection: Connection, store: str) -> None:
    version = None
    if inspect(connection).has_table(tables.formats.name):
        version = connection.scalar(select(func.max(tables.formats.c.version)))
    if version is None:
        raise LedgerError(
            f"{store} is not a ledger: give another one, or create it with `privlearn budget create`"
        )
    if version > tables.FORMAT:
        raise LedgerError(
            f"{store} was written by a newer privlearn (format {version}): install that version"
        )


_KINDS = "a path, sqlite:///path or postgresql://user@host/database"

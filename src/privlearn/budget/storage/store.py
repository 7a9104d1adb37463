"""Locate a store, and open transactions on it.

A store holds the budgets of data sets and everything that belongs to them, in tables of several parts of privlearn.
Its errors are `LedgerError`: without the store nothing can be charged, so nothing may be released.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Protocol

from sqlalchemy import Connection, Engine, inspect, make_url
from sqlalchemy.exc import (
    ArgumentError,
    DatabaseError,
    InterfaceError,
    OperationalError,
    SQLAlchemyError,
    TimeoutError,
)

from privlearn.budget.storage import postgresql, sqlite
from privlearn.budget.storage.shared import announce_writing, span
from privlearn.errors import LedgerError, StoreUnusable


class Backend(Protocol):
    """The interface of the modules `sqlite` and `postgresql`."""

    ADVICE: str

    def check_present(self, store: str, /) -> None: ...
    def prepare(self, store: str, /) -> None: ...
    def engine(self, store: str, /) -> Engine: ...
    def exclude_others(self, connection: Connection, what: str, /) -> None: ...
    def clock(self, connection: Connection, /) -> datetime: ...
    def allow_rebuilding(self, connection: Connection, /) -> None: ...
    def exclude_readers(self, connection: Connection, tables: Collection[str], /) -> None: ...
    def check_rebuilt(self, connection: Connection, /) -> None: ...


def locate(store: str | Path) -> str:
    """Return the absolute path of a store given as a path or as ``sqlite:///path``, or the address of a database."""
    text = os.fspath(store)
    if re.match(r"[a-z+]{2,}:/[^/]", text):
        raise LedgerError("pass the ledger's address as text: a Path loses one of its slashes")
    if isinstance(store, str) and "://" in store:
        text = _parse_url(store)
    if is_address(text):
        return text
    if not text or Path(text).name == ":memory:":
        raise LedgerError("a ledger must outlive its process. Pass the path of a file, not memory.")
    return os.path.abspath(text)


def _parse_url(text: str) -> str:
    # The address is not repeated in the message: it may contain a password.
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        raise LedgerError(f"the ledger's address cannot be read. Pass {_KINDS}.") from None
    if url.drivername in ("postgresql", "postgresql+psycopg"):
        return postgresql.address(url)
    if url.get_backend_name() != "sqlite" or url.query:
        raise LedgerError(
            f"a ledger is an SQLite file or a PostgreSQL database. Pass {_KINDS}, a path without options."
        )
    return url.database or ""


def is_address(store: str) -> bool:
    """Return whether a store is a PostgreSQL database."""
    return store.startswith("postgresql://")


@contextmanager
def reading(store: str) -> Iterator[Connection]:
    """Open a transaction that sees one state of the store."""
    with span("database.read"), connect(store) as connection, connection.begin():
        yield connection


@contextmanager
def excluding(store: str, what: str) -> Iterator[Connection]:
    """Open a transaction that excludes every other one of this name, and is durable once the block is left."""
    with span("database.write"), connect(store) as connection:
        announce_writing(connection)
        with connection.begin():
            _backend(store).exclude_others(connection, what)
            yield connection


def also_excluding(connection: Connection, store: str, what: str) -> None:
    """Exclude, inside `excluding`, every other transaction of a second name. Always use one order of names."""
    _backend(store).exclude_others(connection, what)


def clock(connection: Connection, store: str) -> datetime:
    """Return the present time in UTC, by the one clock that all users of a store share."""
    return _backend(store).clock(connection)


@contextmanager
def creating(store: str) -> Iterator[Connection]:
    """Open a transaction that creates tables, one at a time; only in an empty store or one of privlearn."""
    _backend(store).prepare(store)
    with excluding(store, "tables") as connection:
        names = set(inspect(connection).get_table_names())
        if names and not names & MARKS:
            raise LedgerError(
                f"{store} is not a ledger. Pass another path, or create one with `privlearn budget create`."
            )
        yield connection


@contextmanager
def rebuilding(store: str) -> Iterator[Connection]:
    """Open a transaction that changes tables, while no other one that has read their format is active."""
    backend = _backend(store)
    with connect(store) as connection:
        backend.allow_rebuilding(connection)
        announce_writing(connection)
        with connection.begin():
            backend.exclude_others(connection, "tables")
            backend.exclude_readers(connection, MARKS & set(inspect(connection).get_table_names()))
            yield connection
            backend.check_rebuilt(connection)


@contextmanager
def connect(store: str) -> Iterator[Connection]:
    """Open a connection whose database errors become ledger errors, without statements, parameters and rows.

    Rows may be private: they contain a session's noise, for example.
    """
    backend = _backend(store)
    backend.check_present(store)
    try:
        with backend.engine(store).connect() as connection:
            yield connection
    except SQLAlchemyError as error:
        kind = StoreUnusable if isinstance(error, _PASSING) else LedgerError
        raise kind(
            f"the ledger at {store} cannot be used: {_reason(error)}. Check {backend.ADVICE}"
        ) from None


def _reason(error: SQLAlchemyError) -> str:
    if not isinstance(error, DatabaseError):
        return type(error).__name__
    diagnosis = getattr(error.orig, "diag", None)  # PostgreSQL's: its details would quote a row
    return " ".join(str(getattr(diagnosis, "message_primary", None) or error.orig).split())


def _backend(store: str) -> Backend:
    return postgresql if is_address(store) else sqlite


_PASSING = (OperationalError, InterfaceError, TimeoutError)
"""Errors of a full disk, a lost connection or a lock; others would occur again."""

MARKS = frozenset({"ledger_format", "session_states", "service_format"})
"""Tables that only privlearn creates."""

_KINDS = "a path, sqlite:///path or postgresql://user@host/database"

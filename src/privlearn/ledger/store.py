"""The ledger's part of a store: transactions that know its format."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection, func, inspect, select

from privlearn import storage
from privlearn.errors import LedgerError
from privlearn.ledger import tables


@contextmanager
def reading(store: str) -> Iterator[Connection]:
    """A transaction that sees one state of the ledger."""
    with storage.reading(store) as connection:
        _check_format(connection, store)
        yield connection


@contextmanager
def writing(store: str, dataset: str) -> Iterator[Connection]:
    """A transaction that excludes every other writer of the data set, and is durable once the block is left."""
    with storage.excluding(store, f"data set {dataset}") as connection:
        _check_format(connection, store)
        yield connection


@contextmanager
def creating(store: str) -> Iterator[Connection]:
    """A transaction that gives a data set its budget, one at a time; a store without a ledger gets its tables."""
    with storage.creating(store) as connection:
        if not inspect(connection).has_table(tables.formats.name):
            tables.create_all(connection)
        _check_format(connection, store)
        yield connection


def _check_format(connection: Connection, store: str) -> None:
    version = None
    if inspect(connection).has_table(tables.formats.name):
        version = connection.scalar(select(func.max(tables.formats.c.version)))
    if version is None:
        raise LedgerError(
            f"{store} is not a ledger: give another one, or create it with `privlearn budget create`"
        )
    if version < tables.FORMAT:
        raise LedgerError(
            f"{store} was written by an older privlearn (format {version}), which knew no accounts: go on with that "
            "version, or have it show what is left and create a ledger of that total at another place"
        )
    if version > tables.FORMAT:
        raise LedgerError(
            f"{store} was written by a newer privlearn (format {version}): install that version"
        )

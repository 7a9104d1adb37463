"""The ledger's part of a store: transactions that know its format."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection, inspect

from privlearn import storage
from privlearn.ledger import tables
from privlearn.storage import LEDGER
from privlearn.tracing import marked


@contextmanager
def reading(store: str) -> Iterator[Connection]:
    """A transaction that sees one state of the ledger."""
    with marked("ledger.read"), storage.reading(store) as connection:
        LEDGER.check(connection, store)
        yield connection


@contextmanager
def writing(store: str, dataset: str) -> Iterator[Connection]:
    """A transaction that excludes every other writer of the data set, and is durable once the block is left."""
    with marked("ledger.write"), storage.excluding(store, f"data set {dataset}") as connection:
        LEDGER.check(connection, store)
        yield connection


@contextmanager
def creating(store: str) -> Iterator[Connection]:
    """A transaction that gives a data set its budget, one at a time; a store without a ledger gets its tables."""
    with storage.creating(store) as connection:
        if not inspect(connection).has_table(tables.formats.name):
            tables.create_all(connection)
        LEDGER.check(connection, store)
        yield connection

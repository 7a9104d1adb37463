"""The ledger's part of a store: transactions that check its format."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection, inspect

from privlearn.budget import storage, tables
from privlearn.budget.storage import LEDGER
from privlearn.budget.storage.tracing import span


@contextmanager
def reading(store: str) -> Iterator[Connection]:
    """Open a transaction that sees one state of the ledger."""
    with span("ledger.read"), storage.reading(store) as connection:
        LEDGER.check(connection, store)
        yield connection


@contextmanager
def writing(store: str, dataset: str) -> Iterator[Connection]:
    """Open a transaction that excludes every other writer of the data set, and is durable once the block is left."""
    with span("ledger.write"), storage.excluding(store, f"data set {dataset}") as connection:
        LEDGER.check(connection, store)
        yield connection


@contextmanager
def creating(store: str) -> Iterator[Connection]:
    """Open a transaction that gives a data set its budget, one at a time; create the tables if there are none."""
    with storage.creating(store) as connection:
        if not inspect(connection).has_table(tables.formats.name):
            tables.create_all(connection)
        LEDGER.check(connection, store)
        yield connection

"""A store as any other program sees it: read and written without privlearn."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from decimal import Decimal
from typing import Any

import psycopg

Refused = (sqlite3.IntegrityError, psycopg.IntegrityError)


def is_file(store: str) -> bool:
    return "://" not in store


def execute(store: str, statement: str) -> list[tuple[Any, ...]]:
    """Runs one statement and gives its rows."""
    if is_file(store):
        with closing(sqlite3.connect(store, isolation_level=None)) as connection:
            return connection.execute(statement).fetchall()
    with psycopg.connect(store, autocommit=True) as connection:
        cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else []


def counted(store: str, dataset: str) -> Decimal:
    """Epsilon reserved and not cancelled."""
    rows = execute(
        store,
        f"SELECT epsilon FROM entries WHERE dataset = '{dataset}' AND kind = 'reserved' AND reservation NOT IN"
        " (SELECT reservation FROM entries WHERE kind = 'cancelled')",
    )
    return sum((Decimal(repr(epsilon)) for (epsilon,) in rows), Decimal(0))

"""What both kinds of store agree on: how long a transaction waits, and how it says that it will write."""

from __future__ import annotations

from sqlalchemy import Connection

BUSY_SECONDS = 30

_WRITES = "privlearn_writes"


def announce_writing(connection: Connection) -> None:
    """To be called before the transaction begins."""
    connection.execution_options(**{_WRITES: True})


def is_writing(connection: Connection) -> bool:
    return bool(connection.get_execution_options().get(_WRITES, False))

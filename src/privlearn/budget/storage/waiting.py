"""What both kinds of store share: how long a transaction waits, and how it announces that it will write."""

from __future__ import annotations

from sqlalchemy import Connection

BUSY_SECONDS = 30

_WRITES = "privlearn_writes"


def announce_writing(connection: Connection) -> None:
    """Mark a connection before its transaction begins, which will write."""
    connection.execution_options(**{_WRITES: True})


def is_writing(connection: Connection) -> bool:
    """Return whether the connection was marked by `announce_writing`."""
    return bool(connection.get_execution_options().get(_WRITES, False))

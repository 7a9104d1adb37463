"""What both kinds of store share: spans that measure durations, and how long a transaction waits.

A span costs nothing unless a server exports it. It has a name from this list and nothing else, so it cannot reveal what
it was about.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Literal, TypeAlias

from sqlalchemy import Connection

SpanName: TypeAlias = Literal["ledger.read", "ledger.write", "database.read", "database.write"]
Tracer: TypeAlias = Callable[[SpanName], AbstractContextManager[object]]


def _no_span(_: SpanName) -> AbstractContextManager[object]:
    return nullcontext()


_tracer: Tracer = _no_span


def span(name: SpanName) -> AbstractContextManager[object]:
    """Return a context manager whose duration is measured."""
    return _tracer(name)


def set_tracer(tracer: Tracer | None) -> None:
    """Measure spans of this process with this tracer from now on; None stops it."""
    global _tracer
    _tracer = tracer or _no_span


BUSY_SECONDS = 30  # for which a transaction waits for another one

_WRITES = "privlearn_writes"


def announce_writing(connection: Connection) -> None:
    """Mark a connection before its transaction begins, which will write."""
    connection.execution_options(**{_WRITES: True})


def is_writing(connection: Connection) -> bool:
    """Return whether the connection was marked by `announce_writing`."""
    return bool(connection.get_execution_options().get(_WRITES, False))

"""The audit log: who did what and when, in a table that the database itself keeps from being changed.

Each line bears a digest of itself and of the digest before it, so that a line that was changed, left out or put in by
other means is found out by whoever reads the log (`log_file`), also from a copy and without this server.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from sqlalchemy import Connection, insert, select

from privlearn.service.store import tables
from privlearn.service.timing import as_text, now
from privlearn.storage import also_excluding, excluding, reading

BEGINNING = "0" * 64
"""The digest before the first line."""

_LOCK = "events"


@dataclass(frozen=True)
class Event:
    """One line of the log; everything in it is public to the holder, and nothing depends on a record."""

    id: int
    time: str
    actor: str
    action: str
    dataset: str
    details: dict[str, Any]
    digest: str

    def follows(self, before: str) -> bool:
        """Whether this is the line that was written after the one with that digest."""
        told = (self.time, self.actor, self.action, self.dataset, self.details)
        return self.digest == digest_after(before, *told)


def digest_after(
    before: str, time: str, actor: str, action: str, dataset: str, details: dict[str, Any]
) -> str:
    """SHA-256 of the digest before and of the line as JSON; the number of a line is its place, and no part of it."""
    content = [before, time, actor, action, dataset, details]
    return sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def record(store: str, actor: str, action: str, dataset: str = "", /, **details: Any) -> None:
    """Add a line; details are plain JSON values that do not depend on a record."""
    with excluding(store, _LOCK) as connection:
        _append(connection, actor, action, dataset, details)


def record_with(
    connection: Connection, store: str, actor: str, action: str, dataset: str = "", /, **details: Any
) -> None:
    """The same inside a transaction that writes: both are durable, or neither."""
    also_excluding(connection, store, _LOCK)
    _append(connection, actor, action, dataset, details)


def _append(connection: Connection, actor: str, action: str, dataset: str, details: dict[str, Any]) -> None:
    told = (as_text(now()), actor, action, dataset, details)
    names = ("time", "actor", "action", "dataset", "details", "digest")
    digest = digest_after(last_digest(connection), *told)
    connection.execute(insert(tables.events).values(dict(zip(names, (*told, digest), strict=True))))


def last_digest(connection: Connection) -> str:
    """Of the newest line; of the newest that was removed, if none is left."""
    for table in (tables.events, tables.log_heads):
        newest = select(table.c.digest).order_by(table.c.id.desc()).limit(1)
        found: str | None = connection.scalar(newest)
        if found is not None:
            return found
    return BEGINNING


def events(store: str, limit: int = 100, before: int | None = None) -> list[Event]:
    """The newest lines first; ``before`` is the id of the last one seen."""
    query = select(tables.events).order_by(tables.events.c.id.desc()).limit(limit)
    if before is not None:
        query = query.where(tables.events.c.id < before)
    with reading(store) as connection:
        return [Event(**row._mapping) for row in connection.execute(query)]

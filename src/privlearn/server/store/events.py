"""The audit log: who did what and when, in a table that the database protects from changes.

Each line has a digest of itself and of the previous digest. So a changed, removed or inserted line is detected by
every reader of the log (`log_file`), also in a copy and without this server.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from sqlalchemy import Connection, insert, select

from privlearn.budget.storage import also_excluding, excluding, reading
from privlearn.server.store import tables
from privlearn.server.timing import as_text, now

BEGINNING = "0" * 64
"""The digest before the first line."""

_LOCK = "events"


@dataclass(frozen=True)
class Event:
    """One line of the log; nothing in it depends on a record."""

    id: int
    time: str
    actor: str
    action: str
    dataset: str
    details: dict[str, Any]
    digest: str

    def follows(self, before: str) -> bool:
        """Return whether this line was written after the one with that digest."""
        content = (self.time, self.actor, self.action, self.dataset, self.details)
        return self.digest == digest_after(before, *content)


def digest_after(
    before: str, time: str, actor: str, action: str, dataset: str, details: dict[str, Any]
) -> str:
    """Return the SHA-256 of the previous digest and of the line as JSON, without the line's number."""
    line = [before, time, actor, action, dataset, details]
    return sha256(json.dumps(line, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def record(store: str, actor: str, action: str, dataset: str = "", /, **details: Any) -> None:
    """Add a line; details are JSON values that do not depend on a record."""
    with excluding(store, _LOCK) as connection:
        _append(connection, actor, action, dataset, details)


def record_with(
    connection: Connection, store: str, actor: str, action: str, dataset: str = "", /, **details: Any
) -> None:
    """Add a line inside a transaction that writes: both are durable, or neither is."""
    also_excluding(connection, store, _LOCK)
    _append(connection, actor, action, dataset, details)


def _append(connection: Connection, actor: str, action: str, dataset: str, details: dict[str, Any]) -> None:
    content = (as_text(now()), actor, action, dataset, details)
    names = ("time", "actor", "action", "dataset", "details", "digest")
    digest = digest_after(last_digest(connection), *content)
    connection.execute(insert(tables.events).values(dict(zip(names, (*content, digest), strict=True))))


def last_digest(connection: Connection) -> str:
    """Return the digest of the newest line, or of the newest removed one if none is left."""
    for table in (tables.events, tables.log_heads):
        newest = select(table.c.digest).order_by(table.c.id.desc()).limit(1)
        digest: str | None = connection.scalar(newest)
        if digest is not None:
            return digest
    return BEGINNING


def events(store: str, limit: int = 100, before: int | None = None) -> list[Event]:
    """Return the newest lines first; ``before`` is the id of the last one seen."""
    query = select(tables.events).order_by(tables.events.c.id.desc()).limit(limit)
    if before is not None:
        query = query.where(tables.events.c.id < before)
    with reading(store) as connection:
        return [Event(**row._mapping) for row in connection.execute(query)]

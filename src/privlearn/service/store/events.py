"""The audit log: who did what and when, in a table that the database itself keeps from being changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import insert, select

from privlearn.service.store import tables
from privlearn.service.timing import as_text, now
from privlearn.storage import excluding, reading


@dataclass(frozen=True)
class Event:
    """One line of the log; everything in it is public to the holder, and nothing depends on a record."""

    id: int
    time: str
    actor: str
    action: str
    dataset: str
    details: dict[str, Any]


def record(store: str, actor: str, action: str, dataset: str = "", /, **details: Any) -> None:
    """Add a line; details are plain JSON values that do not depend on a record."""
    with excluding(store, "events") as connection:
        connection.execute(
            insert(tables.events).values(
                time=as_text(now()), actor=actor, action=action, dataset=dataset, details=details
            )
        )


def events(store: str, limit: int = 100, before: int | None = None) -> list[Event]:
    """The newest lines first; ``before`` is the id of the last one seen."""
    query = select(tables.events).order_by(tables.events.c.id.desc()).limit(limit)
    if before is not None:
        query = query.where(tables.events.c.id < before)
    with reading(store) as connection:
        return [Event(**row._mapping) for row in connection.execute(query)]

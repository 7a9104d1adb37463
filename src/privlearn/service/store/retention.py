"""Removing old lines of the audit log, as the holder's retention policy says, without breaking its chain.

What is removed leaves a head: the number and digest of the last line removed, signed if the server has a key. The lines
that are kept still prove that they follow it, and a copy of the removed ones proves that it leads to it.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import delete, func, insert, select

from privlearn.release.signatures import SigningKey
from privlearn.service.access.keys import HOLDER
from privlearn.service.store import tables
from privlearn.service.store.events import record
from privlearn.service.store.log_file import Head, first_head, kept_events, verify_log
from privlearn.service.timing import as_text, now
from privlearn.storage import SERVICE, excluding, removing_from


def prune(store: str, before: datetime, key: SigningKey | None = None) -> int:
    """Remove the lines from before a moment; how many there were.

    The whole chain is verified first: nothing is removed from a log that was changed. That lines were removed is itself
    a line of the log.

    Parameters
    ----------
    store : str
    before : datetime
        With a time zone.
    key : SigningKey, optional
        Signs the head that is left.
    """
    verify_log(first_head(store), kept_events(store))
    old = tables.events.c.time < as_text(before)
    with excluding(store, "events") as connection, removing_from(connection, tables.events.name):
        SERVICE.check(connection, store)
        kept = select(func.min(tables.events.c.id)).where(~old)
        oldest = connection.scalar(kept)
        removed = old if oldest is None else old & (tables.events.c.id < oldest)
        newest = select(tables.events.c.id, tables.events.c.digest).where(removed)
        last = connection.execute(newest.order_by(tables.events.c.id.desc()).limit(1)).one_or_none()
        if last is None:
            return 0
        head = Head(last.id, last.digest).signed(key)
        facts = {"signature": head.signature, "public_key": head.public_key, "time": as_text(now())}
        connection.execute(insert(tables.log_heads).values(id=head.id, digest=head.digest, **facts))
        count = int(connection.execute(delete(tables.events).where(tables.events.c.id <= last.id)).rowcount)
    record(store, HOLDER, "removed old lines of the log", lines=count, last=head.id, digest=head.digest)
    return count

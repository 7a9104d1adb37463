"""Detect which servers use a store, before its tables are upgraded or replaced by older ones.

On PostgreSQL each server holds a shared advisory lock on its own connection, which ends with the process. An upgrade
requests the same lock exclusively. (On SQLite there is one server, and it locks its directory.)
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from privlearn.budget.storage import postgresql
from privlearn.budget.storage.formats import PARTS
from privlearn.budget.storage.store import is_address, reading
from privlearn.errors import LedgerError, StoreUnusable

if TYPE_CHECKING:
    from psycopg import Connection

# A key of the tables, not of the database, which may hold several stores in separate schemas.
_KEY = "hashtextextended('privlearn servers on ' || to_regclass('service_format')::oid, 0)"


class Presence:
    """The lock by which one server announces that it uses a store.

    Parameters
    ----------
    store : str
        With a server's tables in it.
    """

    def __init__(self, store: str) -> None:
        self._store = store
        self._held: Connection | None = None
        self._fits = False

    def keep(self) -> str:
        """Take the lock, or take it again if the connection was lost; call it every second.

        Returns
        -------
        str
            Empty, or why this server has to stop: the store is locked for an upgrade, or its format has changed.
        """
        if not is_address(self._store):
            return ""
        if not self._is_held():
            self._fits = False
            if self._acquire() is False:
                return "the database is being upgraded or restored. Start this server when that is done"
        if not self._fits:
            with reading(self._store) as connection:  # only now: from here on the format cannot change
                self._fits = all(part.format(connection) == part.newest for part in PARTS.values())
        if not self._fits:
            return "the database has the format of another version by now. Install that version"
        return ""

    def _acquire(self) -> bool | None:
        """Return whether the lock was granted; only then is the connection retained."""
        connection = _connect(self._store)
        is_granted = _try(connection, "pg_try_advisory_lock_shared")
        if is_granted:
            self._held = connection
            weakref.finalize(self, connection.close)
        else:
            connection.close()
        return is_granted

    def end(self) -> None:
        """Release the lock."""
        if self._held is not None:
            self._held.close()

    def _is_held(self) -> bool:
        from psycopg import Error

        try:
            return self._held is not None and self._held.execute("SELECT true").fetchone() is not None
        except Error:
            return False


@contextmanager
def without_servers(store: str) -> Iterator[None]:
    """Ensure that no server runs on a PostgreSQL store inside the block; raise LedgerError if one runs."""
    with _connect(store) as connection:
        if _try(connection, "pg_try_advisory_lock") is False:
            raise LedgerError(f"servers or another upgrade run on {store}. Stop every server, and try again.")
        yield


def _connect(store: str) -> Connection:
    postgresql.engine(store)  # raises LedgerError if the driver is missing
    import psycopg

    try:
        return psycopg.connect(store, autocommit=True, **postgresql.CONNECTION)
    except psycopg.Error:
        raise StoreUnusable(f"the ledger at {store} cannot be reached. Check {postgresql.ADVICE}") from None


def _try(connection: Connection, lock: str) -> bool | None:
    """Return whether the lock was granted; None if the server's tables do not exist yet."""
    row = connection.execute(f"SELECT {lock}({_KEY})").fetchone()
    return None if row is None else row[0]

"""That servers run on a store: known to whoever would change its tables, or has put older ones in their place.

On PostgreSQL each server holds a lock that any number may share, on a connection of its own: it ends with the process,
however that ends. Whoever needs the store alone asks for the same lock without others. (On SQLite there is one server,
and it locks its folder.)
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from privlearn.errors import LedgerError, StoreUnusable
from privlearn.storage import postgresql
from privlearn.storage.formats import PARTS
from privlearn.storage.store import reading

if TYPE_CHECKING:
    from psycopg import Connection

# Of the tables, not of the database: it may hold several stores, each in a schema of its own.
_KEY = "hashtextextended('privlearn servers on ' || to_regclass('service_format')::oid, 0)"


class Presence:
    """One server's word that it uses a store.

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
        """Give it, or give it again if the connection was lost; to be called every second.

        Returns
        -------
        str
            Empty, or why this server has to end: somebody else has the store alone, or has changed its format.
        """
        if not postgresql.is_address(self._store):
            return ""
        if not self._is_held():
            self._fits = False
            if self._give() is False:
                return "the database is being upgraded or restored: start this server when that is done"
        if not self._fits:
            with reading(self._store) as looking:  # only now: nobody changes the format from here on
                self._fits = all(part.format(looking) == part.newest for part in PARTS.values())
        if not self._fits:
            return "the database has the format of another version by now: install that version"
        return ""

    def _give(self) -> bool | None:
        """Whether the lock was given; only then the connection is kept."""
        connection = _connect(self._store)
        given = _try(connection, "pg_try_advisory_lock_shared")
        if given:
            self._held = connection
            weakref.finalize(self, connection.close)
        else:
            connection.close()
        return given

    def end(self) -> None:
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
    """Inside the block no server runs on the store, and none begins; refused if one runs. For PostgreSQL."""
    with _connect(store) as connection:
        if _try(connection, "pg_try_advisory_lock") is False:
            raise LedgerError(f"servers run on {store}: stop every one of them first")
        yield


def _connect(store: str) -> Connection:
    postgresql.engine(store)  # says in words if the driver is missing
    import psycopg

    try:
        return psycopg.connect(store, autocommit=True, **postgresql.CONNECTION)
    except psycopg.Error:
        raise StoreUnusable(f"the ledger at {store} cannot be reached. Check {postgresql.ADVICE}") from None


def _try(connection: Connection, lock: str) -> bool | None:
    """Whether it was given; None where there are no tables of a server yet."""
    found = connection.execute(f"SELECT {lock}({_KEY})").fetchone()
    return None if found is None else found[0]

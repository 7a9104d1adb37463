"""A store in a PostgreSQL database, for processes on several machines. Its settings:

- A transaction that writes takes an advisory lock of its data set, so that of two processes one waits (up to 30
  seconds) and then reads what the other wrote. Locking the budget's row would need the right to change it.
- It is READ COMMITTED, also if the server's default differs: every statement after the lock sees what was committed
  before the lock was given. Under REPEATABLE READ it would see the state from before the wait, and overspend.
- synchronous_commit is at least on, and a server with fsync off is refused: what is committed survives a power cut.
- Numbers are sent with all their digits, also if the server's default differs: a rounded cost could be too small.
- Each process reuses its connections, and tests them before use: one that was lost in between is replaced. None of the
  settings above outlives its transaction.
- A connection that is lost ends its transaction. The caller cannot know whether it had just been committed: it gets
  an error, lets nothing out, and the cost counts if it was recorded.

An address holds no password, so none can be shown: PostgreSQL's own password file or PGPASSWORD supplies it.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Collection
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, func, make_url, select
from sqlalchemy.pool import QueuePool

from privlearn.budget.storage.shared import BUSY_SECONDS, is_writing
from privlearn.errors import LedgerError

# The end of messages that begin "Check ".
ADVICE = (
    "that the server runs and can be reached, and that your role has its permissions (docs/how-to/budget.md). "
    "What was reserved before still counts, and may have been recorded just now; a commit may be tried again"
)
OPTIONS = ("host", "passfile", "sslcert", "sslkey", "sslmode", "sslrootcert")


def address(url: URL) -> str:
    """Return the canonical address; error messages repeat no part of an address that is refused."""
    if url.password is not None or "password" in url.query:
        raise LedgerError(
            "the ledger's address must not contain a password, which would be visible. "
            "Put it into PostgreSQL's password file (~/.pgpass) or into PGPASSWORD."
        )
    if not url.database:
        raise LedgerError("the ledger's address names no database. Pass postgresql://user@host/database")
    if any(name not in OPTIONS or not isinstance(value, str) for name, value in url.query.items()):
        raise LedgerError(
            f"the options of a ledger's address are {', '.join(OPTIONS)}, once each. Leave out others."
        )
    return url.set(drivername="postgresql").render_as_string()


def check_present(store: str) -> None:
    """Do nothing: the server raises an error when it is used."""


def prepare(store: str) -> None:
    """Do nothing: the administrator creates the database."""


def engine(store: str) -> Engine:
    """Return the connections of this process; those of the process that it was forked from must not be shared."""
    key = (os.getpid(), store)
    return _engines.get(key) or _engines.setdefault(key, _new_engine(store))


def disconnect() -> None:
    """Close the connections of this process; the next transaction opens a new one."""
    for process, store in list(_engines):
        if process == os.getpid():
            _engines.pop((process, store)).dispose()


def _new_engine(store: str) -> Engine:
    url = make_url(store).set(drivername="postgresql+psycopg")
    try:
        created = create_engine(
            url, use_native_hstore=False, hide_parameters=True, connect_args=CONNECTION, **_POOL
        )
    except ModuleNotFoundError:
        raise LedgerError(
            "a ledger on PostgreSQL needs psycopg. Run: pip install 'privlearn[postgresql]'"
        ) from None
    event.listen(created, "begin", _begin)
    return created


def exclude_others(connection: Connection, what: str) -> None:
    """Wait until no other transaction holds this name, and hold it until the end of this one."""
    key = int.from_bytes(sha256(f"privlearn ledger: {what}".encode()).digest()[:8], "big", signed=True)
    connection.execute(select(func.pg_advisory_xact_lock(key)))


def clock(connection: Connection) -> datetime:
    """Return the database's time: the clocks of several machines differ."""
    now: datetime = connection.exec_driver_sql("SELECT clock_timestamp()").scalar_one()
    return now.astimezone(UTC)


def allow_rebuilding(connection: Connection) -> None:
    """Do nothing: tables are changed in place."""


def exclude_readers(connection: Connection, tables: Collection[str]) -> None:
    """Wait until every transaction that has read these tables has ended; new ones wait for this one."""
    for name in sorted(tables):
        connection.exec_driver_sql(f"LOCK TABLE {name} IN ACCESS EXCLUSIVE MODE")


def check_rebuilt(connection: Connection) -> None:
    """Do nothing: references are checked all along."""


def _begin(connection: Connection) -> None:
    mode = "READ COMMITTED, READ WRITE" if is_writing(connection) else "REPEATABLE READ, READ ONLY"
    connection.exec_driver_sql(f"SET TRANSACTION ISOLATION LEVEL {mode}")
    if connection.exec_driver_sql(_SETTINGS).scalar_one() != "on" and is_writing(connection):
        raise LedgerError(
            "the ledger's server runs with fsync off and would forget costs when the power fails. "
            "Set fsync = on in its postgresql.conf."
        )


# A process that hangs inside a transaction, or whose machine is gone, must not keep the others waiting.
_SETTINGS = f"""
    SELECT current_setting('fsync'),
        set_config('lock_timeout', '{BUSY_SECONDS}s', true),
        set_config('idle_in_transaction_session_timeout', '{BUSY_SECONDS}s', true),
        set_config('extra_float_digits', '3', true),
        set_config('synchronous_commit', CASE current_setting('synchronous_commit')
            WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, true)
"""
CONNECTION: dict[str, Any] = {
    "application_name": "privlearn",
    "client_encoding": "utf8",
    "connect_timeout": BUSY_SECONDS,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 1000 * BUSY_SECONDS,
}
# Unlimited overflow: a transaction that is opened inside another must not wait for it to end.
_POOL: dict[str, Any] = {"poolclass": QueuePool, "pool_size": 8, "max_overflow": -1, "pool_pre_ping": True}

_engines: dict[tuple[int, str], Engine] = {}
atexit.register(disconnect)

"""One database for everything durable: an SQLite file or a PostgreSQL database, and transactions on either."""

from privlearn.storage.formats import LEDGER, SERVICE, protect, removing_from
from privlearn.storage.postgresql import disconnect
from privlearn.storage.store import also_excluding, clock, connected, creating, excluding, locate, reading

__all__ = [
    "LEDGER", "SERVICE", "also_excluding", "clock", "connected", "creating", "disconnect", "excluding", "locate",
    "protect", "reading", "removing_from",
]  # fmt: skip

"""One database for everything durable: an SQLite file or a PostgreSQL database, and transactions on either."""

from privlearn.storage.formats import LEDGER, SERVICE, protect
from privlearn.storage.postgresql import disconnect
from privlearn.storage.store import connected, creating, excluding, locate, reading

__all__ = [
    "LEDGER", "SERVICE", "connected", "creating", "disconnect", "excluding", "locate", "protect", "reading",
]  # fmt: skip

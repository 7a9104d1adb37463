"""One database for everything durable: an SQLite file or a PostgreSQL database, and transactions on either.

`store.py` opens transactions, `sqlite.py` and `postgresql.py` say how, `formats.py` has the formats of the tables, and
`migrations/` upgrades them. It knows nothing of budgets: the tables belong to `budget`, `sessions` and `server`.
"""

from privlearn.budget.storage.formats import LEDGER, SERVICE, protect, removing_from
from privlearn.budget.storage.postgresql import disconnect
from privlearn.budget.storage.store import (
    also_excluding,
    clock,
    creating,
    excluding,
    locate,
    reading,
)

__all__ = [
    "LEDGER", "SERVICE", "also_excluding", "clock", "creating", "disconnect", "excluding", "locate",
    "protect", "reading", "removing_from",
]  # fmt: skip

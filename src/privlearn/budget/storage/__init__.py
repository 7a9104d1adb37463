"""One database for everything durable: an SQLite file or a PostgreSQL database, and transactions on either.

`store.py` opens transactions, with `sqlite.py` or `postgresql.py` for the two kinds of database; `formats.py` numbers
the formats of the tables, and `migrations/` upgrades them. Nothing here depends on budgets: the tables are defined in
`budget`, `sessions` and `server`. May import only what is above `budget`; start with `store.py`.
"""

from typing import TYPE_CHECKING

from privlearn.budget.storage.formats import LEDGER, PARTS, SERVICE, protect, removing_from
from privlearn.budget.storage.postgresql import disconnect
from privlearn.budget.storage.store import MARKS, also_excluding, clock, creating, excluding, locate, reading
from privlearn.imports import export_late

if TYPE_CHECKING:
    from privlearn.budget.storage.presence import Presence, without_servers
else:
    __getattr__ = export_late(__name__)


__all__ = [
    "LEDGER", "MARKS", "PARTS", "SERVICE", "also_excluding", "clock", "creating", "disconnect",
    "excluding", "locate", "protect", "reading", "removing_from",
]  # fmt: skip

"""The server's durable state: tables, the audit log, and opening and settling a store.

Start with `tables`; then `events`, which writes the log's chain of digests, and `log_file`, which exports and verifies
it. These modules may import `budget.storage` and `server.timing`; `store` also uses the ledger and the queue.
"""

from typing import TYPE_CHECKING

from privlearn.imports import export_late

if TYPE_CHECKING:
    from privlearn.server.store.log_file import first_head, iterate_events, verify_log
    from privlearn.server.store.store import open_store, settle
else:
    __getattr__ = export_late(__name__)

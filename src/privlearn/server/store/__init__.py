"""The server's durable state: tables, the audit log, and opening and settling a store.

Start with `tables`; then `events`, which writes the log's chain of digests, and `log_file`, which exports and verifies
it. These modules may import `budget.storage` and `server.timing`; `store` also uses the ledger and the queue.
"""

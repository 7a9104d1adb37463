"""First format of the ledger; `privlearn.budget.tables` creates it."""

revision = "ledger_1"
down_revision = None

"""The ledger of version 0.1: where the scripts begin."""

revision = "ledger_2"
down_revision = None

"""Entries may say which file they paid for, and carry a note."""

import sqlalchemy as sa
from alembic import op

revision = "ledger_3"
down_revision = "ledger_2"


def upgrade() -> None:
    """Adding columns leaves rows and triggers as they are; older entries have neither."""
    op.add_column("entries", sa.Column("file_name", sa.String(255)))
    op.add_column("entries", sa.Column("note", sa.String(200)))

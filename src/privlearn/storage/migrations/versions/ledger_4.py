"""A data set may be split once, and entries say which part they are about."""

import sqlalchemy as sa
from alembic import op

from privlearn.storage.formats import protect

revision = "ledger_4"
down_revision = "ledger_3"


def upgrade() -> None:
    """Older entries are about the whole data set: they name no part."""
    op.add_column("entries", sa.Column("part", sa.String(20)))
    splits = op.create_table(
        "splits",
        sa.Column("dataset", sa.String(200), sa.ForeignKey("budgets.dataset"), primary_key=True),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("description", sa.String(2000), nullable=False),
    )
    protect(op.get_bind(), {splits: "dataset = NEW.dataset"})

"""Browsers are signed in by a provider too, and no longer when idle: whoever was signed in signs in again."""

import sqlalchemy as sa
from alembic import op

revision = "service_5"
down_revision = "service_4"


def upgrade() -> None:
    op.drop_table("logins")
    op.create_table(
        "logins",
        sa.Column("token_hash", sa.String(64), primary_key=True),
        sa.Column("key_id", sa.String(32), sa.ForeignKey("keys.id")),
        sa.Column("role", sa.String(20), nullable=False),
        sa.Column("person", sa.String(200), nullable=False),
        sa.Column("seen", sa.String(40), nullable=False),
        sa.Column("expires", sa.String(40), nullable=False),
    )

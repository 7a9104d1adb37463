"""A job knows the key that asked for it, so that it ends when the key is revoked."""

import sqlalchemy as sa
from alembic import op

revision = "service_4"
down_revision = "service_3"


def upgrade() -> None:
    op.add_column("jobs", sa.Column("key_id", sa.String(250), nullable=False, server_default=""))

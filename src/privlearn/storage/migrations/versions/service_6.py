"""Long lists are found by indexes; roles of keys are no longer listed in the database."""

import sqlalchemy as sa
from alembic import op

revision = "service_6"
down_revision = "service_5"

_INDEXES = {
    "jobs_by_state": ["state", "created"],
    "jobs_by_time": ["created", "id"],
    "jobs_of_analyst": ["analyst", "created", "id"],
    "jobs_by_end": ["state", "finished", "id"],
    "jobs_by_kind": ["state", "kind", "finished", "id"],
    "jobs_of_analyst_by_end": ["state", "analyst", "finished", "id"],
    "jobs_of_analyst_by_kind": ["state", "analyst", "kind", "finished", "id"],
}


def upgrade() -> None:
    for name, columns in _INDEXES.items():
        op.create_index(name, "jobs", columns)
    results = sa.table("results", sa.column("closed", sa.Boolean), sa.column("media_type", sa.String))
    unclosed = sa.and_(results.c.closed.is_(False), results.c.media_type == "")
    op.create_index("results_open", "results", ["id"], sqlite_where=unclosed, postgresql_where=unclosed)
    if op.get_context().dialect.name == "sqlite":
        with op.batch_alter_table("keys", copy_from=_keys(), recreate="always"):
            pass  # SQLite cannot drop a constraint: the rows are copied into a table that has none
    else:
        op.drop_constraint("keys_role_check", "keys")


def _keys() -> sa.Table:
    """The table as it will be."""
    return sa.Table(
        "keys",
        sa.MetaData(),
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("role", sa.String(20), nullable=False),
        sa.Column("analyst", sa.String(200), nullable=False),
        sa.Column("datasets", sa.JSON),
        sa.Column("secret_hash", sa.String(64), nullable=False),
        sa.Column("created", sa.String(40), nullable=False),
        sa.Column("expires", sa.String(40), nullable=False),
        sa.Column("revoked", sa.String(40), nullable=False),
    )

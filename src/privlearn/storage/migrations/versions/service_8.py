"""Requests may wait for approval, with a purpose and a legal basis; states of jobs are not listed in the database."""

import sqlalchemy as sa
from alembic import op

revision = "service_8"
down_revision = "service_7"

_NEW = {
    "purpose": 500,
    "legal_basis": 200,
    "decide_by": 40,
    "decided": 40,
    "decided_by": 200,
    "decision": 500,
}


def upgrade() -> None:
    if op.get_context().dialect.name == "sqlite":
        with op.batch_alter_table("jobs", copy_from=_jobs(), recreate="always"):
            pass  # SQLite cannot drop a constraint: the rows are copied into a table that has none
    else:
        op.drop_constraint("jobs_state_check", "jobs")
    for name, length in _NEW.items():
        op.add_column("jobs", sa.Column(name, sa.String(length), nullable=False, server_default=""))


def _jobs() -> sa.Table:
    """The table as it was, but for the constraint on the state."""
    return sa.Table(
        "jobs",
        sa.MetaData(),
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("analyst", sa.String(200), nullable=False),
        sa.Column("dataset", sa.String(200), nullable=False),
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("epsilon", sa.Double, nullable=False),
        sa.Column("delta", sa.Double, nullable=False),
        sa.Column("neighbours", sa.String(20), nullable=False),
        sa.Column("trial", sa.Boolean, nullable=False),
        sa.Column("points", sa.LargeBinary),
        sa.Column("idempotency_key", sa.String(200)),
        sa.Column("request_digest", sa.String(64), nullable=False),
        sa.Column("state", sa.String(20), nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("lease", sa.String(40), nullable=False),
        sa.Column("created", sa.String(40), nullable=False),
        sa.Column("started", sa.String(40), nullable=False),
        sa.Column("finished", sa.String(40), nullable=False),
        sa.Column("failure", sa.Text, nullable=False),
        sa.Column("fields", sa.JSON, nullable=False, server_default="{}"),
        sa.Column("key_id", sa.String(250), nullable=False, server_default=""),
        sa.Column("note", sa.String(200), nullable=False, server_default=""),
        sa.UniqueConstraint("analyst", "idempotency_key"),
        sa.Index("jobs_by_state", "state", "created"),
        sa.Index("jobs_by_time", "created", "id"),
        sa.Index("jobs_of_analyst", "analyst", "created", "id"),
        sa.Index("jobs_by_end", "state", "finished", "id"),
        sa.Index("jobs_by_kind", "state", "kind", "finished", "id"),
        sa.Index("jobs_of_analyst_by_end", "state", "analyst", "finished", "id"),
        sa.Index("jobs_of_analyst_by_kind", "state", "analyst", "kind", "finished", "id"),
    )

"""Kinds and mechanisms of jobs are no longer listed in the database: a new kind of job needs no new tables."""

import sqlalchemy as sa
from alembic import op

revision = "service_2"
down_revision = "service_1"


def upgrade() -> None:
    if op.get_context().dialect.name == "sqlite":
        with op.batch_alter_table("jobs", copy_from=jobs_table(), recreate="always"):
            pass  # SQLite cannot drop a constraint: the rows are copied into a table that has none
    else:
        for column in ("kind", "mechanism"):
            op.drop_constraint(f"jobs_{column}_check", "jobs")


def jobs_table() -> sa.Table:
    """The table as it will be; the constraint that is left is on the state."""
    return sa.Table(
        "jobs",
        sa.MetaData(),
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("analyst", sa.String(200), nullable=False),
        sa.Column("dataset", sa.String(200), nullable=False),
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("learner", sa.String(200), nullable=False),
        sa.Column("mechanism", sa.String(20), nullable=False),
        sa.Column("epsilon", sa.Double, nullable=False),
        sa.Column("delta", sa.Double, nullable=False),
        sa.Column("neighbours", sa.String(20), nullable=False),
        sa.Column("trial", sa.Boolean, nullable=False),
        sa.Column("points", sa.LargeBinary),
        sa.Column("idempotency_key", sa.String(200)),
        sa.Column("request_digest", sa.String(64), nullable=False),
        sa.Column(
            "state",
            sa.String(20),
            sa.CheckConstraint("state IN ('waiting', 'running', 'done', 'failed')"),
            nullable=False,
        ),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("lease", sa.String(40), nullable=False),
        sa.Column("created", sa.String(40), nullable=False),
        sa.Column("started", sa.String(40), nullable=False),
        sa.Column("finished", sa.String(40), nullable=False),
        sa.Column("failure", sa.Text, nullable=False),
        sa.UniqueConstraint("analyst", "idempotency_key"),
    )

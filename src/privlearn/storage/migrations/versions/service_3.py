"""Results of all kinds of jobs are in one table, and what they are asked with in one column: a new kind adds none."""

import sqlalchemy as sa
from alembic import op

from privlearn.storage.migrations.versions.service_2 import jobs_table

revision = "service_3"
down_revision = "service_2"

_jobs = sa.table(
    "jobs", *(sa.column(name) for name in ("id", "learner", "mechanism")), sa.column("fields", sa.JSON)
)


def upgrade() -> None:
    _gather_results()
    op.add_column("jobs", sa.Column("fields", sa.JSON, nullable=False, server_default="{}"))
    connection = op.get_bind()
    for job in connection.execute(sa.select(_jobs.c.id, _jobs.c.learner, _jobs.c.mechanism)).all():
        fields = {"learner": job.learner, "mechanism": job.mechanism}
        connection.execute(sa.update(_jobs).where(_jobs.c.id == job.id).values(fields=fields))
    # Older SQLite cannot drop a column: there the rows are copied into a table that has none.
    copied = _jobs_before() if op.get_context().dialect.name == "sqlite" else None
    with op.batch_alter_table("jobs", copy_from=copied) as batch:
        batch.drop_column("learner")
        batch.drop_column("mechanism")


def _gather_results() -> None:
    op.create_table(
        "results",
        sa.Column("id", sa.String(32), sa.ForeignKey("jobs.id"), primary_key=True),
        sa.Column("certificate", sa.JSON, nullable=False),
        sa.Column("content", sa.LargeBinary),
        sa.Column("media_type", sa.String(100), nullable=False),
        sa.Column("closed", sa.Boolean, nullable=False),
    )
    op.execute(
        "INSERT INTO results (id, certificate, content, media_type, closed)"
        " SELECT id, certificate, file, 'application/octet-stream', false FROM releases"
    )
    op.execute(
        "INSERT INTO results (id, certificate, content, media_type, closed)"
        " SELECT id, certificate, release, '', state = 'closed' FROM sessions"
    )
    op.drop_table("releases")
    op.drop_table("sessions")


def _jobs_before() -> sa.Table:
    jobs = jobs_table()
    jobs.append_column(sa.Column("fields", sa.JSON, nullable=False, server_default="{}"))
    return jobs

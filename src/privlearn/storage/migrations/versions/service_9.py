"""What the holder makes in the console: analysts, shares, data sets and their versions; a job is about one version."""

import sqlalchemy as sa
from alembic import op

from privlearn.storage.formats import protect

revision = "service_9"
down_revision = "service_8"


def upgrade() -> None:
    op.add_column("jobs", sa.Column("version", sa.Integer, nullable=False, server_default="1"))
    op.create_table(
        "analysts",
        sa.Column("name", sa.String(64), primary_key=True),
        sa.Column("title", sa.String(200), nullable=False),
        sa.Column("created", sa.String(40), nullable=False),
        sa.Column("disabled", sa.String(40), nullable=False),
    )
    op.create_table(
        "shares",
        sa.Column("analyst", sa.String(64), primary_key=True),
        sa.Column("dataset", sa.String(64), primary_key=True),
        sa.Column("epsilon", sa.Double, nullable=False),
        sa.Column("delta", sa.Double, nullable=False),
    )
    op.create_table(
        "datasets",
        sa.Column("name", sa.String(64), primary_key=True),
        sa.Column("settings", sa.JSON, nullable=False),
        sa.Column("created", sa.String(40), nullable=False),
        sa.Column("retired", sa.String(40), nullable=False),
    )
    versions = op.create_table(
        "dataset_versions",
        sa.Column("dataset", sa.String(64), sa.ForeignKey("datasets.name"), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("schema_file", sa.Text, nullable=False),
        sa.Column("schema", sa.JSON, nullable=False),
        sa.Column("records", sa.Integer, nullable=False),
        sa.Column("created", sa.String(40), nullable=False),
    )
    protect(op.get_bind(), {versions: "dataset = NEW.dataset AND number = NEW.number"})

"""Lines of the audit log form a chain, and old ones may be removed without breaking it; jobs have a note."""

import json
from hashlib import sha256

import sqlalchemy as sa
from alembic import op

from privlearn.storage.formats import protect

revision = "service_7"
down_revision = "service_6"

_TOLD = ("time", "actor", "action", "dataset", "details")
_events = sa.table(
    "events",
    sa.column("id"),
    *(sa.column(name) for name in _TOLD[:-1]),
    sa.column("details", sa.JSON),
    sa.column("digest"),
)


def upgrade() -> None:
    """Older lines get the digests that they would have had; for that alone they are changed."""
    op.add_column("jobs", sa.Column("note", sa.String(200), nullable=False, server_default=""))
    connection, is_file = op.get_bind(), op.get_context().dialect.name == "sqlite"
    heads = op.create_table(
        "log_heads",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("time", sa.String(40), nullable=False),
        sa.Column("signature", sa.String(128), nullable=False),
        sa.Column("public_key", sa.String(64), nullable=False),
    )
    protect(connection, {heads: "id = NEW.id"})
    op.add_column("events", sa.Column("digest", sa.String(64), nullable=False, server_default=""))
    if is_file:
        statement = connection.exec_driver_sql(
            "SELECT sql FROM sqlite_master WHERE name = 'events_update'"
        ).scalar_one()
        op.execute("DROP TRIGGER events_update")
        _chain(connection)
        connection.exec_driver_sql(statement)
    else:
        op.execute("ALTER TABLE events DISABLE TRIGGER events_append_only")
        _chain(connection)
        op.execute("ALTER TABLE events ENABLE ALWAYS TRIGGER events_append_only")


def _chain(connection: sa.Connection) -> None:
    before = "0" * 64
    for row in connection.execute(sa.select(_events).order_by(_events.c.id)).all():
        content = [before, *(row._mapping[name] for name in _TOLD)]
        before = sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
        connection.execute(sa.update(_events).where(_events.c.id == row.id).values(digest=before))

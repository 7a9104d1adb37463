"""The tables of a ledger. Rows are only ever added; everything else is derived by reading.

They hold names, numbers and times: nothing of the private rows.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import (
    CheckConstraint,
    Column,
    Connection,
    Double,
    ForeignKey,
    Identity,
    Index,
    Integer,
    MetaData,
    String,
    Table,
)

FORMAT = 1

_metadata = MetaData()

formats = Table("ledger_format", _metadata, Column("version", Integer, primary_key=True, autoincrement=False))

budgets = Table(
    "budgets",
    _metadata,
    Column("dataset", String(200), primary_key=True),
    Column("epsilon", Double, CheckConstraint("epsilon > 0"), nullable=False),
    Column("delta", Double, CheckConstraint("delta >= 0 AND delta < 1"), nullable=False),
    Column("neighbours", String(20), nullable=False),
    Column("composition", String(20), CheckConstraint("composition IN ('basic', 'renyi')"), nullable=False),
    Column("renyi_order", Double),
    Column("renyi_limit", Double),
)

# The amounts stand in the reserved row alone, so that no two rows can contradict each other.
entries = Table(
    "entries",
    _metadata,
    Column("id", Integer, Identity(always=True), primary_key=True),
    Column("dataset", ForeignKey(budgets.c.dataset), nullable=False, index=True),
    Column("reservation", String(36)),
    Column(
        "kind",
        String(20),
        CheckConstraint("kind IN ('opened', 'reserved', 'committed', 'cancelled')"),
        CheckConstraint("(kind = 'opened') = (reservation IS NULL)"),
        nullable=False,
    ),
    Column("time", String(40), nullable=False),
    Column("epsilon", Double, CheckConstraint("epsilon > 0 OR kind <> 'reserved'")),
    Column("delta", Double, CheckConstraint("delta >= 0 OR kind <> 'reserved'")),
    Column("renyi", Double),
    Column("purpose", String(200)),
    Column("schema_digest", String(200)),
    sqlite_autoincrement=True,
)

_RESERVED = entries.c.kind == "reserved"
_SETTLED = entries.c.kind.in_(["committed", "cancelled"])
Index(
    "entries_reserved", entries.c.reservation, unique=True, sqlite_where=_RESERVED, postgresql_where=_RESERVED
)
Index("entries_settled", entries.c.reservation, unique=True, sqlite_where=_SETTLED, postgresql_where=_SETTLED)

# INSERT OR REPLACE deletes without firing the triggers on DELETE, so it is met before it inserts.
_SAME_ROW = {
    formats: "version = NEW.version",
    budgets: "dataset = NEW.dataset",
    entries: "id = NEW.id"
    " OR (reservation = NEW.reservation AND (kind = 'reserved') = (NEW.kind = 'reserved'))",
}


def create_all(connection: Connection) -> None:
    """Creates the tables, and has the database itself refuse to change or remove a row."""
    _metadata.create_all(connection)
    if connection.dialect.name == "sqlite":
        for table, same_row in _SAME_ROW.items():
            for statement in _sqlite_triggers(table.name, same_row):
                connection.exec_driver_sql(statement)
    else:
        connection.exec_driver_sql(_POSTGRESQL_FUNCTION)
        for name in _metadata.tables:
            for statement in _postgresql_triggers(name):
                connection.exec_driver_sql(statement)


def _sqlite_triggers(name: str, same_row: str) -> Iterator[str]:
    replaced = f"WHEN EXISTS (SELECT 1 FROM {name} WHERE {same_row})"
    for action, when in (("UPDATE", ""), ("DELETE", ""), ("INSERT", replaced)):
        yield (
            f"CREATE TRIGGER {name}_{action.lower()} BEFORE {action} ON {name} {when} "
            "BEGIN SELECT RAISE(ABORT, 'a ledger is append-only'); END"
        )


def _postgresql_triggers(name: str) -> Iterator[str]:
    yield (
        f"CREATE TRIGGER {name}_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON {name} "
        "FOR EACH STATEMENT EXECUTE FUNCTION ledger_append_only()"
    )
    # ALWAYS: also in sessions that ask for no triggers, as a restore does.
    yield f"ALTER TABLE {name} ENABLE ALWAYS TRIGGER {name}_append_only"


_POSTGRESQL_FUNCTION = """
CREATE FUNCTION ledger_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'a ledger is append-only' USING ERRCODE = 'integrity_constraint_violation';
END
$$
"""

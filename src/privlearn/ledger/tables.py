"""The tables of a ledger. Rows are only ever added; everything else is derived by reading.

They hold names, numbers and times: nothing of the private rows.
"""

from __future__ import annotations

from typing import Literal

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

from privlearn.storage import LEDGER, protect

State = Literal["reserved", "committed", "cancelled"]

_metadata = MetaData()

formats = Table(
    LEDGER.formats.name, _metadata, Column("version", Integer, primary_key=True, autoincrement=False)
)

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

# Amounts and account stand in the reserved row alone, so that no two rows can contradict each other.
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
    Column("account", String(200), CheckConstraint("account IS NOT NULL OR kind <> 'reserved'")),
    Column("file_name", String(255)),
    Column("note", String(200)),
    sqlite_autoincrement=True,
)

_RESERVED = entries.c.kind == "reserved"
_SETTLED = entries.c.kind.in_(["committed", "cancelled"])
Index(
    "entries_reserved", entries.c.reservation, unique=True, sqlite_where=_RESERVED, postgresql_where=_RESERVED
)
Index("entries_settled", entries.c.reservation, unique=True, sqlite_where=_SETTLED, postgresql_where=_SETTLED)

_SAME_ROW = {
    formats: "version = NEW.version",
    budgets: "dataset = NEW.dataset",
    entries: "id = NEW.id"
    " OR (reservation = NEW.reservation AND (kind = 'reserved') = (NEW.kind = 'reserved'))",
}


def create_all(connection: Connection) -> None:
    """Creates the tables, and has the database itself refuse to change or remove a row."""
    _metadata.create_all(connection)
    protect(connection, _SAME_ROW)
    LEDGER.record(connection, LEDGER.newest)

"""Tables of a ledger. Rows are only ever added; everything else is derived by reading.

They hold names, numbers and times, and nothing of the private rows.
"""

from __future__ import annotations

from typing import Literal

import sqlalchemy as sa

from privlearn.budget.storage import LEDGER, protect

State = Literal["reserved", "committed", "cancelled"]

_metadata = sa.MetaData()

formats = sa.Table(
    LEDGER.formats.name, _metadata, sa.Column("version", sa.Integer, primary_key=True, autoincrement=False)
)

budgets = sa.Table(
    "budgets",
    _metadata,
    sa.Column("dataset", sa.String(200), primary_key=True),
    sa.Column("epsilon", sa.Double, sa.CheckConstraint("epsilon > 0"), nullable=False),
    sa.Column("delta", sa.Double, sa.CheckConstraint("delta >= 0 AND delta < 1"), nullable=False),
    sa.Column("neighbours", sa.String(20), nullable=False),
    sa.Column(
        "composition", sa.String(20), sa.CheckConstraint("composition IN ('basic', 'renyi')"), nullable=False
    ),
    sa.Column("renyi_order", sa.Double),
    sa.Column("renyi_limit", sa.Double),
)

# Amounts and account are stored in the reserved row alone, so that no two rows can contradict each other.
entries = sa.Table(
    "entries",
    _metadata,
    sa.Column("id", sa.Integer, sa.Identity(always=True), primary_key=True),
    sa.Column("dataset", sa.ForeignKey(budgets.c.dataset), nullable=False),
    sa.Column("reservation", sa.String(36), index=True),
    sa.Column(
        "kind",
        sa.String(20),
        sa.CheckConstraint("kind IN ('opened', 'reserved', 'committed', 'cancelled')"),
        sa.CheckConstraint("(kind = 'opened') = (reservation IS NULL)"),
        nullable=False,
    ),
    sa.Column("time", sa.String(40), nullable=False),
    sa.Column("epsilon", sa.Double, sa.CheckConstraint("epsilon > 0 OR kind <> 'reserved'")),
    sa.Column("delta", sa.Double, sa.CheckConstraint("delta >= 0 OR kind <> 'reserved'")),
    sa.Column("renyi", sa.Double),
    sa.Column("purpose", sa.String(200)),
    sa.Column("schema_digest", sa.String(200)),
    sa.Column("account", sa.String(200), sa.CheckConstraint("account IS NOT NULL OR kind <> 'reserved'")),
    sa.Column("file_name", sa.String(255)),
    sa.Column("note", sa.String(200)),
    sa.Column("part", sa.String(20)),
    sqlite_autoincrement=True,
)

# Running totals after an entry: of the data set (account "") and of the entry's account, by part. Decimals, as text.
sums = sa.Table(
    "sums",
    _metadata,
    sa.Column("dataset", sa.ForeignKey(budgets.c.dataset), primary_key=True),
    sa.Column("account", sa.String(200), primary_key=True),
    sa.Column("part", sa.String(20), primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("entry", sa.ForeignKey(entries.c.id), nullable=False),
    sa.Column("reserved_epsilon", sa.Text, nullable=False),
    sa.Column("reserved_delta", sa.Text, nullable=False),
    sa.Column("reserved_renyi", sa.Text),
    sa.Column("committed_epsilon", sa.Text, nullable=False),
    sa.Column("committed_delta", sa.Text, nullable=False),
    sa.Column("committed_renyi", sa.Text),
    sa.Index("sums_by_entry", "dataset", "entry"),
)

# Answers in a run of several holders, at the cost of a reservation: one for each question and stage.
answers = sa.Table(
    "answers",
    _metadata,
    sa.Column("reservation", sa.String(36), primary_key=True),
    sa.Column("question", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("stage", sa.String(20), primary_key=True),
    sa.Column("digest", sa.String(64), nullable=False),
)

# One split for each data set, permanently: parts of two splits are not disjoint.
splits = sa.Table(
    "splits",
    _metadata,
    sa.Column("dataset", sa.ForeignKey(budgets.c.dataset), primary_key=True),
    sa.Column("digest", sa.String(64), nullable=False),
    sa.Column("description", sa.String(2000), nullable=False),
)

_RESERVED = entries.c.kind == "reserved"
_SETTLED = entries.c.kind.in_(["committed", "cancelled"])
sa.Index(
    "entries_reserved", entries.c.reservation, unique=True, sqlite_where=_RESERVED, postgresql_where=_RESERVED
)
sa.Index(
    "entries_settled", entries.c.reservation, unique=True, sqlite_where=_SETTLED, postgresql_where=_SETTLED
)
sa.Index("entries_in_order", entries.c.dataset, entries.c.id)
sa.Index(
    "entries_of_account",
    entries.c.dataset,
    entries.c.account,
    entries.c.id,
    sqlite_where=_RESERVED,
    postgresql_where=_RESERVED,
)

_SAME_ROW = {
    formats: "version = NEW.version",
    budgets: "dataset = NEW.dataset",
    splits: "dataset = NEW.dataset",
    answers: "reservation = NEW.reservation AND question = NEW.question AND stage = NEW.stage",
    sums: "dataset = NEW.dataset AND account = NEW.account AND part = NEW.part AND number = NEW.number",
    entries: "id = NEW.id"
    " OR (reservation = NEW.reservation AND (kind = 'reserved') = (NEW.kind = 'reserved'))",
}


def create_all(connection: sa.Connection) -> None:
    """Create the tables, and have the database itself refuse to change or remove a row."""
    _metadata.create_all(connection)
    protect(connection, _SAME_ROW)
    LEDGER.record(connection, LEDGER.newest)

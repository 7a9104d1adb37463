"""Tables of a ledger, and transactions that check its format.

Rows are only ever added; everything else is derived by reading. They hold names, numbers and times, and nothing of the
private rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

import sqlalchemy as sa
from sqlalchemy import Connection, inspect

from privlearn.budget import storage
from privlearn.budget.storage import LEDGER, protect
from privlearn.budget.storage.shared import span

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


def create_all(connection: Connection) -> None:
    """Create the tables, and have the database itself refuse to change or remove a row."""
    _metadata.create_all(connection)
    protect(connection, _SAME_ROW)
    LEDGER.record(connection, LEDGER.newest)


@contextmanager
def reading(store: str) -> Iterator[Connection]:
    """Open a transaction that sees one state of the ledger."""
    with span("ledger.read"), storage.reading(store) as connection:
        LEDGER.check(connection, store)
        yield connection


@contextmanager
def writing(store: str, dataset: str) -> Iterator[Connection]:
    """Open a transaction that excludes every other writer of the data set, and is durable once the block is left."""
    with span("ledger.write"), storage.excluding(store, f"data set {dataset}") as connection:
        LEDGER.check(connection, store)
        yield connection


@contextmanager
def creating(store: str) -> Iterator[Connection]:
    """Open a transaction that gives a data set its budget, one at a time; create the tables if there are none."""
    with storage.creating(store) as connection:
        if not inspect(connection).has_table(formats.name):
            create_all(connection)
        LEDGER.check(connection, store)
        yield connection

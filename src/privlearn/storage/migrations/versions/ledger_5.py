"""Every entry leaves running sums behind, so that a reservation need not add up all entries before it."""

from decimal import Decimal, Inexact, localcontext
from typing import Any

import sqlalchemy as sa
from alembic import op

from privlearn.storage.formats import protect

revision = "ledger_5"
down_revision = "ledger_4"

_STATES = ("reserved", "committed")
_NUMBERS = ("epsilon", "delta", "renyi")
_entries = sa.table(
    "entries",
    *(sa.column(name) for name in ("id", "dataset", "reservation", "kind", "account", "part", *_NUMBERS)),
)


def upgrade() -> None:
    """Older entries get the sums that they would have left."""
    sums = _make_table()
    _make_indexes()
    if op.get_context().dialect.name == "postgresql":
        _let_in_who_may_append()
    with localcontext() as context:
        context.prec, context.traps[Inexact] = 1000, True
        op.bulk_insert(sums, _added_up(op.get_bind()))


def _make_table() -> sa.Table:
    made = op.create_table(
        "sums",
        sa.Column("dataset", sa.String(200), sa.ForeignKey("budgets.dataset"), primary_key=True),
        sa.Column("account", sa.String(200), primary_key=True),
        sa.Column("part", sa.String(20), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("entry", sa.Integer, sa.ForeignKey("entries.id"), nullable=False),
        *(
            sa.Column(f"{state}_{number}", sa.Text, nullable=number == "renyi")
            for state in _STATES
            for number in _NUMBERS
        ),
    )
    same = "dataset = NEW.dataset AND account = NEW.account AND part = NEW.part AND number = NEW.number"
    protect(op.get_bind(), {made: same})
    return made


def _make_indexes() -> None:
    reserved = sa.text("kind = 'reserved'")
    op.drop_index("ix_entries_dataset", "entries")
    op.create_index("ix_entries_reservation", "entries", ["reservation"])
    op.create_index("sums_by_entry", "sums", ["dataset", "entry"])
    op.create_index("entries_in_order", "entries", ["dataset", "id"])
    op.create_index(
        "entries_of_account",
        "entries",
        ["dataset", "account", "id"],
        sqlite_where=reserved,
        postgresql_where=reserved,
    )


def _let_in_who_may_append() -> None:
    """A role that was given the right to add entries has to add their sums."""
    named = op.get_bind().exec_driver_sql(
        "SELECT DISTINCT quote_ident(grantee) FROM information_schema.role_table_grants WHERE table_name = 'entries'"
        " AND table_schema = current_schema() AND privilege_type = 'INSERT' AND grantee <> current_user"
    )
    for role in named.scalars().all():
        op.execute(f"GRANT SELECT, INSERT ON sums TO {role}")


def _added_up(connection: sa.Connection) -> list[dict[str, Any]]:
    """The rows that each entry adds: one for its data set, one for its account if it has one."""
    query = sa.select(_entries).where(_entries.c.kind != "opened").order_by(_entries.c.id)
    reserved: dict[str, sa.Row[Any]] = {}
    standing: dict[tuple[str, str, str], tuple[int, dict[str, Decimal | None]]] = {}
    found: list[dict[str, Any]] = []
    for row in connection.execute(query):
        about = reserved.setdefault(row.reservation, row)
        for account in sorted({"", about.account}):
            key = (about.dataset, account, about.part or "")
            number, before = standing.get(key, (0, _NOTHING))
            standing[key] = number + 1, _after(before, row.kind, about)
            texts = {name: None if sum is None else str(sum) for name, sum in standing[key][1].items()}
            named = dict(zip(("dataset", "account", "part"), key, strict=True))
            found.append({**named, "number": number + 1, "entry": row.id, **texts})
    return found


_NOTHING: dict[str, Decimal | None] = {
    f"{state}_{number}": Decimal(0) for state in _STATES for number in _NUMBERS
}


def _after(before: dict[str, Decimal | None], kind: str, about: sa.Row[Any]) -> dict[str, Decimal | None]:
    after = dict(before)
    signs = {
        "reserved": {"reserved": 1},
        "cancelled": {"reserved": -1},
        "committed": {"reserved": -1, "committed": 1},
    }
    for state, sign in signs[kind].items():
        for number in _NUMBERS:
            name, value = f"{state}_{number}", about._mapping[number]
            known = before[name]
            after[name] = None
            if known is not None and value is not None:
                after[name] = known + sign * Decimal(repr(float(value)))
    return after

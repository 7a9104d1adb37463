"""Whether a request is admitted: there is room in the total and in the share, or it was admitted before."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import Connection, select

from privlearn.errors import BudgetExceeded, LedgerError
from privlearn.ledger.composition import Amount, Balance, BasicComposition
from privlearn.ledger.statement import balance_of, read_composition, read_counted, read_entries
from privlearn.ledger.tables import entries

if TYPE_CHECKING:
    from privlearn.ledger.ledger import Ledger


def check_same(connection: Connection, ledger: Ledger, id: str, requested: Amount) -> bool:
    """True if the request was admitted under this id and is open; refuses an id that stands for something else."""
    rows = connection.execute(select(entries).where(entries.c.reservation == id)).all()
    if not rows:
        return False
    known = next(row for row in rows if row.kind == "reserved")
    amount = Amount(known.epsilon, known.delta, known.renyi)
    if (known.dataset, known.account, amount) != (ledger.dataset, ledger.account, requested):
        raise LedgerError(f"reservation {id} is for another data set, account or cost: take another id")
    if len(rows) > 1:
        settled = next(row.kind for row in rows if row.kind != "reserved")
        raise LedgerError(f"reservation {id} is {settled} and cannot be used again: take another id")
    return True


def check_room(connection: Connection, ledger: Ledger, requested: Amount) -> None:
    """Refuses what does not fit beside everything counted, in the total and in the account's share."""
    dataset, account, share = ledger.dataset, ledger.account, ledger.share
    total = read_composition(connection, ledger.store, dataset)
    if not total.admits(read_counted(connection, dataset), requested):
        balance = balance_of(total, read_entries(connection, dataset))
        raise BudgetExceeded(
            _refusal(f"the budget of data set {dataset!r} ({total.total})", balance, requested)
        )
    if share is None:
        return
    part = BasicComposition(share)
    if not part.admits(read_counted(connection, dataset, account), requested):
        own = [entry for entry in read_entries(connection, dataset) if entry.account == account]
        which = f"the share of {account!r} in the budget of data set {dataset!r} ({share})"
        raise BudgetExceeded(_refusal(which, balance_of(part, own), requested))


def _refusal(which: str, balance: Balance, requested: Amount) -> str:
    return (
        f"{which} has no room for this. Spent: {balance.spent}; reserved: {balance.reserved}; "
        f"requested: {requested}; left: {balance.left}. Ask for no more than is left"
    )

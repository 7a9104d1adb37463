"""Whether a request may be recorded: once under its id, within the total and the share, for parts of one split."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from sqlalchemy import Connection, insert, select

from privlearn.data.parts import Split
from privlearn.errors import BudgetExceeded, LedgerError
from privlearn.ledger.composition import Amount, Balance, BasicComposition, Composition, only_delta_lacks
from privlearn.ledger.statement import read_composition
from privlearn.ledger.sums import Counted, about, balance_of, read_sums
from privlearn.ledger.tables import entries, splits

if TYPE_CHECKING:
    from privlearn.ledger.ledger import Ledger


def check_same(connection: Connection, ledger: Ledger, id: str, requested: Amount) -> bool:
    """True if the request was admitted under this id and is open; refuses an id that stands for something else."""
    rows = connection.execute(select(entries).where(entries.c.reservation == id)).all()
    if not rows:
        return False
    known = next(row for row in rows if row.kind == "reserved")
    amount = Amount(known.epsilon, known.delta, known.renyi)
    stated = (known.dataset, known.account, known.part or "", amount)
    if stated != (ledger.dataset, ledger.account, ledger.part_name, requested):
        raise LedgerError(f"reservation {id} is for another data set, account, part or cost: take another id")
    if len(rows) > 1:
        settled = next(row.kind for row in rows if row.kind != "reserved")
        raise LedgerError(f"reservation {id} is {settled} and cannot be used again: take another id")
    return True


def check_room(connection: Connection, ledger: Ledger, requested: Amount) -> None:
    """Refuses what does not fit beside everything counted, in the total and in the account's share."""
    dataset, account, share, part = ledger.dataset, ledger.account, ledger.share, ledger.part_name
    total, counted = read_composition(connection, ledger.store, dataset), read_sums(connection, dataset)
    if not _all_admit(total, about(counted, part), requested):
        balance = balance_of(total, counted, part)
        raise BudgetExceeded(
            _refusal(f"the budget of data set {dataset!r} ({total.total})", balance, requested)
        )
    if share is None:
        return
    rule, own = BasicComposition(share), read_sums(connection, dataset, account)
    if not _all_admit(rule, about(own, part), requested):
        which = f"the share of {account!r} in the budget of data set {dataset!r} ({share})"
        raise BudgetExceeded(_refusal(which, balance_of(rule, own, part), requested))


def _all_admit(rule: Composition, counted: list[Counted], requested: Amount) -> bool:
    """Whether the people of every part that the request is about can afford it."""
    return all(rule.admits(one.reserved + one.committed, requested) for one in counted)


def check_split(connection: Connection, dataset: str, split: Split) -> None:
    """Records the split with the first entry of a part; refuses another split, whose parts would overlap."""
    known = connection.scalar(select(splits.c.digest).where(splits.c.dataset == dataset))
    if known is None:
        content = json.dumps(split.to_dict())
        connection.execute(insert(splits).values(dataset=dataset, digest=split.digest, description=content))
    elif known != split.digest:
        raise LedgerError(
            f"data set {dataset!r} was split otherwise before, and parts of two splits overlap: take the parts of that "
            "split, or leave the part out and pay for the whole"
        )


def _refusal(which: str, balance: Balance, requested: Amount) -> str:
    return (
        f"{which} has no room for this. Spent: {balance.spent}; reserved: {balance.reserved}; "
        f"requested: {requested}; left: {balance.left}. Ask for no more than is left"
        f"{only_delta_lacks(requested, balance.left)}"
    )

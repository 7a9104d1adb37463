"""Admission of charges: decide inside a transaction whether a request may be recorded in the ledger.

A request is admitted if its id is new (or repeats the same open request), if it fits into the data set's total and the
account's share, and if it refers to a part of the data set's one split.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from sqlalchemy import Connection, insert, select

from privlearn.budget.composition import Amount, Balance, BasicComposition, Composition, delta_hint
from privlearn.budget.statement import read_composition
from privlearn.budget.tables import entries, splits
from privlearn.budget.totals import PartTotals, balance_of, read_totals, totals_for_part
from privlearn.data.parts import Split
from privlearn.errors import BudgetExceeded, LedgerError

if TYPE_CHECKING:
    from privlearn.budget.ledger import Ledger


def is_repeated_request(connection: Connection, ledger: Ledger, id: str, requested: Amount) -> bool:
    """Return whether the same request is already open under this id.

    Raises LedgerError if the id was used for a different request, or if that request is settled.
    """
    rows = connection.execute(select(entries).where(entries.c.reservation == id)).all()
    if not rows:
        return False
    reserved = next(row for row in rows if row.kind == "reserved")
    amount = Amount(reserved.epsilon, reserved.delta, reserved.renyi)
    recorded = (reserved.dataset, reserved.account, reserved.part or "", amount)
    if recorded != (ledger.dataset, ledger.account, ledger.part_name, requested):
        raise LedgerError(
            f"reservation {id} belongs to a different data set, account, part or cost. Use a new id."
        )
    settlement = next((row.kind for row in rows if row.kind != "reserved"), None)
    if settlement is not None:
        raise LedgerError(f"reservation {id} is already {settlement}. Use a new id.")
    return True


def check_budget(connection: Connection, ledger: Ledger, requested: Amount) -> None:
    """Raise BudgetExceeded unless the request fits into the data set's total and the account's share."""
    dataset, account, part = ledger.dataset, ledger.account, ledger.part_name
    composition = read_composition(connection, ledger.store, dataset)
    totals = read_totals(connection, dataset)
    if not _fits(composition, totals_for_part(totals, part), requested):
        budget = f"the budget of data set {dataset!r} ({composition.total})"
        raise BudgetExceeded(_explain(budget, balance_of(composition, totals, part), requested))
    if ledger.share is None:
        return
    share = BasicComposition(ledger.share)
    account_totals = read_totals(connection, dataset, account)
    if not _fits(share, totals_for_part(account_totals, part), requested):
        budget = f"the share of {account!r} in the budget of data set {dataset!r} ({ledger.share})"
        raise BudgetExceeded(_explain(budget, balance_of(share, account_totals, part), requested))


def record_split(connection: Connection, dataset: str, split: Split) -> None:
    """Store the data set's split at its first use; refuse a second, different split.

    Parts of two different splits overlap, so charging only their maximum would be wrong.
    """
    digest = connection.scalar(select(splits.c.digest).where(splits.c.dataset == dataset))
    if digest is None:
        description = json.dumps(split.to_dict())
        connection.execute(
            insert(splits).values(dataset=dataset, digest=split.digest, description=description)
        )
    elif digest != split.digest:
        raise LedgerError(
            f"data set {dataset!r} already has a different split. "
            "Use the parts of that split, or omit the part to charge the whole data set."
        )


def _fits(composition: Composition, totals: list[PartTotals], requested: Amount) -> bool:
    return all(composition.admits(part.reserved + part.committed, requested) for part in totals)


def _explain(budget: str, balance: Balance, requested: Amount) -> str:
    return (
        f"{budget} is too small for this request. Spent: {balance.spent}; reserved: {balance.reserved}; "
        f"requested: {requested}; left: {balance.left}. Request no more than is left"
        f"{delta_hint(requested, balance.left)}"
    )

"""A cost in the ledger's tables: admitted by `check_budget`, reserved, and committed by its `Reservation`.

A request is admitted if its id is new (or repeats the same open request), if it fits into the data set's total and the
account's share, and if it refers to a part of the data set's one split.

A module of its own, because a fit without a ledger needs no database library, which takes long to import.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

from sqlalchemy import Connection, Row, insert, select

from privlearn.budget import tables as stores
from privlearn.budget.composition import Amount, Balance, BasicComposition, Composition, delta_hint
from privlearn.budget.tables import State, answers, entries, splits
from privlearn.budget.totals import (
    WHOLE,
    PartTotals,
    add_totals,
    balance_of,
    read_composition,
    read_totals,
    totals_for_part,
)
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


_VECTOR, _SHARES = "vector", "shares"


class Reservation:
    """A cost that is already taken out of the budget; `Ledger.reserve` returns it.

    Inside ``with``, results are computed from the private rows. Leaving the block without `commit`, by an error or
    not, leaves the cost reserved, and reserved costs count forever: the error may have revealed something.

    Attributes
    ----------
    store, dataset : str
        As in `Ledger`.
    id : str
    """

    def __init__(self, store: str, dataset: str, id: str, *, resumed: bool = False) -> None:
        self.store = store
        self.dataset = dataset
        self.id = id
        self._entered = resumed  # an earlier process may have computed a result

    def state(self) -> State | None:
        """Return its state; None if it is not in the ledger."""
        with stores.reading(self.store) as connection:
            kinds = set(self._rows(connection))
        settled = kinds - {"reserved"}
        return settled.pop() if settled else "reserved" if kinds else None

    def commit(self) -> None:
        """Make the cost final. Call it before the result leaves; calling it again changes nothing."""
        self._settle("committed")

    def commit_answer(self, question: int) -> None:
        """Make the cost final, and record that a question of a run of several holders is answered at this cost.

        Raises
        ------
        LedgerError
            If it was answered before, by a process with a copy of this one's memory: a second answer is not paid for.
        """
        with stores.writing(self.store, self.dataset) as connection:
            self._settle_in(connection, "committed")
            if self._record_once(connection, question, _VECTOR) is not None:
                raise LedgerError(
                    f"another process has already answered question {question + 1}, according to the ledger"
                )

    def record_shares(self, question: int, digest: str) -> None:
        """Record the list of parties for which shares of a question's sum are given; refuse another list."""
        with stores.writing(self.store, self.dataset) as connection:
            if self._record_once(connection, question, _SHARES, digest) not in (None, digest):
                raise LedgerError(
                    f"another process has given other shares of question {question + 1}, according to the ledger"
                )

    def answered(self) -> set[int]:
        """Return the questions that were answered at its cost."""
        of_this = (answers.c.reservation == self.id) & (answers.c.stage == _VECTOR)
        with stores.reading(self.store) as connection:
            return set(connection.execute(select(answers.c.question).where(of_this)).scalars())

    def cancel(self) -> None:
        """Give the budget back. Only before anything was computed, so never once ``with`` was entered."""
        if self._entered:
            raise LedgerError(
                "a result may have been computed, so the cost stands. "
                "Cancel a reservation before entering its `with` block, or not at all."
            )
        self._settle("cancelled")

    def _settle(self, kind: Literal["committed", "cancelled"]) -> None:
        with stores.writing(self.store, self.dataset) as connection:
            self._settle_in(connection, kind)

    def _settle_in(self, connection: Connection, kind: Literal["committed", "cancelled"]) -> None:
        rows = self._rows(connection)
        reserved = rows.pop("reserved", None)
        if reserved is None:
            raise LedgerError(f"reservation {self.id} is not in the ledger at {self.store}. Reserve again.")
        # Settling twice the same way is a retry, and adds nothing; settling the other way is refused.
        if rows.keys() - {kind}:
            raise LedgerError(f"reservation {self.id} cannot be {kind} any more. Reserve again.")
        if not rows:
            entry = append(connection, dataset=self.dataset, kind=kind, reservation=self.id)
            amount = Amount(reserved.epsilon, reserved.delta, reserved.renyi)
            part = reserved.part or WHOLE
            add_totals(connection, entry, self.dataset, reserved.account, part, kind, amount)

    def _record_once(self, connection: Connection, question: int, stage: str, digest: str = "") -> str | None:
        """Return what was recorded for a question before; record it now if nothing was."""
        row = {"reservation": self.id, "question": question, "stage": stage}
        known = connection.execute(select(answers.c.digest).filter_by(**row)).scalar_one_or_none()
        if known is None:
            connection.execute(insert(answers).values(**row, digest=digest))
        return known

    def _rows(self, connection: Connection) -> dict[State, Row[Any]]:
        of_this = (entries.c.reservation == self.id) & (entries.c.dataset == self.dataset)
        return {row.kind: row for row in connection.execute(select(entries).where(of_this))}

    def __enter__(self) -> Reservation:
        self._entered = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Do nothing: without a commit the cost stays reserved."""


def append(connection: Connection, **values: str | float | None) -> int:
    """Add a row to the entries, with the present time, and return its number."""
    added = connection.execute(insert(entries).values(time=datetime.now(UTC).isoformat(), **values))
    return int(added.inserted_primary_key[0])  # type: ignore[index]

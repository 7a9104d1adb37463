"""A cost on its way: taken out of the budget, not yet final."""

from __future__ import annotations

from datetime import UTC, datetime
from types import TracebackType
from typing import Literal

from sqlalchemy import Connection, insert, select

from privlearn.errors import LedgerError
from privlearn.ledger import store as stores
from privlearn.ledger.tables import State, entries


class Reservation:
    """A cost that is already taken out of the budget; `Ledger.reserve` makes it.

    Inside ``with`` results are computed from the private rows. Leaving the block without `commit`, by an error or not,
    leaves the cost reserved, and reserved counts forever: whoever saw the error may have learnt something.

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
        self._entered = resumed  # whoever had it before may have computed a result

    def state(self) -> State | None:
        """What became of it; None if it is not in the ledger."""
        with stores.reading(self.store) as connection:
            kinds = self._kinds(connection)
        settled = kinds - {"reserved"}
        return settled.pop() if settled else "reserved" if kinds else None

    def commit(self) -> None:
        """Makes the cost final. Call it before the result leaves; calling it again changes nothing."""
        self._settle("committed")

    def cancel(self) -> None:
        """Gives the budget back. Only before anything was computed, so never once ``with`` was entered."""
        if self._entered:
            raise LedgerError(
                "a result may have been computed, so the cost stands: "
                "cancel a reservation before entering its `with` block, or not at all"
            )
        self._settle("cancelled")

    def _settle(self, kind: Literal["committed", "cancelled"]) -> None:
        with stores.writing(self.store, self.dataset) as connection:
            kinds = self._kinds(connection)
            if "reserved" not in kinds:
                raise LedgerError(
                    f"reservation {self.id} is not in the ledger at {self.store}: reserve again"
                )
            settled = kinds - {"reserved"}
            if settled - {kind}:
                raise LedgerError(f"reservation {self.id} cannot be {kind} any more: reserve again")
            if not settled:
                append(connection, dataset=self.dataset, kind=kind, reservation=self.id)

    def _kinds(self, connection: Connection) -> set[State]:
        of_this = (entries.c.reservation == self.id) & (entries.c.dataset == self.dataset)
        return set(connection.scalars(select(entries.c.kind).where(of_this)))

    def __enter__(self) -> Reservation:
        self._entered = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing to do: without a commit the cost stays reserved."""


def append(connection: Connection, **values: str | float | None) -> None:
    """Adds a row to the entries, at the present time."""
    connection.execute(insert(entries).values(time=datetime.now(UTC).isoformat(), **values))

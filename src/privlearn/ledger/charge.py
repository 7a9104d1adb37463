"""Pay for a computation: reserve, compute, commit; with a ledger, or with none."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from types import TracebackType
from typing import Any, Literal, Protocol, TypeVar

from sqlalchemy import Connection, Row, insert, select

from privlearn.errors import ClusterError, LedgerError, NothingRecorded
from privlearn.guarantee import Guarantee, check_strength
from privlearn.ledger import store as stores
from privlearn.ledger.composition import Amount, Cost
from privlearn.ledger.sums import WHOLE, add_sums
from privlearn.ledger.tables import State, answers, entries

_VECTOR, _SHARES = "vector", "shares"


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
            kinds = set(self._rows(connection))
        settled = kinds - {"reserved"}
        return settled.pop() if settled else "reserved" if kinds else None

    def commit(self) -> None:
        """Makes the cost final. Call it before the result leaves; calling it again changes nothing."""
        self._settle("committed")

    def commit_answer(self, question: int) -> None:
        """Makes the cost final, and records that a question of a run of several holders is answered at this cost.

        Raises
        ------
        LedgerError
            If it was answered before, by a process with a copy of this one's memory: a second answer is not paid for.
        """
        with stores.writing(self.store, self.dataset) as connection:
            self._settle_in(connection, "committed")
            if self._recorded(connection, question, _VECTOR) is not None:
                raise LedgerError(
                    f"the ledger says that question {question + 1} was answered by another process"
                )

    def record_shares(self, question: int, digest: str) -> None:
        """Records for which list of parties shares are given, to open a question's sum; of another list none are."""
        with stores.writing(self.store, self.dataset) as connection:
            if self._recorded(connection, question, _SHARES, digest) not in (None, digest):
                raise LedgerError(
                    f"the ledger says that another process gave other shares of question {question + 1}"
                )

    def answered(self) -> set[int]:
        """The questions that were answered at its cost."""
        of_this = (answers.c.reservation == self.id) & (answers.c.stage == _VECTOR)
        with stores.reading(self.store) as connection:
            return set(connection.execute(select(answers.c.question).where(of_this)).scalars())

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
            self._settle_in(connection, kind)

    def _settle_in(self, connection: Connection, kind: Literal["committed", "cancelled"]) -> None:
        rows = self._rows(connection)
        reserved = rows.pop("reserved", None)
        if reserved is None:
            raise LedgerError(f"reservation {self.id} is not in the ledger at {self.store}: reserve again")
        if rows.keys() - {kind}:
            raise LedgerError(f"reservation {self.id} cannot be {kind} any more: reserve again")
        if not rows:
            entry = append(connection, dataset=self.dataset, kind=kind, reservation=self.id)
            amount = Amount(reserved.epsilon, reserved.delta, reserved.renyi)
            part = reserved.part or WHOLE
            add_sums(connection, entry, self.dataset, reserved.account, part, kind, amount)

    def _recorded(self, connection: Connection, question: int, stage: str, digest: str = "") -> str | None:
        """What was recorded of a question before; if nothing was, it is recorded now."""
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
        """Nothing to do: without a commit the cost stays reserved."""


def append(connection: Connection, **values: str | float | None) -> int:
    """Adds a row to the entries, at the present time; gives its number."""
    added = connection.execute(insert(entries).values(time=datetime.now(UTC).isoformat(), **values))
    return int(added.inserted_primary_key[0])  # type: ignore[index]


class Payment(Protocol):
    """A cost that is counted already, such as `Reservation`: results are computed inside its ``with`` block."""

    def commit(self) -> None:
        """Makes the cost final; only afterwards may the result leave."""

    def __enter__(self) -> Payment: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None: ...


class Budget(Protocol):
    """What estimators, searches, purchases and sessions charge, such as `Ledger`."""

    def reserve(self, cost: Cost, purpose: str, schema_digest: str = "", /) -> Payment:
        """Takes the cost out of the budget, durably, or refuses with `BudgetExceeded`."""


Result = TypeVar("Result")


@dataclass(frozen=True, kw_only=True)
class Charge:
    """What a result costs, and where that is written down.

    Parameters
    ----------
    ledger : Budget, optional
        Without one nothing is recorded, and that is said once.
    cost : Cost
    promise : Guarantee
        What is judged: the cost's guarantee, with what was bought of the schema before.
    records : int
        Number of records or persons, public.
    purpose : str
        For the ledger's entry.
    schema_digest : str
    secure : bool
        False for a seeded generator. With it, or with an infinite epsilon, nothing is promised, and the result says so:
        both are for experiments on public data.
    accept_weak_privacy : bool
    """

    ledger: Budget | None
    cost: Cost
    promise: Guarantee
    records: int
    purpose: str
    schema_digest: str = ""
    secure: bool
    accept_weak_privacy: bool

    def check(self) -> None:
        """Refuse a weak promise without a word for it, and say once if nothing will be recorded."""
        if not (self.secure and self.promise.is_private):
            return
        check_strength(self.promise, self.records, self.accept_weak_privacy)
        if self.ledger is None:
            _say_that_nothing_is_recorded()

    def pay_for(self, compute: Callable[[], Result]) -> Result:
        """Touch the data once the cost is durable; if that fails the cost stays, since a failure tells something."""
        self.check()
        if self.ledger is None:
            return self._explained(compute)
        with self.ledger.reserve(self.cost, self.purpose, self.schema_digest) as reservation:
            result = self._explained(compute)
            reservation.commit()
        return result

    def _explained(self, compute: Callable[[], Result]) -> Result:
        """The result; or an error that says what was paid."""
        try:
            return compute()
        except ClusterError as error:
            recorded = (
                "stands in the ledger" if self.ledger is not None else "is spent, though no ledger records it"
            )
            message = f"{error}. {self.cost.guarantee} {recorded}: whoever saw this may have learnt something"
        except BaseException as error:  # also whoever interrupts it
            if self.ledger is not None:
                error.add_note(f"Its cost stays reserved in the ledger: {self.cost.guarantee}")
            raise
        raise ClusterError(message)


@cache  # once in a process; a warning that a filter turns into an error is raised each time
def _say_that_nothing_is_recorded() -> None:
    warnings.warn(
        "no ledger was given: nothing records what this and later releases cost the people in the data together. Pass "
        "ledger=Ledger.create('budgets.db', 'census', Guarantee(1.0, 1e-6)), or silence the category "
        "privlearn.NothingRecorded",
        NothingRecorded,
        stacklevel=1,
    )

"""Charge a computation: reserve, compute, commit; with a ledger, or without one.

The order is the point: the cost is durable before the rows are read, and final before the result leaves. If the
computation fails, the cost stays reserved, because the failure itself may depend on the rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from types import TracebackType
from typing import Any, Literal, Protocol, TypeVar

from sqlalchemy import Connection, Row, insert, select

from privlearn.budget import tables as stores
from privlearn.budget.composition import Amount, Cost
from privlearn.budget.tables import State, answers, entries
from privlearn.budget.totals import WHOLE, add_totals
from privlearn.data.parts import Part
from privlearn.data.schema.private_bounds import add_private_bounds
from privlearn.data.schema.schema import Schema
from privlearn.errors import ClusterError, InvalidParameter, LedgerError, NothingRecorded
from privlearn.guarantee import Guarantee, check_strength

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


class Payment(Protocol):
    """A cost that is already counted, such as `Reservation`: results are computed inside its ``with`` block."""

    def commit(self) -> None:
        """Make the cost final; only afterwards may the result leave."""

    def __enter__(self) -> Payment: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None: ...


class Budget(Protocol):
    """What estimators, searches and sessions charge, such as `Ledger`."""

    def reserve(self, cost: Cost, purpose: str, schema_digest: str = "", /) -> Payment:
        """Take the cost out of the budget, durably, or raise `BudgetExceeded`."""


Result = TypeVar("Result")


@dataclass(frozen=True, kw_only=True)
class Charge:
    """The cost of a result, and the budget that it is charged to.

    Parameters
    ----------
    ledger : Budget, optional
        Without one nothing is recorded, which is warned of once.
    cost : Cost
    schema : Schema, optional
        Schema of the rows: defines what a person is, and holds the receipts of private bounds.
    part : Part, optional
        The part of a split that the rows belong to (`privlearn.data.parts.part_of`). None charges the whole data set.
    records : int
        Number of records or persons, public.
    purpose : str
        For the ledger's entry.
    schema_digest : str, optional
        Recorded with the entry; by default the schema's.
    secure : bool
        False for a seeded generator. With it, or with an infinite epsilon, nothing is guaranteed. Such results are
        for experiments on public data, and a ledger is refused: no entry could state what they cost.
    accept_weak_privacy : bool
    """

    ledger: Budget | None
    cost: Cost
    schema: Schema | None
    part: Part | None
    records: int
    purpose: str
    schema_digest: str | None = None
    secure: bool
    accept_weak_privacy: bool

    @property
    def guarantee(self) -> Guarantee:
        """Return the guarantee of the cost together with the schema's private bounds."""
        return add_private_bounds(
            self.cost.guarantee, () if self.schema is None else self.schema.private_bounds
        )

    def check(self) -> None:
        """Refuse everything that can be refused before the reservation, and warn once if nothing will be recorded."""
        budget = budget_of_rows(self.ledger, self.part, self.schema)
        if self.secure and self.cost.guarantee.is_private:
            check_strength(self.guarantee, self.records, self.accept_weak_privacy)
            if budget is None:
                _warn_that_nothing_is_recorded()
        elif budget is not None:
            raise InvalidParameter(
                "a result with random_state or an infinite epsilon guarantees nothing, so a ledger cannot state its "
                "cost. Leave out random_state, or leave out the ledger for an experiment on public rows"
            )

    def pay_for(self, compute: Callable[[], Result]) -> Result:
        """Touch the data once the cost is durable. If that fails the cost stays, since a failure reveals something."""
        self.check()
        budget = budget_of_rows(self.ledger, self.part, self.schema)
        if budget is None:
            return self._run(compute)
        # The reservation is durable before the first row is touched: a crash wastes budget, and never overspends
        # it.
        with budget.reserve(self.cost, self.purpose, self._digest) as reservation:

            def compute_and_commit() -> Result:
                result = compute()
                reservation.commit()
                return result

            return self._run(compute_and_commit)

    @property
    def _digest(self) -> str:
        if self.schema_digest is not None:
            return self.schema_digest
        return "" if self.schema is None else self.schema.digest

    def _run(self, compute: Callable[[], Result]) -> Result:
        """Return the result, or raise an error that states what was charged."""
        try:
            return compute()
        # Raised again after the handler, without a cause: the error of a worker behind it may quote cells.
        except ClusterError as error:
            recorded = (
                "stands in the ledger" if self.ledger is not None else "is spent, though no ledger records it"
            )
            message = (
                f"{error}. {self.cost.guarantee} {recorded}: this failure may reveal something about the rows"
            )
        except BaseException as error:  # also an interruption
            if self.ledger is not None:
                error.add_note(f"Its cost stays reserved in the ledger: {self.cost.guarantee}")
            raise
        raise ClusterError(message)


def budget_of_rows(ledger: Budget | None, part: Part | None, schema: Schema | None) -> Budget | None:
    """Return the budget of the people whose rows are used: those of the rows' part, or everyone's.

    Raises LedgerError for a ledger of another part than the rows belong to, and for a schema that defines persons
    differently from the split.
    """
    if ledger is None:
        return None
    if not callable(getattr(ledger, "reserve", None)):
        raise InvalidParameter(
            "ledger must be a Ledger, not a path or another object: Ledger.open('budgets.db', 'census')"
        )
    stated = getattr(ledger, "part", None)
    if stated not in (None, part):
        raise LedgerError(
            f"the ledger charges the part {stated.name!r}, and these rows are "
            f"{'not known to be a part' if part is None else f'the part {part.name!r} of a split'}. Pass the table "
            "that `split` returned, and the ledger without of_part: the rows determine the part"
        )
    if part is None or not hasattr(ledger, "of_part"):  # another kind of budget charges the whole
        return ledger
    if schema is None:
        raise LedgerError("a part of a split needs a schema, which defines what a person is")
    part.check(schema)
    budget: Budget = ledger.of_part(part)
    return budget


@cache  # once in a process; a warning that a filter turns into an error is raised each time
def _warn_that_nothing_is_recorded() -> None:
    warnings.warn(
        "no ledger was given: nothing records what this and later releases cost the people in the data together. Pass "
        "ledger=Ledger.create('budgets.db', 'census', Guarantee(1.0, 1e-6)), or silence the category "
        "privlearn.NothingRecorded",
        NothingRecorded,
        stacklevel=1,
    )

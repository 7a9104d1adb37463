"""Charge a computation: reserve, compute, commit; with a ledger, or without one.

The order is the point: the cost is durable before a mechanism computes on the rows, which may have been read and
checked before, and final before the result leaves. If the computation fails, the cost stays reserved, because the
failure itself may depend on the rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from types import TracebackType
from typing import Protocol, TypeVar

from privlearn.budget.composition import Cost
from privlearn.data.parts import Part
from privlearn.data.schema.private_bounds import add_private_bounds
from privlearn.data.schema.schema import Schema
from privlearn.errors import ClusterError, InvalidParameter, LedgerError, NothingRecorded
from privlearn.guarantee import Guarantee, check_strength


class Payment(Protocol):
    """A cost that is already counted, such as `Reservation`: results are computed inside its ``with`` block."""

    def commit(self) -> None:
        """Make the cost final; only afterwards may the result leave."""

    def __enter__(self) -> Payment: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None: ...


class Budget(Protocol):
    """A budget that estimators, searches and sessions charge, such as `Ledger`."""

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
        # Without a ledger this guarantee holds all the same; it is only not added to those of other results.
        if budget is None:
            return self._run(compute)
        # The reservation is durable before the mechanism runs: a crash may waste budget, never overspend it.
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
            # A note keeps the error's type, which callers may catch.
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

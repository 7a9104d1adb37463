"""How a result is paid for, whoever computes it: an estimator, a search, a purchase, a session.

judge the promise -> reserve (durable) -> compute -> commit (durable) -> the result may leave
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TypeVar

from privlearn.errors import NothingRecorded
from privlearn.guarantee import Guarantee
from privlearn.ledger.budget import Budget
from privlearn.ledger.cost import Cost
from privlearn.strength import check_strength

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
            return compute()
        with self.ledger.reserve(self.cost, self.purpose, self.schema_digest) as reservation:
            result = compute()
            reservation.commit()
        return result


@cache  # once in a process; a warning that a filter turns into an error is raised each time
def _say_that_nothing_is_recorded() -> None:
    warnings.warn(
        "no ledger was given: nothing records what this and later releases cost the people in the data together. Pass "
        "ledger=Ledger.create('budgets.db', 'census', Guarantee(1.0, 1e-6)), or silence the category "
        "privlearn.NothingRecorded",
        NothingRecorded,
        stacklevel=1,
    )

"""What every promise passes before the data is used, whoever makes it: an estimator, a purchase, a session."""

from __future__ import annotations

import warnings
from functools import cache

from privlearn.errors import NothingRecorded
from privlearn.guarantee import Guarantee
from privlearn.ledger.budget import Budget
from privlearn.strength import check_strength


def check_promise(
    guarantee: Guarantee, records: int, *, secure: bool, accept_weak_privacy: bool, ledger: Budget | None
) -> None:
    """Refuse a weak promise without a word for it, and say once if nothing will be recorded.

    With a seeded generator or an infinite epsilon nothing is promised, and the result says so: both are for experiments
    on public data.
    """
    if not (secure and guarantee.is_private):
        return
    check_strength(guarantee, records, accept_weak_privacy)
    if ledger is None:
        _say_that_nothing_is_recorded()


@cache  # once in a process; a warning that a filter turns into an error is raised each time
def _say_that_nothing_is_recorded() -> None:
    warnings.warn(
        "no ledger was given: nothing records what this and later releases cost the people in the data together. Pass "
        "ledger=Ledger.create('budgets.db', 'census', Guarantee(1.0, 1e-6)), or silence the category "
        "privlearn.NothingRecorded",
        NothingRecorded,
        stacklevel=1,
    )

"""Where a budget stands, as far as a caller may see it, and whether a cost would fit."""

from __future__ import annotations

import dataclasses

from privlearn.errors import BudgetExceeded
from privlearn.guarantee import Guarantee
from privlearn.ledger import Statement
from privlearn.ledger.composition import exact
from privlearn.service.datasets import OfferedDataSet
from privlearn.service.keys import Caller


def statement_for(offered: OfferedDataSet, caller: Caller) -> Statement:
    """The whole budget and the caller's share of it; of the entries the caller's own, or all for the holder."""
    statement = offered.ledger_of(caller.name).statement()
    if caller.is_holder:
        return statement
    own = tuple(entry for entry in statement.entries if entry.account == caller.name)
    return dataclasses.replace(statement, entries=own)


def check_room(offered: OfferedDataSet, caller: Caller, wanted: Guarantee) -> None:
    """Refuse at once what cannot fit; whether it does is decided when the training reserves its cost."""
    statement = offered.ledger_of(caller.name).statement()
    lefts = {"your share": statement.share.left} if statement.share else {}
    if statement.composition == "basic":  # in the other, many small costs take less than their sum
        lefts["the data set's budget"] = statement.left
    for name, left in lefts.items():
        if exact(wanted.epsilon) > exact(left.epsilon) or exact(wanted.delta) > exact(left.delta):
            raise BudgetExceeded(
                f"{name} has no room for {wanted}: {left} is left. Ask for no more than that. Nothing was spent"
            )

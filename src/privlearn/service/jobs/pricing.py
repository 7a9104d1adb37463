"""What a job will run and what the ledger will say of it, from public facts: found when it is asked for, and again
before it runs, for a trial as for the real thing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from privlearn.errors import InvalidParameter, LedgerError
from privlearn.ledger.composition import Cost
from privlearn.ledger.ledger import Ledger, check_purpose
from privlearn.service.job_kinds.job_kind import AnyJobKind, Asked, Plan


@dataclass(frozen=True)
class Priced:
    """Public: what will run, what it costs, and the ledger's line about it."""

    plan: Plan
    cost: Cost
    purpose: str


def priced(kind: AnyJobKind, asked: Asked[Any], ledger: Ledger) -> Priced:
    """Plan the job; refuse a plan that the ledger could not take, or that costs more than was asked for."""
    plan: Plan = kind.plan(asked)
    if not plan.guarantee <= asked.guarantee:
        raise InvalidParameter(f"{plan.name} costs more than was asked for: nothing is run")
    made = Priced(plan, Cost(plan.guarantee, plan.renyi), f"{kind.purpose(asked.fields)} ({plan.name})")
    rule = ledger.rule()  # what is wrong with the store names the holder's paths, and is not told
    try:
        check_purpose(made.purpose)
        rule.price(made.cost)
    except LedgerError as error:
        raise InvalidParameter(f"{kind.title} cannot be paid for like this: {error}") from None
    return made

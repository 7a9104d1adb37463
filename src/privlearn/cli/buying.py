"""What `privlearn train` does first where a schema has gaps: divide the budget, rehearse the training, buy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from privlearn.cli.discover import show_purchase
from privlearn.cli.ledgers import check_room
from privlearn.errors import InvalidParameter

if TYPE_CHECKING:
    from privlearn.data import Schema, SchemaDraft
    from privlearn.guarantee import Guarantee
    from privlearn.splitting import BudgetPlan

DEFAULT_SPLIT = "bounds=0.1,fit=0.9"

Split = Annotated[
    str | None,
    typer.Option(
        "--split",
        metavar="SHARES",
        help="How epsilon and delta are divided where the schema marks parts to buy.",
        show_default=DEFAULT_SPLIT,
    ),
]


def budget_plan(draft: SchemaDraft, split: str | None, total: Guarantee, *, searched: bool) -> BudgetPlan:
    """How the total is divided; all of it goes to the model if there is nothing to buy."""
    from privlearn.splitting import BudgetSplit

    if draft.is_complete:
        if split is not None:
            raise InvalidParameter(
                "--split pays for what the schema marks to buy: nothing is marked in this one"
            )
        return BudgetSplit().of(total)
    plan = BudgetSplit.parse(split or DEFAULT_SPLIT).of(total)
    if plan.split.bounds == 0:
        raise InvalidParameter(f"the schema marks parts to buy: give them a share, --split {DEFAULT_SPLIT}")
    if plan.split.selection and not searched:
        raise InvalidParameter(f"a share for selection goes with --search: write --split {DEFAULT_SPLIT}")
    return plan


def buy(learner: Any, rows: Any, draft: SchemaDraft, plan: BudgetPlan) -> Schema:
    """The complete schema, once it is sure that the model can be trained and paid for, too.

    ``learner`` has the draft's stand-in for a schema.
    """
    from privlearn.data import SchemaEncoder
    from privlearn.discovery import discover
    from privlearn.strength import check_strength

    check_room(learner.ledger, plan.total)
    if learner.random_state is None:  # what is bought counts in the model's certificate, too
        records = SchemaEncoder(learner.schema).person_weights(rows)[1]
        check_strength(plan.total, records, learner.accept_weak_privacy)
    learner.rehearse(rows)  # whatever would stop the training must stop it before anything is bought
    typer.echo(f"The budget is divided like this:\n{plan}")
    price = plan.guarantee("bounds")
    bought = discover(
        rows,
        draft,
        epsilon=price.epsilon,
        delta=price.delta,
        neighbours=price.neighbours,
        ledger=learner.ledger,
        accept_weak_privacy=learner.accept_weak_privacy,
        random_state=learner.random_state,
    )
    show_purchase(draft, bought)
    return bought

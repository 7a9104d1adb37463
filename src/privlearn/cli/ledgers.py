"""The ledger that a command charges, and whether a whole pipeline fits into it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from privlearn.cli.terminal import say
from privlearn.errors import BudgetExceeded, InvalidParameter
from privlearn.guarantee import Guarantee

if TYPE_CHECKING:
    from privlearn.ledger import Ledger

ChargedLedger = Annotated[
    str | None,
    typer.Option(
        "--ledger",
        metavar="PATH",
        help="Charge the budget in this file, or in postgresql://user@host/database.",
        show_default=False,
    ),
]
ChargedDataset = Annotated[
    str | None,
    typer.Option("--dataset", help="The data set's name in the ledger.", show_default="the schema's name"),
]


Note = Annotated[
    str | None,
    typer.Option(
        "--note", help="A line for the ledger: what this is for. Never private.", show_default=False
    ),
]


def open_ledger(
    store: str | None,
    dataset: str | None,
    schema_name: str,
    *,
    out: Path | None = None,
    note: str | None = None,
) -> Ledger | None:
    """The ledger asked for, under the schema's name unless another is given; entries say which file is paid for."""
    if store is None:
        for option, given in (("--dataset names a budget", dataset), ("--note is for a ledger", note)):
            if given is not None:
                raise InvalidParameter(f"{option}: say where it is, with --ledger PATH")
        return None
    from privlearn.ledger import Ledger

    ledger = Ledger.open(store, schema_name if dataset is None else dataset)
    return ledger.with_note(note or "", file_name="" if out is None else out.name)


def check_room(ledger: Ledger | None, total: Guarantee) -> None:
    """Refuse before a pipeline's first stage what would not fit at its last; a Renyi ledger can only tell then."""
    if ledger is None:
        return
    statement = ledger.statement()
    left = statement.left
    if statement.composition == "basic" and (total.epsilon > left.epsilon or total.delta > left.delta):
        raise BudgetExceeded(
            f"the budget of data set {ledger.dataset!r} has {left} left, less than {total}: ask for less"
        )


def say_what_is_left(ledger: Ledger | None, *, promised: bool = True) -> None:
    """Where the budget stands; or, if there is none though something was promised, that nobody adds it up."""
    if ledger is None and promised:
        say(
            "Nothing was recorded: --ledger PATH charges a budget, so that releases about these people add up."
        )
    if ledger is not None:
        statement = ledger.statement()
        typer.echo(f"Budget of {ledger.dataset!r}: spent {statement.spent}; left {statement.left}.")

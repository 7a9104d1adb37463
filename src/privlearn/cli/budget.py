"""`privlearn budget`: what a data set may still spend."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from privlearn.cli.options import NUMBER, LedgerStore, Neighbouring
from privlearn.cli.terminal import output, say
from privlearn.errors import InvalidParameter

if TYPE_CHECKING:
    from privlearn.ledger.composition import Amount
    from privlearn.ledger.statement import Statement

_BAR_WIDTH = 30
_TOLD = {"account": "account", "part": "part", "file_name": "file", "note": "note"}
"""What an entry may say, and the heading of its column."""
_WHOLE = ("at (UTC)", "state", "epsilon", "delta", "part")
"""Headings of columns that a narrow terminal must not break."""

budget = typer.Typer(
    help="Create and show the budget of a data set.\n\n\b\nExample:\n  privlearn budget --ledger budgets.db",
    rich_markup_mode="rich",
)


@budget.callback(invoke_without_command=True)
def overview(
    context: typer.Context,
    ledger: Annotated[
        str | None,
        typer.Option(
            metavar="PATH",
            help="The file, or postgresql://user@host/database, that holds the budgets: shows them all.",
            show_default=False,
        ),
    ] = None,
) -> None:
    if context.invoked_subcommand is not None:
        return
    if ledger is None:
        raise InvalidParameter("say which ledger: privlearn budget --ledger PATH ")
    show(ledger)


@budget.command()
def create(
    dataset: Annotated[
        str, typer.Argument(help="The data set's name, as in its schema.", show_default=False)
    ],
    ledger: LedgerStore,
    epsilon: Annotated[
        float, typer.Option(**NUMBER, help="What all releases together may cost.", show_default=False)
    ],
    delta: Annotated[float, typer.Option(**NUMBER, help="Their deltas together.")] = 0.0,
    neighbours: Neighbouring = "replace_one",
    composition: Annotated[
        str, typer.Option(help="basic (epsilons add up) or renyi (for many Gaussian releases; needs delta).")
    ] = "basic",
) -> None:
    """Give a data set its budget, once; it cannot be changed afterwards.

    \b
    Example:
      privlearn budget create census --ledger budgets.db --epsilon 4 --delta 1e-5
    """
    from privlearn.guarantee import Guarantee
    from privlearn.ledger.ledger import Ledger

    total = Guarantee(epsilon, delta, neighbours)
    Ledger.create(ledger, dataset, total, composition=composition)  # type: ignore[arg-type]
    typer.echo(f"Data set {dataset!r} may spend {total}, {composition} composition.")
    if delta == 0:
        say(
            "It has no delta: whatever is asked for with --delta, such as Gaussian noise, will be refused; noise that "
            "needs no delta is larger for most models. If that was not meant, give the data set another name, in its "
            "schema too, and create its budget with --delta 1e-5, say, before anything is spent."
        )
    typer.echo(f"Next: privlearn train FILE --schema SCHEMA --epsilon E --ledger {ledger} --out MODEL")


@budget.command()
def show(
    ledger: LedgerStore,
    dataset: Annotated[str | None, typer.Argument(help="All, if left out.", show_default=False)] = None,
) -> None:
    """Show what is spent, reserved and left, and every entry.

    \b
    Example:
      privlearn budget show census --ledger budgets.db
    """
    from privlearn.ledger.ledger import Ledger

    for name in Ledger.datasets(ledger) if dataset is None else [dataset]:
        statement = Ledger.open(ledger, name).statement()
        typer.echo(f"{name}: {statement.total}, {statement.composition} composition")
        output.print(_balance(statement))
        if statement.parts:
            output.print(_parts(statement))
        if statement.entries:
            output.print(_entries(statement))
        typer.echo("")


@budget.command()
def check(
    ledger: LedgerStore,
    dataset: Annotated[str | None, typer.Argument(help="All, if left out.", show_default=False)] = None,
) -> None:
    """Add up all entries again, and compare every running sum with them.

    What is left is read from running sums, so that it takes no longer the more there are. The entries decide.

    \b
    Example:
      privlearn budget check --ledger budgets.db
    """
    from privlearn.ledger.ledger import Ledger

    for name in Ledger.datasets(ledger) if dataset is None else [dataset]:
        count = Ledger.open(ledger, name).check()
        typer.echo(f"{name}: {count} entries, and every sum is theirs.")


def _balance(statement: Statement) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for heading in ("", "epsilon", "delta"):
        table.add_column(heading, justify="right" if heading else "left")
    table.add_column("share of the total epsilon")
    start = 0.0
    amounts = {"spent": statement.spent, "reserved": statement.reserved, "left": statement.left}
    for name, amount in amounts.items():
        stop = start + max(amount.epsilon, 0.0) / statement.total.epsilon
        table.add_row(name, *_numbers(amount), _bar(start, stop))
        start = stop
    return table


def _parts(statement: Statement) -> Table:
    """Nobody is in two parts: each has its own balance, and the least left counts for the whole."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for heading in ("part", "spent", "reserved", "left", "delta left"):
        table.add_column(heading, justify="left" if heading == "part" else "right")
    for part in statement.parts:
        spent, reserved = (f"{amount.epsilon:.6g}" for amount in (part.spent, part.reserved))
        table.add_row(Text(part.name), spent, reserved, *_numbers(part.left))
    return table


def _bar(start: float, stop: float) -> str:
    """A stretch of the whole, as wide as it is large; a stretch above 0 is never invisible."""
    left, right = round(start * _BAR_WIDTH), round(stop * _BAR_WIDTH)
    if stop > start:
        right = max(right, left + 1)
    return "·" * left + "█" * (right - left) + "·" * (_BAR_WIDTH - right)


def _entries(statement: Statement) -> Table:
    """With columns for accounts, files and notes if there are any."""
    told = [name for name in _TOLD if any(getattr(entry, name) for entry in statement.entries)]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for heading in ("at (UTC)", "state", "epsilon", "delta", *(_TOLD[name] for name in told), "purpose"):
        justify: Any = "right" if heading in ("epsilon", "delta") else "left"
        table.add_column(heading, justify=justify, overflow="fold", no_wrap=heading in _WHOLE)
    for entry in statement.entries:
        time = entry.reserved_at.replace("T", " ")[:16]
        facts = [Text(getattr(entry, name)) for name in told]
        table.add_row(time, entry.state, *_numbers(entry.amount), *facts, Text(entry.purpose))
    return table


def _numbers(amount: Amount) -> tuple[str, str]:
    return f"{amount.epsilon:.6g}", f"{amount.delta:.6g}"

"""`privlearn budget`: create, show and check the budget of a data set."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from privlearn.cli.options import NUMBER, LedgerStore, Neighbouring, locate_ledger
from privlearn.cli.terminal import print_table, say
from privlearn.errors import InvalidParameter

if TYPE_CHECKING:
    from privlearn.budget.composition import Amount
    from privlearn.budget.statement import Statement

_BAR_WIDTH = 30
_OPTIONAL_FIELDS = {"account": "account", "part": "part", "file_name": "file", "note": "note"}
"""Fields that an entry may have, and the headings of their columns."""

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
            metavar="PATH", help="Show all budgets of this ledger, as `privlearn budget show` does."
        ),
    ] = None,
) -> None:
    if context.invoked_subcommand is not None:
        return
    if ledger is None:
        raise InvalidParameter("the ledger is missing. Write: privlearn budget --ledger PATH")
    show(ledger)


@budget.command()
def create(
    dataset: Annotated[str, typer.Argument(help="The data set's name, as in its schema.")],
    ledger: LedgerStore,
    epsilon: Annotated[float, typer.Option(**NUMBER, help="Epsilon of all releases together.")],
    delta: Annotated[float, typer.Option(**NUMBER, help="Delta of all releases together.")] = 0.0,
    neighbours: Neighbouring = "replace_one",
    composition: Annotated[
        str,
        typer.Option(help="basic (epsilons are added) or renyi (for many Gaussian releases; needs a delta)."),
    ] = "basic",
) -> None:
    """Give a data set its budget, once; it cannot be changed afterwards.

    \b
    Example:
      privlearn budget create census --ledger budgets.db --epsilon 4 --delta 1e-5
    """
    from privlearn.budget.ledger import Ledger
    from privlearn.guarantee import Guarantee

    total = Guarantee(epsilon, delta, neighbours)
    Ledger.create(locate_ledger(ledger), dataset, total, composition=composition)  # type: ignore[arg-type]
    typer.echo(f"Data set {dataset!r} may spend {total}, {composition} composition.")
    if delta == 0:
        say(
            "This budget has no delta, so requests with --delta, such as Gaussian noise, will be refused; noise "
            "without a delta is larger for most models. To change this, give the data set another name, also in its "
            "schema, and create its budget with a delta, such as --delta 1e-5."
        )
    typer.echo(
        f"Next: privlearn train FILE --schema SCHEMA --epsilon E --delta D --ledger {ledger} --out MODEL"
    )


@budget.command()
def show(
    ledger: LedgerStore,
    dataset: Annotated[
        str | None, typer.Argument(help="The data set's name.", show_default="all data sets")
    ] = None,
) -> None:
    """Show what is spent, reserved and left, and every entry.

    \b
    Example:
      privlearn budget show census --ledger budgets.db
    """
    from privlearn.budget.ledger import Ledger

    store = locate_ledger(ledger)
    for name in Ledger.datasets(store) if dataset is None else [dataset]:
        statement = Ledger.open(store, name).statement()
        typer.echo(f"{name}: {statement.total}, {statement.composition} composition")
        _print_balance(statement)
        if statement.parts:
            _print_parts(statement)
        if statement.entries:
            _print_entries(statement)
        typer.echo("")


@budget.command()
def check(
    ledger: LedgerStore,
    dataset: Annotated[
        str | None, typer.Argument(help="The data set's name.", show_default="all data sets")
    ] = None,
) -> None:
    """Recompute the running totals from all entries, and compare.

    The balance is read from running totals, which stays fast with many entries. If the two differ, the entries count.

    \b
    Example:
      privlearn budget check --ledger budgets.db
    """
    from privlearn.budget.ledger import Ledger

    store = locate_ledger(ledger)
    for name in Ledger.datasets(store) if dataset is None else [dataset]:
        count = Ledger.open(store, name).check()
        typer.echo(f"{name}: {count} entries; all running totals match.")


def _print_balance(statement: Statement) -> None:
    rows, start = [], 0.0
    amounts = {"spent": statement.spent, "reserved": statement.reserved, "left": statement.left}
    for name, amount in amounts.items():
        stop = start + max(amount.epsilon, 0.0) / statement.total.epsilon
        rows.append((name, *_numbers(amount), _bar(start, stop)))
        start = stop
    headings = ("", "epsilon", "delta", "share of the total epsilon")
    print_table(headings, rows, right=("epsilon", "delta"))


def _print_parts(statement: Statement) -> None:
    """Print the balance of each part. No person is in two parts, so the part with least left limits the whole."""
    numbers = ("spent", "reserved", "left", "delta left")
    rows = [
        (part.name, _numbers(part.spent)[0], _numbers(part.reserved)[0], *_numbers(part.left))
        for part in statement.parts
    ]
    print_table(("part", *numbers), rows, right=numbers)


def _bar(start: float, stop: float) -> str:
    """Return a bar of the whole budget in which the share from start to stop is filled, at least one character."""
    left, right = round(start * _BAR_WIDTH), round(stop * _BAR_WIDTH)
    if stop > start:
        right = max(right, left + 1)
    return "·" * left + "█" * (right - left) + "·" * (_BAR_WIDTH - right)


def _print_entries(statement: Statement) -> None:
    """Print all entries, with columns for accounts, parts, files and notes if there are any."""
    fields = [name for name in _OPTIONAL_FIELDS if any(getattr(entry, name) for entry in statement.entries)]
    rows = [
        (
            entry.reserved_at.replace("T", " ")[:16],
            entry.state,
            *_numbers(entry.amount),
            *(getattr(entry, name) or "" for name in fields),
            entry.purpose,
        )
        for entry in statement.entries
    ]
    print_table(
        ("at (UTC)", "state", "epsilon", "delta", *(_OPTIONAL_FIELDS[name] for name in fields), "purpose"),
        rows,
        right=("epsilon", "delta"),
        unbroken=("at (UTC)", "state", "epsilon", "delta", "part"),
    )


def _numbers(amount: Amount) -> tuple[str, str]:
    return f"{amount.epsilon:.6g}", f"{amount.delta:.6g}"

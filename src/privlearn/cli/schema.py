"""Commands that make a schema: schema drafts one, discover buys what nobody knows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from privlearn.cli.options import (
    NUMBER,
    AcceptWeakPrivacy,
    ChargedDataset,
    ChargedLedger,
    ExpectedRecords,
    Force,
    Neighbouring,
    Note,
    SchemaFile,
    TableFile,
    check_writable,
    open_ledger,
    say_what_is_left,
)
from privlearn.cli.terminal import LateProgress, listed, output, warn

if TYPE_CHECKING:
    from privlearn.data.schema.draft import SchemaDraft
    from privlearn.data.schema.schema import Schema


def schema(
    table: TableFile,
    out: Annotated[
        Path | None, typer.Option(help="Write to this file instead of the terminal.", show_default=False)
    ] = None,
    names: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,...",
            help="The columns' names, if the first line does not have them.",
            show_default=False,
        ),
    ] = None,
    force: Force = False,
) -> None:
    """Write a schema template for a table: names and types of its columns, no value.

    Fill in bounds, categories and the target from public knowledge, never from the data.
    How the file is written (delimiter, decimal comma, encoding, codes for gaps) is told
    from its first lines and stands in the template: check it.

    \b
    Example:
      privlearn schema census.csv > census.schema.yaml
      privlearn schema iris.data --names length,width,species --out iris.yaml
    """
    from privlearn.data.schema.template import schema_template
    from privlearn.release.files import write_atomically

    if out is not None:
        check_writable(out, force)
    template = schema_template(table, [] if names is None else [name.strip() for name in names.split(",")])
    if out is None:
        typer.echo(template, nl=False)
        return
    write_atomically(out, template.encode())
    typer.echo(f"Wrote {out}. Fill in what is empty, then: privlearn check {table} --schema {out}")


def discover(
    table: TableFile,
    schema: SchemaFile,
    epsilon: Annotated[float, typer.Option(**NUMBER, help="Price of everything marked.", show_default=False)],
    out: Annotated[
        Path, typer.Option(help="The complete schema to write, .yaml or .json.", show_default=False)
    ],
    delta: Annotated[
        float, typer.Option(**NUMBER, help="Above 0 (say 1e-6) bounds are better; lists need it.")
    ] = 0.0,
    neighbours: Neighbouring = "replace_one",
    expected_records: ExpectedRecords = None,
    ledger: ChargedLedger = None,
    dataset: ChargedDataset = None,
    note: Note = None,
    accept_weak_privacy: AcceptWeakPrivacy = False,
    seed: Annotated[
        int | None, typer.Option(help="For tests only: the schema says 'not private'.", show_default=False)
    ] = None,
    force: Force = False,
) -> None:
    """Buy what a schema marks with the word buy: bounds, values, classes.

    One price for all of it. The complete schema has a receipt, which the
    certificate of every model trained with it repeats. `privlearn train` takes
    a marked schema, too, and buys and trains for one total.

    \b
    Example:
      privlearn discover census.csv --schema wanted.schema.yaml \\
        --epsilon 0.1 --delta 1e-6 --out census.schema.yaml
    """
    from privlearn.data.schema.documents import is_yaml
    from privlearn.data.schema.draft import SchemaDraft
    from privlearn.data.sources.files import open_records
    from privlearn.data.sources.passes import watch_passes
    from privlearn.discovery import discover as buy
    from privlearn.relation import relation_named

    relation_named(neighbours).check_expected(expected_records)
    is_yaml(out)  # refuses names that a schema cannot have
    check_writable(out, force)
    draft = SchemaDraft.load(schema)
    budget = open_ledger(ledger, dataset, draft.stand_in.name, out=out, note=note)
    with LateProgress(f"reading {table}") as progress, watch_passes(progress.tell("buying")):
        rows = open_records(table, draft.stand_in)
        bought = buy(
            rows,
            draft,
            epsilon=epsilon,
            delta=delta,
            neighbours=neighbours,
            expected_records=expected_records,
            ledger=budget,
            accept_weak_privacy=accept_weak_privacy,
            random_state=seed,
        )
    bought.save(out)
    show_purchase(draft, bought)
    say_what_is_left(budget, promised=bought.bought[-1].secure)
    typer.echo(f"Wrote {out}. Next: privlearn train {table} --schema {out} ...")


def show_purchase(draft: SchemaDraft, schema: Schema) -> None:
    """One line per column: what was bought; then the price."""
    from privlearn.guarantee import weakness

    receipt = schema.bought[-1]
    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("column", "bought"):
        shown.add_column(heading, overflow="fold")
    for name in dict.fromkeys([*(bound.column for bound in draft.bounds), *draft.lists]):
        shown.add_row(Text(name), Text(_bought(name, draft, schema)))
    output.print(shown)
    typer.echo(f"Price: {receipt.guarantee}. {receipt.guarantee.in_words()}")
    weak = weakness(receipt.guarantee, receipt.records)
    if weak:
        warn(f"This price is {weak}.")
    if not receipt.secure:
        warn("NOT PRIVATE: --seed makes the noise known. Leave it out for data of people.")


def _bought(name: str, draft: SchemaDraft, schema: Schema) -> str:
    target = schema.target if schema.target is not None and schema.target.name == name else None
    part: Any = target or schema.columns.get(name)
    if part is None:
        return "no value is frequent enough: the column is left out"
    if name in draft.lists:
        return listed(getattr(part, "classes", None) or part.values)
    sides = [bound.side for bound in draft.bounds if bound.column == name]
    return ", ".join(f"{side} {getattr(part, side):.6g}" for side in sides)

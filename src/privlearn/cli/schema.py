"""Schemas: `privlearn schema` writes a template, `check` lists problems of a table, `discover` estimates bounds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privlearn.cli.charging import RelatedCharging, print_balance
from privlearn.cli.options import (
    NOT_PRIVATE_SEED,
    NUMBER,
    Force,
    OptionalOut,
    SchemaFile,
    TableFile,
    check_writable,
)
from privlearn.cli.terminal import LateProgress, join_values, print_table, warn

if TYPE_CHECKING:
    from privlearn.data.schema.draft import SchemaDraft
    from privlearn.data.schema.schema import Schema


def schema(
    table: TableFile,
    out: OptionalOut = None,
    names: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,...", help="The names of the columns, if the first line does not contain them."
        ),
    ] = None,
    sheet: Annotated[
        str | None, typer.Option(metavar="NAME", help="Of a workbook.", show_default="the first visible one")
    ] = None,
    codebook: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Copy bounds and lists from a codebook: .arff, KEEL's .dat, a Table Schema (.json), or the labels of "
            "a .sav or .dta file.",
        ),
    ] = None,
    force: Force = False,
) -> None:
    """Write a schema template for a table: names and types of its columns, no values.

    Fill in bounds, categories and the target from public knowledge, never from the data.
    The file format (delimiter, decimal comma, encoding, codes for missing cells) is
    guessed from the first lines: check it in the template.

    \b
    Example:
      privlearn schema census.csv > census.schema.yaml
      privlearn schema iris.data --names length,width,species --out iris.yaml
      privlearn schema survey.csv --codebook datapackage.json --out survey.yaml
    """
    from privlearn.data.schema.template import schema_template
    from privlearn.release.archive import write_atomically

    check_writable(out, force)
    listed = [] if names is None else [name.strip() for name in names.split(",")]
    template = schema_template(table, listed, sheet, codebook)
    if out is None:
        typer.echo(template, nl=False)
        return
    write_atomically(out, template.encode())
    typer.echo(f"Wrote {out}. Fill in the empty fields, then: privlearn check {table} --schema {out}")


def discover(
    table: TableFile,
    schema: SchemaFile,
    epsilon: Annotated[float, typer.Option(**NUMBER, help="Privacy loss of everything marked.")],
    out: Annotated[Path, typer.Option(help="The complete schema to write, .yaml or .json.")],
    delta: Annotated[
        float, typer.Option(**NUMBER, help="Above 0 (such as 1e-6) bounds are more accurate; lists need it.")
    ] = 0.0,
    *,
    charging: RelatedCharging,
) -> None:
    """Estimate privately what a schema marks with the word estimate: bounds, values, classes.

    One charge covers all of it. The complete schema has a receipt, which the
    certificate of every model trained with it repeats. `privlearn train` also accepts
    a marked schema, and estimates and trains for one total.

    \b
    Example:
      privlearn discover census.csv --schema draft.schema.yaml \\
        --epsilon 0.1 --delta 1e-6 --out census.schema.yaml
    """
    from privlearn.data.schema.documents import is_yaml
    from privlearn.data.schema.draft import SchemaDraft
    from privlearn.guarantee import get_relation
    from privlearn.statistics.discovery import discover as estimate

    get_relation(charging.neighbours).check_expected(charging.expected_records)
    is_yaml(out)  # refuses other suffixes
    check_writable(out, charging.force)
    draft = SchemaDraft.load(schema)
    with charging.open_rows(table, draft.stand_in, "estimating", out) as (rows, settings):
        result = estimate(rows, draft, epsilon=epsilon, delta=delta, **settings)
    result.save(out)
    show_private_bounds(draft, result)
    print_balance(settings["ledger"], is_private=result.private_bounds[-1].secure)
    typer.echo(f"Wrote {out}. Next: privlearn train {table} --schema {out} ...")


def show_private_bounds(draft: SchemaDraft, schema: Schema) -> None:
    """Print what was estimated of each column, and the guarantee of all of it."""
    from privlearn.guarantee import weakness

    receipt = schema.private_bounds[-1]
    names = dict.fromkeys([*(bound.column for bound in draft.bounds), *draft.lists])
    print_table(("column", "private estimate"), [(name, _estimates(name, draft, schema)) for name in names])
    typer.echo(f"Guarantee: {receipt.guarantee}. {receipt.guarantee.in_words()}")
    weak = weakness(receipt.guarantee, receipt.records)
    if weak:
        warn(f"This guarantee is {weak}.")
    if not receipt.secure:
        warn(NOT_PRIVATE_SEED)


def _estimates(name: str, draft: SchemaDraft, schema: Schema) -> str:
    target = schema.target if schema.target is not None and schema.target.name == name else None
    part: Any = target or schema.columns.get(name)
    if part is None:
        return "no value is frequent enough: the column is omitted"
    if name in draft.lists:
        return join_values(getattr(part, "classes", None) or part.values)
    sides = [bound.side for bound in draft.bounds if bound.column == name]
    return ", ".join(f"{side} {getattr(part, side):.6g}" for side in sides)


def check(
    table: TableFile,
    schema: SchemaFile,
    show_values: Annotated[
        bool, typer.Option("--values", help="Also print the most frequent cells that do not fit. PRIVATE.")
    ] = False,
) -> None:
    """List all problems of a table at once: missing columns, gaps, unknown and unreadable cells.

    For the holder's own screen. The counts are exact and no budget is charged for them,
    so they are PRIVATE: do not share them, and do not take bounds or lists from them.

    \b
    Exit codes:
      0  the table can be used for training
      1  a problem would stop the training

    \b
    Example:
      privlearn check census.csv --schema census.schema.yaml
    """
    from privlearn.data.schema.schema import Schema
    from privlearn.data.table_check import check_table

    description = Schema.load(schema)
    with LateProgress(f"reading {table}"):
        result = check_table(table, description)
    warn("PRIVATE: exact counts of the table's cells. They stay with its holder.")
    if result.findings:
        rows = [(item.column or "", item.what, "yes" if item.stops else "") for item in result.findings]
        print_table(("column", "problem", "stops"), rows)
    cells = [(item.column or "", join_values(item.values)) for item in result.findings if item.values]
    if cells and show_values:
        print_table(("column", "cells that do not fit (PRIVATE, the most frequent)"), cells)
    elif cells:
        typer.echo("--values prints the cells that do not fit, on this screen only.")
    size = f"{result.rows} rows, {len(description.columns)} columns"
    if not result.problems:
        typer.echo(f"{size}: nothing stops a training. Next: privlearn split {table} --schema {schema} ...")
        return
    typer.echo(f"{size}: {result.problems} problem{'s' * (result.problems != 1)} would stop a training.")
    raise typer.Exit(1)

"""`privlearn check`: list all problems of a table, for its holder."""

from __future__ import annotations

import typer

from privlearn.cli.options import SchemaFile, TableFile
from privlearn.cli.terminal import LateProgress, print_table, warn


def check(table: TableFile, schema: SchemaFile) -> None:
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
    size = f"{result.rows} rows, {len(description.columns)} columns"
    if not result.problems:
        typer.echo(f"{size}: nothing stops a training. Next: privlearn train {table} --schema {schema} ...")
        return
    typer.echo(f"{size}: {result.problems} problem{'s' * (result.problems != 1)} would stop a training.")
    raise typer.Exit(1)

"""privlearn check: everything that is wrong with a table, for its holder."""

from __future__ import annotations

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from privlearn.cli.options import SchemaFile, TableFile
from privlearn.cli.terminal import LateProgress, output, warn


def check(table: TableFile, schema: SchemaFile) -> None:
    """List all problems of a table at once: missing columns, gaps, unknown and unreadable cells.

    For the holder's own screen. The counts are exact and nothing is paid for them, so
    they are PRIVATE: do not show them around, and do not take bounds or lists from them.

    \b
    Exit codes:
      0  the table can be learnt from
      1  something would stop it

    \b
    Example:
      privlearn check census.csv --schema census.schema.yaml
    """
    from privlearn.data.schema.schema import Schema
    from privlearn.data.table_check import check_table

    described = Schema.load(schema)
    with LateProgress(f"reading {table}"):
        found = check_table(table, described)
    warn("PRIVATE: exact counts of the table's cells. They stay with its holder.")
    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("column", "found", "stops"):
        shown.add_column(heading, overflow="fold")
    for finding in found.findings:
        shown.add_row(*map(Text, (finding.column or "", finding.what, "yes" if finding.stops else "")))
    if found.findings:
        output.print(shown)
    counted = f"{found.rows} rows, {len(described.columns)} columns"
    if not found.problems:
        typer.echo(
            f"{counted}: nothing stops a training. Next: privlearn train {table} --schema {schema} ..."
        )
        return
    typer.echo(f"{counted}: {found.problems} problem{'s' * (found.problems != 1)} would stop a training.")
    raise typer.Exit(1)

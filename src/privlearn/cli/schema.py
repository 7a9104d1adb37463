"""`privlearn schema`: a template to fill in."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from privlearn.cli.options import Force, TableFile, check_writable


def schema(
    table: TableFile,
    out: Annotated[
        Path | None, typer.Option(help="Write to this file instead of the terminal.", show_default=False)
    ] = None,
    force: Force = False,
) -> None:
    """Write a schema template for a table: names and types of its columns, no value.

    Fill in bounds, categories and the target from public knowledge, never from the data.

    \b
    Example:
      privlearn schema census.csv > census.schema.yaml
    """
    from privlearn.data.template import schema_template
    from privlearn.release.atomic import write_atomically

    if out is not None:
        check_writable(out, force)
    template = schema_template(table)
    if out is None:
        typer.echo(template, nl=False)
        return
    write_atomically(out, template.encode())
    typer.echo(f"Wrote {out}. Fill in what is empty, then: privlearn train {table} --schema {out} ...")

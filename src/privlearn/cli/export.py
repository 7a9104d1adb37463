"""`privlearn export`: write a release in another language."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from privlearn.cli.options import Force, ModelFile, OptionalOut, check_writable
from privlearn.errors import InvalidParameter


def export(
    model: ModelFile,
    to: Annotated[str, typer.Option(help="onnx, sql, json, python or html-calculator.")],
    out: OptionalOut = None,
    table: Annotated[
        str | None, typer.Option(help="SQL: the table to read; by default the data set's name.")
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="SQL: a column to return with the prediction, such as an identifier; may be repeated.",
        ),
    ] = None,
    force: Force = False,
) -> None:
    """Write a release in another language: raw columns in, predictions out, the encoding included.

    Reads no rows and costs nothing. For linear models without text columns.

    \b
    Example:
      privlearn export income.privlearn --to sql --table people --keep id --out income.sql
      privlearn export income.privlearn --to html-calculator --out income.html
    """
    from privlearn.export import TARGETS, export_release
    from privlearn.release.archive import write_atomically
    from privlearn.release.artifact import Release

    check_writable(out, force)
    options: dict[str, Any] = {"table": table, "keep": keep}
    settings = {name: value for name, value in options.items() if value}
    content = export_release(Release.load(model), to, **settings)
    if out is not None:
        write_atomically(out, content)
        typer.echo(f"Wrote {out}: {len(content):,} bytes.")
    elif not TARGETS[to].is_text:
        raise InvalidParameter(f"{to} is a binary format. Name a file: --out model{TARGETS[to].suffix}")
    else:
        sys.stdout.buffer.write(content)
        sys.stdout.flush()

"""`privlearn compare`: error against epsilon for the mechanisms, as a page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from privlearn.cli.options import Force, SchemaFile, TableFile, check_writable
from privlearn.cli.terminal import LateProgress, warn
from privlearn.errors import InvalidParameter


def compare(
    table: TableFile,
    schema: SchemaFile,
    out: Annotated[Path, typer.Option(help="The page to write, .html.", show_default=False)],
    epsilons: Annotated[str, typer.Option(help="Comma-separated.")] = "0.05,0.1,0.3,1,3",
    delta: Annotated[float, typer.Option(help="For the methods with Gaussian noise.")] = 1e-6,
    seeds: Annotated[int, typer.Option(help="Random splits to average over.", min=1)] = 3,
    force: Force = False,
) -> None:
    """Compare the mechanisms over several epsilons, as one HTML page.

    The page shows errors measured on the table's own rows: looking at it is
    itself NOT PRIVATE. Use public or simulated data.

    \b
    Example:
      privlearn compare census.csv --schema census.schema.yaml \\
        --epsilons 0.1,1,10 --out compare.html
    """
    from privlearn.data import Schema, read_table
    from privlearn.release.atomic import write_atomically
    from privlearn.study.comparison import compare_mechanisms, fits_needed
    from privlearn.study.comparison_page import write_page
    from privlearn.study.drawing import require_matplotlib

    require_matplotlib()
    check_writable(out, force)
    levels = _parsed(epsilons)
    if not 0 < delta < 1:
        raise InvalidParameter("--delta must lie between 0 and 1: the Gaussian methods need one, e.g. 1e-6")
    warn("Looking at this page is not private: use public or simulated data.")
    description = Schema.load(schema)
    with LateProgress("comparing", total=fits_needed(levels, seeds)) as progress:
        comparison = compare_mechanisms(
            read_table(table, description),
            description,
            levels,
            delta=delta,
            seeds=seeds,
            advance=progress.advance,
        )
        write_atomically(out, write_page(comparison).encode())
    typer.echo(f"Wrote {out}. Open it in a browser.")


def _parsed(text: str) -> list[float]:
    try:
        levels = sorted({float(part) for part in text.split(",")})
    except ValueError:
        levels = []
    if not levels or not all(0 < level < float("inf") for level in levels):
        raise InvalidParameter("--epsilons must be numbers above 0 with commas between, e.g. 0.1,0.5,1")
    return levels

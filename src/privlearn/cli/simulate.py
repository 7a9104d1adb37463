"""`privlearn simulate`: a plan of several parties on one machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from privlearn.cli.options import Force, PlanFile, check_writable
from privlearn.cli.terminal import say
from privlearn.errors import InvalidParameter


def simulate(
    plan: PlanFile,
    tables: Annotated[
        list[Path], typer.Argument(metavar="TABLE...", help="A table for each party, in the plan's order.")
    ],
    out: Annotated[
        Path | None, typer.Option(help="The release file to write.", show_default="PLAN.privlearn")
    ] = None,
    force: Force = False,
) -> None:
    """Rehearse a plan: all parties and the coordinator in this process.

    The same messages, masks and noise as in a real run, with keys made for the
    occasion and without network or ledgers. This process sees every table.

    \b
    Example:
      privlearn simulate plan.toml north.csv south.csv west.csv
    """
    from privlearn.data.files import read_records
    from privlearn.multiparty.plan import MultipartyPlan
    from privlearn.multiparty.simulation import simulate as rehearse

    target = plan.with_suffix(".privlearn") if out is None else out
    check_writable(target, force)
    agreed = MultipartyPlan.load(plan)
    if len(tables) != len(agreed.parties):
        raise InvalidParameter(f"bring a table for each of {', '.join(agreed.parties)}, in this order")
    rows = {
        name: read_records(table, agreed.table_schema)
        for name, table in zip(agreed.parties, tables, strict=True)
    }
    release = rehearse(agreed, rows, say)
    release.save(target)
    typer.echo(f"Wrote {target}: {release.certificate.guarantee}.")
    typer.echo(f"Next: privlearn verify {target}")

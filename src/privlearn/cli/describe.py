"""`privlearn describe`: what one looks at first, for one price."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from privlearn.cli.evaluate import SigningKey
from privlearn.cli.options import (
    NUMBER,
    AcceptWeakPrivacy,
    ChargedDataset,
    ChargedLedger,
    ExpectedRecords,
    Force,
    Neighbouring,
    Note,
    PartName,
    SchemaFile,
    TableFile,
    check_writable_apart,
    open_ledger,
    part_of,
    say_what_is_left,
)
from privlearn.cli.terminal import LateProgress, warn


def describe(
    table: TableFile,
    schema: SchemaFile,
    epsilon: Annotated[
        float, typer.Option(**NUMBER, help="The price of all of it; inf: no privacy.", show_default=False)
    ],
    out: Annotated[Path, typer.Option(help="The file to write.", show_default=False)],
    delta: Annotated[
        float, typer.Option(**NUMBER, help="Above 0 (say 1e-6) many columns are far less noisy.")
    ] = 0.0,
    page: Annotated[
        Path | None, typer.Option(metavar="FILE.html", help="Write a page too.", show_default=False)
    ] = None,
    correlations: Annotated[
        bool, typer.Option("--correlations/--no-correlations", help="Of columns that have an order.")
    ] = True,
    neighbours: Neighbouring = "replace_one",
    expected_records: ExpectedRecords = None,
    ledger: ChargedLedger = None,
    dataset: ChargedDataset = None,
    part: PartName = None,
    note: Note = None,
    accept_weak_privacy: AcceptWeakPrivacy = False,
    sign: SigningKey = None,
    seed: Annotated[
        int | None, typer.Option(help="For tests only: the file says 'not private'.", show_default=False)
    ] = None,
    force: Force = False,
) -> None:
    """Count a private table's categories, numbers and missing cells, and correlate its columns.

    Everything is counted with noise, and that alone leaves: a file with a
    certificate that `privlearn verify` recomputes. One price covers all of it.

    \b
    Example:
      privlearn describe census.csv --schema census.schema.yaml --epsilon 0.5 \\
        --delta 1e-6 --ledger budgets.db --out census.description --page census.html
    """
    from privlearn.data.schema.schema import Schema
    from privlearn.data.sources.files import open_records
    from privlearn.data.sources.passes import watch_passes
    from privlearn.description import describe as measure
    from privlearn.description.page import write_page
    from privlearn.release.files import write_atomically
    from privlearn.release.verification import read_private_key

    check_writable_apart(out, page, force)
    described = Schema.load(schema)
    key = None if sign is None else read_private_key(sign)
    whose = part_of(table, part, described)
    budget = open_ledger(ledger, dataset, described.name, out=out, note=note, part=whose)
    with LateProgress(f"reading {table}") as progress, watch_passes(progress.tell("counting")):
        rows = open_records(table, described)
        found = measure(
            rows,
            described,
            epsilon=epsilon,
            delta=delta,
            correlations=correlations,
            neighbours=neighbours,
            expected_records=expected_records,
            ledger=budget,
            accept_weak_privacy=accept_weak_privacy,
            random_state=seed,
        )
    (found if key is None else found.signed(key)).save(out, overwrite=True)
    if page is not None:
        write_atomically(page, write_page(found).encode())
    typer.echo(f"Wrote {out}{'' if page is None else f' and {page}'}.")
    typer.echo(str(found))
    certificate = found.certificate
    typer.echo(f"Promise: {found.guarantee}. {found.guarantee.in_words()}")
    if certificate.meaning:
        typer.echo(f"Meaning: {certificate.meaning.in_words()}")
    if not certificate.is_private:
        warn("NOT PRIVATE: epsilon is infinite, or --seed makes the noise known.")
    elif certificate.weakness:
        warn(f"This promise is {certificate.weakness}.")
    say_what_is_left(budget, promised=certificate.is_private)
    typer.echo(f"Next: privlearn verify {out}")

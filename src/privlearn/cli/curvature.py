"""`privlearn curvature`: buy what intervals need."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from privlearn.cli.options import (
    NUMBER,
    AcceptWeakPrivacy,
    ChargedDataset,
    ChargedLedger,
    Force,
    ModelFile,
    Note,
    PartName,
    TableFile,
    check_writable,
    open_ledger,
    part_of,
    say_what_is_left,
)
from privlearn.cli.terminal import LateProgress, warn
from privlearn.errors import InvalidParameter


def curvature(
    model: ModelFile,
    table: TableFile,
    epsilon: Annotated[float, typer.Option(**NUMBER, help="Price of the curvature.", show_default=False)],
    delta: Annotated[
        float, typer.Option(**NUMBER, help="Above 0 and well below 1/n, say 1e-6.", show_default=False)
    ],
    out: Annotated[Path, typer.Option(help="The file to write.", show_default=False)],
    ledger: ChargedLedger = None,
    dataset: ChargedDataset = None,
    part: PartName = None,
    note: Note = None,
    accept_weak_privacy: AcceptWeakPrivacy = False,
    seed: Annotated[
        int | None, typer.Option(help="For tests only: the file says 'not private'.", show_default=False)
    ] = None,
    force: Force = False,
) -> None:
    """Buy a model's curvature, from the table it was learnt from: intervals need it.

    A second release about the same people, with its own price and certificate.

    \b
    Example:
      privlearn curvature income.privlearn census.csv --epsilon 0.5 --delta 1e-6 \\
        --ledger budgets.db --out income.curvature
      privlearn inspect income.privlearn --intervals income.curvature
    """
    from privlearn.data.sources.files import open_records
    from privlearn.data.sources.passes import watch_passes
    from privlearn.explain.buying import curvature as buy
    from privlearn.release.artifact import Release
    from privlearn.release.encoders import base_of

    check_writable(out, force)
    release = Release.load(model)
    schema: Any = getattr(base_of(release.model.encoder), "schema", None)
    if schema is None or schema.target is None:
        raise InvalidParameter(
            "this model was trained on plain arrays, so its columns have no names: buy its curvature in Python, with "
            "privlearn.curvature(release, X, y, epsilon=..., delta=...)"
        )
    whose = part_of(table, part, schema)
    budget = open_ledger(ledger, dataset, schema.name, out=out, note=note, part=whose)
    with LateProgress(f"reading {table}") as progress, watch_passes(progress.tell("summing")):
        rows = open_records(table, schema)
        bought = buy(
            release,
            rows,
            epsilon=epsilon,
            delta=delta,
            ledger=budget,
            accept_weak_privacy=accept_weak_privacy,
            random_state=seed,
        )
    bought.save(out, overwrite=True)
    certificate = bought.certificate
    typer.echo(f"Price: {certificate.guarantee}. {certificate.guarantee.in_words()}")
    if not certificate.is_private:
        warn("NOT PRIVATE: --seed makes the noise known. Leave it out for data of people.")
    say_what_is_left(budget, promised=certificate.is_private)
    typer.echo(f"Wrote {out}. Next: privlearn inspect {model} --intervals {out}")

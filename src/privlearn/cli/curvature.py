"""`privlearn curvature`: release a model's curvature, which intervals need."""

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
    Seed,
    TableFile,
    check_writable,
    open_ledger,
    open_with_progress,
    part_of,
    print_balance,
    print_guarantee,
)
from privlearn.errors import InvalidParameter


def curvature(
    model: ModelFile,
    table: TableFile,
    epsilon: Annotated[float, typer.Option(**NUMBER, help="Privacy loss of the curvature.")],
    delta: Annotated[float, typer.Option(**NUMBER, help="Above 0 and well below 1/n, say 1e-6.")],
    out: Annotated[Path, typer.Option(help="The file to write.")],
    ledger: ChargedLedger = None,
    dataset: ChargedDataset = None,
    part: PartName = None,
    note: Note = None,
    accept_weak_privacy: AcceptWeakPrivacy = False,
    seed: Seed = None,
    force: Force = False,
) -> None:
    """Release a model's curvature, from the table that it was trained on. Intervals need it.

    This is a second release about the same people, with its own cost and certificate.

    \b
    Example:
      privlearn curvature income.privlearn census.csv --epsilon 0.5 --delta 1e-6 \\
        --ledger budgets.db --out income.curvature
      privlearn inspect income.privlearn --intervals income.curvature
    """
    from privlearn.explain.private_curvature import curvature as release_curvature
    from privlearn.release.artifact import Release
    from privlearn.release.encoders import base_of

    check_writable(out, force)
    release = Release.load(model)
    schema: Any = getattr(base_of(release.model.encoder), "schema", None)
    if schema is None or schema.target is None:
        raise InvalidParameter(
            "this model was trained on plain arrays, so its columns have no names. Release its curvature in Python: "
            "privlearn.curvature(release, X, y, epsilon=..., delta=...)"
        )
    split_part = part_of(table, part, schema)
    budget = open_ledger(ledger, dataset, schema.name, out=out, note=note, part=split_part)
    with open_with_progress(table, schema, "summing", split_part) as rows:
        result = release_curvature(
            release,
            rows,
            epsilon=epsilon,
            delta=delta,
            ledger=budget,
            accept_weak_privacy=accept_weak_privacy,
            random_state=seed,
        )
    result.save(out, overwrite=True)
    print_guarantee(result.certificate)
    print_balance(budget, is_private=result.certificate.is_private)
    typer.echo(f"Wrote {out}. Next: privlearn inspect {model} --intervals {out}")

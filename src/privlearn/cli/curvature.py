"""`privlearn curvature`: buy what intervals need; and how `inspect` shows them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from privlearn.cli.options import (
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
from privlearn.cli.terminal import LateProgress, output, warn
from privlearn.errors import InvalidParameter

if TYPE_CHECKING:
    from privlearn.explain.bands import Band, Intervals


def curvature(
    model: ModelFile,
    table: TableFile,
    epsilon: Annotated[float, typer.Option(help="Price of the curvature.", show_default=False)],
    delta: Annotated[float, typer.Option(help="Above 0 and well below 1/n, say 1e-6.", show_default=False)],
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
    from privlearn.data.sources.files import read_records
    from privlearn.explain.buying import curvature as buy
    from privlearn.release.artifact import Release
    from privlearn.release.model import base_of

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
    with LateProgress(f"reading {table}") as progress:
        rows = read_records(table, schema)
        progress.describe("summing")
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


def show_intervals(model: Path, bought: Path | None, kind: str | None, level: float, largest: int) -> None:
    """Effects of a schema's columns, or coefficients of plain arrays, and which are above the noise."""
    from privlearn.data.encode.encoder import SchemaEncoder
    from privlearn.explain.bands import intervals
    from privlearn.release.artifact import Release
    from privlearn.release.curvature_file import Curvature
    from privlearn.release.model import base_of

    release = Release.load(model)
    known = None if bought is None else Curvature.load(bought)
    chosen: Any = kind or ("privacy" if known is None else "confidence")
    found = intervals(release, known, level=level, kind=chosen)
    typer.echo("")
    if isinstance(base_of(release.model.encoder), SchemaEncoder):
        for label in _labels(release.model):
            output.print(_effects(found, label))
    else:
        output.print(_coefficients(found.coefficients(), largest))
    typer.echo(found.meaning)


def _labels(model: Any) -> list[Any]:
    """The classes whose effects are shown one by one; none is named where there are two, or a number."""
    return [None] if len(model.coefficients) == 1 else model.classes.tolist()


def _effects(found: Intervals, label: Any) -> Table:
    about = "" if label is None else f" on {label}"
    table = Table(title=f"Effects of columns{about}, {found.kind} intervals", title_justify="left")
    for heading in ("column", "lowest", "highest", "above noise"):
        table.add_column(heading)
    for column in found.columns:
        band = found.effect(column, label)
        ends = [_at(band, int(place)) for place in (band.estimate.argmin(), band.estimate.argmax())]
        table.add_row(*map(Text, [column, *ends, "yes" if found.shows_effect(column, label) else "no"]))
    return table


def _coefficients(band: Band, largest: int) -> Table:
    table = Table(title=f"Largest coefficients, {band.kind} intervals", title_justify="left")
    for heading in ("feature", "coefficient", "above noise"):
        table.add_column(heading)
    for place in sorted(range(len(band.names)), key=lambda place: -abs(band.estimate[place]))[:largest]:
        shown = "yes" if band.excludes_zero[place] else "no"
        table.add_row(*map(Text, (str(band.names[place]), _interval(band, place), shown)))
    return table


def _interval(band: Band, place: int) -> str:
    return f"{band.estimate[place]:+.2g} [{band.lower[place]:+.2g}, {band.upper[place]:+.2g}]"


def _at(band: Band, place: int) -> str:
    value = band.names[place]
    return f"{_interval(band, place)} at {f'{value:g}' if isinstance(value, float) else value}"

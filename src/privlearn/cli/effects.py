"""What a model learnt, on the terminal and as a page; and `privlearn explain`, what it says of one row and why."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from privlearn.cli.options import ModelFile, TableFile
from privlearn.cli.terminal import output
from privlearn.errors import InvalidParameter

if TYPE_CHECKING:
    from privlearn.explain.bands import Band
    from privlearn.explain.column_effects import ColumnEffect, Effects
    from privlearn.release.artifact import Release


def explain(
    model: ModelFile,
    table: TableFile,
    label: Annotated[
        str | None, typer.Option(help="Of more than two classes: whose score.", show_default=False)
    ] = None,
) -> None:
    """Say why a model predicts what it predicts: what each column adds to the score of each row.

    The parts add up to the score. What noise may have done to each stands beside it.

    \b
    Example:
      privlearn explain income.privlearn person.csv
    """
    from privlearn.cli.predict import features_only, rows_to_predict
    from privlearn.data.sources.row_source import joined
    from privlearn.explain.one_prediction import contributions
    from privlearn.release.artifact import Release

    release = Release.load(model)
    rows = joined(rows_to_predict(table, features_only(release.model)).blocks())
    told = contributions(release, rows, _typed_label(release, label))
    for row, prediction in enumerate(release.model.predict(rows)):
        typer.echo(f"Row {row + 1}: {prediction}, {told.told(row)}\n")


def _typed_label(release: Release, label: str | None) -> Any:
    """The class that a word on the command line stands for."""
    classes = getattr(release.model, "classes", ())
    return next((known for known in classes if str(known) == label), label)


def show_effects(
    release: Release, bought: Path | None, kind: Any, level: float, *, every: bool, largest: int
) -> None:
    """What is above the noise; ``every``: the rest too, marked as such."""
    from privlearn.data.encode.encoder import SchemaEncoder
    from privlearn.explain.bands import intervals
    from privlearn.explain.column_effects import effects
    from privlearn.release.curvature_file import Curvature
    from privlearn.release.encoders import base_of

    known, release = None if bought is None else Curvature.load(bought), release.origin
    typer.echo("")
    try:
        if isinstance(base_of(release.model.encoder), SchemaEncoder):
            _show_columns(effects(release, known, level=level, kind=kind), every)
        else:
            found = intervals(
                release, known, level=level, kind=kind or ("confidence" if known else "privacy")
            )
            _show_coefficients(found.coefficients(), largest, every)
            typer.echo(found.meaning)
    except InvalidParameter as error:
        if every:
            raise
        typer.echo(f"Which of its findings are above the noise is not known: {error}")


def write_page(release: Release, bought: Path | None, kind: Any, level: float, out: Path) -> None:
    """The same as a page."""
    from privlearn.explain.column_effects import effects
    from privlearn.release.curvature_file import Curvature
    from privlearn.release.files import write_atomically

    known = None if bought is None else Curvature.load(bought)
    write_atomically(out, effects(release, known, level=level, kind=kind).to_html().encode())
    typer.echo(f"Wrote {out}.")


def _show_columns(found: Effects, every: bool) -> None:
    if not every:
        typer.echo(str(found))
        return
    for label in found.found.labels:
        output.print(_columns(found, label))
    typer.echo(found.promise)
    typer.echo(found.found.meaning)


def _columns(found: Effects, label: Any) -> Table:
    about = "" if label is None else f" on {label}"
    table = Table(title=f"Effects of columns{about}, {found.found.kind} intervals", title_justify="left")
    for heading in ("column", "importance", "lowest", "highest", "above noise"):
        table.add_column(heading)
    for effect in found.columns:
        table.add_row(*map(Text, _cells(effect, effect.bands[label])))
    return table


def _cells(effect: ColumnEffect, band: Band) -> list[str]:
    ends = [_at(band, int(place)) for place in (band.estimate.argmin(), band.estimate.argmax())]
    importance = f"{effect.importance:.2f} [{effect.lower:.2f}, {effect.upper:.2f}]"
    return [effect.name, importance, *ends, "yes" if effect.above_noise else "no"]


def _show_coefficients(band: Band, largest: int, every: bool) -> None:
    order = sorted(range(len(band.names)), key=lambda place: -abs(band.estimate[place]))
    shown = [place for place in order if every or band.excludes_zero[place]][: largest or None]
    table = Table(title=f"Coefficients, {band.kind} intervals", title_justify="left")
    for heading in ("feature", "coefficient", "above noise"):
        table.add_column(heading)
    for place in shown:
        told = "yes" if band.excludes_zero[place] else "no"
        table.add_row(*map(Text, (str(band.names[place]), _interval(band, place), told)))
    if shown:
        output.print(table)
    typer.echo(f"Above the noise: {int(band.excludes_zero.sum())} of {len(band.names)} coefficients.")


def _interval(band: Band, place: int) -> str:
    return f"{band.estimate[place]:+.2g} [{band.lower[place]:+.2g}, {band.upper[place]:+.2g}]"


def _at(band: Band, place: int) -> str:
    value = band.names[place]
    return f"{_interval(band, place)} at {f'{value:g}' if isinstance(value, float) else value}"

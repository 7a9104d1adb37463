"""`privlearn explain`, `privlearn curvature`, and the effects of columns that `privlearn inspect` prints.

A curvature is a noisy release of its own; confidence intervals are computed from it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privlearn.cli.charging import Charging, print_balance
from privlearn.cli.options import NUMBER, ModelFile, TableFile, check_writable, print_guarantee
from privlearn.cli.terminal import print_table
from privlearn.errors import InvalidParameter

if TYPE_CHECKING:
    from privlearn.explain.bands import Band
    from privlearn.explain.column_effects import ColumnEffect, Effects
    from privlearn.release.artifact import Release
    from privlearn.release.curvature_file import Curvature


def explain(
    model: ModelFile,
    table: TableFile,
    label: Annotated[str | None, typer.Option(help="With several classes: the class to explain.")] = None,
) -> None:
    """Explain the predictions of a model: what each column adds to the score of each row.

    The parts add up to the score. Each is printed with an interval for the noise.

    \b
    Example:
      privlearn explain income.privlearn person.csv
    """
    from privlearn.cli.predict import features_only, rows_to_predict
    from privlearn.data.sources.row_source import concatenate_tables
    from privlearn.explain.one_prediction import contributions
    from privlearn.release.artifact import Release

    release = Release.load(model)
    rows = concatenate_tables(rows_to_predict(table, features_only(release.model)).blocks())
    parts = contributions(release, rows, _typed_label(release, label))
    for row, prediction in enumerate(release.model.predict(rows)):
        typer.echo(f"Row {row + 1}: {prediction}, {parts.describe(row)}\n")


def _typed_label(release: Release, label: str | None) -> Any:
    """Return the class with this name, or the text itself, which `contributions` refuses with the known classes."""
    classes = getattr(release.model, "classes", ())
    return next((known for known in classes if str(known) == label), label)


def show_effects(
    release: Release, curvature_file: Path | None, kind: Any, level: float, *, every: bool, largest: int
) -> None:
    """Print the effects above the noise; with ``every`` also the others, marked as such."""
    from privlearn.data.encoding.encoder import SchemaEncoder
    from privlearn.explain.bands import intervals
    from privlearn.explain.column_effects import effects
    from privlearn.release.encoders import base_of

    curvature, release = _load_curvature(curvature_file), release.origin
    typer.echo("")
    try:
        if isinstance(base_of(release.model.encoder), SchemaEncoder):
            _show_columns(effects(release, curvature, level=level, kind=kind), every)
        else:
            kind = kind or ("confidence" if curvature else "privacy")
            result = intervals(release, curvature, level=level, kind=kind)
            _show_coefficients(result.coefficients(), largest, every)
            typer.echo(result.meaning)
    except InvalidParameter as error:
        if every:
            raise
        typer.echo(f"Effects cannot be compared with the noise: {error}")


def write_page(release: Release, curvature_file: Path | None, kind: Any, level: float, out: Path) -> None:
    """Write the effects as a page."""
    from privlearn.explain.column_effects import effects
    from privlearn.release.archive import write_atomically

    page = effects(release, _load_curvature(curvature_file), level=level, kind=kind).to_html()
    write_atomically(out, page.encode())
    typer.echo(f"Wrote {out}.")


def _load_curvature(path: Path | None) -> Curvature | None:
    from privlearn.release.curvature_file import Curvature

    return None if path is None else Curvature.load(path)


def _show_columns(result: Effects, every: bool) -> None:
    if not every:
        typer.echo(str(result))
        return
    headings = ("column", "importance", "lowest", "highest", "above noise")
    for label in result.intervals.labels:
        about = "" if label is None else f" on {label}"
        title = f"Effects of columns{about}, {result.intervals.kind} intervals"
        print_table(headings, [_cells(effect, effect.bands[label]) for effect in result.columns], title=title)
    typer.echo(result.meaning)
    typer.echo(result.intervals.meaning)


def _cells(effect: ColumnEffect, band: Band) -> list[str]:
    ends = [_value_and_interval(band, int(end)) for end in (band.estimate.argmin(), band.estimate.argmax())]
    importance = f"{effect.importance:.2f} [{effect.lower:.2f}, {effect.upper:.2f}]"
    return [effect.name, importance, *ends, "yes" if effect.above_noise else "no"]


def _show_coefficients(band: Band, largest: int, every: bool) -> None:
    order = sorted(range(len(band.names)), key=lambda index: -abs(band.estimate[index]))
    shown = [index for index in order if every or band.excludes_zero[index]][: largest or None]
    rows = [
        (str(band.names[index]), _interval(band, index), "yes" if band.excludes_zero[index] else "no")
        for index in shown
    ]
    if rows:
        headings = ("feature", "coefficient", "above noise")
        print_table(headings, rows, title=f"Coefficients, {band.kind} intervals")
    typer.echo(f"Above the noise: {int(band.excludes_zero.sum())} of {len(band.names)} coefficients.")


def _interval(band: Band, index: int) -> str:
    return f"{band.estimate[index]:+.2g} [{band.lower[index]:+.2g}, {band.upper[index]:+.2g}]"


def _value_and_interval(band: Band, index: int) -> str:
    value = band.names[index]
    return f"{_interval(band, index)} at {f'{value:g}' if isinstance(value, float) else value}"


def curvature(
    model: ModelFile,
    table: TableFile,
    epsilon: Annotated[float, typer.Option(**NUMBER, help="Privacy loss of the curvature.")],
    delta: Annotated[float, typer.Option(**NUMBER, help="Above 0 and well below 1/n, say 1e-6.")],
    out: Annotated[Path, typer.Option(help="The file to write.")],
    *,
    charging: Charging,
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

    check_writable(out, charging.force)
    release = Release.load(model)
    schema: Any = getattr(base_of(release.model.encoder), "schema", None)
    if schema is None or schema.target is None:
        raise InvalidParameter(
            "this model was trained on plain arrays, so its columns have no names. Release its curvature in Python: "
            "privlearn.curvature(release, X, y, epsilon=..., delta=...)"
        )
    with charging.open_rows(table, schema, "summing", out) as (rows, settings):
        result = release_curvature(release, rows, epsilon=epsilon, delta=delta, **settings)
    result.save(out, overwrite=True)
    print_guarantee(result.certificate)
    print_balance(settings["ledger"], is_private=result.certificate.is_private)
    typer.echo(f"Wrote {out}. Next: privlearn inspect {model} --intervals {out}")

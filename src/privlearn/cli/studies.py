"""Commands that study: compare mechanisms, tabulate bounds, reproduce papers."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privlearn.cli.options import NUMBER, Force, SchemaFile, TableFile, check_writable
from privlearn.cli.terminal import LateProgress, warn
from privlearn.errors import InvalidParameter

if TYPE_CHECKING:
    from privlearn.reproduce.reporting import Result
    from privlearn.study.bounds import Case


def compare(
    table: TableFile,
    schema: SchemaFile,
    out: Annotated[Path, typer.Option(help="The page to write, .html.", show_default=False)],
    epsilons: Annotated[str, typer.Option(help="Comma-separated.")] = "0.05,0.1,0.3,1,3",
    delta: Annotated[float, typer.Option(**NUMBER, help="For the methods with Gaussian noise.")] = 1e-6,
    seeds: Annotated[int, typer.Option(help="Random splits to average over.", min=1)] = 3,
    metric: Annotated[
        str, typer.Option(help="Of classes: error or auc; numbers have mean errors.")
    ] = "error",
    all_methods: Annotated[
        bool, typer.Option("--all-methods", help="Every mechanism and the papers' calibrations, not two.")
    ] = False,
    force: Force = False,
) -> None:
    """Compare the default with and without a delta over several epsilons, as one HTML page.

    The page shows errors measured on the table's own rows: looking at it is
    itself NOT PRIVATE. Use public or simulated data.

    \b
    Example:
      privlearn compare census.csv --schema census.schema.yaml \\
        --epsilons 0.1,1,10 --out compare.html
    """
    from privlearn.data.schema.schema import Schema
    from privlearn.data.sources.files import open_rows
    from privlearn.release.files import write_atomically
    from privlearn.study.comparison import METHODS, USUAL, compare_mechanisms, fits_needed, measure_named
    from privlearn.study.comparison_page import write_page
    from privlearn.study.drawing import require_matplotlib

    require_matplotlib()
    check_writable(out, force)
    levels = _parsed(epsilons)
    if not 0 < delta < 1:
        raise InvalidParameter("--delta must lie between 0 and 1: the Gaussian methods need one, e.g. 1e-6")
    warn("Looking at this page is not private: use public or simulated data.")
    description = Schema.load(schema)
    measure_named(metric, description)  # refuses what cannot be measured before anything is read
    methods = METHODS if all_methods else USUAL
    with LateProgress("comparing", total=fits_needed(description, levels, seeds, methods)) as progress:
        comparison = compare_mechanisms(
            open_rows(table, description),
            description,
            levels,
            delta=delta,
            seeds=seeds,
            advance=progress.advance,
            methods=methods,
            metric=metric,
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


def bounds(
    rows: Annotated[int, typer.Option(help="Number of records.", show_default=False)],
    regularization: Annotated[
        float, typer.Option("--lambda", **NUMBER, help="Regularization.", show_default=False)
    ],
    epsilon: Annotated[float, typer.Option(**NUMBER, help="Privacy to look at.", show_default=False)],
    delta: Annotated[float, typer.Option(**NUMBER, help="For Gaussian noise and PINP.")] = 1e-6,
    kernel: Annotated[str, typer.Option(help="linear, rbf or cauchy, with k(x, x) <= 1.")] = "rbf",
    columns: Annotated[int, typer.Option(help="Columns of the encoded rows.")] = 100,
    gamma: Annotated[float, typer.Option(**NUMBER, help="Of the kernel, as in scikit-learn.")] = 1.0,
    accuracy: Annotated[
        float, typer.Option(**NUMBER, help="Useful: no value is further off than this.")
    ] = 0.5,
    failure: Annotated[float, typer.Option(**NUMBER, help="Except with this probability.")] = 0.05,
    candidates: Annotated[int, typer.Option(help="Settings to choose among in private.")] = 10,
    out: Annotated[
        Path | None, typer.Option(help="Also draw: .svg, .png or .pdf.", show_default=False)
    ] = None,
    force: Force = False,
) -> None:
    """Show what the theorems promise and exclude, before touching any data.

    Upper and lower bounds of RBHT for the hinge loss, the noise of function release, whether PINP's
    threshold leaves anything to answer, what noise costs in a linear model's objective (CMS11, RA12), and
    how the bounds grow whose constants no paper states. Reads no data.

    \b
    Example:
      privlearn bounds --rows 36000 --lambda 1e-3 --kernel rbf --gamma 2 \\
        --columns 104 --epsilon 1 --out bounds.svg
    """
    from privlearn.study.bounds import Case, table
    from privlearn.study.excess import growth_lines

    case = Case(rows, regularization, kernel, columns, gamma, epsilon, delta, accuracy, failure, candidates)
    lines = table(case)
    if out is not None:
        _draw(case, out, force)
    _show(lines, "<>")
    typer.echo("\nTheorems without constants: what their bounds are multiplied by.")
    _show(growth_lines(case), "<<>>>>")
    if out is not None:
        typer.echo(f"Wrote {out}.")


def _show(lines: Sequence[Sequence[str]], sides: str) -> None:
    """A table whose columns but the last lean to these sides."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for *cells, last in lines:
        shown = [f"{cell:{side}{width}}" for cell, side, width in zip(cells, sides, widths, strict=False)]
        typer.echo("  ".join([*shown, last]))


def _draw(case: Case, out: Path, force: bool) -> None:
    from privlearn.release.files import write_atomically
    from privlearn.study.bounds import draw_bounds
    from privlearn.study.drawing import kind_of_image

    kind = kind_of_image(out)
    check_writable(out, force)
    write_atomically(out, draw_bounds(case, kind))


_IMAGES = ("svg", "png")
_WRITTEN = ("csv", "txt", *_IMAGES)


def reproduce(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", help="Which one; without it, the list.", show_default=False),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A few seconds, on a small sample.")] = False,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Where table and figure go.")] = Path(
        "reproduced"
    ),
    seed: Annotated[int, typer.Option(help="Of samples, folds and noise.", min=0)] = 0,
    force: Force = False,
) -> None:
    """Run a table or figure of the papers again, with our default beside it.

    Writes NAME.csv (the table), NAME.svg and NAME.png (a figure with the paper's axes) and NAME.txt (what agrees
    with the paper, and why not where it does not). Data sets are read from the folder that the environment
    variable PRIVLEARN_DATA names; nothing is downloaded. Noise is seeded, so nothing here is private.

    \b
    Example:
      privlearn reproduce
      privlearn reproduce rbht-bounds
      privlearn reproduce cms11-table1 --quick --out papers
    """
    if name is None:
        _list()
        return
    from privlearn.reproduce import experiment
    from privlearn.study.drawing import require_matplotlib

    chosen, matplotlib = experiment(name), require_matplotlib()
    out.mkdir(parents=True, exist_ok=True)
    paths = {kind: out / f"{name}{'-quick' if quick else ''}.{kind}" for kind in _WRITTEN}
    for path in paths.values():
        check_writable(path, force)
    result = chosen.run(quick, seed, lambda parts: _tracked(name, parts))
    _write(result, paths, matplotlib, quick)
    for line in (
        result.title,
        *result.lines(),
        "",
        result.agreement,
        f"Wrote {', '.join(map(str, paths.values()))}.",
    ):
        typer.echo(line)


def _list() -> None:
    from privlearn.reproduce import EXPERIMENTS

    cells = [("name", "shows", "quick", "full", "needs in PRIVLEARN_DATA")]
    cells += [
        (name, item.shows, item.quick, item.full, ", ".join(item.files) or "nothing")
        for name, item in EXPERIMENTS.items()
    ]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for line in cells:
        typer.echo("  ".join(map(str.ljust, line, widths)).rstrip())
    if not os.environ.get("PRIVLEARN_DATA"):
        typer.echo("PRIVLEARN_DATA is not set: only those that need nothing will run.")


def _tracked(name: str, parts: Sequence[Any]) -> Iterator[Any]:
    with LateProgress(name, total=len(parts)) as bar:
        for part in parts:
            yield part
            bar.advance()


def _write(result: Result, paths: dict[str, Path], matplotlib: Any, quick: bool) -> None:
    from privlearn.release.files import write_atomically
    from privlearn.study.drawing import STYLE, image_of

    write_atomically(paths["csv"], result.csv().encode())
    write_atomically(paths["txt"], f"{result.title}\n\n{result.agreement}\n".encode())
    with matplotlib.rc_context(STYLE | {"svg.hashsalt": "reproduce"}):
        figure = result.figure(matplotlib)
        if quick:
            figure.suptitle(f"{result.title} (quick run)")
        for kind in _IMAGES:
            write_atomically(paths[kind], image_of(figure, kind))

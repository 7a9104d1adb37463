"""`privlearn compare`, `bounds` and `reproduce`: compare mechanisms, tabulate theorems, repeat the papers."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privlearn.cli.options import (
    NUMBER,
    Force,
    Neighbouring,
    SchemaFile,
    TableFile,
    check_writable,
    parse_number,
)
from privlearn.cli.terminal import LateProgress, aligned_lines, warn
from privlearn.errors import InvalidParameter

if TYPE_CHECKING:
    from privlearn.papers.reporting import Result
    from privlearn.papers.study.case import Case


def compare(
    table: TableFile,
    schema: SchemaFile,
    out: Annotated[Path, typer.Option(help="The page to write, .html.")],
    epsilons: Annotated[str, typer.Option(help="Comma-separated.")] = "0.05,0.1,0.3,1,3",
    delta: Annotated[float, typer.Option(**NUMBER, help="For the methods with Gaussian noise.")] = 1e-6,
    seeds: Annotated[int, typer.Option(help="Random splits to average over.", min=1)] = 3,
    metric: Annotated[
        str, typer.Option(help="For classes: error or auc; numbers always have mean errors.")
    ] = "error",
    all_methods: Annotated[
        bool, typer.Option("--all-methods", help="All mechanisms and the papers' calibrations, not only two.")
    ] = False,
    force: Force = False,
) -> None:
    """Compare the default with and without a delta for several epsilons, as one HTML page.

    The page shows errors measured on the table's own rows, so it is
    NOT PRIVATE. Use public or simulated data.

    \b
    Example:
      privlearn compare census.csv --schema census.schema.yaml \\
        --epsilons 0.1,1,10 --out compare.html
    """
    from privlearn.data.schema.schema import Schema
    from privlearn.data.sources.files import open_rows
    from privlearn.papers.study.comparison import (
        METHODS,
        USUAL,
        compare_mechanisms,
        fits_needed,
        measure_named,
    )
    from privlearn.papers.study.comparison_page import write_page
    from privlearn.papers.study.figures import require_matplotlib
    from privlearn.release.archive import write_atomically

    require_matplotlib()
    check_writable(out, force)
    levels = _parse_epsilons(epsilons)
    if not 0 < delta < 1:
        raise InvalidParameter("--delta must lie between 0 and 1. Gaussian methods need one, such as 1e-6.")
    warn("This page is not private. Use public or simulated data.")
    description = Schema.load(schema)
    measure_named(metric, description)  # refuses an unsuitable metric before anything is read
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


def _parse_epsilons(text: str) -> list[float]:
    levels = sorted({parse_number(part) for part in text.split(",")})
    if not all(0 < level < float("inf") for level in levels):
        raise InvalidParameter("--epsilons must be numbers above 0. Write for example 0.1,0.5,1.")
    return levels


def bounds(
    rows: Annotated[int, typer.Option(help="Number of records.")],
    regularization: Annotated[float, typer.Option("--lambda", **NUMBER, help="Regularization.")],
    epsilon: Annotated[float, typer.Option(**NUMBER, help="Privacy loss.")],
    delta: Annotated[float, typer.Option(**NUMBER, help="For Gaussian noise and PINP.")] = 1e-6,
    kernel: Annotated[str, typer.Option(help="linear, rbf or cauchy, with k(x, x) <= 1.")] = "rbf",
    columns: Annotated[int, typer.Option(help="Columns of the encoded rows.")] = 100,
    gamma: Annotated[float, typer.Option(**NUMBER, help="Of the kernel, as in scikit-learn.")] = 1.0,
    accuracy: Annotated[
        float, typer.Option(**NUMBER, help="A useful mechanism is at most this far off.")
    ] = 0.5,
    failure: Annotated[float, typer.Option(**NUMBER, help="... except with this probability.")] = 0.05,
    candidates: Annotated[int, typer.Option(help="Number of settings to choose from privately.")] = 10,
    loss: Annotated[str, typer.Option(help="hinge, logistic, huber_hinge, smoothed_hinge, ...")] = "hinge",
    queries: Annotated[int, typer.Option(help="Number of queries that PINP must answer.", min=1)] = 10_000,
    neighbours: Neighbouring = "replace_one",
    out: Annotated[Path | None, typer.Option(help="Also draw a figure: .svg, .png or .pdf.")] = None,
    force: Force = False,
) -> None:
    """Show what the theorems guarantee and exclude, before any data is read.

    Upper and lower bounds of RBHT (lower bounds for the hinge loss only), the noise of function release, whether PINP
    can answer any query, what noise costs in a linear model's objective (CMS11, RA12), and the growth of bounds whose
    constants no paper states. Reads no data. With --neighbours add_remove, --rows is the expected number of records.

    \b
    Example:
      privlearn bounds --rows 36000 --lambda 1e-3 --kernel rbf --gamma 2 \\
        --columns 104 --epsilon 1 --out bounds.svg
    """
    from privlearn.papers.study.bounds import growth_lines, table
    from privlearn.papers.study.case import Case

    case = Case(
        rows, regularization, kernel, columns, gamma, epsilon, delta, accuracy, failure, candidates,
        loss, queries, neighbours,
    )  # fmt: skip
    lines = table(case)
    if out is not None:
        _draw(case, out, force)
    for line in aligned_lines(lines, right=(1,)):
        typer.echo(line)
    typer.echo("\nTheorems without constants: the factors by which their bounds change.")
    for line in aligned_lines(growth_lines(case), right=(2, 3, 4, 5)):
        typer.echo(line)
    if out is not None:
        typer.echo(f"Wrote {out}.")


def _draw(case: Case, out: Path, force: bool) -> None:
    from privlearn.papers.study.figures import draw_bounds, kind_of_image
    from privlearn.release.archive import write_atomically

    kind = kind_of_image(out)
    check_writable(out, force)
    write_atomically(out, draw_bounds(case, kind))


_IMAGES = ("svg", "png")
_SUFFIXES = ("csv", "txt", *_IMAGES)


def reproduce(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="The experiment; without it, all are listed.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A few seconds, on a small sample.")] = False,
    out: Annotated[
        Path, typer.Option(metavar="DIRECTORY", help="Directory for the table and the figure.")
    ] = Path("reproduced"),
    seed: Annotated[int, typer.Option(help="Seed of samples, folds and noise.", min=0)] = 0,
    force: Force = False,
) -> None:
    """Reproduce a table or figure of the papers, next to our default.

    Writes NAME.csv (the table), NAME.svg and NAME.png (a figure with the paper's axes) and NAME.txt (what agrees
    with the paper, and the reasons for differences). Data sets are read from the directory in the environment
    variable PRIVLEARN_DATA; nothing is downloaded. Noise is seeded, so nothing here is private.

    \b
    Example:
      privlearn reproduce
      privlearn reproduce rbht-bounds
      privlearn reproduce cms11-table1 --quick --out papers
    """
    if name is None:
        _list_experiments()
        return
    from privlearn.papers import experiment
    from privlearn.papers.study.figures import require_matplotlib

    selected, matplotlib = experiment(name), require_matplotlib()
    out.mkdir(parents=True, exist_ok=True)
    paths = {kind: out / f"{name}{'-quick' if quick else ''}.{kind}" for kind in _SUFFIXES}
    for path in paths.values():
        check_writable(path, force)
    result = selected.run(quick, seed, lambda parts: _with_progress(name, parts))
    _write(result, paths, matplotlib, quick)
    for line in (result.title, *result.lines(), "", result.agreement):
        typer.echo(line)
    typer.echo(f"Wrote {', '.join(map(str, paths.values()))}.")


def _list_experiments() -> None:
    from privlearn.papers import EXPERIMENTS

    cells = [("name", "shows", "quick", "full", "needs in PRIVLEARN_DATA")]
    cells += [
        (name, item.shows, item.quick, item.full, ", ".join(item.files) or "nothing")
        for name, item in EXPERIMENTS.items()
    ]
    for line in aligned_lines(cells):
        typer.echo(line)
    if not os.environ.get("PRIVLEARN_DATA"):
        typer.echo("PRIVLEARN_DATA is not set, so only experiments that need nothing will run.")


def _with_progress(name: str, parts: Sequence[Any]) -> Iterator[Any]:
    with LateProgress(name, total=len(parts)) as bar:
        for part in parts:
            yield part
            bar.advance()


def _write(result: Result, paths: dict[str, Path], matplotlib: Any, quick: bool) -> None:
    from privlearn.papers.study.figures import STYLE, image_of
    from privlearn.release.archive import write_atomically

    write_atomically(paths["csv"], result.csv().encode())
    write_atomically(paths["txt"], f"{result.title}\n\n{result.agreement}\n".encode())
    with matplotlib.rc_context(STYLE | {"svg.hashsalt": "reproduce"}):
        figure = result.figure(matplotlib)
        if quick:
            figure.suptitle(f"{result.title} (quick run)")
        for kind in _IMAGES:
            write_atomically(paths[kind], image_of(figure, kind))

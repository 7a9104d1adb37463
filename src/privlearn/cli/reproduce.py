"""`privlearn reproduce`: a table or figure of the papers, run again."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privlearn.cli.options import Force, check_writable
from privlearn.cli.terminal import LateProgress

if TYPE_CHECKING:
    from privlearn.reproduce.result import Result

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
    from privlearn.release.atomic import write_atomically
    from privlearn.study.drawing import STYLE, image_of

    write_atomically(paths["csv"], result.csv().encode())
    write_atomically(paths["txt"], f"{result.title}\n\n{result.agreement}\n".encode())
    with matplotlib.rc_context(STYLE | {"svg.hashsalt": "reproduce"}):
        figure = result.figure(matplotlib)
        if quick:
            figure.suptitle(f"{result.title} (quick run)")
        for kind in _IMAGES:
            write_atomically(paths[kind], image_of(figure, kind))

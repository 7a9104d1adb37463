"""`privlearn refine`: make a model simpler, from its file alone."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from privlearn.cli.options import Force, ModelFile, check_writable
from privlearn.errors import InvalidParameter


def refine(
    model: ModelFile,
    out: Annotated[Path, typer.Option(help="The release to write.", show_default=False)],
    merge: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN:A+B", help="Values of a list that count as one.", show_default=False),
    ] = None,
    smooth: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN:REACH", help="The mean of so many neighbours to either side.", show_default=False
        ),
    ] = None,
    monotone: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN:increasing", help="Or decreasing: an effect that never turns.", show_default=False
        ),
    ] = None,
    flatten: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="It says nothing any more.", show_default=False),
    ] = None,
    zero_noise: Annotated[
        bool, typer.Option("--zero-noise", help="Flatten the columns that drown in the noise.")
    ] = False,
    digits: Annotated[
        int | None, typer.Option("--round", metavar="DIGITS", help="After the point.", show_default=False)
    ] = None,
    force: Force = False,
) -> None:
    """Refine a model from its file alone: that is post-processing, and costs no privacy.

    The new file names the release it came from and every step; verify repeats them.
    Its accuracy is another: evaluate it. Options may be given several times.

    \b
    Example:
      privlearn refine income.privlearn --monotone age:increasing --round 3 --out simple.privlearn
    """
    from privlearn.explain.refining import refine as refined
    from privlearn.release.artifact import Release

    check_writable(out, force)
    made = refined(
        Release.load(model),
        merge={column: rest.split("+") for column, rest in _pairs(merge, "--merge COLUMN:A+B")},
        smooth={column: _whole(rest) for column, rest in _pairs(smooth, "--smooth COLUMN:2")},
        monotone=dict(_pairs(monotone, "--monotone COLUMN:increasing")),
        flatten=flatten or (),
        zero_noise=zero_noise,
        digits=digits,
    )
    made.save(out)
    assert made.refinement is not None
    typer.echo(f"{made.refinement.told}. This costs nothing: it was computed from {model} alone.")
    typer.echo(f"Wrote {out}. Next: privlearn verify {out} --origin {model}")


def _pairs(given: list[str] | None, example: str) -> list[tuple[str, str]]:
    """What stands before and after the last colon: a column's name may have one."""
    found = [text.rpartition(":") for text in given or ()]
    if not all(column and rest for column, _, rest in found):
        raise InvalidParameter(f"write it as {example}")
    return [(column, rest) for column, _, rest in found]


def _whole(text: str) -> int:
    if not text.isdecimal():
        raise InvalidParameter(f"--smooth COLUMN:2 takes a whole number of neighbours, not {text!r}")
    return int(text)

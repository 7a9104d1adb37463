"""`privlearn refine`: simplify a model, from its file alone."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from privlearn.cli.options import Force, ModelFile, check_writable
from privlearn.errors import InvalidParameter


def refine(
    model: ModelFile,
    out: Annotated[Path, typer.Option(help="The release to write.")],
    merge: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN:A+B", help="Treat these values of a list as one.")
    ] = None,
    smooth: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN:REACH", help="Average over this many neighbours on each side."),
    ] = None,
    monotone: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN:increasing", help="Make the effect increasing (or decreasing)."),
    ] = None,
    flatten: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="Remove the effect of this column.")
    ] = None,
    zero_noise: Annotated[
        bool, typer.Option("--zero-noise", help="Flatten columns below the noise.")
    ] = False,
    digits: Annotated[
        int | None, typer.Option("--round", metavar="DIGITS", help="Decimal places of the coefficients.")
    ] = None,
    force: Force = False,
) -> None:
    """Refine a model from its file alone. This is post-processing and costs no privacy.

    The new file names its origin and every step; verify repeats them. Its accuracy
    differs: evaluate it. Options may be repeated.

    \b
    Example:
      privlearn refine income.privlearn --monotone age:increasing --round 3 --out simple.privlearn
    """
    from privlearn.explain.refining import refine as refine_release
    from privlearn.release.artifact import Release

    check_writable(out, force)
    result = refine_release(
        Release.load(model),
        merge={column: rest.split("+") for column, rest in _split_pairs(merge, "--merge COLUMN:A+B")},
        smooth={column: _parse_reach(rest) for column, rest in _split_pairs(smooth, "--smooth COLUMN:2")},
        monotone=dict(_split_pairs(monotone, "--monotone COLUMN:increasing")),
        flatten=flatten or (),
        zero_noise=zero_noise,
        digits=digits,
    )
    result.save(out)
    assert result.refinement is not None
    typer.echo(f"{result.refinement.description}. This costs nothing: it was computed from {model} alone.")
    typer.echo(f"Wrote {out}. Next: privlearn verify {out} --origin {model}")


def _split_pairs(texts: list[str] | None, example: str) -> list[tuple[str, str]]:
    """Return the texts before and after the last colon, since the name of a column may contain one."""
    pairs = [(column, rest) for column, _, rest in (text.rpartition(":") for text in texts or ())]
    if not all(column and rest for column, rest in pairs):
        raise InvalidParameter(f"an option has the wrong form. Write it as {example}.")
    return pairs


def _parse_reach(text: str) -> int:
    if not text.isdecimal():
        raise InvalidParameter(f"{text!r} is not a whole number of neighbours. Write --smooth COLUMN:2.")
    return int(text)

"""Commands that compute a release from another one, at no cost.

`privlearn refine` simplifies a model; `privlearn regress` solves the second moments of several holders.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from privlearn.cli.options import NOT_NEGATIVE, Force, ModelFile, check_writable
from privlearn.errors import InvalidParameter


def refine(
    model: ModelFile,
    out: Annotated[Path, typer.Option(help="The release to write.")],
    merge: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN:A+B", help="Treat these values of a column as one.")
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
        raise InvalidParameter(f"an option is incomplete. Write it as {example}.")
    return pairs


def _parse_reach(text: str) -> int:
    if not text.isdecimal():
        raise InvalidParameter(f"{text!r} is not a whole number of neighbours. Write --smooth COLUMN:2.")
    return int(text)


def regress(
    moments: Annotated[
        Path,
        typer.Argument(
            metavar="MOMENTS",
            help="The second moments of a joint run: the result of a plan that has targets.",
        ),
    ],
    target: Annotated[
        list[str] | None, typer.Option(help="Target to predict; may be repeated.", show_default="all targets")
    ] = None,
    regularization: Annotated[
        float | None,
        typer.Option(
            **NOT_NEGATIVE,
            help="Strength of the regularization (lambda).",
            show_default="as large as the noise",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="With one target: the release to write.", show_default="MOMENTS.TARGET.privlearn"),
    ] = None,
    force: Force = False,
) -> None:
    """Compute models from the second moments of a joint run. This is post-processing and costs no privacy.

    Writes one release file per target. Each contains the noisy sum, the record of its run
    and every party's signature, so that verify recomputes its coefficients. All of them,
    with any regularization, cost no more than the one sum.

    \b
    Example:
      privlearn simulate moments.toml east.csv north.csv west.csv
      privlearn regress moments.privlearn
      privlearn regress moments.privlearn --target hours --regularization 0.1 --out smooth.privlearn
    """
    from privlearn.release.artifact import Release
    from privlearn.release.moments_file import Moments

    sums = Moments.load(moments)
    names = list(dict.fromkeys(target or sums.targets))
    if out is not None and len(names) > 1:
        raise InvalidParameter("--out names one file, but there are several targets. Give --target.")
    files = {name: out or moments.with_suffix(f".{_in_path(name)}.privlearn") for name in names}
    if len(set(files.values())) < len(files):
        raise InvalidParameter("two targets have the same file name. Write each with --target and --out.")
    for file in files.values():
        check_writable(file, force)
    for name, file in files.items():
        release = Release.from_moments(sums, name, regularization)
        release.save(file, overwrite=force)
        typer.echo(f"Wrote {file}: {name}, regularization {release.certificate.task.regularization:.3g}.")
    typer.echo(f"This costs nothing beyond {moments}: {sums.certificate.guarantee}, once for all its models.")
    typer.echo(f"Next: privlearn verify {file}")


def _in_path(name: str) -> str:
    """Return a column's name with an underscore for each character that a file name should not have."""
    return "".join(letter if letter.isalnum() or letter in "_-" else "_" for letter in name)

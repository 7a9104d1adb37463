"""`privlearn regress`: models from second moments that several holders opened, one release file per target."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from privlearn.cli.options import NOT_NEGATIVE, Force, check_writable
from privlearn.errors import InvalidParameter


def regress(
    moments: Annotated[
        Path,
        typer.Argument(metavar="MOMENTS", help="What a run of a plan with targets made.", show_default=False),
    ],
    target: Annotated[
        list[str] | None,
        typer.Option(help="What to predict; may be given several times.", show_default="all targets"),
    ] = None,
    regularization: Annotated[
        float | None,
        typer.Option(
            **NOT_NEGATIVE,
            help="Lambda; any that determines the coefficients.",
            show_default="as large as the noise",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Of one target: the release to write.", show_default="MOMENTS.TARGET.privlearn"),
    ] = None,
    force: Force = False,
) -> None:
    """Compute models from the second moments of a joint run: that is post-processing, and costs no privacy.

    One release file per target. Each carries the noisy sum, the record of its run and
    every party's signature, and verify finds its coefficients again. All of them, and
    those with another regularization, cost the price of the one sum together.

    \b
    Example:
      privlearn simulate moments.toml east.csv north.csv west.csv
      privlearn regress moments.privlearn
      privlearn regress moments.privlearn --target hours --regularization 0.1 --out smooth.privlearn
    """
    from privlearn.release.artifact import Release
    from privlearn.release.moments_file import Moments

    found = Moments.load(moments)
    chosen = list(dict.fromkeys(target or found.targets))
    if out is not None and len(chosen) > 1:
        raise InvalidParameter("--out names one file: say for which --target it is")
    files = {name: out or moments.with_suffix(f".{_in_path(name)}.privlearn") for name in chosen}
    if len(set(files.values())) < len(files):
        raise InvalidParameter("two targets would have one file name: write each with --target and --out")
    for file in files.values():
        check_writable(file, force)
    for name, file in files.items():
        made = Release.from_moments(found, name, regularization)
        made.save(file, overwrite=force)
        typer.echo(f"Wrote {file}: {name}, regularization {made.certificate.task.regularization:.3g}.")
    typer.echo(
        f"This costs nothing beyond {moments}: {found.certificate.guarantee}, once for all its models."
    )
    typer.echo(f"Next: privlearn verify {file}")


def _in_path(name: str) -> str:
    """A column's name without what a file's name cannot have."""
    return "".join(letter if letter.isalnum() or letter in "_-" else "_" for letter in name)

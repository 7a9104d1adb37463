"""`privlearn regress`: compute models from the second moments of several holders, one release per target."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from privlearn.cli.options import NOT_NEGATIVE, Force, check_writable
from privlearn.errors import InvalidParameter


def regress(
    moments: Annotated[
        Path, typer.Argument(metavar="MOMENTS", help="The result of a run whose plan has targets.")
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
        raise InvalidParameter(
            "two targets would have the same file name. Write each with --target and --out."
        )
    for file in files.values():
        check_writable(file, force)
    for name, file in files.items():
        release = Release.from_moments(sums, name, regularization)
        release.save(file, overwrite=force)
        typer.echo(f"Wrote {file}: {name}, regularization {release.certificate.task.regularization:.3g}.")
    typer.echo(f"This costs nothing beyond {moments}: {sums.certificate.guarantee}, once for all its models.")
    typer.echo(f"Next: privlearn verify {file}")


def _in_path(name: str) -> str:
    """Return a column's name without characters that a file name cannot have."""
    return "".join(letter if letter.isalnum() or letter in "_-" else "_" for letter in name)

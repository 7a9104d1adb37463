"""`privlearn verify`: check a release, or what a session promises, as a stranger would."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from privlearn.cli.options import CertifiedFile
from privlearn.cli.terminal import warn

_NOT_PRIVATE = 3


def verify(
    model: CertifiedFile,
    signer: Annotated[
        Path | None,
        typer.Option(metavar="PUB.pem", help="Require this holder's Ed25519 signature.", show_default=False),
    ] = None,
) -> None:
    """Check a release or a session's certificate, and recompute the guarantee from its constants alone.

    \b
    Exit codes:
      0  consistent and private; if the promise is hardly private, the last line says why
      1  it contradicts itself, or lacks the asked signature
      3  consistent, but not private: made with --seed or an infinite epsilon

    \b
    Example:
      privlearn verify income.privlearn --signer holder.pub.pem
      privlearn verify session.json
    """
    from privlearn.release import verify as check
    from privlearn.release.verify import read_public_key

    proven = check(model, None if signer is None else read_public_key(signer))
    typer.echo(f"claimed     {proven.claimed}")
    typer.echo(f"recomputed  {proven.recomputed}")
    if proven.certificate.adds_up:
        typer.echo(f"with schema {proven.certificate.together}, the price of what was bought of it included")
    typer.echo(f"randomness  {proven.certificate.randomness}")
    typer.echo(f"signer      {proven.signer or 'not signed'}")
    if not proven.is_private:
        reason = (
            "its noise can be computed from the seed"
            if proven.claimed.is_private
            else "its epsilon is infinite"
        )
        warn(f"{model} is consistent, but NOT PRIVATE: {reason}.")
        raise typer.Exit(_NOT_PRIVATE)
    if proven.weakness:
        warn(f"{model} is consistent, but {proven.weakness}.")
        return
    typer.echo(f"{model} is consistent and private.")

"""`privlearn verify`: check a certified file, and recompute its guarantee."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from privlearn.cli.options import CertifiedFile
from privlearn.cli.terminal import warn
from privlearn.errors import InvalidParameter

if TYPE_CHECKING:
    from privlearn.release.signatures import PublicKey

_NOT_PRIVATE = 3


def verify(
    model: CertifiedFile,
    signer: Annotated[
        Path | None, typer.Option(metavar="PUB.pem", help="Require this holder's signature.")
    ] = None,
    server: Annotated[
        str | None,
        typer.Option(
            metavar="URL|PUB.pem",
            help="Require this server's signature. Give the address to fetch its key from, or a file with the key.",
        ),
    ] = None,
    origin: Annotated[
        Path | None, typer.Option(metavar="MODEL", help="Require that this release is its origin.")
    ] = None,
) -> None:
    """Check a file with a certificate, and recompute its guarantee from the certificate's constants alone.

    \b
    Exit codes:
      0  consistent and private; if hardly private, the last line gives the reason
      1  inconsistent, or without the required signature
      3  consistent, but not private: written with --seed or an infinite epsilon

    \b
    Example:
      privlearn verify income.privlearn --signer holder.pub.pem
      privlearn verify income.privlearn --server https://learner.example
      privlearn verify session.json
    """
    from privlearn.release.signatures import read_public_key
    from privlearn.release.verification import verify as check

    if signer is not None and server is not None:
        raise InvalidParameter("a file has one signature. Give either --signer or --server.")
    key = _key_of(server) if server is not None else None if signer is None else read_public_key(signer)
    verified = check(model, key, origin)
    for name, text in verified.properties.items():
        typer.echo(f"{name:<12}{text}")
    if verified.is_private and not verified.weakness:
        typer.echo(f"{model} is {verified.verdict}.")
        return
    warn(f"{model} is {verified.verdict}.")
    if not verified.is_private:
        raise typer.Exit(_NOT_PRIVATE)


def _key_of(server: str) -> PublicKey:
    from privlearn.client.connection import server_key
    from privlearn.release.signatures import read_public_key

    return server_key(server) if "://" in server else read_public_key(server)

"""`privlearn identity`: keys for runs of several parties."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from privlearn.errors import InvalidParameter


def identity(
    name: Annotated[
        str, typer.Argument(help="The party's name in the plan, or coordinator.", show_default=False)
    ],
    host: Annotated[
        list[str] | None,
        typer.Option(
            help="Coordinator: a host name or address that parties will use; also makes a TLS certificate.",
            show_default=False,
        ),
    ] = None,
    folder: Annotated[Path, typer.Option(help="Where to write the files.")] = Path(),
) -> None:
    """Make a private key, and print the public line for the plan's [keys].

    Writes NAME.key, which stays here. With --host, for the coordinator, also the
    TLS certificate NAME.crt, which every party gets a copy of, and its NAME.tls.key.

    \b
    Examples:
      privlearn identity north
      privlearn identity coordinator --host hub.example.org
    """
    from privlearn.multiparty.certificate import write_certificate
    from privlearn.multiparty.identity import Identity

    if not name.isidentifier():
        raise InvalidParameter("a name in a plan's [keys] is made of letters, digits and _: choose another")
    made = Identity.generate()
    made.write(folder / f"{name}.key")
    if host:
        write_certificate(folder / f"{name}.crt", folder / f"{name}.tls.key", host)
    typer.echo(f'{name} = "{made.public}"')

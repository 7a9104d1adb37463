"""`privlearn upgrade`: a store of an older version."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from privlearn.service.settings import ServerSettings


def upgrade(
    place: Annotated[
        str,
        typer.Argument(
            metavar="LEDGER",
            help="File with the budgets, postgresql://user@host/database, or the holder's file OWNER.toml.",
            show_default=False,
        ),
    ],
    check: Annotated[bool, typer.Option("--check", help="Only say what would be done.")] = False,
) -> None:
    """Bring a ledger, or a server's database, to the format of this version.

    Stop every program that uses it and make a backup first. It is done whole or
    not at all, and there is no way back: older versions refuse it afterwards. On
    PostgreSQL, type it as the role that owns the tables.

    \b
    Examples:
      privlearn upgrade budgets.db
      privlearn upgrade owner.toml
    """
    from privlearn.storage import locate, migrations

    server = _server(Path(place)) if place.endswith(".toml") else None
    store = locate(place) if server is None else server.store
    steps = migrations.pending(store)
    if steps and not check:
        with _while_no_server_runs(server):
            migrations.upgrade(store)
    for part, (before, after) in steps.items():
        typer.echo(f"The {part}'s format {before} {'would become' if check else 'has become'} {after}.")
    if not steps:
        typer.echo("Nothing to do: the formats are those of this version.")


def _server(owner: Path) -> ServerSettings:
    from privlearn.service.settings import Owner

    return Owner.load(owner).server


@contextmanager
def _while_no_server_runs(server: ServerSettings | None) -> Iterator[None]:
    """On SQLite a running server holds a lock of its folder; on PostgreSQL there may be several."""
    if server is None or server.ledger:
        yield
        return
    from privlearn.service.service import only_server

    with only_server(server.folder):
        yield

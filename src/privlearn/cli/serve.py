"""Commands of whoever runs a server: serve, upgrade after a new version, restored after an old backup."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privlearn.errors import InvalidParameter

if TYPE_CHECKING:
    from privlearn.ledger.composition import Amount
    from privlearn.service.holder.settings import ServerSettings


_NEEDED = ("fastapi", "uvicorn", "jinja2", "prometheus_client", "python_multipart")


def serve(
    owner: Annotated[
        Path | None,
        typer.Argument(
            metavar="OWNER", help="The holder's file: data sets, budgets, analysts.", show_default=False
        ),
    ] = None,
    demo: Annotated[
        bool, typer.Option("--demo", help="Serve made-up records instead, and print keys to try it with.")
    ] = False,
    folder: Annotated[
        Path | None,
        typer.Option(
            help="With --demo: keep everything here, and go on with it the next time.",
            show_default="a new folder",
        ),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="Instead of the file's; 0 is any free one.", show_default=False),
    ] = None,
    openapi: Annotated[
        bool, typer.Option("--openapi", help="Print the description of the HTTP interface and end.")
    ] = False,
) -> None:
    """Serve data sets to analysts, who can spend no more than their shares.

    The web pages are at the address that is printed, the HTTP interface under
    /v1. Log lines go to stderr as JSON. On SIGTERM or Ctrl-C answers under way
    are finished; trainings go on with the next start, and are not paid again.

    \b
    Examples:
      privlearn serve --demo
      privlearn serve owner.toml
      privlearn keys create owner.toml --analyst alice
    """
    _check_installed()
    if openapi:
        typer.echo(json.dumps(_description(), indent=1))
        return
    if demo == (owner is not None):
        raise InvalidParameter("say what to serve: privlearn serve OWNER.toml, or privlearn serve --demo")
    if folder is not None and not demo:
        raise InvalidParameter("--folder goes with --demo: the holder's file names its own folder")
    if owner is None:
        _serve_demo(folder, port)
    else:
        _serve(owner, port, {})


def _check_installed() -> None:
    if any(find_spec(name) is None for name in _NEEDED):
        raise InvalidParameter("a server needs FastAPI and more: pip install 'privlearn[service]' brings it")


def _serve(owner: Path, port: int | None, keys: Mapping[str, str]) -> None:
    from privlearn.service.holder.settings import Owner
    from privlearn.service.server import serve as run

    settings = Owner.load(owner)
    if port is not None:
        server = settings.server.model_copy(update={"port": port})
        settings = settings.model_copy(update={"server": server})

    def announce(url: str) -> None:
        typer.echo(f"Serving {', '.join(settings.datasets)} on {url} (Ctrl-C ends it)")
        for name, key in keys.items():
            typer.echo(f"Sign in as {name} with the key {key}")

    run(settings, announce)


def _serve_demo(folder: Path | None, port: int | None) -> None:
    import tempfile

    from privlearn.service.holder.demo import demo_keys, write_demo

    with tempfile.TemporaryDirectory(prefix="privlearn-demo-") as temporary:
        owner = write_demo(Path(temporary) if folder is None else folder)
        _serve(owner, port, demo_keys(owner))


def _description() -> object:
    from privlearn.service.server import bare_app

    return bare_app().openapi()


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
        with _while_no_server_runs(store, server):
            migrations.upgrade(store)
    for part, (before, after) in steps.items():
        typer.echo(f"The {part}'s format {before} {'would become' if check else 'has become'} {after}.")
    if not steps:
        typer.echo("Nothing to do: the formats are those of this version.")


def _server(owner: Path) -> ServerSettings:
    from privlearn.service.holder.settings import Owner

    return Owner.load(owner).server


def _while_no_server_runs(store: str, server: ServerSettings | None) -> AbstractContextManager[Any]:
    """On SQLite a running server holds a lock of its folder; on PostgreSQL there may be several, with one of theirs."""
    from privlearn.storage.postgresql import is_address
    from privlearn.storage.presence import without_servers

    if is_address(store):
        return without_servers(store)
    if server is None:
        return nullcontext()
    from privlearn.service.service import only_server

    return only_server(server.folder)


def restored(
    owner: Annotated[
        Path, typer.Argument(metavar="OWNER.toml", help="The holder's file.", show_default=False)
    ],
    lost: Annotated[
        list[str] | None,
        typer.Option(
            metavar="DATASET=EPSILON[,DELTA]",
            help="What was spent after the backup was made, if you know it for certain. May be given several times.",
            show_default="everything that is left",
        ),
    ] = None,
) -> None:
    """Make a restored backup safe, before the server starts on it.

    The backup does not know what was answered after it was made. So every budget is
    marked as spent (or by --lost what you know was), trainings under way are ended,
    sessions that add noise to each answer are closed, and all keys are revoked. Released
    models and sessions that answer from a model stay. Stop the server first.

    \b
    Example:
      privlearn restored owner.toml
      privlearn restored owner.toml --lost census=0.5,1e-6 --lost survey=1
    """
    from privlearn.service.holder.settings import Owner
    from privlearn.service.store.recovery import settle

    settings = Owner.load(owner)
    amounts = dict(_amount(text) for text in lost or [])
    server = settings.server
    with _while_no_server_runs(server.store, server):
        spent = settle(server.store, amounts)
    for name, guarantee in spent.items():
        typer.echo(f"{name}: epsilon {guarantee.epsilon:g}, delta {guarantee.delta:g} more are spent.")
    typer.echo("All keys are revoked. Next: privlearn keys create, then privlearn serve.")


def _amount(text: str) -> tuple[str, Amount]:
    from privlearn.ledger.composition import Amount

    name, _, numbers = text.partition("=")
    try:
        epsilon, delta = (
            float(number) for number in (numbers if "," in numbers else f"{numbers},0").split(",")
        )
    except ValueError:
        raise InvalidParameter(f"--lost {text} cannot be read: write --lost census=0.5,1e-6") from None
    return name, Amount(epsilon, delta)

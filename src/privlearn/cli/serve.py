"""`privlearn serve` runs a server; `upgrade` follows a new version, `restored` a restored backup."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privlearn.cli.options import parse_number
from privlearn.errors import InvalidParameter

if TYPE_CHECKING:
    from privlearn.budget.composition import Amount
    from privlearn.server.holder.settings import ServerSettings

_REQUIRED = ("fastapi", "uvicorn", "jinja2", "prometheus_client", "python_multipart")


def serve(
    owner: Annotated[
        Path | None, typer.Argument(metavar="OWNER", help="The holder's file: data sets, budgets, analysts.")
    ] = None,
    demo: Annotated[
        bool, typer.Option("--demo", help="Serve simulated records instead, and print keys to try it.")
    ] = False,
    directory: Annotated[
        Path | None,
        typer.Option(
            help="With --demo: store everything here, and continue with it next time.",
            show_default="a new directory",
        ),
    ] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Instead of the port in the file; 0: any free port.")
    ] = None,
    openapi: Annotated[
        bool, typer.Option("--openapi", help="Print the OpenAPI description of the HTTP interface and exit.")
    ] = False,
) -> None:
    """Serve data sets to analysts, within their shares of the budget.

    The web pages are at the printed address, the HTTP interface is under /v1.
    Log lines go to stderr as JSON. On SIGTERM or Ctrl-C the server finishes its
    current answers; trainings continue at the next start and are not charged again.

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
        raise InvalidParameter("give a file or --demo: privlearn serve OWNER.toml, privlearn serve --demo")
    if directory is not None and not demo:
        raise InvalidParameter("--directory is for --demo only. The holder's file names its own directory.")
    if owner is None:
        _serve_demo(directory, port)
    else:
        _serve(owner, port, {})


def _check_installed() -> None:
    if any(find_spec(name) is None for name in _REQUIRED):
        raise InvalidParameter("privlearn serve needs an extra: pip install 'privlearn[service]'")


def _serve(owner: Path, port: int | None, keys: Mapping[str, str]) -> None:
    from privlearn.server.holder.settings import Owner
    from privlearn.server.server import serve as run

    settings = Owner.load(owner)
    if port is not None:
        server = settings.server.model_copy(update={"port": port})
        settings = settings.model_copy(update={"server": server})

    def announce(url: str) -> None:
        typer.echo(f"Serving {', '.join(settings.datasets)} on {url} (Ctrl-C ends it)")
        for name, key in keys.items():
            typer.echo(f"Sign in as {name} with the key {key}")

    run(settings, announce)


def _serve_demo(directory: Path | None, port: int | None) -> None:
    import tempfile

    from privlearn.server.holder.demo import demo_keys, write_demo

    with tempfile.TemporaryDirectory(prefix="privlearn-demo-") as temporary:
        owner = write_demo(Path(temporary) if directory is None else directory)
        _serve(owner, port, demo_keys(owner))


def _description() -> object:
    from privlearn.server.server import bare_app

    return bare_app().openapi()


def upgrade(
    ledger: Annotated[
        str,
        typer.Argument(
            metavar="LEDGER",
            help="File with the budgets, postgresql://user@host/database, or the holder's file OWNER.toml.",
        ),
    ],
    check: Annotated[bool, typer.Option("--check", help="Only print what would be done.")] = False,
) -> None:
    """Bring a ledger, or a server's database, to the format of this version.

    Stop every program that uses it and make a backup first. The upgrade is done
    completely or not at all, and cannot be undone: older versions refuse the new
    format. On PostgreSQL, run it as the role that owns the tables.

    \b
    Examples:
      privlearn upgrade budgets.db
      privlearn upgrade owner.toml
    """
    from privlearn.budget.storage import locate, migrations

    server = _load_server(Path(ledger)) if ledger.endswith(".toml") else None
    store = locate(ledger) if server is None else server.store
    steps = migrations.pending(store)
    if steps and not check:
        with _while_no_server_runs(store, server):
            steps = migrations.upgrade(store)  # empty if another upgrade was first
    for part, (before, after) in steps.items():
        typer.echo(f"The {part}'s format {before} {'would become' if check else 'has become'} {after}.")
    if not steps:
        typer.echo("Nothing to do: all formats are those of this version.")


def _load_server(owner: Path) -> ServerSettings:
    from privlearn.server.holder.settings import Owner

    return Owner.load(owner).server


def _while_no_server_runs(store: str, server: ServerSettings | None) -> AbstractContextManager[Any]:
    """Refuse to continue while a server runs: on SQLite it locks its directory, on PostgreSQL it holds a lock there."""
    from privlearn.budget.storage.presence import without_servers
    from privlearn.budget.storage.store import is_address

    if is_address(store):
        return without_servers(store)
    if server is None:
        return nullcontext()
    from privlearn.server.service import lock_directory

    return lock_directory(server.directory)


def restored(
    owner: Annotated[Path, typer.Argument(metavar="OWNER.toml", help="The holder's file.")],
    lost: Annotated[
        list[str] | None,
        typer.Option(
            metavar="DATASET=EPSILON[,DELTA]",
            help="What was spent after the backup, if you know it for certain; may be repeated.",
            show_default="everything that is left",
        ),
    ] = None,
) -> None:
    """Make a restored backup safe, before the server starts with it.

    The backup does not contain what was answered after it was made. So every budget is
    marked as spent (or with --lost only the known amount), running trainings are ended,
    sessions that add noise to each answer are closed, and all keys are revoked. Released
    models and sessions that answer from a model stay. Stop the server first.

    \b
    Example:
      privlearn restored owner.toml
      privlearn restored owner.toml --lost census=0.5,1e-6 --lost survey=1
    """
    from privlearn.server.holder.settings import Owner
    from privlearn.server.store.store import settle

    settings = Owner.load(owner)
    amounts = dict(_amount(text) for text in lost or [])
    server = settings.server
    with _while_no_server_runs(server.store, server):
        spent = settle(server.store, amounts)
    for name, guarantee in spent.items():
        typer.echo(f"{name}: marked epsilon {guarantee.epsilon:g}, delta {guarantee.delta:g} as spent.")
    typer.echo("All keys are revoked. Next: privlearn keys create, then privlearn serve.")


def _amount(text: str) -> tuple[str, Amount]:
    from privlearn.budget.composition import Amount

    name, _, amount = text.partition("=")
    numbers = amount.split(",")
    if len(numbers) > 2:
        raise InvalidParameter(f"--lost {text} has too many numbers. Write --lost census=0.5,1e-6.")
    return name, Amount(*map(parse_number, [*numbers, "0"][:2]))

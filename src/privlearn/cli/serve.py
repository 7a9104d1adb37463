"""`privlearn serve`: the trusted learner on the network."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from privlearn.errors import InvalidParameter

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
    from privlearn.service.server import serve as run
    from privlearn.service.settings import Owner

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

    from privlearn.service.demo import demo_keys, write_demo

    with tempfile.TemporaryDirectory(prefix="privlearn-demo-") as temporary:
        owner = write_demo(Path(temporary) if folder is None else folder)
        _serve(owner, port, demo_keys(owner))


def _description() -> object:
    from privlearn.service.app import bare_app

    return bare_app().openapi()

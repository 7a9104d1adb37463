"""`privlearn keys`: who may ask the holder's server."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich import box
from rich.table import Table

from privlearn.cli.options import NOT_NEGATIVE
from privlearn.cli.terminal import output, say
from privlearn.errors import InvalidParameter

if TYPE_CHECKING:
    from privlearn.service.access.keys import KeyInfo, Role
    from privlearn.service.holder.settings import Owner

OwnerFile = Annotated[Path, typer.Argument(metavar="OWNER", help="The holder's file.", show_default=False)]

keys = typer.Typer(
    help="Create, list and revoke the keys that open a server.\n\n\b\n"
    "Example:\n  privlearn keys create owner.toml --analyst alice",
    no_args_is_help=True,
    rich_markup_mode="rich",
)


@keys.command()
def create(
    owner: OwnerFile,
    analyst: Annotated[
        str | None, typer.Option(help="For this analyst of the holder's file.", show_default=False)
    ] = None,
    holder: Annotated[
        bool, typer.Option("--holder", help="For the holder: sees and may do everything.")
    ] = False,
    approver: Annotated[
        str | None,
        typer.Option(help="For this person, who approves requests of others.", show_default=False),
    ] = None,
    auditor: Annotated[
        str | None,
        typer.Option(help="For this person, who reads log, requests and budgets.", show_default=False),
    ] = None,
    monitor: Annotated[
        bool, typer.Option("--monitor", help="For a program that watches the server: reads /metrics alone.")
    ] = False,
    dataset: Annotated[
        list[str] | None,
        typer.Option(
            help="Good for this data set alone; may be given several times.",
            show_default="all that the analyst has a share of, or that there are",
        ),
    ] = None,
    days: Annotated[
        float | None, typer.Option(**NOT_NEGATIVE, help="Expires after so many days.", show_default="never")
    ] = None,
) -> None:
    """Make a key and print it, once: only its hash is stored.

    The key alone goes to stdout, so that it can be piped to where it is kept.

    \b
    Example:
      privlearn keys create owner.toml --analyst alice --dataset census --days 90
      privlearn keys create owner.toml --holder > holder.key
      privlearn keys create owner.toml --approver bea
    """
    from privlearn.service.access.keys import HOLDER, create_key
    from privlearn.service.holder.made import load_with_made
    from privlearn.service.holder.settings import Owner
    from privlearn.service.store.events import record
    from privlearn.service.store.store import open_store

    settings = Owner.load(owner)
    store = open_store(settings)
    settings = load_with_made(settings)
    named: dict[Role, str | None] = {"analyst": analyst, "approver": approver, "auditor": auditor}
    role, person = _check_whose(settings, named, holder, monitor)
    _check_datasets(settings, analyst, dataset)
    expires = None if days is None else datetime.now(UTC) + timedelta(days=days)
    key = create_key(store, role, person, dataset or None, expires)
    key_id = key.split("_")[1]
    record(store, HOLDER, "created a key", key=key_id, of=person or role, role=role, datasets=dataset or [])
    say(f"Key {key_id} of {person or f'the {role}'}. It is shown this once; revoke it with:")
    say(f"  privlearn keys revoke {owner} {key_id}")
    typer.echo(key)


@keys.command("list")
def list_all(owner: OwnerFile) -> None:
    """Show every key that was made, without its secret.

    \b
    Example:
      privlearn keys list owner.toml
    """
    from privlearn.service.access.keys import list_keys
    from privlearn.service.holder.settings import Owner
    from privlearn.service.store.store import open_store

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for heading in ("id", "of", "data sets", "created (UTC)", "expires", "state"):
        table.add_column(heading, overflow="fold")
    for info in list_keys(open_store(Owner.load(owner))):
        table.add_row(*_row(info))
    output.print(table)


@keys.command()
def revoke(
    owner: OwnerFile,
    key_id: Annotated[
        str, typer.Argument(metavar="ID", help="As `privlearn keys list` shows it.", show_default=False)
    ],
) -> None:
    """Make a key useless for ever; a running server notices within 5 seconds.

    \b
    Example:
      privlearn keys revoke owner.toml 5f0c21b7a9d3e864
    """
    from privlearn.service.access.keys import HOLDER, revoke_key
    from privlearn.service.holder.settings import Owner
    from privlearn.service.store.events import record
    from privlearn.service.store.store import open_store

    store = open_store(Owner.load(owner))
    revoke_key(store, key_id)
    record(store, HOLDER, "revoked a key", key=key_id)
    typer.echo(f"Key {key_id} opens nothing any more.")


def _check_whose(
    owner: Owner, named: Mapping[Role, str | None], holder: bool, monitor: bool
) -> tuple[Role, str]:
    """The key's role and person."""
    plain: dict[Role, bool] = {"holder": holder, "monitor": monitor}
    found = [(role, name) for role, name in named.items() if name is not None]
    found += [(role, "") for role, given in plain.items() if given]
    if len(found) != 1:
        raise InvalidParameter(
            "say whose key it is: --analyst NAME, --approver NAME, --auditor NAME, --holder, or --monitor"
        )
    analyst = named["analyst"]
    if analyst is not None and analyst not in owner.analysts:
        known = ", ".join(owner.analysts) or "nobody yet"
        raise InvalidParameter(
            f"{analyst!r} is no analyst of the holder's file, which has {known}: add [analysts.{analyst}] with "
            "shares, e.g. census = { epsilon = 1.0 }, or add them in the console"
        )
    return found[0]


def _check_datasets(owner: Owner, analyst: str | None, datasets: list[str] | None) -> None:
    known = owner.datasets if analyst is None else owner.analysts[analyst]
    for name in datasets or ():
        if name not in known:
            raise InvalidParameter(f"--dataset {name}: take one of {', '.join(known)}")


def _row(info: KeyInfo) -> tuple[str, ...]:
    caller = info.caller
    state = "revoked" if info.revoked else "valid" if info.is_valid else "expired"
    datasets = "all" if caller.datasets is None else ", ".join(sorted(caller.datasets))
    times = [text.replace("T", " ")[:16] for text in (info.created, info.expires or "never")]
    of = f"{caller.name}, {caller.role}" if caller.role in ("approver", "auditor") else caller.name
    return caller.key_id, of, datasets, *times, state

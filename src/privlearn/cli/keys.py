"""`privlearn keys`: create, list and revoke the keys of a server."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from privlearn.cli.options import NOT_NEGATIVE
from privlearn.cli.terminal import print_table, say
from privlearn.errors import InvalidParameter

if TYPE_CHECKING:
    from privlearn.server.access.keys import KeyInfo, Role
    from privlearn.server.holder.settings import Owner

OwnerFile = Annotated[Path, typer.Argument(metavar="OWNER", help="The holder's file.")]

keys = typer.Typer(
    help="Create, list and revoke the keys that open a server.\n\n\b\n"
    "Example:\n  privlearn keys create owner.toml --analyst alice",
    no_args_is_help=True,
    rich_markup_mode="rich",
)


@keys.command()
def create(
    owner: OwnerFile,
    analyst: Annotated[str | None, typer.Option(help="For this analyst in the holder's file.")] = None,
    holder: Annotated[bool, typer.Option("--holder", help="For the holder, who may do everything.")] = False,
    approver: Annotated[
        str | None, typer.Option(help="For this person, who approves the requests of others.")
    ] = None,
    auditor: Annotated[
        str | None, typer.Option(help="For this person, who reads the log, requests and budgets.")
    ] = None,
    monitor: Annotated[
        bool, typer.Option("--monitor", help="For a monitoring program, which may read only /metrics.")
    ] = False,
    dataset: Annotated[
        list[str] | None,
        typer.Option(
            help="Only for this data set; may be repeated.",
            show_default="all in which the analyst has a share, or all",
        ),
    ] = None,
    days: Annotated[
        float | None, typer.Option(**NOT_NEGATIVE, help="Days until the key expires.", show_default="never")
    ] = None,
) -> None:
    """Create a key and print it once: only its hash is stored.

    Only the key goes to stdout, so that it can be redirected to a file.

    \b
    Example:
      privlearn keys create owner.toml --analyst alice --dataset census --days 90
      privlearn keys create owner.toml --holder > holder.key
      privlearn keys create owner.toml --approver bea
    """
    from privlearn.server.access.keys import HOLDER, create_key
    from privlearn.server.holder.console_state import with_console_state
    from privlearn.server.holder.settings import Owner
    from privlearn.server.store.events import record
    from privlearn.server.store.store import open_store

    settings = Owner.load(owner)
    store = open_store(settings)
    settings = with_console_state(settings)
    named: dict[Role, str | None] = {"analyst": analyst, "approver": approver, "auditor": auditor}
    role, person = _check_role(settings, named, holder, monitor)
    _check_datasets(settings, analyst, dataset)
    expires = None if days is None else datetime.now(UTC) + timedelta(days=days)
    key = create_key(store, role, person, dataset or None, expires)
    key_id = key.split("_")[1]
    record(store, HOLDER, "created a key", key=key_id, of=person or role, role=role, datasets=dataset or [])
    say(f"Key {key_id} of {person or f'the {role}'}. It is printed only once. To revoke it:")
    say(f"  privlearn keys revoke {owner} {key_id}")
    typer.echo(key)


@keys.command("list")
def list_all(owner: OwnerFile) -> None:
    """List all keys, without their secrets.

    \b
    Example:
      privlearn keys list owner.toml
    """
    from privlearn.server.access.keys import list_keys
    from privlearn.server.holder.settings import Owner

    headings = ("id", "of", "data sets", "created (UTC)", "expires", "state")
    print_table(headings, map(_row, list_keys(Owner.load(owner).server.store)), unbroken=("id",))


@keys.command()
def revoke(
    owner: OwnerFile,
    key_id: Annotated[str, typer.Argument(metavar="ID", help="As `privlearn keys list` shows it.")],
) -> None:
    """Revoke a key permanently; a running server refuses it within 5 seconds.

    \b
    Example:
      privlearn keys revoke owner.toml 5f0c21b7a9d3e864
    """
    from privlearn.server.access.keys import HOLDER, revoke_key
    from privlearn.server.holder.settings import Owner
    from privlearn.server.store.events import record
    from privlearn.server.store.store import open_store

    store = open_store(Owner.load(owner))
    revoke_key(store, key_id)
    record(store, HOLDER, "revoked a key", key=key_id)
    typer.echo(f"Key {key_id} is revoked.")


def _check_role(
    owner: Owner, named: Mapping[Role, str | None], holder: bool, monitor: bool
) -> tuple[Role, str]:
    """Return the key's role and person; refuse several roles, and analysts who are not in the holder's file."""
    unnamed: dict[Role, bool] = {"holder": holder, "monitor": monitor}
    roles = [(role, name) for role, name in named.items() if name is not None]
    roles += [(role, "") for role, is_given in unnamed.items() if is_given]
    if len(roles) != 1:
        raise InvalidParameter(
            "a key has one role. Give one of --analyst NAME, --approver NAME, --auditor NAME, --holder or --monitor."
        )
    analyst = named["analyst"]
    if analyst is not None and analyst not in owner.analysts:
        known = ", ".join(owner.analysts) or "none"
        raise InvalidParameter(
            f"{analyst!r} is not an analyst in the holder's file (there: {known}). Add [analysts.{analyst}] with "
            "shares, such as census = { epsilon = 1.0 }, or add the analyst in the console."
        )
    return roles[0]


def _check_datasets(owner: Owner, analyst: str | None, datasets: list[str] | None) -> None:
    known = owner.datasets if analyst is None else owner.analysts[analyst]
    for name in datasets or ():
        if name not in known:
            raise InvalidParameter(f"--dataset {name} is not available. Use one of: {', '.join(known)}")


def _row(info: KeyInfo) -> tuple[str, ...]:
    caller = info.caller
    state = "revoked" if info.revoked else "valid" if info.is_valid else "expired"
    datasets = "all" if caller.datasets is None else ", ".join(sorted(caller.datasets))
    times = [text.replace("T", " ")[:16] for text in (info.created, info.expires or "never")]
    of = f"{caller.name}, {caller.role}" if caller.role in ("approver", "auditor") else caller.name
    return caller.key_id, of, datasets, *times, state

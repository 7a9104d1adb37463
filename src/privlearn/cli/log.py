"""`privlearn log`: the audit log of a server as a file, its chain verified, its old lines removed."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from privlearn.cli.keys import OwnerFile
from privlearn.cli.options import Force, check_writable
from privlearn.cli.terminal import say
from privlearn.errors import InvalidParameter, VerificationError

if TYPE_CHECKING:
    from privlearn.service.store.log_file import Head

log = typer.Typer(
    help="Export, verify and prune the audit log of a server.\n\n\b\n"
    "Example:\n  privlearn log export owner.toml --out log.jsonl",
    no_args_is_help=True,
    rich_markup_mode="rich",
)


@log.command()
def export(
    owner: OwnerFile,
    out: Annotated[
        Path,
        typer.Option(
            metavar="FILE",
            help="name.jsonl, which can be verified anywhere, or name.csv for a spreadsheet.",
            show_default=False,
        ),
    ],
    force: Force = False,
) -> None:
    """Write all lines of the log to a file, oldest first.

    Keep the last line that is printed apart from the server: with it `privlearn log
    verify --head` finds out later whether lines were taken from the end.

    \b
    Example:
      privlearn log export owner.toml --out log.jsonl
    """
    from privlearn.service.holder.settings import Owner
    from privlearn.service.store.log_file import csv_lines, json_lines

    check_writable(out, force)
    if out.suffix not in (".jsonl", ".csv"):
        raise InvalidParameter(f"{out} must end in .jsonl or .csv: give such a name")
    store = Owner.load(owner).server.store
    with out.open("w", encoding="utf-8", newline="") as file:
        file.writelines(csv_lines(store) if out.suffix == ".csv" else json_lines(store))
    say(f"Wrote {out}.")
    if out.suffix == ".jsonl":
        typer.echo(f"head {_told(_verified(out))}")


@log.command()
def verify(
    place: Annotated[
        Path,
        typer.Argument(
            metavar="FILE|OWNER", help="An exported .jsonl file, or the holder's file.", show_default=False
        ),
    ],
    head: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER:DIGEST",
            help="Require this line, as an earlier export or verification printed it.",
            show_default=False,
        ),
    ] = None,
    signer: Annotated[
        Path | None,
        typer.Option(
            metavar="PUB.pem",
            help="Require that the server of this key signed what older lines were removed.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Follow the chain of digests: a line that was changed, removed or put in is found.

    Of an exported file this needs no server. Lines taken from the end are found
    with --head alone, so keep the head that is printed.

    \b
    Example:
      privlearn log verify log.jsonl
      privlearn log verify owner.toml --head 17:9f86d081884c7d65...
    """
    found = _verified(place, signer, head)
    typer.echo(f"{place} is whole.")
    typer.echo(f"head {_told(found)}")


@log.command()
def prune(
    owner: OwnerFile,
    keep_days: Annotated[
        int | None,
        typer.Option(min=1, help="Keep the lines of so many days.", show_default="keep_days of the file"),
    ] = None,
) -> None:
    """Remove old lines, as the holder's retention policy says. Export them first.

    What is left proves that it follows the lines that were removed: their last
    digest stays, signed if the holder's file names a key. On PostgreSQL,
    type it as the role that owns the tables.

    \b
    Example:
      privlearn log prune owner.toml --keep-days 3650
    """
    from privlearn.service.holder.settings import Owner
    from privlearn.service.holder.signing import signing_key
    from privlearn.service.store.retention import prune as remove

    settings = Owner.load(owner)
    days = keep_days or settings.log.keep_days
    if days is None:
        raise InvalidParameter("say for how long lines are kept: --keep-days, or keep_days under [log]")
    before = datetime.now(UTC) - timedelta(days=days)
    count = remove(settings.server.store, before, signing_key(settings.server))
    typer.echo(f"Removed {count} lines from before {before:%Y-%m-%d %H:%M} UTC.")


def _verified(place: Path, signer: Path | None = None, head: str | None = None) -> Head:
    """Where the log ends, after all of it was checked."""
    from privlearn.release.verification import read_public_key
    from privlearn.service.holder.settings import Owner
    from privlearn.service.store.log_file import (
        first_head,
        kept_events,
        read_json_lines,
        verify_log,
        watching_for,
    )

    if place.suffix == ".toml":
        store = Owner.load(place).server.store
        begin, lines = first_head(store), kept_events(store)
    else:
        begin, lines = read_json_lines(_lines_of(place))
    number, digest = _expected(head)
    watched = watching_for(begin, lines, number, digest)
    return verify_log(begin, watched, None if signer is None else read_public_key(signer))


def _lines_of(place: Path) -> Iterator[str]:
    try:
        with place.open(encoding="utf-8") as file:
            yield from file
    except (OSError, UnicodeDecodeError):
        raise VerificationError(f"cannot read {place} as text: give an exported .jsonl file") from None


def _expected(head: str | None) -> tuple[int, str]:
    number, _, digest = (head or "0:").partition(":")
    if not number.isdigit() or (head is not None and len(digest) != 64):
        raise InvalidParameter(f"--head {head} cannot be read: write NUMBER:DIGEST, as it was printed")
    return int(number), digest


def _told(head: Head) -> str:
    return f"{head.id}:{head.digest}"

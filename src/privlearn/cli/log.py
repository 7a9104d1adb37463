"""`privlearn log`: export, verify and prune the audit log of a server."""

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
    from privlearn.server.store.log_file import Head

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
            metavar="FILE", help="NAME.jsonl, which can be verified anywhere, or NAME.csv for a spreadsheet."
        ),
    ],
    force: Force = False,
) -> None:
    """Write all lines of the log to a file, oldest first.

    Store the printed head outside the server: with it `privlearn log verify --head`
    detects later whether lines were removed from the end.

    \b
    Example:
      privlearn log export owner.toml --out log.jsonl
    """
    from privlearn.server.holder.settings import Owner
    from privlearn.server.store.log_file import csv_lines, json_lines

    check_writable(out, force)
    if out.suffix not in (".jsonl", ".csv"):
        raise InvalidParameter(f"{out} must end in .jsonl or .csv. Give such a name.")
    store = Owner.load(owner).server.store
    with out.open("w", encoding="utf-8", newline="") as file:
        file.writelines(csv_lines(store) if out.suffix == ".csv" else json_lines(store))
    say(f"Wrote {out}.")
    if out.suffix == ".jsonl":
        typer.echo(f"head {_format_head(_verify(out))}")


@log.command()
def verify(
    file: Annotated[
        Path, typer.Argument(metavar="FILE|OWNER", help="An exported .jsonl file, or the holder's file.")
    ],
    head: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER:DIGEST",
            help="Require this head, which an earlier export or verification printed.",
        ),
    ] = None,
    signer: Annotated[
        Path | None,
        typer.Option(
            metavar="PUB.pem", help="Require that the server with this key signed the removal of older lines."
        ),
    ] = None,
) -> None:
    """Check the chain of digests, which detects lines that were changed, removed or inserted.

    An exported file is checked without a server. Lines removed from the end are
    detected only with --head, so store the head that is printed.

    \b
    Example:
      privlearn log verify log.jsonl
      privlearn log verify owner.toml --head 17:9f86d081884c7d65...
    """
    end = _verify(file, signer, head)
    typer.echo(f"{file} is complete.")
    typer.echo(f"head {_format_head(end)}")


@log.command()
def prune(
    owner: OwnerFile,
    keep_days: Annotated[
        int | None,
        typer.Option(
            min=1, help="Number of days whose lines are kept.", show_default="keep_days of the file"
        ),
    ] = None,
) -> None:
    """Remove old lines, according to the holder's retention policy. Export them first.

    The last digest of the removed lines stays, signed if the holder's file names a
    key, so that the rest can still be verified. On PostgreSQL, run it as the role
    that owns the tables.

    \b
    Example:
      privlearn log prune owner.toml --keep-days 3650
    """
    from privlearn.server.holder.settings import Owner
    from privlearn.server.holder.signing import signing_key
    from privlearn.server.store.log_file import prune as remove

    settings = Owner.load(owner)
    days = keep_days or settings.log.keep_days
    if days is None:
        raise InvalidParameter("the retention period is missing. Give --keep-days, or set log.keep_days.")
    before = datetime.now(UTC) - timedelta(days=days)
    count = remove(settings.server.store, before, signing_key(settings.server))
    typer.echo(f"Removed {count} lines from before {before:%Y-%m-%d %H:%M} UTC.")


def _verify(file: Path, signer: Path | None = None, head: str | None = None) -> Head:
    """Check the whole log and return its head."""
    from privlearn.release.signatures import read_public_key
    from privlearn.server.holder.settings import Owner
    from privlearn.server.store.log_file import (
        first_head,
        iterate_events,
        read_json_lines,
        verify_log,
        watching_for,
    )

    if file.suffix == ".toml":
        store = Owner.load(file).server.store
        begin, lines = first_head(store), iterate_events(store)
    else:
        begin, lines = read_json_lines(_read_lines(file))
    number, digest = _parse_head(head)
    watched = watching_for(begin, lines, number, digest)
    return verify_log(begin, watched, None if signer is None else read_public_key(signer))


def _read_lines(path: Path) -> Iterator[str]:
    try:
        with path.open(encoding="utf-8") as file:
            yield from file
    except (OSError, UnicodeDecodeError):
        raise VerificationError(f"cannot read {path} as text. Give an exported .jsonl file.") from None


def _parse_head(head: str | None) -> tuple[int, str]:
    number, _, digest = (head or "0:").partition(":")
    if not number.isdigit() or (head is not None and len(digest) != 64):
        raise InvalidParameter(f"--head {head} is not NUMBER:DIGEST. Write it as it was printed.")
    return int(number), digest


def _format_head(head: Head) -> str:
    return f"{head.id}:{head.digest}"

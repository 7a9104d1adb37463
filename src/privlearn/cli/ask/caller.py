"""Shared by the commands of `privlearn ask`: the server, the key, and the printing of answers."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privlearn.cli.options import NUMBER
from privlearn.cli.terminal import print_table
from privlearn.errors import InvalidParameter

if TYPE_CHECKING:
    import pyarrow as pa

    from privlearn.client import Client, RemoteJob

_MAX_KEY_BYTES = 1000

DataSetName = Annotated[str, typer.Argument(metavar="DATASET", help="Its name on the server.")]
Epsilon = Annotated[float, typer.Option(**NUMBER, help="Privacy loss to charge.")]
Delta = Annotated[float, typer.Option(**NUMBER, help="Delta to charge.")]
Points = Annotated[
    Path | None,
    typer.Option(
        help="Your public points: .csv or .parquet. They are stored in the release. "
        "The word schema: drawn from it."
    ),
]
Learner = Annotated[str | None, typer.Option(help="One of those on offer.", show_default="the first")]
OutCsv = Annotated[Path | None, typer.Option("--out", help="Write to this .csv file, not to the terminal.")]


@dataclass(frozen=True)
class ServerOptions:
    """The options before the sub-command."""

    server: str
    key_file: Path | None
    ca: Path | None
    plain_http: bool
    as_json: bool

    def client(self) -> Client:
        """Return a client of the server."""
        try:
            from privlearn.client import Client
        except ModuleNotFoundError as missing:
            if missing.name != "httpx2":
                raise
            raise InvalidParameter("privlearn ask needs an extra: pip install 'privlearn[client]'") from None
        key = None if self.key_file is None else _read_key(self.key_file)
        return Client(self.server, key, verify=self.ca, plain_http=self.plain_http)


@dataclass(frozen=True)
class JobOptions:
    """The options of every job, which `request` sends with those of its kind."""

    epsilon: Epsilon
    delta: Delta = 0.0
    trial: Annotated[bool, typer.Option("--trial", help="Free, on made-up rows: to try the call.")] = False
    purpose: Annotated[
        str | None,
        typer.Option(help="Purpose of the result; required where a second person must approve it."),
    ] = None
    legal_basis: Annotated[str | None, typer.Option(help="Legal basis; required there too.")] = None
    idempotency_key: Annotated[
        str | None,
        typer.Option(
            help="Any text: the same request with the same text is charged once, so a stopped command can be repeated.",
            show_default="a new one",
        ),
    ] = None

    def request(self, client: Client, kind: str, dataset: str, **fields: Any) -> RemoteJob:
        """Request a job of this kind."""
        return client.ask(kind, dataset, **asdict(self), **fields)


def trial_note(trial: bool) -> str:
    """Return a sentence that ends a message if the result is of a trial."""
    return " This was a trial on made-up rows." if trial else ""


def options_of(context: typer.Context) -> ServerOptions:
    """Return the options before the sub-command."""
    options = context.find_object(ServerOptions)
    assert options is not None, "the group's callback sets it"
    return options


def client_of(context: typer.Context) -> Client:
    """Return a client that is connected until the command ends."""
    return context.with_resource(options_of(context).client())


def show(context: typer.Context, record: Any, lines: Iterable[str]) -> None:
    """Print a record as JSON, or as lines for people."""
    for line in [json.dumps(record, indent=2)] if options_of(context).as_json else lines:
        typer.echo(line)


def show_list(
    context: typer.Context, records: list[dict[str, Any]], columns: Sequence[str], if_empty: str
) -> None:
    """Print records as JSON, or as a table of some of their fields."""
    if options_of(context).as_json:
        typer.echo(json.dumps(records, indent=2))
    elif not records:
        typer.echo(if_empty)
    else:
        rows = [[_cell(name, _field(record, name)) for name in columns] for record in records]
        print_table(columns, rows, unbroken=("id",))  # ids are copied


def _field(record: dict[str, Any], name: str) -> Any:
    """Return a field of a record, or of its kind's fields."""
    return record[name] if name in record else record["fields"].get(name, "")


def _cell(name: str, value: Any) -> str:
    if name in ("guarantee", "budget"):
        return f"{value['epsilon']:g}, {value['delta']:g}"
    if name == "learners":
        return ", ".join(value)
    if name in ("created", "time"):
        return str(value).replace("T", " ")[:16]
    if isinstance(value, bool):
        return "yes" if value else "no"
    return json.dumps(value) if isinstance(value, dict | list) else str(value)


def write_csv(table: pa.Table, out: Path | None, content: str) -> None:
    """Write a table to a file or to the terminal; ``content`` names its rows."""
    import io
    import sys

    import pyarrow.csv as arrow_csv

    from privlearn.release.archive import write_atomically

    text = io.BytesIO()
    arrow_csv.write_csv(table, text)
    if out is None:
        sys.stdout.buffer.write(text.getvalue())
        sys.stdout.flush()
        return
    write_atomically(out, text.getvalue())
    typer.echo(f"Wrote {out}: {table.num_rows} {content}.")


def _read_key(path: Path) -> str:
    """Return the key in a file; refuse a file that others may read."""
    try:
        if os.name == "posix" and path.stat().st_mode & 0o077:  # other systems have no such mode
            raise InvalidParameter(
                f"other users may read {path}. Run chmod 600 {path}, and replace the key if they have read it."
            )
        with path.open(encoding="ascii") as file:
            return file.read(_MAX_KEY_BYTES)
    except OSError as error:
        raise InvalidParameter(f"cannot read the key file {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InvalidParameter(f"{path} has no key. Store what `privlearn keys create` printed.") from None

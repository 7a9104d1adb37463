"""What the commands of `privlearn ask` share: the server, the key, and how its answers are shown."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from privlearn.cli.options import NUMBER, check_writable
from privlearn.cli.terminal import output
from privlearn.errors import InvalidParameter

if TYPE_CHECKING:
    import pyarrow as pa

    from privlearn.client import Client

_MOST_KEY_BYTES = 1000

DataSetName = Annotated[
    str, typer.Argument(metavar="DATASET", help="Its name on the server.", show_default=False)
]
Epsilon = Annotated[float, typer.Option(**NUMBER, help="What it may cost.", show_default=False)]
Delta = Annotated[float, typer.Option(**NUMBER, help="Delta of that cost.")]
Learner = Annotated[str | None, typer.Option(help="One of those on offer.", show_default="the first")]
Purpose = Annotated[
    str | None,
    typer.Option(
        help="What the result is for: needed where a second person must approve it.", show_default=False
    ),
]
LegalBasis = Annotated[str | None, typer.Option(help="What allows it: needed there too.", show_default=False)]
OutCsv = Annotated[
    Path | None,
    typer.Option("--out", help="Write to this .csv file instead of the terminal.", show_default=False),
]


@dataclass(frozen=True)
class Asking:
    """The options that stand before the sub-command."""

    server: str
    key_file: Path | None
    ca: Path | None
    plain_http: bool
    as_json: bool

    def client(self) -> Client:
        try:
            from privlearn.client import Client
        except ModuleNotFoundError as missing:
            if missing.name != "httpx":
                raise
            raise InvalidParameter(
                "asking a server needs httpx: pip install 'privlearn[client]' brings it"
            ) from None
        key = None if self.key_file is None else _read_key(self.key_file)
        return Client(self.server, key, verify=self.ca, plain_http=self.plain_http)

    def show(self, record: Any, lines: Iterable[str]) -> None:
        """As JSON, or as lines for people."""
        if self.as_json:
            typer.echo(json.dumps(record, indent=2))
            return
        for line in lines:
            typer.echo(line)

    def show_list(self, records: list[dict[str, Any]], columns: Sequence[str], none: str) -> None:
        """As JSON, or as a table of some of their fields; ``none`` is said of an empty one."""
        if self.as_json:
            typer.echo(json.dumps(records, indent=2))
        elif not records:
            typer.echo(none)
        else:
            output.print(_table(records, columns))


def asking(context: typer.Context) -> Asking:
    found = context.find_object(Asking)
    assert found is not None, "the group's callback sets it"
    return found


def client_of(context: typer.Context) -> Client:
    """Connected until the command ends."""
    return context.with_resource(asking(context).client())


def check_out(out: Path | None, force: bool) -> None:
    if out is not None:
        check_writable(out, force)


def write_csv(table: pa.Table, out: Path | None, what: str) -> None:
    import io
    import sys

    import pyarrow.csv as arrow_csv

    from privlearn.release.files import write_atomically

    text = io.BytesIO()
    arrow_csv.write_csv(table, text)
    if out is None:
        sys.stdout.buffer.write(text.getvalue())
        sys.stdout.flush()
        return
    write_atomically(out, text.getvalue())
    typer.echo(f"Wrote {out}: {table.num_rows} {what}.")


def _read_key(path: Path) -> str:
    """The key in a file that nobody else may read."""
    try:
        if os.name == "posix" and path.stat().st_mode & 0o077:  # elsewhere the mode says nothing
            raise InvalidParameter(
                f"others may read {path}: type chmod 600 {path}, and get a new key if they did"
            )
        with path.open(encoding="ascii") as file:
            return file.read(_MOST_KEY_BYTES)
    except OSError as error:
        raise InvalidParameter(f"cannot read the key file {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InvalidParameter(f"{path} does not hold a key, as `privlearn keys create` printed it") from None


def _table(records: list[dict[str, Any]], columns: Sequence[str]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for name in columns:
        table.add_column(name, overflow="fold", no_wrap=name == "id")  # to be copied
    for record in records:
        table.add_row(*(Text(_cell(record, name)) for name in columns))
    return table


def _cell(record: dict[str, Any], name: str) -> str:
    value: Any = record[name]
    if name in ("guarantee", "budget"):
        return f"{value['epsilon']:g}, {value['delta']:g}"
    if name == "learners":
        return ", ".join(value)
    if name in ("created", "time"):
        return str(value).replace("T", " ")[:16]
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict | list):
        return json.dumps(value)
    return str(value)

"""The audit log as a file: JSON lines that can be verified without the server, or CSV.

The first line states where the file begins: the digest before its first event and, if older lines were removed, the
server's signature over that digest. Every other line is one event.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from cryptography.exceptions import InvalidSignature
from sqlalchemy import delete, func, insert, select

from privlearn.budget.storage import SERVICE, excluding, reading, removing_from
from privlearn.data.schema.cell_grammar import NUMBER
from privlearn.data.schema.documents import parse_json
from privlearn.errors import VerificationError
from privlearn.release.signatures import PublicKey, SigningKey, check_signature, key_hex
from privlearn.server.access.keys import HOLDER
from privlearn.server.store import tables
from privlearn.server.store.events import BEGINNING, Event, record
from privlearn.server.timing import as_text, now

_FORMULA = re.compile(r"[=+\-@\t\r]")


def escape_formula(cell: Any) -> Any:
    """Return the cell, with a quote in front if a spreadsheet would evaluate it; numbers are unchanged."""
    text = str(cell)
    return f"'{text}" if _FORMULA.match(text) and not re.fullmatch(NUMBER, text) else cell


FORMAT = "privlearn log 1"
_PIECE = 1000
_COLUMNS = ("id", "time", "actor", "action", "dataset", "details", "digest")


@dataclass(frozen=True)
class Head:
    """The state of a log: the number and digest of its newest line, which cover all lines before it."""

    id: int = 0
    digest: str = BEGINNING
    signature: str = ""
    public_key: str = ""

    def signed(self, key: SigningKey | None) -> Head:
        """Return the head with a signature, if there is a key."""
        if key is None:
            return self
        signature = key.sign(self._signed_text()).hex()
        return Head(self.id, self.digest, signature, key_hex(key.public_key()))

    def check(self, signer: PublicKey | None) -> None:
        """Refuse a wrong signature; with a required signer, also a missing one or another's."""
        if signer is not None and self.id and self.public_key != key_hex(signer):
            raise VerificationError("the beginning of the log is not signed by this key. Ask the holder why.")
        if not self.signature:
            return
        try:
            check_signature(self.public_key, self.signature, self._signed_text())
        except (ValueError, InvalidSignature):
            raise VerificationError("the signature at the beginning of the log is wrong.") from None

    def _signed_text(self) -> bytes:
        return f"{FORMAT}\n{self.id}\n{self.digest}\n".encode()


def first_head(store: str) -> Head:
    """Return where the stored lines begin."""
    query = select(tables.log_heads).order_by(tables.log_heads.c.id.desc()).limit(1)
    with reading(store) as connection:
        row = connection.execute(query).one_or_none()
    return Head() if row is None else Head(row.id, row.digest, row.signature, row.public_key)


def iterate_events(store: str) -> Iterator[Event]:
    """Yield all stored lines, oldest first, read in parts so that writers are not blocked."""
    for part in _parts(store):
        yield from part


def _parts(store: str) -> Iterator[list[Event]]:
    last = 0
    while True:
        query = select(tables.events).where(tables.events.c.id > last).order_by(tables.events.c.id)
        with reading(store) as connection:
            found = [Event(**row._mapping) for row in connection.execute(query.limit(_PIECE))]
        if not found:
            return
        yield found
        last = found[-1].id


def json_lines(store: str) -> Iterator[str]:
    """Yield the log as a file that can be verified, many lines at a time."""
    yield json.dumps({"format": FORMAT, "after": asdict(first_head(store))}) + "\n"
    for part in _parts(store):
        yield "".join(json.dumps(vars(event)) + "\n" for event in part)


def csv_lines(store: str) -> Iterator[str]:
    """Yield the log as a table, many lines at a time; details are JSON in one cell."""
    yield _csv_text([_COLUMNS])
    for part in _parts(store):
        yield _csv_text(map(_cells, part))


def _cells(event: Event) -> list[Any]:
    cells = vars(event) | {"details": json.dumps(event.details)}
    return [escape_formula(cells[name]) for name in _COLUMNS]


def verify_log(begin: Head, lines: Iterable[Event], signer: PublicKey | None = None) -> Head:
    """Follow the chain from its beginning, and return where it ends.

    Raises
    ------
    VerificationError
        If a line was changed, removed or inserted; or if the beginning is not signed as required.
    """
    begin.check(signer)
    here = begin
    for event in lines:
        if type(event.id) is not int or event.id <= here.id or not event.follows(here.digest):
            raise VerificationError(
                f"line {event.id} of the log does not follow the previous line. One of them was changed."
            )
        here = Head(event.id, event.digest)
    return here


def watching_for(begin: Head, lines: Iterable[Event], number: int, digest: str) -> Iterator[Event]:
    """Yield the lines; raise at their end if a line that must be among them, or before them, was missing."""
    seen = number < begin.id or (number, digest) in ((begin.id, begin.digest), (0, ""))
    for event in lines:
        seen = seen or (event.id, event.digest) == (number, digest)
        yield event
    if not seen:
        raise VerificationError(
            f"line {number} is missing from this log or differs. Lines were removed from its end, or changed."
        )


def read_json_lines(lines: Iterable[str]) -> tuple[Head, Iterator[Event]]:
    """Read what `json_lines` wrote."""
    texts = iter(lines)
    first = _object(next(texts, "{}"))
    if first.get("format") != FORMAT:
        raise VerificationError(
            "this file is not a log that this version reads. Use a file of `privlearn log export`."
        )
    return _create(Head, first.get("after")), (_create(Event, _object(text)) for text in texts)


def _object(text: str) -> dict[str, Any]:
    try:
        found = parse_json(text)  # refuses a repeated name: no digest covers its first value
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise VerificationError(
            "a line of the log is not a JSON object with one value per name. The file was changed."
        )
    return found


def _create(kind: Any, members: Any) -> Any:
    try:
        return kind(**members)
    except TypeError:
        raise VerificationError("a line of the log has the wrong members. The file was changed.") from None


def _csv_text(rows: Iterable[Iterable[Any]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def prune(store: str, before: datetime, key: SigningKey | None = None) -> int:
    """Remove the lines from before a moment, and return their number.

    The whole chain is verified first: nothing is removed from a log that was changed. That lines were removed is itself
    a line of the log.

    ``before`` has a time zone; ``key`` signs the head that is left.
    """
    verify_log(first_head(store), iterate_events(store))
    old = tables.events.c.time < as_text(before)
    with excluding(store, "events") as connection, removing_from(connection, tables.events.name):
        SERVICE.check(connection, store)
        kept = select(func.min(tables.events.c.id)).where(~old)
        oldest = connection.scalar(kept)
        removed = old if oldest is None else old & (tables.events.c.id < oldest)
        newest = select(tables.events.c.id, tables.events.c.digest).where(removed)
        last = connection.execute(newest.order_by(tables.events.c.id.desc()).limit(1)).one_or_none()
        if last is None:
            return 0
        head = Head(last.id, last.digest).signed(key)
        values = {"signature": head.signature, "public_key": head.public_key, "time": as_text(now())}
        connection.execute(insert(tables.log_heads).values(id=head.id, digest=head.digest, **values))
        count = int(connection.execute(delete(tables.events).where(tables.events.c.id <= last.id)).rowcount)
    record(store, HOLDER, "removed old lines of the log", lines=count, last=head.id, digest=head.digest)
    return count

"""The audit log as a file: JSON lines that anybody can verify without the server, or CSV for people.

The first line of the file says where it begins: after which digest, and, if older lines were removed, what the server
signed about them. Every other line is one of the log.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from cryptography.exceptions import InvalidSignature
from sqlalchemy import select

from privlearn.errors import VerificationError
from privlearn.release.signatures import PublicKey, SigningKey, check_signature, key_hex
from privlearn.service.store import tables
from privlearn.service.store.cells import inert
from privlearn.service.store.events import BEGINNING, Event
from privlearn.storage import reading

FORMAT = "privlearn log 1"
_PIECE = 1000
_COLUMNS = ("id", "time", "actor", "action", "dataset", "details", "digest")


@dataclass(frozen=True)
class Head:
    """Where a log stands: its newest line's number and digest, which stand for all lines before."""

    id: int = 0
    digest: str = BEGINNING
    signature: str = ""
    public_key: str = ""

    def signed(self, key: SigningKey | None) -> Head:
        if key is None:
            return self
        signature = key.sign(self._signed_text()).hex()
        return Head(self.id, self.digest, signature, key_hex(key.public_key()))

    def check(self, signer: PublicKey | None) -> None:
        """Refuse a signature that is wrong; and one that is missing or another's, if a signer is required."""
        if signer is not None and self.id and self.public_key != key_hex(signer):
            raise VerificationError("the beginning of the log is not signed by this key: ask the holder why")
        if not self.signature:
            return
        try:
            check_signature(self.public_key, self.signature, self._signed_text())
        except (ValueError, InvalidSignature):
            raise VerificationError("the signature at the beginning of the log is wrong") from None

    def _signed_text(self) -> bytes:
        return f"{FORMAT}\n{self.id}\n{self.digest}\n".encode()


def first_head(store: str) -> Head:
    """Where the lines that are kept begin."""
    query = select(tables.log_heads).order_by(tables.log_heads.c.id.desc()).limit(1)
    with reading(store) as connection:
        row = connection.execute(query).one_or_none()
    return Head() if row is None else Head(row.id, row.digest, row.signature, row.public_key)


def kept_events(store: str) -> Iterator[Event]:
    """All lines, oldest first, read in pieces so that nobody has to wait."""
    last = 0
    while True:
        query = select(tables.events).where(tables.events.c.id > last).order_by(tables.events.c.id)
        with reading(store) as connection:
            found = [Event(**row._mapping) for row in connection.execute(query.limit(_PIECE))]
        if not found:
            return
        yield from found
        last = found[-1].id


def json_lines(store: str) -> Iterator[str]:
    """The log as a file that can be verified."""
    yield json.dumps({"format": FORMAT, "after": asdict(first_head(store))}) + "\n"
    for event in kept_events(store):
        yield json.dumps(asdict(event)) + "\n"


def csv_lines(store: str) -> Iterator[str]:
    """The log as a table; details are JSON in one cell."""
    yield _csv_line(_COLUMNS)
    for event in kept_events(store):
        told = asdict(event) | {"details": json.dumps(event.details)}
        yield _csv_line([inert(told[name]) for name in _COLUMNS])


def verify_log(begin: Head, lines: Iterable[Event], signer: PublicKey | None = None) -> Head:
    """Follow the chain from its beginning; where it ends.

    Raises
    ------
    VerificationError
        If a line was changed, left out or put in, with its number; or if the beginning is not signed as required.
    """
    begin.check(signer)
    here = begin
    for event in lines:
        if event.id <= here.id or not event.follows(here.digest):
            raise VerificationError(
                f"line {event.id} of the log does not follow the one before it: it, or one before it, was changed"
            )
        here = Head(event.id, event.digest)
    return here


def watching_for(begin: Head, lines: Iterable[Event], number: int, digest: str) -> Iterator[Event]:
    """The lines; refused at their end if one that must be among them, or before them, was not there."""
    seen = number < begin.id or (number, digest) in ((begin.id, begin.digest), (0, ""))
    for event in lines:
        seen = seen or (event.id, event.digest) == (number, digest)
        yield event
    if not seen:
        raise VerificationError(
            f"line {number} is not in this log as it was: lines were removed from its end, or changed"
        )


def read_json_lines(lines: Iterable[str]) -> tuple[Head, Iterator[Event]]:
    """What `json_lines` wrote."""
    texts = iter(lines)
    first = _object(next(texts, "{}"))
    if first.get("format") != FORMAT:
        raise VerificationError(
            "this is no log that this privlearn reads: give one of `privlearn log export`"
        )
    return _made(Head, first.get("after")), (_made(Event, _object(text)) for text in texts)


def _object(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise VerificationError("a line of the log is no JSON object: the file was changed")
    return found


def _made(kind: Any, facts: Any) -> Any:
    try:
        return kind(**facts)
    except TypeError:
        raise VerificationError(
            "a line of the log has other members than it should: the file was changed"
        ) from None


def _csv_line(cells: Iterable[Any]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(cells)
    return text.getvalue()

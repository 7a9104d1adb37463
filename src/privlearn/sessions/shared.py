"""A state in the store that also holds the ledger, for a session that several processes answer.

They take turns. In its turn a process first takes up what the others have answered, then draws the noise of new points
given all of that, and its answers are durable when the turn ends: as if one process had answered everything. The
tables hold the noise and the private function, so the store may not leave; their rows are only ever added.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from typing import Any, Self

import sqlalchemy as sa

from privlearn.errors import SessionError
from privlearn.sessions.durable import Record, numbers_from_bytes, numbers_to_bytes
from privlearn.storage import creating, excluding, locate, protect, reading

FORMAT = 1

_metadata = sa.MetaData()

_states = sa.Table(
    "session_states",
    _metadata,
    sa.Column("session", sa.String(36), primary_key=True),
    sa.Column("format", sa.Integer, nullable=False),
    sa.Column("header", sa.Text, nullable=False),
    sa.Column("function", sa.LargeBinary, nullable=False),
)

# Digests of points, because PostgreSQL cannot index long ones.
_answers = sa.Table(
    "session_answers",
    _metadata,
    sa.Column("session", sa.ForeignKey(_states.c.session), primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("point_digest", sa.LargeBinary, nullable=False),
    sa.Column("point", sa.LargeBinary, nullable=False),
    sa.Column("scores", sa.LargeBinary, nullable=False),
    sa.Column("source", sa.String(20), nullable=False),
    sa.Column("memory", sa.LargeBinary, nullable=False),
    sa.UniqueConstraint("session", "point_digest"),
)

_AT_TURN = sa.select(
    _states.c.header,
    sa.select(sa.func.max(_answers.c.number))
    .where(_answers.c.session == sa.bindparam("name"))
    .scalar_subquery()
    .label("last"),
).where(_states.c.session == sa.bindparam("name"))
_WRITE_ANSWERS = sa.insert(_answers)

_SAME_ROW = {
    _states: "session = NEW.session",
    _answers: "session = NEW.session AND (number = NEW.number OR point_digest = NEW.point_digest)",
}


@dataclass(frozen=True)
class SharedStore:
    """Where a shared session is: what `InteractivePredictor` takes as ``state``.

    Parameters
    ----------
    store : str
        Path of the SQLite file, or address of the PostgreSQL database, as in `Ledger`.
    session : str
        Its name there, 1 to 36 characters.
    """

    store: str
    session: str

    def __post_init__(self) -> None:
        if not 0 < len(self.session) <= 36 or not self.session.isprintable():
            raise SessionError("a session's name must be one line of 1 to 36 printable characters")
        object.__setattr__(self, "store", locate(self.store))

    def exists(self) -> bool:
        with reading(self.store) as connection:
            return _read(connection, self.session, _states.c.session) is not None

    def check_free(self) -> None:
        with creating(self.store) as connection:
            _make_tables(connection)
            self.refuse_existing(connection)

    def create(self, header: dict[str, Any], function: bytes) -> SharedState:
        return SharedState.create(self, header, function)

    def open(self) -> SharedState:
        return SharedState.open(self)

    def refuse_existing(self, connection: sa.Connection) -> None:
        if _read(connection, self.session, _states.c.session) is not None:
            raise SessionError(
                f"session {self.session} exists: continue it with InteractivePredictor.reopen, or give another name"
            )


class SharedState:
    """An open state; other processes may have it open too. Made by `create` and `open`.

    Attributes
    ----------
    header : dict
        Public facts the session was opened with, and the private digest of the training rows.
    function : bytes
        The private function.
    """

    def __init__(self, place: SharedStore, header: str, function: bytes) -> None:
        self.place = place
        self.header: dict[str, Any] = json.loads(header)
        self.function = function
        self._written = header
        self._closed = False
        self._process = os.getpid()

    @classmethod
    def create(cls, place: SharedStore, header: dict[str, Any], function: bytes) -> Self:
        """A new session; one of this name is refused."""
        written = json.dumps(header, sort_keys=True)
        with creating(place.store) as connection:
            _make_tables(connection)
            place.refuse_existing(connection)
            write_state(connection, place.session, written, function)
        return cls(place, written, function)

    @classmethod
    def open(cls, place: SharedStore) -> Self:
        with reading(place.store) as connection:
            row = _read(connection, place.session, *_states.c)
        if row is None:
            raise SessionError(
                f"there is no session {place.session} at {place.store}. Without its state a session cannot go on, and "
                "its cost is spent: restore the store, or open a new session at a new cost"
            )
        if row.format != FORMAT:
            raise SessionError(
                f"session {place.session} was written by another privlearn (format {row.format}): install that version"
            )
        return cls(place, row.header, bytes(row.function))

    def records(self) -> Sequence[Record]:
        """All answers, in the order they were given."""
        with reading(self.place.store) as connection:
            return _read_records(connection, self.place.session, 0)

    @contextmanager
    def turn(self) -> Iterator[SharedTurn]:
        """Exclude every other process from this session; what was appended is durable once the block is left."""
        session = self.place.session
        with excluding(self.place.store, f"session {session}") as connection:
            found = _run(connection, _AT_TURN, [{"name": session}]).one_or_none()
            if found is None or found.header != self._written:
                raise SessionError(
                    "the store has another session in this one's place: put the right one back, or open a new one at a "
                    "new cost"
                )
            yield SharedTurn(connection, session, 0 if found.last is None else found.last + 1)

    def check_open(self) -> None:
        if self._closed:
            raise SessionError("this session is closed: continue it with InteractivePredictor.reopen")
        if os.getpid() != self._process:  # a forked child may have the parent's random bits to come
            raise SessionError("this session belongs to the process that opened it: reopen it in this one")

    def close(self) -> None:
        self._closed = True


class SharedTurn:
    """One process's turn, after so many answers."""

    def __init__(self, connection: sa.Connection, session: str, given: int) -> None:
        self._connection = connection
        self._session = session
        self._given = given

    def missed(self, known: int) -> Sequence[Record]:
        """Answers that others gave after those known here."""
        if self._given < known:
            raise SessionError(
                "the store has forgotten answers of this session: put the newer one back, or open a new session at a "
                "new cost"
            )
        return _read_records(self._connection, self._session, known) if self._given > known else []

    def append(self, records: Sequence[Record]) -> None:
        """Make answers durable, all or none, when the turn ends."""
        write_answers(self._connection, self._session, self._given, records)


def write_state(connection: sa.Connection, session: str, header: str, function: bytes) -> None:
    _make_tables(connection)
    row = {"session": session, "format": FORMAT, "header": header, "function": function}
    connection.execute(sa.insert(_states).values(row))


def write_answers(connection: sa.Connection, session: str, given: int, records: Sequence[Record]) -> None:
    """Behind those that were given before."""
    rows = [
        {
            "session": session,
            "number": number,
            "point_digest": sha256(record.point).digest(),
            "point": record.point,
            "scores": numbers_to_bytes(record.scores),
            "source": record.source,
            "memory": record.memory,
        }
        for number, record in enumerate(records, start=given)
    ]
    if rows:
        _run(connection, _WRITE_ANSWERS, rows)


def _run(
    connection: sa.Connection, statement: sa.Executable, rows: Sequence[dict[str, Any]]
) -> sa.CursorResult[Any]:
    """By the driver itself: a session that answers point by point runs the same two statements a thousand times, and
    what SQLAlchemy does around one takes as long as the statement."""
    compiled = _compiled(statement, connection.dialect)
    order = compiled.positiontup
    values = list(rows) if order is None else [tuple(row[name] for name in order) for row in rows]
    return connection.exec_driver_sql(compiled.string, values[0] if len(values) == 1 else values)


@lru_cache
def _compiled(statement: Any, dialect: sa.Dialect) -> Any:
    return statement.compile(dialect=dialect)


def _make_tables(connection: sa.Connection) -> None:
    if not sa.inspect(connection).has_table(_states.name):
        _metadata.create_all(connection)
        protect(connection, _SAME_ROW)


def _read(connection: sa.Connection, session: str, *columns: sa.Column[Any]) -> Any:
    """The session's row, or None."""
    if not sa.inspect(connection).has_table(_states.name):
        return None
    return connection.execute(sa.select(*columns).where(_states.c.session == session)).one_or_none()


def _read_records(connection: sa.Connection, session: str, start: int) -> list[Record]:
    rows = connection.execute(
        sa.select(_answers.c.point, _answers.c.scores, _answers.c.source, _answers.c.memory)
        .where(_answers.c.session == session, _answers.c.number >= start)
        .order_by(_answers.c.number)
    )
    return [Record(bytes(r.point), numbers_from_bytes(r.scores), r.source, bytes(r.memory)) for r in rows]

"""A session's state: in the ledger's store (`SharedStore`), or in a file that holds only this session (`FileStore`).

A process takes the lock, reads the answers of the others, draws the noise of new points given all of them, and commits
its answers when it releases the lock: as if one process had answered everything. The tables hold the noise and the
private function, so the store must stay private, and only its owner can read a file; rows are only ever added.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Self

import sqlalchemy as sa

from privlearn.budget.storage import creating, excluding, locate, protect, reading
from privlearn.errors import LedgerError, SessionError
from privlearn.sessions.records import Record, numbers_from_bytes, numbers_to_bytes

FORMAT = 1  # of the tables; a session of another format is refused

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

_SELECT_LOCKED = sa.select(
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
    """Location of a shared session: what `InteractivePredictor` takes as ``state``.

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
        """Return whether the session exists."""
        with reading(self.store) as connection:
            return _read(connection, self.session, _states.c.session) is not None

    def check_free(self) -> None:
        """Raise SessionError if a session of this name exists."""
        with creating(self.store) as connection:
            _make_tables(connection)
            self.refuse_existing(connection)

    def create(self, header: dict[str, Any], function: bytes) -> SharedState:
        """Create the session and return its open state."""
        return SharedState.create(self, header, function)

    def open(self) -> SharedState:
        """Return the open state of the session."""
        return SharedState.open(self)

    def refuse_existing(self, connection: sa.Connection) -> None:
        """Raise SessionError if a session of this name exists, on an open connection."""
        if _read(connection, self.session, _states.c.session) is not None:
            raise SessionError(
                f"session {self.session} exists: continue it with InteractivePredictor.reopen, or give another name"
            )


class SharedState:
    """An open state; other processes may have it open too. Created by `create` and `open`.

    Attributes
    ----------
    header : dict
        The session's public parameters, and the private digest of the training rows.
    function : bytes
        The private function.
    """

    def __init__(self, location: SharedStore, header: str, function: bytes) -> None:
        self.location = location
        self.header: dict[str, Any] = json.loads(header)
        self.function = function
        self._written = header
        self._closed = False
        self._process = os.getpid()

    @classmethod
    def create(cls, location: SharedStore, header: dict[str, Any], function: bytes) -> Self:
        """Create a session; refuse an existing name."""
        written = json.dumps(header, sort_keys=True)
        with creating(location.store) as connection:
            _make_tables(connection)
            location.refuse_existing(connection)
            row = {"session": location.session, "format": FORMAT, "header": written, "function": function}
            connection.execute(sa.insert(_states).values(row))
        return cls(location, written, function)

    @classmethod
    def open(cls, location: SharedStore) -> Self:
        """Open an existing session."""
        with reading(location.store) as connection:
            row = _read(connection, location.session, *_states.c)
        if row is None:
            raise SessionError(
                f"no session {location.session} exists at {location.store}. Its cost stays spent. Restore the store, "
                "or open a new session at a new cost"
            )
        if row.format != FORMAT:
            raise SessionError(
                f"session {location.session} has format {row.format}, of another privlearn. Install that version"
            )
        return cls(location, row.header, bytes(row.function))

    def records(self) -> Sequence[Record]:
        """Return all answers, in order."""
        with reading(self.location.store) as connection:
            return _read_records(connection, self.location.session, 0)

    @contextmanager
    def lock(self) -> Iterator[LockedSharedState]:
        """Exclude all other processes from this session; appended answers are durable when the block ends."""
        session = self.location.session
        with excluding(self.location.store, f"session {session}") as connection:
            row = _run(connection, _SELECT_LOCKED, [{"name": session}]).one_or_none()
            # After a restored backup the same name may be another session: its noise must not continue this one.
            if row is None or row.header != self._written:
                raise SessionError(
                    "the store holds another session under this name. Put the right one back, or open a new session at "
                    "a new cost"
                )
            yield LockedSharedState(connection, session, 0 if row.last is None else row.last + 1)

    def check_open(self) -> None:
        """Raise SessionError if this state is closed, or was opened by another process."""
        if self._closed:
            raise SessionError("this session is closed: continue it with InteractivePredictor.reopen")
        if os.getpid() != self._process:  # a forked child could draw the parent's next random bits
            raise SessionError("this session belongs to the process that opened it. Reopen it in this one")

    def close(self) -> None:
        """Close this state; the session stays in the store."""
        self._closed = True


class LockedSharedState:
    """A session's state under the lock, with ``count`` answers so far."""

    def __init__(self, connection: sa.Connection, session: str, count: int) -> None:
        self._connection = connection
        self._session = session
        self._count = count

    def records_after(self, known: int) -> Sequence[Record]:
        """Return the answers after the first ``known``."""
        if self._count < known:
            raise SessionError(
                "answers of this session are missing in the store. Put the newer store back, or open a new session at "
                "a new cost"
            )
        return _read_records(self._connection, self._session, known) if self._count > known else []

    def append(self, records: Sequence[Record]) -> None:
        """Append answers; they are durable, all or none, when the lock is released."""
        rows = [
            {
                "session": self._session,
                "number": number,
                "point_digest": sha256(record.point).digest(),
                "point": record.point,
                "scores": numbers_to_bytes(record.scores),
                "source": record.source,
                "memory": record.memory,
            }
            for number, record in enumerate(records, start=self._count)
        ]
        if rows:
            _run(self._connection, _WRITE_ANSWERS, rows)


def _run(
    connection: sa.Connection, statement: sa.Executable, rows: Sequence[dict[str, Any]]
) -> sa.CursorResult[Any]:
    """Run a statement by the driver itself: for single points, SQLAlchemy's overhead takes as long as the statement."""
    compiled = _compile(statement, connection.dialect)
    order = compiled.positiontup
    # Drivers with numbered parameters take tuples in their order, the others take names.
    values = list(rows) if order is None else [tuple(row[name] for name in order) for row in rows]
    return connection.exec_driver_sql(compiled.string, values[0] if len(values) == 1 else values)


@lru_cache
def _compile(statement: Any, dialect: sa.Dialect) -> Any:
    return statement.compile(dialect=dialect)


def _make_tables(connection: sa.Connection) -> None:
    if not sa.inspect(connection).has_table(_states.name):
        _metadata.create_all(connection)
        protect(connection, _SAME_ROW)


def _read(connection: sa.Connection, session: str, *columns: sa.Column[Any]) -> Any:
    """Return the session's row, or None."""
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


NAME = "session"
"""The session's name inside its file."""


@dataclass(frozen=True)
class FileStore:
    """The path where a session's state is, or will be."""

    path: str | Path

    def check_free(self) -> None:
        """Raise SessionError unless a new session can be created at the path."""
        if not isinstance(self.path, str | os.PathLike):
            raise SessionError("state must be the path of a new file, or a SharedStore")
        directory = os.path.dirname(os.path.abspath(self.path))
        if not (os.path.isdir(directory) and os.access(directory, os.W_OK)):
            raise SessionError(
                f"cannot create a session at {self.path}: {directory} must be a directory that you can write to"
            )
        if os.path.isdir(self.path):
            raise SessionError(f"{self.path} is a directory. Give the name of a file that does not exist yet")
        if os.path.exists(self.path):
            raise SessionError(
                f"{self.path} exists: continue that session with InteractivePredictor.reopen, or give another path"
            )

    def create(self, header: dict[str, Any], function: bytes) -> SharedState:
        """Return the state in a new file that only its owner may read; refuse an existing file."""
        self.check_free()
        try:
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except OSError as error:
            raise SessionError(f"cannot create a session at {self.path}: {error.strerror}") from error
        with _as_session_error(self.path):
            return FileState.create(self._store, header, function)

    def open(self) -> SharedState:
        """Return the state in the file."""
        if not os.path.exists(self.path):
            raise SessionError(
                f"no session exists at {self.path}. Its cost stays spent: restore the file, or open a new session at a "
                "new cost"
            )
        with _as_session_error(self.path):
            if not self._store.exists():
                raise SessionError(
                    f"{self.path} holds no session, or its creation was interrupted: open a new one at another path"
                )
            return FileState.open(self._store)

    @property
    def _store(self) -> SharedStore:
        return SharedStore(os.path.abspath(self.path), NAME)


class FileState(SharedState):
    """An open state file."""

    @contextmanager
    def lock(self) -> Iterator[LockedSharedState]:
        with _as_session_error(self.location.store), super().lock() as locked:
            yield locked


@contextmanager
def _as_session_error(path: str | Path) -> Iterator[None]:
    """Turn errors of a ledger's store into errors about the session."""
    try:
        yield
    except LedgerError:
        if not os.path.exists(path):
            raise SessionError(
                f"the state at {path} was deleted or moved while its session was open. Put the file back, or open a "
                "new session at a new cost"
            ) from None
        raise SessionError(
            f"the session at {path} cannot be used. Check that it is a session's state, that it may be written, that "
            "its disk has space and that no other program holds it"
        ) from None

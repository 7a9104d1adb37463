"""The durable state of a session: one SQLite file on the trusted side.

It holds the noise drawn so far and the private function, so it may not leave: only its owner can read it. Rows are only
ever added, and an answer leaves after its row is on disk. Settings as in `storage.sqlite` (rollback journal,
synchronous=EXTRA), except that one process holds the file for as long as the session is open: a second one
would answer the same point with other noise.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from privlearn.errors import SessionError
from privlearn.sessions.durable import Record, numbers_from_bytes, numbers_to_bytes

FORMAT = 2
BUSY_SECONDS = 2.0
SYNCHRONOUS = "EXTRA"

_TABLES = (
    "CREATE TABLE session (id INTEGER PRIMARY KEY CHECK (id = 1), format INTEGER NOT NULL, header TEXT NOT NULL,"
    " function BLOB NOT NULL)",
    "CREATE TABLE answers (id INTEGER PRIMARY KEY, point BLOB NOT NULL UNIQUE, scores BLOB NOT NULL,"
    " source TEXT NOT NULL, memory BLOB NOT NULL)",
    *(
        f"CREATE TRIGGER {table}_{action.lower()} BEFORE {action} ON {table} "
        "BEGIN SELECT RAISE(ABORT, 'a session is append-only'); END"
        for table in ("session", "answers")
        for action in ("UPDATE", "DELETE")
    ),
)


@dataclass(frozen=True)
class FileStore:
    """A path at which a session's state is, or will be."""

    path: str | Path

    def check_free(self) -> None:
        """Refuse a path at which no new session can begin."""
        if os.path.isdir(self.path):
            raise SessionError(f"{self.path} is a folder: give the name of a file that does not exist yet")
        if os.path.exists(self.path):
            raise SessionError(
                f"{self.path} exists: continue that session with InteractivePredictor.reopen, or give another path"
            )

    def create(self, header: dict[str, Any], function: bytes) -> SessionState:
        return SessionState.create(self.path, header, function)

    def open(self) -> SessionState:
        return SessionState(self.path)


class SessionState:
    """An open state file; this process holds it until `close` or its own end.

    Attributes
    ----------
    path : str
    header : dict
        Public facts the session was opened with, and the private digest of the training rows.
    function : bytes
        The private function.
    """

    shared = False
    _closed = False

    def __init__(self, path: str | Path) -> None:
        self.path = os.path.abspath(path)
        if not os.path.exists(self.path):
            raise SessionError(
                f"there is no session at {self.path}. Without its state a session cannot go on, and its cost is "
                "spent: restore the file, or open a new session at a new cost"
            )
        self._process = os.getpid()
        with self._explained():
            self._connection = self._connect()
            row = self._read_header()
        self.header: dict[str, Any] = json.loads(row[0])
        self.function = bytes(row[1])

    @classmethod
    def create(cls, path: str | Path, header: dict[str, Any], function: bytes) -> SessionState:
        """A new file that only its owner may read; an existing one is refused."""
        path = os.path.abspath(path)
        FileStore(path).check_free()
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except OSError as error:
            raise SessionError(f"cannot create a session at {path}: {error.strerror}") from error
        state = cls.__new__(cls)
        state.path, state.header, state.function, state._process = path, header, function, os.getpid()
        with state._explained():
            state._connection = state._connect()
            with state._transaction() as connection:
                for statement in _TABLES:
                    connection.execute(statement)
                connection.execute(
                    "INSERT INTO session VALUES (1, ?, ?, ?)",
                    (FORMAT, json.dumps(header, sort_keys=True), function),
                )
        return state

    @contextmanager
    def turn(self) -> Iterator[SessionState]:
        """It is always this process's turn."""
        yield self

    def missed(self, known: int) -> Sequence[Record]:
        """Nothing: nobody else has the file."""
        return ()

    def append(self, records: Sequence[Record]) -> None:
        """Make answers durable, all or none; only afterwards may they leave."""
        self._check_in_place()
        with self._explained(), self._transaction() as connection:
            connection.executemany(
                "INSERT INTO answers (point, scores, source, memory) VALUES (?, ?, ?, ?)",
                [(r.point, numbers_to_bytes(r.scores), r.source, r.memory) for r in records],
            )

    def records(self) -> Iterator[Record]:
        """All answers, in the order they were given."""
        with self._explained():
            for row in self._connection.execute(
                "SELECT point, scores, source, memory FROM answers ORDER BY id"
            ):
                yield Record(row[0], numbers_from_bytes(row[1]), *row[2:])

    def close(self) -> None:
        if os.getpid() == self._process:
            self._connection.close()
            self._closed = True

    def _check_in_place(self) -> None:
        """A deleted or replaced file would take answers that nobody can find again."""
        try:
            found = os.stat(self.path).st_ino
        except OSError:
            found = None
        if found != self._inode:
            raise SessionError(
                f"the state at {self.path} was deleted or replaced while its session was open: put the file back, or "
                "open a new session at a new cost"
            )

    def check_open(self) -> None:
        if self._closed:
            raise SessionError(
                f"this session is closed: continue it with InteractivePredictor.reopen({self.path!r}, learner)"
            )

    def _connect(self) -> sqlite3.Connection:
        # mode=rw: a state that has vanished is an error, never silently an empty new one
        connection = sqlite3.connect(
            f"file:{quote(self.path)}?mode=rw", uri=True, timeout=BUSY_SECONDS, isolation_level=None,
            check_same_thread=False,
        )  # fmt: skip
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute(f"PRAGMA synchronous = {SYNCHRONOUS}")
        connection.execute("BEGIN EXCLUSIVE")  # takes the lock, which exclusive mode then keeps
        connection.execute("COMMIT")
        self._inode = os.stat(self.path).st_ino
        return connection

    def _read_header(self) -> tuple[str, bytes]:
        known = self._connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'session'").fetchone()
        row = known and self._connection.execute("SELECT format, header, function FROM session").fetchone()
        if not row:
            self._connection.close()
            raise SessionError(
                f"{self.path} holds no session, or its creation was interrupted: open a new one at another path"
            )
        if row[0] != FORMAT:
            self._connection.close()
            raise SessionError(
                f"{self.path} was written by another privlearn (format {row[0]}): install that version"
            )
        return row[1], row[2]

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        connection = self._connection
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield connection
        except BaseException:
            connection.execute("ROLLBACK")
            raise
        connection.execute("COMMIT")

    @contextmanager
    def _explained(self) -> Iterator[None]:
        if os.getpid() != self._process:  # a forked child has the connection but not its lock
            raise SessionError("this session belongs to the process that opened it: reopen it in this one")
        try:
            yield
        except sqlite3.Error as error:
            raise SessionError(
                f"the session at {self.path} cannot be used: {error}. Check that no other process holds it, that it "
                "may be written and that its disk has room"
            ) from None

"""A session's state in a file of its own: a store that holds this session and nothing else.

It has the noise drawn so far and the private function, so it may not leave: only its owner can read it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, inspect, text

from privlearn.errors import LedgerError, SessionError
from privlearn.sessions.durable import Record, numbers_from_bytes
from privlearn.sessions.shared import SharedState, SharedStore, SharedTurn, write_answers, write_state
from privlearn.storage import excluding

NAME = "session"
"""What the session is called inside its file."""

FIRST_FORMAT = 2
"""Of the files that version 0.1 wrote: two tables of their own."""


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

    def create(self, header: dict[str, Any], function: bytes) -> SharedState:
        """A new file that only its owner may read; an existing one is refused."""
        self.check_free()
        try:
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except OSError as error:
            raise SessionError(f"cannot create a session at {self.path}: {error.strerror}") from error
        with _in_words(self.path):
            return FileState.create(self._place, header, function)

    def open(self) -> SharedState:
        if not os.path.exists(self.path):
            raise SessionError(
                f"there is no session at {self.path}. Without its state a session cannot go on, and its cost is "
                "spent: restore the file, or open a new session at a new cost"
            )
        with _in_words(self.path):
            with excluding(self._place.store, "tables") as connection:
                _take_over_first_format(connection, self.path)
            if not self._place.exists():
                raise SessionError(
                    f"{self.path} holds no session, or its creation was interrupted: open a new one at another path"
                )
            return FileState.open(self._place)

    @property
    def _place(self) -> SharedStore:
        return SharedStore(os.path.abspath(self.path), NAME)


class FileState(SharedState):
    """An open state file."""

    @contextmanager
    def turn(self) -> Iterator[SharedTurn]:
        with _in_words(self.place.store), super().turn() as turn:
            yield turn


@contextmanager
def _in_words(path: str | Path) -> Iterator[None]:
    """What a store says of a ledger, said of a session."""
    try:
        yield
    except LedgerError:
        if not os.path.exists(path):
            raise SessionError(
                f"the state at {path} was deleted or moved while its session was open: put the file back, or open a "
                "new session at a new cost"
            ) from None
        raise SessionError(
            f"the session at {path} cannot be used: check that it is a session's state, that it may be written, that "
            "its disk has room and that no other program holds it"
        ) from None


def _take_over_first_format(connection: Connection, path: str | Path) -> None:
    """The same session in today's tables."""
    if not inspect(connection).has_table("session"):
        return
    first = connection.execute(text("SELECT format, header, function FROM session")).one_or_none()
    if first is None or first.format != FIRST_FORMAT:
        raise SessionError(f"{path} was written by another privlearn: install that version")
    answers = connection.execute(text("SELECT point, scores, source, memory FROM answers ORDER BY id")).all()
    write_state(connection, NAME, first.header, first.function)
    records = [Record(row.point, numbers_from_bytes(row.scores), row.source, row.memory) for row in answers]
    write_answers(connection, NAME, 0, records)
    for table in ("answers", "session"):
        connection.execute(text(f"DROP TABLE {table}"))

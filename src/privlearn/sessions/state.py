"""`FileStore`: a session's state in a file that holds only this session.

The file contains the noise drawn so far and the private function: only its owner can read it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from privlearn.errors import LedgerError, SessionError
from privlearn.sessions.shared import LockedSharedState, SharedState, SharedStore

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
            raise SessionError(f"{self.path} is a directory: give the name of a file that does not exist yet")
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
                f"the state at {path} was deleted or moved while its session was open: put the file back, or open a "
                "new session at a new cost"
            ) from None
        raise SessionError(
            f"the session at {path} cannot be used: check that it is a session's state, that it may be written, that "
            "its disk has space and that no other program holds it"
        ) from None

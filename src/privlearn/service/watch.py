"""Whether the server can do what it is for: looked at by a thread of its own, so that nobody hangs who only asks."""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable

from privlearn.errors import LedgerError
from privlearn.service.holder.settings import ServerSettings
from privlearn.storage.presence import Presence

LOOK_SECONDS = 1.0
PATIENCE_SECONDS = 2.0
LEAST_FREE = 32 << 20
"""Bytes: a database that cannot write takes no request that costs budget."""

_log = logging.getLogger("privlearn.service")


class Watch:
    """Looks every second at database, disk and workers; one look at a time, however many ask.

    Parameters
    ----------
    settings : ServerSettings
    workers : callable
        Looks after the workers, and says what is wrong with them; empty if nothing is.
    keep_up : callable
        Sees what another server changed and ends what waits in vain: a look into the database.
    presence : Presence
        Of this server in the database.

    Attributes
    ----------
    must_end : bool
        The database has another format by now, and only another version may use it.
    """

    def __init__(
        self,
        settings: ServerSettings,
        workers: Callable[[], str],
        keep_up: Callable[[], None],
        presence: Presence,
    ) -> None:
        self._settings = settings
        self._keep_up = keep_up
        self._workers = workers
        self._presence = presence
        self.must_end = False
        self._changed = threading.Condition()
        self._wanted = threading.Event()
        self._stopping = False
        self._looks = 0
        self._found = ""
        self._thread = threading.Thread(target=self._loop, name="privlearn-watch", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping = True
        self._wanted.set()

    def trouble(self, patience: float = PATIENCE_SECONDS) -> str:
        """What is wrong, by a look that began after this was asked; a look that takes too long is trouble itself."""
        deadline = time.monotonic() + patience
        with self._changed:
            fresh = self._looks + 2  # the look under way, if there is one, may have begun before
            self._wanted.set()
            while self._looks < fresh:
                left = deadline - time.monotonic()
                if left <= 0 or not self._changed.wait(left):
                    return _NO_ANSWER
                self._wanted.set()
            return self._found

    def _loop(self) -> None:
        while not self._stopping:
            found = self._look()
            if found and found != self._found:
                _log.error("not ready: %s", found)
            with self._changed:
                self._found = found
                self._looks += 1
                self._changed.notify_all()
            self._wanted.wait(LOOK_SECONDS)
            self._wanted.clear()

    def _look(self) -> str:
        try:
            return next(filter(None, [self._workers(), self._disk(), self._database()]), "")
        except Exception as error:  # the watch goes on, whatever it sees
            return f"an unexpected {type(error).__name__}"

    def _database(self) -> str:
        try:
            reason = self._presence.keep()
            self.must_end = self.must_end or bool(reason)
            self._keep_up()
        except LedgerError:
            return "the holder's database cannot be used at the moment"
        return reason

    def _disk(self) -> str:
        """On SQLite the database is in the server's folder: whether another file can be written there."""
        folder = self._settings.folder
        if self._settings.ledger:
            return ""
        try:
            if shutil.disk_usage(folder).free < LEAST_FREE:
                return "the disk of the holder's database is full"
            with tempfile.TemporaryFile(dir=folder) as probe:
                probe.write(b"0" * 4096)
                probe.flush()
                os.fsync(probe.fileno())
        except OSError:
            return "the disk of the holder's database cannot be written"
        return ""


_NO_ANSWER = "the holder's database does not answer"

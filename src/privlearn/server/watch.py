"""The health of the server, checked by its own thread so that requests for it never block."""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable

from privlearn.budget.storage.presence import Presence
from privlearn.errors import LedgerError
from privlearn.server.holder.settings import ServerSettings

CHECK_SECONDS = 1.0
TIMEOUT_SECONDS = 2.0
MIN_FREE_BYTES = 32 << 20
"""Below this, no request that costs budget is accepted: the database may be unable to write."""

_log = logging.getLogger("privlearn.service")


class Watch:
    """Checks database, disk and workers every second; one check at a time for all requests.

    Parameters
    ----------
    settings : ServerSettings
    workers : callable
        Restarts dead workers and returns what is wrong with them; empty if nothing is.
    keep_up : callable
        Reads changes by other servers and ends jobs that wait for nothing.
    presence : Presence
        This server's entry in the database.

    Attributes
    ----------
    must_end : bool
        The database has a different format now, which only another version may use.
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
        self._requested = threading.Event()
        self._stopping = False
        self._checks = 0
        self._last_trouble = ""
        self._thread = threading.Thread(target=self._loop, name="privlearn-watch", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping = True
        self._requested.set()

    def trouble(self, timeout: float = TIMEOUT_SECONDS) -> str:
        """Return what is wrong, from a check that began after this call. A check that times out is trouble itself."""
        deadline = time.monotonic() + timeout
        with self._changed:
            fresh = self._checks + 2  # a check in progress may have begun before this call
            self._requested.set()
            while self._checks < fresh:
                left = deadline - time.monotonic()
                if left <= 0 or not self._changed.wait(left):
                    return _NO_ANSWER
                self._requested.set()
            return self._last_trouble

    def _loop(self) -> None:
        while not self._stopping:
            trouble = self._check()
            if trouble and trouble != self._last_trouble:
                _log.error("not ready: %s", trouble)
            with self._changed:
                self._last_trouble = trouble
                self._checks += 1
                self._changed.notify_all()
            self._requested.wait(CHECK_SECONDS)
            self._requested.clear()

    def _check(self) -> str:
        try:
            return next(filter(None, [self._workers(), self._disk(), self._database()]), "")
        except Exception as error:  # the watch must survive any error
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
        """Check that the server's directory, which holds the SQLite database, can be written."""
        directory = self._settings.directory
        if self._settings.ledger:
            return ""
        try:
            if shutil.disk_usage(directory).free < MIN_FREE_BYTES:
                return "the disk of the holder's database is full"
            with tempfile.TemporaryFile(dir=directory) as probe:
                probe.write(b"0" * 4096)
                probe.flush()
                os.fsync(probe.fileno())
        except OSError:
            return "the disk of the holder's database cannot be written"
        return ""


_NO_ANSWER = "the holder's database does not answer"

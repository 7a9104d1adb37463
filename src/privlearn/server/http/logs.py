"""The log: one JSON object per line. The line of a request has the caller, the route and the outcome."""

from __future__ import annotations

import json
import logging
import secrets
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, MutableMapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, TextIO

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from privlearn.errors import PrivlearnError

_METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}

requests = logging.getLogger("privlearn.service.requests")
failures = logging.getLogger("privlearn.service.failures")

Finished = Callable[[str, str, int, float], None]
"""Called with the method, the route's template, the status and the seconds of every request."""


class JsonLines(logging.Formatter):
    """Formats a record as one line of JSON. Of an error only its type and location, because its message may quote a
    cell.
    """

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info and record.exc_info[1] is not None:
            line |= error_location(record.exc_info[1])
        return json.dumps(line | getattr(record, "fields", {}))


class QueuedLines(logging.Handler):
    """Writes lines from a thread, many at a time, so that answers do not wait for them.

    Warnings and errors are written at once, with everything before them. If the process is killed, lines of the last
    tenth of a second are lost; the audit log, which must not lose any, is in the database.
    """

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self.setFormatter(JsonLines())
        self._stream = stream
        self._waiting: deque[logging.LogRecord] = deque()
        self._writing = threading.Lock()
        self._closed = threading.Event()
        threading.Thread(target=self._loop, name="privlearn-log", daemon=True).start()

    def emit(self, record: logging.LogRecord) -> None:
        self._waiting.append(record)
        if record.levelno >= logging.WARNING or len(self._waiting) > _MAX_LINES:
            self.flush()

    def flush(self) -> None:
        """Write what waits; also called at the end of the process. Lines that cannot be written are lost."""
        with self._writing, suppress(OSError, ValueError):  # a full disk must not stop the server
            records = [self._waiting.popleft() for _ in range(len(self._waiting))]
            if records:
                self._stream.write("".join(f"{self.format(record)}\n" for record in records))
                self._stream.flush()

    def close(self) -> None:
        """Write what waits, and end the thread."""
        self._closed.set()
        self.flush()
        super().close()

    def _loop(self) -> None:
        while not self._closed.wait(_PAUSE_SECONDS):
            self.flush()


_PAUSE_SECONDS = 0.1
_MAX_LINES = 10_000
"""Then the caller writes, so that a slow reader slows the server instead of filling its memory."""


def log_to_stderr() -> None:
    """Write the lines of every logger, and uncaught exceptions, to stderr as JSON."""
    handler = QueuedLines(sys.stderr)
    logging.basicConfig(handlers=[handler], level=logging.INFO, force=True)
    logging.getLogger("httpx2").setLevel(logging.WARNING)
    logging.captureWarnings(True)
    sys.excepthook = lambda _kind, error, _trace: log_uncaught(error)
    sys.unraisablehook = lambda found: log_uncaught(found.exc_value)
    threading.excepthook = lambda found: log_uncaught(found.exc_value)


def log_uncaught(error: BaseException | None) -> None:
    """Log an exception that would otherwise be printed with its message, which may quote a cell."""
    if error is not None and not isinstance(error, KeyboardInterrupt | SystemExit):
        failures.error("not caught", extra={"fields": error_location(error)})


def error_location(error: BaseException) -> dict[str, Any]:
    """Return the type of an error and the lines of code that it passed through."""
    frames = traceback.extract_tb(error.__traceback__)
    return {
        "error": type(error).__name__,
        "frames": [f"{frame.filename}:{frame.lineno} in {frame.name}" for frame in frames],
    }


def note(scope: Scope, **fields: Any) -> None:
    """Add fields to the line of this request: the key's id, the number of rows."""
    scope["privlearn.line"].update(fields)


def request_id(scope: Scope) -> str:
    """Return the id of the request."""
    return str(scope["privlearn.line"]["id"])


def log_failure(scope: Scope, error: Exception) -> None:
    """Log where a request failed on the holder's side; and why, if the message is privlearn's own."""
    reason = {"reason": str(error)} if isinstance(error, PrivlearnError) else {}
    failures.error(
        "request failed", extra={"fields": {"id": request_id(scope)} | error_location(error) | reason}
    )


class RequestLog:
    """Gives every request an id, and writes its line when it is over."""

    def __init__(self, app: ASGIApp, finished: Finished) -> None:
        self._app = app
        self._finished = finished

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, line = time.perf_counter(), {"id": secrets.token_hex(8)}
        scope["privlearn.line"] = line
        status = 499  # the caller left before there was an answer

        async def send_and_note(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", []), (b"x-request-id", line["id"].encode())]
            await send(message)

        try:
            await self._app(scope, receive, send_and_note)
        finally:
            self._write(scope, status, time.perf_counter() - began)

    def _write(self, scope: Scope, status: int, seconds: float) -> None:
        method = method_label(scope)
        route = route_template(scope)
        self._finished(method, route, status, seconds)
        line = scope["privlearn.line"]
        fields = {"id": line["id"], "method": method, "route": route, "status": status}
        fields |= {"ms": round(1000 * seconds, 2)} | {k: v for k, v in line.items() if k != "id"}
        requests.info("request", extra={"fields": fields})


def method_label(scope: MutableMapping[str, Any]) -> str:
    """Return the method, or "other" for one that is not standard."""
    return scope["method"] if scope["method"] in _METHODS else "other"


def route_template(scope: MutableMapping[str, Any]) -> str:
    """Return the path of the route, with the names of its parameters instead of their values."""
    return str(getattr(scope.get("route"), "path", "none"))

"""The log: one JSON object per line. That of a request says who asked for what kind of thing and how it ended."""

from __future__ import annotations

import json
import logging
import secrets
import sys
import threading
import time
import traceback
from collections.abc import Callable, MutableMapping
from datetime import UTC, datetime
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from privlearn.errors import PrivlearnError

_METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}

requests = logging.getLogger("privlearn.service.requests")
failures = logging.getLogger("privlearn.service.failures")

Finished = Callable[[str, str, int, float], None]
"""Is told the method, the route's template, the status and the seconds of every request."""


class JsonLines(logging.Formatter):
    """A record as one line of JSON; of an error only its kind and its place, for its message may quote a cell."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info and record.exc_info[1] is not None:
            line |= places(record.exc_info[1])
        return json.dumps(line | getattr(record, "fields", {}))


def log_to_stderr() -> None:
    """Every logger's lines, the server's own included, as JSON on stderr; and what nobody has caught, too."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logging.basicConfig(handlers=[handler], level=logging.INFO, force=True)
    logging.getLogger("httpx").setLevel(logging.WARNING)
    logging.captureWarnings(True)
    sys.excepthook = lambda _kind, error, _trace: log_uncaught(error)
    sys.unraisablehook = lambda found: log_uncaught(found.exc_value)
    threading.excepthook = lambda found: log_uncaught(found.exc_value)


def log_uncaught(error: BaseException | None) -> None:
    """What would have been printed as a traceback, with a message that may quote a cell."""
    if error is not None and not isinstance(error, KeyboardInterrupt | SystemExit):
        failures.error("not caught", extra={"fields": places(error)})


def places(error: BaseException) -> dict[str, Any]:
    """The kind of an error and the lines of code it went through."""
    frames = traceback.extract_tb(error.__traceback__)
    return {
        "error": type(error).__name__,
        "places": [f"{frame.filename}:{frame.lineno} in {frame.name}" for frame in frames],
    }


def note(scope: Scope, **fields: Any) -> None:
    """Add to the line of this request: the key's id, the number of rows."""
    scope["privlearn.line"].update(fields)


def request_id(scope: Scope) -> str:
    return str(scope["privlearn.line"]["id"])


def log_failure(scope: Scope, error: Exception) -> None:
    """Where a request failed on the holder's side, under its id; and why, if the words are privlearn's own."""
    reason = {"reason": str(error)} if isinstance(error, PrivlearnError) else {}
    failures.error("request failed", extra={"fields": {"id": request_id(scope)} | places(error) | reason})


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
        status = 499  # the caller went away before there was an answer

        async def noting_status(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", []), (b"x-request-id", line["id"].encode())]
            await send(message)

        try:
            await self._app(scope, receive, noting_status)
        finally:
            self._write(scope, status, time.perf_counter() - began)

    def _write(self, scope: Scope, status: int, seconds: float) -> None:
        method = known_method(scope)
        route = route_template(scope)
        self._finished(method, route, status, seconds)
        line = scope["privlearn.line"]
        fields = {"id": line["id"], "method": method, "route": route, "status": status}
        fields |= {"ms": round(1000 * seconds, 2)} | {k: v for k, v in line.items() if k != "id"}
        requests.info("request", extra={"fields": fields})


def known_method(scope: MutableMapping[str, Any]) -> str:
    """The method, unless a caller has made it up."""
    return scope["method"] if scope["method"] in _METHODS else "other"


def route_template(scope: MutableMapping[str, Any]) -> str:
    """The address as it stands in the code, with names of its parts for what was in them."""
    return str(getattr(scope.get("route"), "path", "none"))

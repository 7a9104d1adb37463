"""Limits on connections: their number, the time and size of a request's head, and unread answers.

A connection waits for the head of a request, waits for the rest of a body, or is busy with a request. If the maximum
is reached, a new connection replaces the one that has waited longest for a head, or else for a body, so that
half-sent requests cannot lock out others. Only if all connections are busy is a new one refused.

One request at a time: what is sent before an answer is complete (pipelining, which browsers, proxies and libraries
do not use) is dropped, and the connection ends with that answer. Stored, a few megabytes of it would be gigabytes of
requests, from callers without a key. A client that pipelines must be prepared to repeat requests (RFC 9112, 9.3.2).

uvicorn has no public interface for this, and a proxy is not always in front. So this module alone extends a class of
uvicorn that is not public: pyproject.toml pins uvicorn to the tested releases, and tests/server/test_connections.py
checks the release and the methods that are overridden here.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

UNREAD_SECONDS = 60.0
"""Seconds after which an answer that the client does not read is cut off."""


@dataclass
class Connections:
    """All connections of this process.

    ``head_bytes``: maximum size of the first line and the headers together. ``head_seconds``: maximum time for the
    head to arrive, since the connection was made or the previous answer was sent.
    """

    max_connections: int
    head_bytes: int
    head_seconds: float
    # Ordered: the first has waited longest, for a head or in a body.
    waiting: dict[GuardedConnection, None] = field(default_factory=dict)
    sending: dict[GuardedConnection, None] = field(default_factory=dict)
    count: int = 0

    def admit(self) -> bool:
        """Return whether one more connection is possible; if necessary, end a waiting one."""
        if self.count >= self.max_connections and (late := self.waiting or self.sending):
            next(iter(late)).refuse(HTTPStatus.REQUEST_TIMEOUT, _GAVE_WAY)
        return self.count < self.max_connections


class GuardedConnection(HttpToolsProtocol):
    """One connection; `connection_class` creates the class with its limits."""

    limits: Connections

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._counted = False
        self._in_body = False
        self._ends_with_answer = False
        self._head = 0
        self._timer: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # uvicorn's signature
        super().connection_made(transport)
        if not self.limits.admit():
            self.refuse(HTTPStatus.SERVICE_UNAVAILABLE, _FULL)
            return
        self._counted = True
        self.limits.count += 1
        self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._leave()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._ends_with_answer or self.transport.is_closing():  # the rest is not read
            return
        self._head += len(data)
        super().data_received(data)
        if self._head > self.limits.head_bytes and (self._in_body or self._timer is not None):
            self.refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, _LONG_HEAD)

    def on_message_begin(self) -> None:
        if self._owes_answer():
            raise _Ahead  # the parser stops and reports an invalid request
        super().on_message_begin()

    def send_400_response(self, msg: str) -> None:
        """Refuse an unreadable request; after a complete one, answer that one and end the connection."""
        if self._owes_answer():
            self._ends_with_answer, self.cycle.keep_alive = True, False
        else:
            super().send_400_response(msg)

    def on_headers_complete(self) -> None:
        self._stop_waiting()
        self._head = 0
        self._in_body = True  # a refused body may still arrive after the answer
        self.limits.sending[self] = None
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._head = 0  # what surrounds a body, such as trailers, may be as long as a head
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._in_body = False
        self.limits.sending.pop(self, None)
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._counted and not self.transport.is_closing():
            self._wait_for_head()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unread = self.loop.call_later(UNREAD_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._unread is not None:
            self._unread.cancel()

    def refuse(self, status: HTTPStatus, detail: str) -> None:
        """Answer without reading the request, and end the connection."""
        self._leave()
        if not self.transport.is_closing():
            self.transport.write(_refusal(status, detail))
            self.transport.close()

    def _owes_answer(self) -> bool:
        """Return whether a complete request has arrived and is not answered yet."""
        return self.cycle is not None and not self.cycle.more_body and not self.cycle.response_complete

    def _wait_for_head(self) -> None:
        self._stop_waiting()
        self._head = 0
        self.limits.waiting[self] = None
        late = (HTTPStatus.REQUEST_TIMEOUT, _LATE_HEAD)
        self._timer = self.loop.call_later(self.limits.head_seconds, self.refuse, *late)

    def _stop_waiting(self) -> None:
        self.limits.waiting.pop(self, None)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _leave(self) -> None:
        self._stop_waiting()
        self.limits.sending.pop(self, None)
        if self._unread is not None:
            self._unread.cancel()
        if self._counted:
            self._counted = False
            self.limits.count -= 1


class _Ahead(Exception):
    """A request was sent before the previous one was answered."""


def connection_class(connections: Connections) -> type[GuardedConnection]:
    """Return the class of connections with these limits, for uvicorn."""
    return type("Connection", (GuardedConnection,), {"limits": connections})


def _refusal(status: HTTPStatus, detail: str) -> bytes:
    """Return the bytes of a problem, like `problems.problem`, for a request that was not read."""
    kind = status.phrase.lower().replace(" ", "-")
    problem = {"type": f"urn:privlearn:{kind}", "title": status.phrase, "status": status, "detail": detail}
    body = json.dumps(problem).encode()
    again = "Retry-After: 5\r\n" if status == HTTPStatus.SERVICE_UNAVAILABLE else ""
    head = (
        f"HTTP/1.1 {int(status)} {status.phrase}\r\nContent-Type: application/problem+json\r\n"
        f"Content-Length: {len(body)}\r\n{again}Connection: close\r\n\r\n"
    )
    return head.encode() + body


_FULL = "the server has no connection left. Try again in a few seconds."
_GAVE_WAY = (
    "this connection waited longest without a complete request and was ended for another. Connect again."
)
_LATE_HEAD = "the request's first line and headers did not arrive in time. Send them at once."
_LONG_HEAD = "the request's first line and headers are too long. Send shorter ones."

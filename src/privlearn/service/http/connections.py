"""Connections: how many there may be, how long a request's head may take and be, how long an answer may stay unread.

A connection waits for the head of a request, or for the rest of its body, or is busy with one. Whoever makes us wait
may be sent away: when there are as many connections as allowed, a new one takes the place of the one that has waited
longest for a head, or else for a body, so that half-sent requests shut nobody out. Only when all of them are busy is a
new one refused.

One request at a time: what is sent ahead of an answer (pipelining, which no browser, proxy or library does) is thrown
away unread, and the connection ends with that answer. Kept, a few megabytes of it would be gigabytes of requests and
hours of work, from somebody without a key. Who pipelines must be prepared to send again (RFC 9112, 9.3.2).
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

UNREAD_SECONDS = 60.0
"""For so long an answer may stand still because its reader does not read."""


@dataclass
class Connections:
    """All connections of this process.

    Parameters
    ----------
    most : int
        So many at a time.
    head_bytes : int
        Of the first line and the headers together.
    head_seconds : float
        For the head to arrive, from the connection's beginning or the answer before.
    """

    most: int
    head_bytes: int
    head_seconds: float
    waiting: dict[GuardedConnection, None] = field(default_factory=dict)  # ordered: the first waits longest
    sending: dict[GuardedConnection, None] = field(default_factory=dict)  # the same, of those within a body
    count: int = 0

    def admit(self) -> bool:
        """Whether there is room for one more, if need be in the place of another."""
        if self.count >= self.most and (late := self.waiting or self.sending):
            next(iter(late)).refuse(HTTPStatus.REQUEST_TIMEOUT, _GAVE_WAY)
        return self.count < self.most


class GuardedConnection(HttpToolsProtocol):
    """One connection; `guarded` makes the class that knows the limits."""

    limits: Connections

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._counted = False
        self._in_body = False
        self._ends_with_answer = False
        self._head = 0
        self._timer: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
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
        if self._ends_with_answer or self.transport.is_closing():  # what still comes is not read
            return
        self._head += len(data)
        super().data_received(data)
        if self._head > self.limits.head_bytes and (self._in_body or self._timer is not None):
            self.refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, _LONG_HEAD)

    def on_message_begin(self) -> None:
        if self._owes_answer():
            raise _Ahead  # the parser stops, and calls it a request that is not valid
        super().on_message_begin()

    def send_400_response(self, msg: str) -> None:
        """What cannot be read is refused; if it came after a whole request, that is answered, and is the last."""
        if self._owes_answer():
            self._ends_with_answer, self.cycle.keep_alive = True, False
        else:
            super().send_400_response(msg)

    def on_headers_complete(self) -> None:
        self._stop_waiting()
        self._head = 0
        self._in_body = True  # one that was refused unread may still be on its way when the answer is out
        self.limits.sending[self] = None
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._head = 0  # but what comes around a body, and is none, is as long as a head at most
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
        """Answer without looking at the request, and end the connection."""
        self._leave()
        if not self.transport.is_closing():
            self.transport.write(_refusal(status, detail))
            self.transport.close()

    def _owes_answer(self) -> bool:
        """Whether a request has arrived in whole and is not answered yet."""
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
    """A request that was sent before the one before it was answered."""


def guarded(connections: Connections) -> type[GuardedConnection]:
    """The class of connections that keep to these limits, for uvicorn."""
    return type("Connection", (GuardedConnection,), {"limits": connections})


def _refusal(status: HTTPStatus, detail: str) -> bytes:
    """Like `problems.problem`, for those whose request has not been read."""
    kind = status.phrase.lower().replace(" ", "-")
    problem = {
        "type": f"urn:privlearn:{kind}",
        "title": status.phrase,
        "status": int(status),
        "detail": detail,
    }
    body = json.dumps(problem).encode()
    again = "Retry-After: 5\r\n" if status == HTTPStatus.SERVICE_UNAVAILABLE else ""
    head = (
        f"HTTP/1.1 {int(status)} {status.phrase}\r\nContent-Type: application/problem+json\r\n"
        f"Content-Length: {len(body)}\r\n{again}Connection: close\r\n\r\n"
    )
    return head.encode() + body


_FULL = "the server has as many connections as it takes: try again in a few seconds"
_GAVE_WAY = (
    "this connection waited longest without a whole request and gave its place to another: connect again"
)
_LATE_HEAD = "the request's first line and headers did not arrive in time: send them at once"
_LONG_HEAD = "the request's first line and headers are too long: send shorter ones"

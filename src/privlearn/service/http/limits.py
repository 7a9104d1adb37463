"""Limits of the HTTP interface: sizes, times, threads, and the headers that browsers obey."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from http import HTTPStatus
from typing import ParamSpec, TypeVar

from anyio import CapacityLimiter, to_thread
from fastapi import Request
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from privlearn.service.holder.settings import Limits
from privlearn.service.http.problems import problem
from privlearn.service.http.turns import Turns
from privlearn.service.refusals import TooLarge, TooMany
from privlearn.service.timing import Buckets

KILOBYTE = 1 << 10
MEGABYTE = 1 << 20
SMALL = 64 * KILOBYTE
"""Bodies up to here are read at once; the others in turn, with an eye on memory."""

HEAVY_AT_ONCE = 4
QUICK_AT_ONCE = 4
"""Threads for answers that take milliseconds: more of them would only keep each other from the interpreter."""

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class Shared:
    """What all requests of a process share: ``app.state.shared``."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.quick = CapacityLimiter(QUICK_AT_ONCE)
        self.threads = Turns(HEAVY_AT_ONCE, "threads for heavy requests")
        self.rehearsals = Turns(1, "turns to rehearse")
        self.bodies = Turns(limits.bodies_megabytes * MEGABYTE, "room for large bodies")
        self.reading = Turns(limits.reading_megabytes * MEGABYTE, "memory to read bodies")
        self._polls: Counter[str] = Counter()

    @contextmanager
    def waiting(self, name: str) -> Iterator[None]:
        """One more request of this analyst that waits for the end of a job."""
        if self._polls[name] >= self.limits.long_polls:
            raise TooMany(
                f"{self.limits.long_polls} of your requests wait for jobs already: ask without wait"
            )
        self._polls[name] += 1
        try:
            yield
        finally:
            self._polls[name] -= 1


def shared_of(request: Request) -> Shared:
    shared: Shared = request.app.state.shared
    return shared


def note_caller(scope: Scope, name: str) -> None:
    """From here on the request is this analyst's, or the holder's, and takes turns as theirs."""
    scope["privlearn.caller"] = name


def caller_name(request: Request) -> str:
    return str(request.scope.get("privlearn.caller", ""))


async def aside(
    request: Request,
    function: Callable[Arguments, Result],
    *args: Arguments.args,
    **options: Arguments.kwargs,
) -> Result:
    """Call a function in one of few threads, its caller in turn; whoever waits for one keeps no thread busy."""
    async with shared_of(request).threads.taking(caller_name(request)):
        return await run_in_threadpool(function, *args, **options)


async def quickly(
    request: Request,
    function: Callable[Arguments, Result],
    *args: Arguments.args,
    **options: Arguments.kwargs,
) -> Result:
    """Call a function that takes milliseconds in a thread."""
    return await to_thread.run_sync(partial(function, *args, **options), limiter=shared_of(request).quick)


@asynccontextmanager
async def large_body(request: Request, megabytes: int) -> AsyncIterator[None]:
    """Let the body of a known caller be so large, within what all such bodies may take together."""
    most = megabytes * MEGABYTE
    room = min(_announced(request.scope) or most, most)  # of more than that the first byte is refused
    if room <= request.scope["privlearn.body"]:
        yield
        return
    async with shared_of(request).bodies.taking(caller_name(request), room):
        request.scope["privlearn.body"] = most
        yield


POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
ALWAYS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
WITH_TLS = {"Strict-Transport-Security": "max-age=31536000"}


class SecurityHeaders:
    """Adds the headers that an answer does not set itself."""

    def __init__(self, app: ASGIApp, tls: bool) -> None:
        self._app = app
        self._headers = ALWAYS | (WITH_TLS if tls else {})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in self._headers.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, with_headers)


class Limiter:
    """Requests of a key, and attempts of an address with keys that are not valid."""

    def __init__(self, requests_per_minute: float, sign_ins_per_minute: float) -> None:
        self._requests = Buckets(requests_per_minute, burst=requests_per_minute / 6.0)
        self._failures = Buckets(sign_ins_per_minute, burst=sign_ins_per_minute)

    def failed(self, address: str) -> None:
        """A key was not valid. Valid ones are not counted: whoever tries wrong ones from here shuts nobody out."""
        if not self._failures.take(address):
            raise TooMany("too many attempts with keys that are not valid: wait a minute")

    def count(self, key_id: str) -> None:
        """A request with a valid key."""
        if not self._requests.take(key_id):
            raise TooMany(
                "this key asks more often than the holder allows: wait a few seconds, or send batches"
            )


class RequestLimit:
    """Ends a request whose head is too long, or as soon as its body is too large, or too slow.

    A body may be small; `large_body` allows more, once it is known who sends it.
    """

    def __init__(self, app: ASGIApp, limits: Limits) -> None:
        self._app = app
        self._head = limits.header_kilobytes * KILOBYTE
        self._small = limits.form_kilobytes * KILOBYTE
        self._seconds = limits.body_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        deadline = asyncio.get_running_loop().time() + self._seconds
        arrived, complete = 0, False
        scope["privlearn.body"] = self._small

        async def counted() -> Message:
            nonlocal arrived, complete
            if complete:  # what comes now is only the end of the connection
                return await receive()
            if arrived == 0 and _announced(scope) > scope["privlearn.body"]:
                await _drain(scope, receive, deadline)
                _check_size(_announced(scope), scope["privlearn.body"])
            try:
                async with asyncio.timeout_at(deadline):
                    message = await receive()
            except TimeoutError:
                raise HTTPException(
                    HTTPStatus.REQUEST_TIMEOUT, "the body did not arrive in time", _CLOSE
                ) from None
            arrived += len(message.get("body", b""))
            complete = not message.get("more_body", False)
            _check_size(arrived, scope["privlearn.body"])
            return message

        if _head_size(scope) > self._head:
            answer = problem(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, _LONG_HEAD, headers=_CLOSE)
            await answer(scope, receive, send)
        else:
            await self._app(scope, counted, send)


_CLOSE = {"Connection": "close"}
_LONG_HEAD = "the request's first line and headers are too long: send shorter ones"


async def _drain(scope: Scope, receive: Receive, deadline: float) -> None:
    """Let a body go by that is not kept, unless it is huge: who still sends when the answer comes may not see it."""
    if _announced(scope) > _LARGEST_DRAINED:
        return
    with suppress(TimeoutError):
        async with asyncio.timeout_at(deadline):
            while (await receive()).get("more_body", False):
                pass


_LARGEST_DRAINED = 64 * MEGABYTE


def _check_size(size: int, most: int) -> None:
    if size > most:
        allowed = f"{most // KILOBYTE} kilobytes" if most < MEGABYTE else f"{most // MEGABYTE} megabytes"
        raise TooLarge(f"the body is larger than the {allowed} that are allowed here: send smaller batches")


def _head_size(scope: Scope) -> int:
    line = len(scope["raw_path"]) + len(scope["query_string"])
    return line + sum(len(name) + len(value) for name, value in scope["headers"])


def _announced(scope: Scope) -> int:
    for name, value in scope["headers"]:
        if name == b"content-length":
            return int(value) if value.isdigit() else 0
    return 0

"""Limits of the HTTP interface: sizes, times, threads, and the security headers of answers."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Hashable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from http import HTTPStatus
from ipaddress import IPv6Address
from typing import Any, ParamSpec, TypeVar

from anyio import CapacityLimiter, to_thread
from fastapi import Request
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from privlearn.data.sources.passes import available_cores
from privlearn.server.holder.settings import Limits
from privlearn.server.http.fair_share import FairShare
from privlearn.server.http.problems import problem
from privlearn.server.refusals import TooLarge, TooMany
from privlearn.server.timing import Buckets

KILOBYTE = 1 << 10
MEGABYTE = 1 << 20
SMALL = 64 * KILOBYTE
"""Bodies up to this size are read at once; larger ones take turns, with a limit on memory."""

HEAVY_AT_ONCE = max(2, min(available_cores(), 4))
"""Threads for heavy requests: more than the cores would only slow down each other, and the event loop."""
QUICK_AT_ONCE = 4
"""Threads for answers that take milliseconds: more of them would only compete for the interpreter."""

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class Shared:
    """What all requests of a process share: ``app.state.shared``."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.quick = CapacityLimiter(QUICK_AT_ONCE)
        self.threads = FairShare(HEAVY_AT_ONCE, "threads for heavy requests")
        self.computing = FairShare(1, "time to compute predictions")
        self.bodies = FairShare(limits.bodies_megabytes * MEGABYTE, "capacity for large bodies")
        self.reading = FairShare(limits.reading_megabytes * MEGABYTE, "memory to read bodies")
        self._polls: Counter[str] = Counter()
        self._looking_up: dict[Hashable, asyncio.Task[Any]] = {}

    async def run_once(self, key: Hashable, look_up: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
        """Look something up once for all requests that need it at this moment, such as the key of 64 connections."""
        task: asyncio.Task[Result] | None = self._looking_up.get(key)
        if task is None:
            task = self._looking_up[key] = asyncio.create_task(look_up())
            task.add_done_callback(lambda _: self._looking_up.pop(key))
        return await asyncio.shield(task)  # a client that leaves does not end the others' look-up

    @contextmanager
    def waiting(self, name: str) -> Iterator[None]:
        """Count one more request of this analyst that waits for the end of a job."""
        if self._polls[name] >= self.limits.long_polls:
            raise TooMany(
                f"{self.limits.long_polls} of your requests already wait for jobs. Send this one without wait."
            )
        self._polls[name] += 1
        try:
            yield
        finally:
            self._polls[name] -= 1


def shared_of(request: Request) -> Shared:
    """Return what the requests of the application share."""
    shared: Shared = request.app.state.shared
    return shared


def note_caller(scope: Scope, name: str) -> None:
    """Record whose request this is; from here on it takes turns as this caller's."""
    scope["privlearn.caller"] = name


def caller_name(request: Request) -> str:
    """Return the name that `note_caller` recorded."""
    return str(request.scope.get("privlearn.caller", ""))


async def run_computing(
    request: Request,
    function: Callable[Arguments, Result],
    *args: Arguments.args,
    **options: Arguments.kwargs,
) -> Result:
    """Call a function that only computes, one at a time: more threads would compete for the interpreter."""
    async with shared_of(request).computing.acquire(caller_name(request)):
        return await run_in_threadpool(function, *args, **options)


async def run_heavy(
    request: Request,
    function: Callable[Arguments, Result],
    *args: Arguments.args,
    **options: Arguments.kwargs,
) -> Result:
    """Call a function in one of few threads; callers take turns, and a waiting request occupies no thread."""
    async with shared_of(request).threads.acquire(caller_name(request)):
        return await run_in_threadpool(function, *args, **options)


async def run_quick(
    request: Request,
    function: Callable[Arguments, Result],
    *args: Arguments.args,
    **options: Arguments.kwargs,
) -> Result:
    """Call a function that takes milliseconds in a thread."""
    return await to_thread.run_sync(partial(function, *args, **options), limiter=shared_of(request).quick)


@asynccontextmanager
async def large_body(request: Request, megabytes: int) -> AsyncIterator[None]:
    """Allow a larger body for an authenticated caller, within the capacity for all such bodies."""
    maximum = megabytes * MEGABYTE
    size = min(_content_length(request.scope) or maximum, maximum)  # the first byte beyond that is refused
    if size <= request.scope["privlearn.body"]:
        yield
        return
    async with shared_of(request).bodies.acquire(caller_name(request), size):
        request.scope["privlearn.body"] = maximum
        yield


POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
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
        headers = ALWAYS | (WITH_TLS if tls else {})
        self._headers = [(name.lower().encode(), value.encode()) for name, value in headers.items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = list(message.get("headers", ()))
                present = {name.lower() for name, _ in headers}
                headers += [header for header in self._headers if header[0] not in present]
                message["headers"] = headers
            await send(message)

        await self._app(scope, receive, with_headers)


class Limiter:
    """Rate limits: requests of a key, and failed attempts of a network address."""

    def __init__(self, requests_per_minute: float, sign_ins_per_minute: float) -> None:
        self._requests = Buckets(requests_per_minute, burst=requests_per_minute / 6.0)
        self._failures = Buckets(sign_ins_per_minute, burst=sign_ins_per_minute)

    def count_failure(self, address: str) -> None:
        """Count a key that is not valid. Valid ones are not receive_limited, so an attacker cannot lock out others."""
        if not self._failures.take(address):
            raise TooMany("there were too many attempts with invalid keys. Wait a minute.")

    def count(self, key_id: str) -> None:
        """Count a request with a valid key."""
        if not self._requests.take(key_id):
            raise TooMany(
                "this key sends more requests than the holder allows. Wait a few seconds, or send batches."
            )


class RequestLimit:
    """Ends a request whose head is too long or names another host, or whose body is too large or too slow.

    Only small bodies are allowed at first; `large_body` allows more for an authenticated caller.
    """

    def __init__(self, app: ASGIApp, limits: Limits, hosts: frozenset[str] | None = None) -> None:
        self._app = app
        self._hosts = hosts
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

        async def receive_limited() -> Message:
            nonlocal arrived, complete
            if complete:  # only the end of the connection is left
                return await receive()
            if arrived == 0 and _content_length(scope) > scope["privlearn.body"]:
                await _drain(scope, receive, deadline)
                _check_size(_content_length(scope), scope["privlearn.body"])
            try:
                async with asyncio.timeout_at(deadline):
                    message = await receive()
            except TimeoutError:
                raise HTTPException(
                    HTTPStatus.REQUEST_TIMEOUT,
                    "the body did not arrive in time. Send smaller batches.",
                    _CLOSE,
                ) from None
            arrived += len(message.get("body", b""))
            complete = not message.get("more_body", False)
            _check_size(arrived, scope["privlearn.body"])
            return message

        if refusal := self._refuse_head(scope):
            await problem(*refusal, headers=_CLOSE)(scope, receive, send)
        else:
            await self._app(scope, receive_limited, send)

    def _refuse_head(self, scope: Scope) -> tuple[HTTPStatus, str] | None:
        """Return status and reason if the head is too long, or has no valid name of this server."""
        if _head_size(scope) > self._head:
            return HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, _LONG_HEAD
        sent = [value for name, value in scope["headers"] if name == b"host"]
        host = _host(sent[0].decode("latin-1")) if len(sent) == 1 else None
        if host is None:
            return HTTPStatus.BAD_REQUEST, "the request has no valid header Host, or several. Send one."
        if self._hosts is not None and host not in self._hosts:
            return HTTPStatus.MISDIRECTED_REQUEST, _OTHER_HOST
        return None


def _host(header: str) -> str | None:
    """Return the name or address in a header Host, without the port; None if it is not valid."""
    match = _HOST.fullmatch(header)
    if match is None or match[2] is None:
        return match and match[1].lower()
    with suppress(ValueError):
        return IPv6Address(match[2]).compressed
    return None


_HOST = re.compile(r"([A-Za-z0-9._-]+|\[([0-9A-Fa-f:.]+)\])(:[0-9]{1,5})?")
_OTHER_HOST = (
    "the header Host names another server. Use the address of this one, or ask its holder to allow yours."
)
_CLOSE = {"Connection": "close"}
_LONG_HEAD = "the request's first line and headers are too long. Send shorter ones."


async def _drain(scope: Scope, receive: Receive, deadline: float) -> None:
    """Read and drop a body, unless it is huge: a client that is still sending may not see the answer."""
    if _content_length(scope) > _MAX_DRAINED:
        return
    with suppress(TimeoutError):
        async with asyncio.timeout_at(deadline):
            while (await receive()).get("more_body", False):
                pass


_MAX_DRAINED = 64 * MEGABYTE


def _check_size(size: int, maximum: int) -> None:
    if size > maximum:
        allowed = (
            f"{maximum // KILOBYTE} kilobytes" if maximum < MEGABYTE else f"{maximum // MEGABYTE} megabytes"
        )
        raise TooLarge(f"the body is larger than the allowed {allowed}. Send smaller batches.")


def _head_size(scope: Scope) -> int:
    line = len(scope["raw_path"]) + len(scope["query_string"])
    return line + sum(len(name) + len(value) for name, value in scope["headers"])


def _content_length(scope: Scope) -> int:
    for name, value in scope["headers"]:
        if name == b"content-length":
            return int(value) if value.isdigit() else 0
    return 0

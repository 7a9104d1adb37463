"""Limits of the HTTP interface: sizes, times, threads, and the headers that browsers obey."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from http import HTTPStatus
from typing import ParamSpec, TypeVar

from anyio import CapacityLimiter, to_thread
from fastapi import Request
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from privlearn.service.refusals import TooMany

AT_ONCE = 4

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def new_limit() -> CapacityLimiter:
    """What the application keeps as ``app.state.aside``."""
    return CapacityLimiter(AT_ONCE)


async def aside(
    request: Request,
    function: Callable[Arguments, Result],
    *args: Arguments.args,
    **options: Arguments.kwargs,
) -> Result:
    """Call a function in one of these threads; whoever waits for one keeps no thread busy."""
    return await to_thread.run_sync(lambda: function(*args, **options), limiter=request.app.state.aside)


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


BODY_SECONDS = 60.0
_MOST_BUCKETS = 10_000  # of an attacker with many addresses the oldest are forgotten: memory stays bounded
_MEGABYTE = 1 << 20


class Buckets:
    """A bucket of tokens for each name; it refills at a steady rate.

    Parameters
    ----------
    per_minute : float
        The rate.
    burst : float
        What a full bucket holds.
    """

    def __init__(self, per_minute: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = per_minute / 60.0
        self._burst = max(burst, 1.0)
        self._clock = clock
        self._levels: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, name: str) -> bool:
        """Take one token; False if there is none."""
        with self._lock:
            level = self._level(name)
            allowed = level >= 1.0
            self._keep(name, level - 1.0 if allowed else level)
            return allowed

    def _level(self, name: str) -> float:
        level, at = self._levels.get(name, (self._burst, self._clock()))
        return min(self._burst, level + (self._clock() - at) * self._rate)

    def _keep(self, name: str, level: float) -> None:
        self._levels[name] = level, self._clock()
        self._levels.move_to_end(name)
        if len(self._levels) > _MOST_BUCKETS:
            self._levels.popitem(last=False)


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


class BodyLimit:
    """Ends a request as soon as its body is too large, or too slow."""

    def __init__(self, app: ASGIApp, megabytes: float) -> None:
        self._app = app
        self._most = int(megabytes * _MEGABYTE)
        self._too_large = f"the body is larger than {megabytes:g} megabytes: send smaller batches"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        deadline = asyncio.get_running_loop().time() + BODY_SECONDS
        arrived, complete = 0, False

        async def counted() -> Message:
            nonlocal arrived, complete
            if complete:  # what comes now is only the end of the connection
                return await receive()
            if arrived == 0 and _announced(scope) > self._most:
                raise HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, self._too_large)
            try:
                async with asyncio.timeout_at(deadline):
                    message = await receive()
            except TimeoutError:
                raise HTTPException(HTTPStatus.REQUEST_TIMEOUT, "the body did not arrive in time") from None
            arrived += len(message.get("body", b""))
            complete = not message.get("more_body", False)
            if arrived > self._most:
                raise HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, self._too_large)
            return message

        await self._app(scope, counted, send)


def _announced(scope: Scope) -> int:
    for name, value in scope["headers"]:
        if name == b"content-length":
            return int(value) if value.isdigit() else 0
    return 0

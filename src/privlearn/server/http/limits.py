"""Limits of the HTTP interface: sizes, times and rates of requests; and the security headers of answers."""

from __future__ import annotations

import asyncio
import re
from contextlib import suppress
from http import HTTPStatus
from ipaddress import IPv6Address

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from privlearn.server.holder.settings import Limits
from privlearn.server.http.capacity import KILOBYTE, MEGABYTE, content_length
from privlearn.server.http.problems import problem
from privlearn.server.refusals import TooLarge, TooMany
from privlearn.server.token_buckets import Buckets

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
            raise TooMany("this key sends too many requests. Wait a few seconds, or send batches.")


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
            if arrived == 0 and content_length(scope) > scope["privlearn.body"]:
                await _drain(scope, receive, deadline)
                _check_size(content_length(scope), scope["privlearn.body"])
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
    if content_length(scope) > _MAX_DRAINED:
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

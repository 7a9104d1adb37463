"""The two cookies of the pages: one for a signed-in browser, one for a sign-in attempt at a provider."""

from __future__ import annotations

from typing import Literal

from fastapi import Request
from fastapi.responses import Response

from privlearn.server.http.callers import service_of

SameSite = Literal["strict", "lax"]


def login_cookie(request: Request) -> str:
    return _name(request, "privlearn")


def attempt_cookie(request: Request) -> str:
    return _name(request, "privlearn-attempt")


def set_cookie(
    request: Request, answer: Response, name: str, value: str, seconds: int, same: SameSite
) -> None:
    """Set a cookie that scripts cannot read."""
    secure = _is_encrypted(request)
    answer.set_cookie(name, value, max_age=seconds, httponly=True, samesite=same, secure=secure)


def delete_cookie(request: Request, answer: Response, name: str, same: SameSite) -> None:
    answer.delete_cookie(name, httponly=True, samesite=same, secure=_is_encrypted(request))


def _name(request: Request, name: str) -> str:
    """Return the cookie's name; with TLS its prefix makes browsers refuse cookies set by other hosts."""
    return f"__Host-{name}" if _is_encrypted(request) else name


def _is_encrypted(request: Request) -> bool:
    server = service_of(request).owner.server
    return server.uses_tls or server.behind_proxy

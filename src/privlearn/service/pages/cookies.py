"""What a browser keeps for us: that it is signed in, and that it is on its way to sign in."""

from __future__ import annotations

from typing import Literal

from fastapi import Request
from fastapi.responses import Response

from privlearn.service.http.callers import service_of

SameSite = Literal["strict", "lax"]


def login_cookie(request: Request) -> str:
    return _name(request, "privlearn")


def attempt_cookie(request: Request) -> str:
    return _name(request, "privlearn-attempt")


def keep(request: Request, answer: Response, name: str, value: str, seconds: int, same: SameSite) -> None:
    """Have it kept, out of the reach of scripts."""
    secure = _is_encrypted(request)
    answer.set_cookie(name, value, max_age=seconds, httponly=True, samesite=same, secure=secure)


def forget(request: Request, answer: Response, name: str, same: SameSite) -> None:
    answer.delete_cookie(name, httponly=True, samesite=same, secure=_is_encrypted(request))


def _name(request: Request, name: str) -> str:
    """With TLS the name's beginning makes browsers refuse one that another host has set."""
    return f"__Host-{name}" if _is_encrypted(request) else name


def _is_encrypted(request: Request) -> bool:
    server = service_of(request).owner.server
    return server.uses_tls or server.behind_proxy

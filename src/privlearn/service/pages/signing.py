"""Who looks at a page: signing in by key, and what keeps other sites from acting in a visitor's name."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote

from fastapi import Depends, Request
from fastapi.responses import RedirectResponse, Response

from privlearn.service.api.callers import address_of, service_of
from privlearn.service.keys import Caller
from privlearn.service.logins import LOGIN_HOURS, caller_of_login, sign_in, sign_out
from privlearn.service.logs import note
from privlearn.service.pages.page import Form, page_router, text_of
from privlearn.service.pages.rendering import render
from privlearn.service.refusals import AccessRefused, Forbidden

router = page_router()


def visitor(request: Request) -> Caller:
    """Who has signed in."""
    caller = caller_of_login(service_of(request).store, request.cookies.get(_cookie(request), ""))
    note(request.scope, key=caller.key_id)
    request.app.state.limiter.count(caller.key_id)
    return caller


def analyst(found: Annotated[Caller, Depends(visitor)]) -> Caller:
    if found.is_holder:
        raise Forbidden("this page is an analyst's: the holder's console shows the same from the other side")
    return found


def holder(found: Annotated[Caller, Depends(visitor)]) -> Caller:
    if not found.is_holder:
        raise Forbidden("this page is for the holder of the data")
    return found


Visitor = Annotated[Caller, Depends(visitor)]
Analyst = Annotated[Caller, Depends(analyst)]
Holder = Annotated[Caller, Depends(holder)]


@router.get("/")
def start(request: Request, next: str = "") -> Response:
    """The visitor's own page, or the way in."""
    try:
        caller = visitor(request)
    except AccessRefused:
        return render(request, None, "sign_in.html", next=_inside(next))
    return RedirectResponse("/console" if caller.is_holder else "/desk", 303)


@router.post("/sign-in")
def enter(request: Request, form: Form) -> Response:
    following = _inside(text_of(form, "next"))
    try:
        token = sign_in(service_of(request).store, text_of(form, "key"))
    except AccessRefused as refusal:
        request.app.state.limiter.failed(address_of(request))
        return render(request, None, "sign_in.html", 401, next=following, errors={"key": f"{refusal}."})
    answer = RedirectResponse(following or "/", 303)
    answer.set_cookie(
        _cookie(request),
        token,
        max_age=LOGIN_HOURS * 3600,
        httponly=True,
        samesite="strict",
        secure=_is_encrypted(request),
    )
    return answer


@router.post("/sign-out")
def leave(request: Request) -> Response:
    sign_out(service_of(request).store, request.cookies.get(_cookie(request), ""))
    answer = RedirectResponse("/", 303)
    answer.delete_cookie(_cookie(request), httponly=True, samesite="strict", secure=_is_encrypted(request))
    return answer


def way_in(request: Request) -> Response:
    """To the sign-in page, and back here afterwards."""
    here = request.url.path if request.method == "GET" else ""
    return RedirectResponse(f"/?next={quote(here, safe='')}" if here else "/", 303)


def _inside(address: str) -> str:
    """An address on this server, or nothing: a link from elsewhere must not send visitors on to elsewhere."""
    local = address.startswith("/") and not address.startswith(("//", "/\\"))
    return address if local and address.isprintable() else ""


def _is_encrypted(request: Request) -> bool:
    server = service_of(request).owner.server
    return server.uses_tls or server.behind_proxy


def _cookie(request: Request) -> str:
    """With TLS the name's beginning makes browsers refuse one that another host has set."""
    return "__Host-privlearn" if _is_encrypted(request) else "privlearn"

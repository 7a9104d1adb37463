"""Signing in and out, and what a visitor sees who may not."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import Depends, FastAPI, Request
from fastapi.responses import RedirectResponse, Response
from starlette.concurrency import run_in_threadpool

from privlearn.service.access.keys import Caller
from privlearn.service.access.logins import LOGIN_HOURS, caller_of_login, sign_in, sign_out
from privlearn.service.http.callers import address_of, service_of
from privlearn.service.http.logs import note
from privlearn.service.pages.page import Form, page_router, problem_page, render, text_of
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


Handler = Callable[[Request, Any], Awaitable[Response]]

_FOR_PROGRAMS = ("/v1/", "/.well-known/", "/healthz", "/readyz", "/metrics")


def refuse_with_pages(app: FastAPI) -> None:
    """Wrap the handlers of errors that the application has by now."""
    for kind, handler in list(app.exception_handlers.items()):
        app.add_exception_handler(kind, _with_page(handler))  # type: ignore[arg-type]


def _with_page(handler: Handler) -> Handler:
    async def handle(request: Request, error: Any) -> Response:
        answer = await handler(request, error)
        if request.url.path.startswith(_FOR_PROGRAMS):
            return answer
        if isinstance(error, AccessRefused):
            return way_in(request)
        return problem_page(request, await run_in_threadpool(_caller, request), answer)

    return handle


def _caller(request: Request) -> Caller | None:
    try:
        return visitor(request)
    except Exception:  # whatever is wrong, there is an error to show already
        return None

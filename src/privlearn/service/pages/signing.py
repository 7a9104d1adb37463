"""Signing in and out, and what a visitor sees who may not."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import Depends, FastAPI, Request
from fastapi.responses import RedirectResponse, Response
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData

from privlearn.service.access.keys import Caller, Role
from privlearn.service.access.logins import caller_of_login, sign_in, sign_out
from privlearn.service.http.callers import address_of, service_of
from privlearn.service.http.forms import file_form
from privlearn.service.http.limits import note_caller
from privlearn.service.http.logs import note
from privlearn.service.pages import cookies
from privlearn.service.pages.page import Form, page_router, problem_page, render, text_of
from privlearn.service.refusals import AccessRefused, Forbidden

router = page_router()


def visitor(request: Request) -> Caller:
    """Who has signed in."""
    service = service_of(request)
    token = request.cookies.get(cookies.login_cookie(request), "")
    caller = caller_of_login(service.store, token, service.owner.sign_in)
    note(request.scope, key=caller.key_id)
    note_caller(request.scope, caller.name)
    request.app.state.limiter.count(caller.key_id)
    return caller


Visitor = Annotated[Caller, Depends(visitor)]


def _only(refusal: str, *roles: Role) -> Any:
    """A dependency: somebody who has signed in and has one of these roles."""

    def admit(found: Visitor) -> Caller:
        if found.role not in roles:
            raise Forbidden(refusal)
        return found

    return Depends(admit)


def form_with_file(setting: str) -> Any:
    """A dependency: the form of somebody who has signed in, its file as large as this setting of the limits says."""

    async def read(request: Request, _: Visitor) -> AsyncIterator[FormData]:
        form = await file_form(request, getattr(service_of(request).owner.limits, setting))
        try:
            yield form
        finally:
            await form.close()

    return Depends(read)


RowsForm = Annotated[FormData, form_with_file("body_megabytes")]
ReleaseForm = Annotated[FormData, form_with_file("file_megabytes")]
Analyst = Annotated[
    Caller,
    _only("this page is an analyst's: others have pages that show the same from their side", "analyst"),
]
Holder = Annotated[Caller, _only("this page is for the holder of the data", "holder")]
Auditor = Annotated[
    Caller, _only("this page is for the holder of the data and for auditors", "holder", "auditor")
]
RequestReader = Annotated[
    Caller,
    _only("this page is for the holder, approvers and auditors", "holder", "approver", "auditor"),
]
_FIRST_PAGES: dict[Role, str] = {
    "holder": "/console",
    "analyst": "/desk",
    "approver": "/approvals",
    "auditor": "/requests",
}


@router.get("/")
def start(request: Request, next: str = "") -> Response:
    """The visitor's own page, or the way in."""
    try:
        caller = visitor(request)
    except AccessRefused:
        return sign_in_page(request, next)
    return RedirectResponse(_FIRST_PAGES[caller.role], 303)


@router.post("/sign-in")
def enter(request: Request, form: Form) -> Response:
    following, service = inside(text_of(form, "next")), service_of(request)
    try:
        token = sign_in(service.store, text_of(form, "key"), service.owner.sign_in)
    except AccessRefused as refusal:
        request.app.state.limiter.failed(address_of(request))
        return sign_in_page(request, following, key=f"{refusal}.")
    answer = RedirectResponse(following or "/", 303)
    keep_signed_in(request, answer, token)
    return answer


def sign_in_page(request: Request, next: str, **errors: str) -> Response:
    """The ways in, and what went wrong with one of them."""
    provider = service_of(request).owner.sign_in.openid
    status = 401 if errors else 200
    return render(request, None, "sign_in.html", status, next=inside(next), provider=provider, errors=errors)


def keep_signed_in(request: Request, answer: Response, token: str) -> None:
    hours = service_of(request).owner.sign_in.hours
    cookies.keep(request, answer, cookies.login_cookie(request), token, hours * 3600, "strict")


@router.post("/sign-out")
def leave(request: Request) -> Response:
    service, token = service_of(request), request.cookies.get(cookies.login_cookie(request), "")
    sign_out(service.store, token, service.owner.sign_in)
    answer = RedirectResponse("/", 303)
    cookies.forget(request, answer, cookies.login_cookie(request), "strict")
    return answer


def way_in(request: Request) -> Response:
    """To the sign-in page, and back here afterwards."""
    here = request.url.path if request.method == "GET" else ""
    return RedirectResponse(f"/?next={quote(here, safe='')}" if here else "/", 303)


def inside(address: str) -> str:
    """An address on this server, or nothing: a link from elsewhere must not send visitors on to elsewhere."""
    local = address.startswith("/") and not address.startswith(("//", "/\\"))
    return address if local and address.isprintable() else ""


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

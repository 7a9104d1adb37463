"""Sign-in and sign-out, with a key or at the institution's OpenID provider; roles that pages require; refused requests.

There are two cookies: one for a signed-in browser, one for a sign-in attempt at a provider. (Signatures of releases are
in `server/holder/signing.py`.)
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Annotated, Any, Literal
from urllib.parse import quote

from fastapi import Depends, FastAPI, Request
from fastapi.responses import RedirectResponse, Response
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData

from privlearn.server.access.keys import Caller, Role
from privlearn.server.access.logins import caller_of_login, sign_in, sign_in_person, sign_out
from privlearn.server.access.openid import SECONDS_AT_PROVIDER, Attempt, Provider, caller_of_claims
from privlearn.server.http.bodies import file_form
from privlearn.server.http.callers import Served, address_of, service_of
from privlearn.server.http.capacity import note_caller
from privlearn.server.http.logs import note
from privlearn.server.pages.page import MENUS, Form, Visit, page_router, problem_page, render, text_of
from privlearn.server.refusals import AccessRefused, Forbidden, NotFound

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


router = page_router()


def signed_in_caller(request: Request) -> Caller:
    """Return the signed-in caller; raise AccessRefused without a valid login."""
    service = service_of(request)
    token = request.cookies.get(login_cookie(request), "")
    caller = caller_of_login(service.store, token, service.owner.sign_in)
    note(request.scope, key=caller.key_id)
    note_caller(request.scope, caller.name)
    request.app.state.limiter.count(caller.key_id)
    return caller


def _visit(request: Request) -> Visit:
    return Visit(request, service_of(request), signed_in_caller(request))


Visitor = Annotated[Visit, Depends(_visit)]


def _require_role(refusal: str, *roles: Role) -> Any:
    """Return a dependency that provides a visit by a caller with one of these roles."""

    def admit(visit: Visitor) -> Visit:
        if visit.caller.role not in roles:
            raise Forbidden(refusal)
        return visit

    return Depends(admit)


def form_with_file(setting: str) -> Any:
    """Return a dependency that provides a signed-in caller's form; a setting of the limits bounds its file."""

    async def read(request: Request, _: Visitor) -> AsyncIterator[FormData]:
        form = await file_form(request, getattr(service_of(request).owner.limits, setting))
        try:
            yield form
        finally:
            await form.close()

    return Depends(read)


RowsForm = Annotated[FormData, form_with_file("body_megabytes")]
ReleaseForm = Annotated[FormData, form_with_file("file_megabytes")]
_FOR_ANALYSTS = "this page is for analysts. Other roles have their own pages"
_FOR_HOLDER = "this page is for the holder of the data"
_FOR_AUDITORS = "this page is for the holder of the data and for auditors"
_FOR_READERS = "this page is for the holder, approvers and auditors"
Analyst = Annotated[Visit, _require_role(_FOR_ANALYSTS, "analyst")]
Holder = Annotated[Visit, _require_role(_FOR_HOLDER, "holder")]
Auditor = Annotated[Visit, _require_role(_FOR_AUDITORS, "holder", "auditor")]
RequestReader = Annotated[Visit, _require_role(_FOR_READERS, "holder", "approver", "auditor")]


@router.get("/")
def start(request: Request, next: str = "") -> Response:
    """Redirect to the first page of the caller's role, or show the sign-in page."""
    try:
        caller = signed_in_caller(request)
    except AccessRefused:
        return sign_in_page(request, next)
    return RedirectResponse(MENUS[caller.role][0][0], 303)


@router.post("/sign-in")
def enter(request: Request, form: Form) -> Response:
    """Sign the browser in with a key; show the sign-in page again if the key is refused."""
    following, service = local_path(text_of(form, "next")), service_of(request)
    try:
        token = sign_in(service.store, text_of(form, "key"), service.owner.sign_in)
    except AccessRefused as refusal:
        request.app.state.limiter.count_failure(address_of(request))
        return sign_in_page(request, following, key=f"{refusal}.")
    answer = RedirectResponse(following or "/", 303)
    keep_signed_in(request, answer, token)
    return answer


def sign_in_page(request: Request, next: str, **errors: str) -> Response:
    """Return the sign-in page, with errors of the last attempt."""
    provider = service_of(request).owner.sign_in.openid
    status = 401 if errors else 200
    return render(
        request, None, "sign_in.html", status, next=local_path(next), provider=provider, errors=errors
    )


def keep_signed_in(request: Request, answer: Response, token: str) -> None:
    """Set the cookie of a signed-in browser."""
    hours = service_of(request).owner.sign_in.hours
    set_cookie(request, answer, login_cookie(request), token, hours * 3600, "strict")


@router.post("/sign-out")
def leave(request: Request) -> Response:
    """Sign the browser out: the token ends, also for a copy of the cookie."""
    service, token = service_of(request), request.cookies.get(login_cookie(request), "")
    sign_out(service.store, token, service.owner.sign_in)
    answer = RedirectResponse("/", 303)
    delete_cookie(request, answer, login_cookie(request), "strict")
    return answer


def redirect_to_sign_in(request: Request) -> Response:
    """Redirect to the sign-in page, and back here afterwards."""
    here = request.url.path if request.method == "GET" else ""
    return RedirectResponse(f"/?next={quote(here, safe='')}" if here else "/", 303)


def local_path(address: str) -> str:
    """Return the address if it is on this server, else "": links must not redirect visitors to other sites."""
    local = address.startswith("/") and not address.startswith(("//", "/\\"))
    return address if local and address.isprintable() else ""


Handler = Callable[[Request, Any], Awaitable[Response]]

_FOR_PROGRAMS = ("/v1/", "/.well-known/", "/healthz", "/readyz", "/metrics")


def refuse_with_pages(app: FastAPI) -> None:
    """Wrap the application's error handlers so that browsers get pages."""
    for kind, handler in list(app.exception_handlers.items()):
        app.add_exception_handler(kind, _with_page(handler))  # type: ignore[arg-type]


def _with_page(handler: Handler) -> Handler:
    async def handle(request: Request, error: Any) -> Response:
        answer = await handler(request, error)
        if request.url.path.startswith(_FOR_PROGRAMS):
            return answer
        if isinstance(error, AccessRefused):
            return redirect_to_sign_in(request)
        return problem_page(request, await run_in_threadpool(_caller, request), answer)

    return handle


def _caller(request: Request) -> Caller | None:
    try:
        return signed_in_caller(request)
    except Exception:  # there is already an error to show
        return None


def _provider_of(request: Request) -> Provider:
    provider: Provider | None = request.app.state.provider
    if provider is None:
        raise NotFound("this server has no sign-in provider. Sign in with a key")
    return provider


@router.get("/sign-in/provider")
async def leave_for_provider(request: Request, next: str = "") -> Response:
    """Begin a sign-in attempt, and redirect the browser to the provider."""
    try:
        address, attempt = await _provider_of(request).begin(local_path(next))
    except AccessRefused as refusal:
        return sign_in_page(request, next, provider=f"{refusal}.")
    answer = RedirectResponse(address, 303)
    # Lax: the browser must send the cookie although the provider, another site, redirects it here.
    name = attempt_cookie(request)
    set_cookie(request, answer, name, attempt.as_cookie(), SECONDS_AT_PROVIDER, "lax")
    return answer


@router.get("/signed-in")
async def come_back(request: Request, service: Served) -> Response:
    """Finish a sign-in attempt with what the provider sent, and sign the browser in."""
    following = ""
    try:
        provider = _provider_of(request)
        attempt = Attempt.from_cookie(request.cookies.get(attempt_cookie(request), ""))
        following = local_path(attempt.next)
        claims = await provider.finish(attempt, request.query_params)
        caller = caller_of_claims(provider.settings, service.catalog.owner.analysts, claims)
    except AccessRefused as refusal:
        request.app.state.limiter.count_failure(address_of(request))
        return sign_in_page(request, following, provider=f"{refusal}.")
    note(request.scope, key=caller.key_id)
    rules = service.owner.sign_in
    token = await run_in_threadpool(sign_in_person, service.store, caller.role, caller.person, rules)
    # A page instead of a redirect: browsers withhold strict cookies in a chain of redirects that another site began.
    answer = render(request, None, "signed_in.html", next=following or "/")
    keep_signed_in(request, answer, token)
    delete_cookie(request, answer, attempt_cookie(request), "lax")
    return answer

"""Sign-in at the institution's OpenID provider: the redirect to it, and the return."""

from __future__ import annotations

from fastapi import Request
from fastapi.responses import RedirectResponse, Response
from starlette.concurrency import run_in_threadpool

from privlearn.server.access.logins import sign_in_person
from privlearn.server.access.openid import SECONDS_AT_PROVIDER, Attempt, Provider, caller_of_claims
from privlearn.server.http.callers import Served, address_of
from privlearn.server.http.logs import note
from privlearn.server.pages import cookies
from privlearn.server.pages.page import page_router, render
from privlearn.server.pages.signing import keep_signed_in, local_path, sign_in_page
from privlearn.server.refusals import AccessRefused, NotFound

router = page_router()


def _provider_of(request: Request) -> Provider:
    provider: Provider | None = request.app.state.provider
    if provider is None:
        raise NotFound("this server has no sign-in provider: sign in with a key")
    return provider


@router.get("/sign-in/provider")
async def leave_for_provider(request: Request, next: str = "") -> Response:
    try:
        address, attempt = await _provider_of(request).begin(local_path(next))
    except AccessRefused as refusal:
        return sign_in_page(request, next, provider=f"{refusal}.")
    answer = RedirectResponse(address, 303)
    # Lax: the browser must send the cookie although the provider, another site, redirects it here.
    name = cookies.attempt_cookie(request)
    cookies.set_cookie(request, answer, name, attempt.as_cookie(), SECONDS_AT_PROVIDER, "lax")
    return answer


@router.get("/signed-in")
async def come_back(request: Request, service: Served) -> Response:
    following = ""
    try:
        provider = _provider_of(request)
        attempt = Attempt.from_cookie(request.cookies.get(cookies.attempt_cookie(request), ""))
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
    cookies.delete_cookie(request, answer, cookies.attempt_cookie(request), "lax")
    return answer

"""Who calls: the key in the Authorization header, within the limits."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.concurrency import run_in_threadpool

from privlearn.service.keys import Caller, authenticate
from privlearn.service.limits import Limiter
from privlearn.service.logs import note
from privlearn.service.refusals import AccessRefused, Forbidden
from privlearn.service.service import Service

_bearer = HTTPBearer(
    auto_error=False,
    scheme_name="key",
    bearerFormat="pl_ID_SECRET",
    description="As `privlearn keys create` prints it.",
)


def service_of(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


def address_of(request: Request) -> str:
    return request.client.host if request.client else ""


async def caller_of(
    request: Request, shown: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]
) -> Caller:
    """Whoever shows a valid key; the same refusal for all others."""
    limiter: Limiter = request.app.state.limiter
    if shown is None:
        raise AccessRefused("show your key: Authorization: Bearer pl_...")
    try:
        caller = await run_in_threadpool(authenticate, service_of(request).store, shown.credentials)
    except AccessRefused:
        limiter.failed(address_of(request))
        raise
    note(request.scope, key=caller.key_id)
    limiter.count(caller.key_id)
    return caller


KnownCaller = Annotated[Caller, Depends(caller_of)]


async def holder_of(caller: KnownCaller) -> Caller:
    if not caller.is_holder:
        raise Forbidden("this is for the data's holder: ask with a holder's key")
    return caller


Holder = Annotated[Caller, Depends(holder_of)]
Served = Annotated[Service, Depends(service_of)]

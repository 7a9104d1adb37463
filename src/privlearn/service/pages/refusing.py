"""Refusals outside the HTTP interface are pages."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import Response
from starlette.concurrency import run_in_threadpool

from privlearn.service.keys import Caller
from privlearn.service.pages.page import problem_page
from privlearn.service.pages.signing import visitor, way_in
from privlearn.service.refusals import AccessRefused

Handler = Callable[[Request, Any], Awaitable[Response]]

_FOR_PROGRAMS = ("/v1/", "/healthz", "/readyz", "/metrics")


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

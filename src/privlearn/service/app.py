"""The application: the service behind HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request
from starlette.concurrency import run_in_threadpool
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from privlearn.service import pages
from privlearn.service.api import add_api
from privlearn.service.api.aside import new_limit
from privlearn.service.api.problems import defect, handle_problems
from privlearn.service.headers import SecurityHeaders
from privlearn.service.limits import BodyLimit, Limiter
from privlearn.service.logs import RequestLog
from privlearn.service.metrics import Metrics
from privlearn.service.service import Service


def make_app(service: Service) -> FastAPI:
    """The service with its API and its pages; it trains for as long as the application runs."""
    app = bare_app()
    limits, tls = service.owner.limits, service.owner.server.uses_tls
    app.state.service = service
    app.state.stopping = False
    app.state.limiter = Limiter(limits.requests_per_minute, limits.sign_ins_per_minute)
    app.state.metrics = Metrics()
    app.state.aside = new_limit()
    pages.mount(app)
    # The last added sees a request first.
    app.add_middleware(NoDefects)
    app.add_middleware(BodyLimit, megabytes=limits.body_megabytes)
    app.add_middleware(SecurityHeaders, tls=tls)
    app.add_middleware(RequestLog, finished=app.state.metrics.finished)
    return app


def bare_app() -> FastAPI:
    """The API without a service behind it: enough to describe it."""
    app = FastAPI(
        openapi_url="/v1/openapi.json",
        docs_url=None,  # these two would load scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,
        lifespan=_running,
    )
    handle_problems(app)
    add_api(app)
    return app


@asynccontextmanager
async def _running(app: FastAPI) -> AsyncIterator[None]:
    service: Service = app.state.service
    await run_in_threadpool(service.start)
    try:
        yield
    finally:
        await run_in_threadpool(service.stop)


class NoDefects:
    """Turns what nobody foresaw into an answer without content, before a server would print it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun = False

        async def noting_begin(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._app(scope, receive, noting_begin)
        except Exception as error:
            if scope["type"] != "http":
                raise
            answer = defect(Request(scope), error)
            if not begun:  # what was begun can only be broken off
                await answer(scope, receive, send)

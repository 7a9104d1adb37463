"""Assemble the ASGI application from its parts, and run it with uvicorn."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from types import FrameType
from typing import Any, NoReturn

import uvicorn
from fastapi import FastAPI, Request
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from privlearn._version import __version__
from privlearn.parties.listening import check_certificate, listen
from privlearn.server.access.openid import Provider
from privlearn.server.api import (
    analysts,
    approvals,
    dataset_changes,
    datasets,
    identity,
    jobs,
    operations,
    results,
    sessions,
)
from privlearn.server.api.requests import any_body, body_models
from privlearn.server.api.sessions import LeanPredictions
from privlearn.server.holder.settings import Owner, ServerSettings
from privlearn.server.http.callers import BODIES, REF
from privlearn.server.http.capacity import KILOBYTE, Shared
from privlearn.server.http.connections import Connections, connection_class
from privlearn.server.http.limits import Limiter, RequestLimit, SecurityHeaders
from privlearn.server.http.logs import RequestLog, log_to_stderr
from privlearn.server.http.metrics import Metrics
from privlearn.server.http.problems import Problem, defect, handle_problems
from privlearn.server.pages import analysts as analyst_pages
from privlearn.server.pages import approvals as approval_pages
from privlearn.server.pages import console, desk, result_page, signing, train_page
from privlearn.server.pages import dataset_changes as dataset_pages
from privlearn.server.pages import sessions as session_pages
from privlearn.server.pages.page import STATIC
from privlearn.server.pages.signing import refuse_with_pages
from privlearn.server.service import Service

DESCRIPTION = """\
Train on records that stay with their holder, within a privacy budget that cannot be overspent. Every call except
`/healthz`, `/readyz`, `/.well-known/privlearn.pem` and `/v1/openapi.json` needs a key:
`Authorization: Bearer pl_...`. A refused request costs nothing, and its answer gives the reason."""
_API = (identity, analysts, datasets, dataset_changes, jobs, approvals, results, sessions, operations)
_PAGES = (
    signing, desk, train_page, result_page, session_pages, approval_pages, console, analyst_pages, dataset_pages,
)  # fmt: skip
_TAGS = {
    "people": "Keys, analysts and the audit log.",
    "data sets": "Public descriptions, budgets, and synthetic rows to try calls with.",
    "jobs": "Request, estimate, follow and cancel jobs of every kind.",
    "approvals": "Requests that wait for a second person, and decisions on them.",
    "results": "What jobs of every kind produced: releases, sessions, evaluations, ...",
    "sessions": "Ask a model that stays with the holder for predictions.",
    "operations": "Health, metrics and the public key, for operators.",
}

_SOCKET, _WATCHDOG = "NOTIFY_SOCKET", "WATCHDOG_USEC"


def notify(state: str) -> None:
    """Send systemd one line such as ``READY=1``; do nothing if no service manager listens."""
    address = os.environ.get(_SOCKET, "")
    if not address:
        return
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
        channel.sendto(state.encode(), "\0" + address[1:] if address.startswith("@") else address)


async def send_watchdog_pings() -> None:
    """Ping systemd's watchdog from the event loop, at twice the required rate, so that a blocked loop is noticed."""
    microseconds = os.environ.get(_WATCHDOG, "")
    if not microseconds.isdigit():
        return
    while True:
        notify("WATCHDOG=1")
        await asyncio.sleep(int(microseconds) / 2e6)


def make_app(service: Service) -> FastAPI:
    """Return the application with API and pages. Jobs run for as long as the application does."""
    app = bare_app()
    limits, tls = service.owner.limits, service.owner.server.uses_tls
    app.state.service = service
    app.state.stopping = False
    app.state.limiter = Limiter(limits.requests_per_minute, limits.sign_ins_per_minute)
    app.state.metrics = Metrics()
    openid = service.owner.sign_in.openid
    app.state.provider = None if openid is None else Provider(openid)
    app.state.shared = Shared(limits)
    for module in _PAGES:
        app.include_router(module.router)
    app.mount("/static", _Lasting(directory=STATIC))
    refuse_with_pages(app)
    # The last added sees a request first.
    app.add_middleware(LeanPredictions)
    app.add_middleware(AnswerDefects)
    app.add_middleware(RequestLimit, limits=limits, hosts=service.owner.server.hosts)
    app.add_middleware(SecurityHeaders, tls=tls)
    if service.telemetry is not None:
        app.add_middleware(service.telemetry.of_requests)
    app.add_middleware(RequestLog, finished=app.state.metrics.observe_request)
    return app


def bare_app() -> FastAPI:
    """Return the API without a service: enough to describe it."""
    app = FastAPI(
        openapi_url="/v1/openapi.json",
        docs_url=None,  # both would load scripts from other servers
        redoc_url=None,
        redirect_slashes=False,
        lifespan=_running,
    )
    handle_problems(app)
    for module in _API:
        app.include_router(module.router)
    app.openapi = lambda: _description(app)  # type: ignore[method-assign]  # FastAPI's documented way to extend it
    return app


def _description(app: FastAPI) -> dict[str, Any]:
    if app.openapi_schema is None:
        tags = [{"name": name, "description": text} for name, text in _TAGS.items()]
        description = get_openapi(
            title="privlearn", version=__version__, description=DESCRIPTION, routes=app.routes, tags=tags
        )
        schemas = description["components"]["schemas"]
        # Models that FastAPI does not find itself: problems, and bodies that our code reads.
        models: list[type[BaseModel]] = [Problem, *BODIES, *body_models()]
        for model in models:
            schemas[model.__name__] = model.model_json_schema(ref_template=REF)
        for path in ("/v1/jobs", "/v1/estimates"):  # the kinds of extensions are registered by now
            description["paths"][path]["post"] |= any_body()
        app.openapi_schema = description
    return app.openapi_schema


@asynccontextmanager
async def _running(app: FastAPI) -> AsyncIterator[None]:
    service: Service = app.state.service
    await run_in_threadpool(service.start)
    pings = asyncio.create_task(send_watchdog_pings())
    try:
        yield
    finally:
        pings.cancel()
        await run_in_threadpool(service.stop)


class _Lasting(StaticFiles):
    """Style sheet and script, which browsers may cache: pages name them with their digest."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        answer = await super().get_response(path, scope)
        answer.headers["Cache-Control"] = "max-age=86400"
        return answer


class AnswerDefects:
    """Turns an unexpected exception into an answer without details, before uvicorn would print it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun = False

        async def send_and_note(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._app(scope, receive, send_and_note)
        except ClientDisconnect:  # not a defect: the client is gone
            return
        except Exception as error:
            if scope["type"] != "http":
                raise
            answer = defect(Request(scope), error)
            if not begun:  # an answer that has begun can only be cut off
                await answer(scope, receive, send)


_LAST_REQUESTS_SECONDS = 0.2
"""Time for connections that were just accepted to send their request."""
_LAST_ANSWERS_SECONDS = 30
_ADVICE = "use the PEM files of your certificate authority, the key without a password"


def serve(owner: Owner, announce: Callable[[str], None]) -> None:
    """Serve until SIGTERM or SIGINT.

    Then no more connections are accepted, running jobs are left to other servers or to the next start, and answers in
    progress are finished.

    ``announce``: called with the address once the server answers.
    """
    settings = owner.server
    if settings.tls_certificate is not None and settings.tls_key is not None:
        check_certificate(settings.tls_certificate, settings.tls_key, _ADVICE)
    with listen(settings.host, settings.port) as listener:
        app = make_app(Service(owner))
        url = address(settings, listener)
        log_to_stderr()
        signal.signal(signal.SIGTERM, _end)
        with suppress(KeyboardInterrupt):  # uvicorn raises the signal again after its shutdown
            _Server(configuration(app, owner), app, lambda: announce(url)).run([listener])


def address(settings: ServerSettings, listener: socket.socket) -> str:
    """Return the server's URL for a browser."""
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return f"{'https' if settings.uses_tls else 'http'}://{host}:{listener.getsockname()[1]}"


def _end(*_: object) -> NoReturn:
    """End the process on SIGTERM as on Ctrl-C: close what is open, exit code 0."""
    raise SystemExit(0)


def configuration(app: FastAPI, owner: Owner) -> uvicorn.Config:
    """Return uvicorn's configuration."""
    settings, limits = owner.server, owner.limits
    connections = Connections(limits.connections, limits.header_kilobytes * KILOBYTE, limits.header_seconds)
    return uvicorn.Config(
        app,
        http=connection_class(connections),
        ssl_certfile=settings.tls_certificate,
        ssl_keyfile=settings.tls_key,
        proxy_headers=settings.behind_proxy,  # only of a proxy on this machine or in FORWARDED_ALLOW_IPS
        server_header=False,
        access_log=False,  # it would log full paths; `http.logs` writes its own lines
        log_config=None,
        ws="none",
        timeout_graceful_shutdown=_LAST_ANSWERS_SECONDS,
    )


def _keep_what_is_loaded() -> None:
    """Exempt the modules from garbage collection: going through them stops every answer for 100 to 300 ms."""
    gc.collect()
    gc.freeze()


class _Server(uvicorn.Server):
    """Announces when it answers, and ends waiting requests when it is about to stop."""

    def __init__(self, config: uvicorn.Config, app: FastAPI, announce: Callable[[], None]) -> None:
        super().__init__(config)
        self._app = app
        self._service: Service = app.state.service
        self._announce = announce

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            _keep_what_is_loaded()
            self._announce()
            notify("READY=1")

    async def on_tick(self, counter: int) -> bool:
        """Return whether to end."""
        if self._service.watch.must_end:
            self._prepare_to_end()
        return self._service.watch.must_end or await super().on_tick(counter)

    def handle_exit(self, sig: int, frame: FrameType | None) -> Any:
        self._prepare_to_end()
        super().handle_exit(sig, frame)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for server in self.servers:
            server.close()
        await asyncio.sleep(_LAST_REQUESTS_SECONDS)
        await super().shutdown(sockets)

    def _prepare_to_end(self) -> None:
        self._app.state.stopping = True
        self._service.hand_over()
        notify("STOPPING=1")

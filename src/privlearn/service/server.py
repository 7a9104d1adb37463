"""The server: everything put together, and run."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from types import FrameType
from typing import Any, NoReturn

import uvicorn
from fastapi import FastAPI, Request
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from privlearn.listening import check_certificate, listen
from privlearn.service import pages, systemd
from privlearn.service.access.openid import Provider
from privlearn.service.api import add_api
from privlearn.service.holder.settings import Owner, ServerSettings
from privlearn.service.http.connections import Connections, guarded
from privlearn.service.http.limits import KILOBYTE, Limiter, RequestLimit, SecurityHeaders, Shared
from privlearn.service.http.logs import RequestLog, log_to_stderr
from privlearn.service.http.metrics import Metrics
from privlearn.service.http.problems import defect, handle_problems
from privlearn.service.service import Service


def make_app(service: Service) -> FastAPI:
    """The service with its API and its pages; it trains for as long as the application runs."""
    app = bare_app()
    limits, tls = service.owner.limits, service.owner.server.uses_tls
    app.state.service = service
    app.state.stopping = False
    app.state.limiter = Limiter(limits.requests_per_minute, limits.sign_ins_per_minute)
    app.state.metrics = Metrics()
    openid = service.owner.sign_in.openid
    app.state.provider = None if openid is None else Provider(openid)
    app.state.shared = Shared(limits)
    pages.mount(app)
    # The last added sees a request first.
    app.add_middleware(NoDefects)
    app.add_middleware(RequestLimit, limits=limits)
    app.add_middleware(SecurityHeaders, tls=tls)
    if service.telemetry is not None:
        app.add_middleware(service.telemetry.of_requests)
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
    telling = asyncio.create_task(systemd.keep_telling())
    try:
        yield
    finally:
        telling.cancel()
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
        except ClientDisconnect:  # no defect: there is nobody to answer
            return
        except Exception as error:
            if scope["type"] != "http":
                raise
            answer = defect(Request(scope), error)
            if not begun:  # what was begun can only be broken off
                await answer(scope, receive, send)


_LAST_REQUESTS_SECONDS = 0.2
"""For those who have just been let in to say what they want."""
_LAST_ANSWERS_SECONDS = 30
_ADVICE = "give the PEM files that your certificate authority made, the key without a password"


def serve(owner: Owner, announce: Callable[[str], None]) -> None:
    """Serve until the process is told to end (SIGTERM, SIGINT).

    Then no connection is accepted any more, trainings are left to other servers or to the next start, and answers under
    way are finished.

    Parameters
    ----------
    owner : Owner
    announce : callable
        Is told the address once it answers.
    """
    settings = owner.server
    if settings.tls_certificate is not None and settings.tls_key is not None:
        check_certificate(settings.tls_certificate, settings.tls_key, _ADVICE)
    with listen(settings.host, settings.port) as listener:
        app = make_app(Service(owner))
        url = address(settings, listener)
        log_to_stderr()
        signal.signal(signal.SIGTERM, _end)
        with suppress(KeyboardInterrupt):  # once the orderly end is over, the signal is given again
            _Server(configuration(app, owner), app, lambda: announce(url)).run([listener])


def address(settings: ServerSettings, listener: socket.socket) -> str:
    """Where a browser finds the server."""
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return f"{'https' if settings.uses_tls else 'http'}://{host}:{listener.getsockname()[1]}"


def _end(*_: object) -> NoReturn:
    """SIGTERM ends the process as Ctrl-C does: what is open is closed, and its exit code is 0."""
    raise SystemExit(0)


def configuration(app: FastAPI, owner: Owner) -> uvicorn.Config:
    """How uvicorn serves the application."""
    settings, limits = owner.server, owner.limits
    connections = Connections(limits.connections, limits.header_kilobytes * KILOBYTE, limits.header_seconds)
    return uvicorn.Config(
        app,
        http=guarded(connections),
        ssl_certfile=settings.tls_certificate,
        ssl_keyfile=settings.tls_key,
        proxy_headers=settings.behind_proxy,  # of a proxy on this machine, or one in FORWARDED_ALLOW_IPS
        server_header=False,
        access_log=False,  # it would repeat what is in the addresses; `logs` writes its own lines
        log_config=None,
        ws="none",
        timeout_graceful_shutdown=_LAST_ANSWERS_SECONDS,
    )


class _Server(uvicorn.Server):
    """Says when it answers, and tells those who wait for a training when it is about to end."""

    def __init__(self, config: uvicorn.Config, app: FastAPI, announce: Callable[[], None]) -> None:
        super().__init__(config)
        self._app = app
        self._service: Service = app.state.service
        self._announce = announce

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._announce()
            systemd.notify("READY=1")

    async def on_tick(self, counter: int) -> bool:
        """Whether to end."""
        if self._service.watch.must_end:
            self._begin_to_end()
        return self._service.watch.must_end or await super().on_tick(counter)

    def handle_exit(self, sig: int, frame: FrameType | None) -> Any:
        self._begin_to_end()
        super().handle_exit(sig, frame)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for server in self.servers:
            server.close()
        await asyncio.sleep(_LAST_REQUESTS_SECONDS)
        await super().shutdown(sockets)

    def _begin_to_end(self) -> None:
        self._app.state.stopping = True
        self._service.hand_over()
        systemd.notify("STOPPING=1")

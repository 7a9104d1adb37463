"""The server process: from the holder's settings to an open port, and to an orderly end."""

from __future__ import annotations

import signal
import socket
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Any, NoReturn

import uvicorn
from fastapi import FastAPI

from privlearn.listening import check_certificate, listen
from privlearn.service.app import make_app
from privlearn.service.logs import log_to_stderr
from privlearn.service.service import Service
from privlearn.service.settings import Owner, ServerSettings

_LAST_ANSWERS_SECONDS = 30
_ADVICE = "give the PEM files that your certificate authority made, the key without a password"


def serve(owner: Owner, announce: Callable[[str], None]) -> None:
    """Serve until the process is told to end (SIGTERM, SIGINT).

    Then no connection is accepted any more, answers under way are finished, and trainings are left for the next start.

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
            _Server(configuration(app, settings), app, lambda: announce(url)).run([listener])


def address(settings: ServerSettings, listener: socket.socket) -> str:
    """Where a browser finds the server."""
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return f"{'https' if settings.uses_tls else 'http'}://{host}:{listener.getsockname()[1]}"


def _end(*_: object) -> NoReturn:
    """SIGTERM ends the process as Ctrl-C does: what is open is closed, and its exit code is 0."""
    raise SystemExit(0)


def configuration(app: FastAPI, settings: ServerSettings) -> uvicorn.Config:
    """How uvicorn serves the application."""
    return uvicorn.Config(
        app,
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
        self._announce = announce

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._announce()

    def handle_exit(self, sig: int, frame: FrameType | None) -> Any:
        self._app.state.stopping = True
        super().handle_exit(sig, frame)

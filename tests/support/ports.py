"""A port that nobody listens on, for servers in processes of their own."""

from __future__ import annotations

import secrets
import socket
from contextlib import suppress

PORTS = range(20_000, 32_000)
"""Below those that the system hands out to connections: none takes the port before the server does."""


def free_port() -> int:
    while True:
        port = secrets.choice(PORTS)
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port

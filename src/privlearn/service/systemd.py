"""Tells systemd that the server answers, and goes on telling it: if it stands still it is started again.

The protocol is sd_notify(3): a datagram to the socket that the environment names. Without one nothing is done.
"""

from __future__ import annotations

import asyncio
import os
import socket
from contextlib import suppress

_SOCKET, _PATIENCE = "NOTIFY_SOCKET", "WATCHDOG_USEC"


def notify(state: str) -> None:
    """One line such as ``READY=1``; whether anybody hears it is not our concern."""
    address = os.environ.get(_SOCKET, "")
    if not address:
        return
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told:
        told.sendto(state.encode(), "\0" + address[1:] if address.startswith("@") else address)


async def keep_telling() -> None:
    """From the event loop, so that a loop that stands still is noticed; twice as often as systemd asks for."""
    microseconds = os.environ.get(_PATIENCE, "")
    if not microseconds.isdigit():
        return
    while True:
        notify("WATCHDOG=1")
        await asyncio.sleep(int(microseconds) / 2e6)

"""A cable between the servers and their database that can be pulled: a network namespace, on Linux as root."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

HERE, THERE, PORT = "10.211.83.1", "10.211.83.2", 5432
_CARRIER = """
import asyncio, sys

async def pump(reader, writer):
    try:
        while piece := await reader.read(1 << 16):
            writer.write(piece)
            await writer.drain()
    except OSError:
        pass
    writer.close()

async def carry(reader, writer):
    try:
        database = await asyncio.open_unix_connection(sys.argv[1])
    except OSError:
        writer.close()
        return
    await asyncio.gather(pump(reader, database[1]), pump(database[0], writer))

async def main():
    server = await asyncio.start_server(carry, sys.argv[2], int(sys.argv[3]))
    await server.serve_forever()

asyncio.run(main())
"""


class Cable:
    """The way to the database; ``address`` is that of a role's database through it."""

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace

    def address(self, role: str) -> str:
        return f"postgresql://{role}@{THERE}:{PORT}/postgres"

    @contextmanager
    def pulled(self) -> Iterator[None]:
        """Drop every packet: connections stay open, and nothing arrives."""
        _ip("-n", self._namespace, "link", "set", "cable1", "down")
        try:
            yield
        finally:
            _ip("-n", self._namespace, "link", "set", "cable1", "up")


def possible() -> bool:
    """Return whether this process may make network namespaces."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        return False
    made = subprocess.run(["ip", "netns", "add", "privlearn-probe"], capture_output=True, check=False)
    subprocess.run(["ip", "netns", "del", "privlearn-probe"], capture_output=True, check=False)
    return made.returncode == 0


@contextmanager
def cable(folder: Path) -> Iterator[Cable]:
    """Connect this namespace with another one, where a process carries connections to the database's socket."""
    namespace = f"privlearn-{os.getpid()}"
    _ip("netns", "add", namespace)
    try:
        _ip("link", "add", "cable0", "type", "veth", "peer", "name", "cable1", "netns", namespace)
        _ip("addr", "add", f"{HERE}/30", "dev", "cable0")
        _ip("link", "set", "cable0", "up")
        _ip("-n", namespace, "addr", "add", f"{THERE}/30", "dev", "cable1")
        _ip("-n", namespace, "link", "set", "cable1", "up")
        command = ["ip", "netns", "exec", namespace, sys.executable, "-c", _CARRIER]
        carrier = subprocess.Popen([*command, str(folder / f".s.PGSQL.{PORT}"), THERE, str(PORT)])
        try:
            _await_carrier()
            yield Cable(namespace)
        finally:
            carrier.kill()
            carrier.wait()
    finally:
        _ip("netns", "del", namespace)  # and its end of the cable, and with that ours


def _await_carrier() -> None:
    for _ in range(200):
        with suppress(OSError), socket.create_connection((THERE, PORT), timeout=1.0):
            return
        time.sleep(0.05)
    raise RuntimeError("nothing answers through the cable")


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True)

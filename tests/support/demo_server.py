"""`privlearn serve --demo` as a process that tests kill and start again."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

from tests.support.ports import free_port
from tests.support.waiting import COMMAND_SECONDS, until

PEOPLE = 3
"""Those to whom the demonstration gives keys."""


class DemoServer:
    """A server with one directory and one port; its keys are those that it printed at its first start."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._port = free_port()
        self.url = f"http://127.0.0.1:{self._port}"
        self.keys: dict[str, str] = {}
        self.start()

    def start(self) -> None:
        """Start the server and wait until it has printed its keys."""
        options = ["--demo", "--directory", str(self._folder), "--port", str(self._port)]
        screen = self._folder / "screen"
        with (self._folder / "log").open("a") as log, screen.open("w") as printed:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "privlearn", "serve", *options],
                env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"},
                stdout=printed,
                stderr=log,
                start_new_session=True,
            )
        until(
            lambda: screen.read_text().count("Sign in as") == PEOPLE or self._process.poll() is not None,
            COMMAND_SECONDS,
            lambda: f"the server is not ready: {screen.read_text()}",
        )
        assert self._process.poll() is None, f"the server ended before it was ready: {screen.read_text()}"
        self.keys = self.keys or dict(re.findall(r"Sign in as (\w+) with the key (\S+)", screen.read_text()))
        assert set(self.keys) == {"holder", "alice", "bob"}

    def kill(self) -> None:
        """Kill the server and the processes that it started, without warning."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(timeout=60)

"""`privlearn serve --demo` as a process of its own, to be killed and started again."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import IO

from tests.support.ports import free_port


class DemoServer:
    """A server on one folder and one port; its keys are those that it printed at its first start."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._port = free_port()
        self.url = f"http://127.0.0.1:{self._port}"
        self.keys: dict[str, str] = {}
        self.start()

    def start(self) -> None:
        """Until it says that it answers."""
        options = ["--demo", "--directory", str(self._folder), "--port", str(self._port)]
        with (self._folder / "log").open("a") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "privlearn", "serve", *options],
                env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"},
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )
        assert self._process.stdout is not None
        printed = _lines_until_keys(self._process.stdout)
        self.keys = self.keys or dict(re.findall(r"Sign in as (\w+) with the key (\S+)", printed))
        assert set(self.keys) == {"holder", "alice", "bob"}, printed

    def kill(self) -> None:
        """kill -9 of the server and whatever it started."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


def _lines_until_keys(output: IO[str], people: int = 3) -> str:
    printed = ""
    while printed.count("Sign in as") < people:
        line = output.readline()
        assert line, f"the server ended before it was ready: {printed}"
        printed += line
    return printed

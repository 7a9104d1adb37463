"""The command `privlearn` without its start: a process that has imported the library forks for every command.

A new interpreter needs three seconds before the command begins, and the examples run eighty commands.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import NoReturn

from tests.support.waiting import COMMAND_SECONDS, until

CLIENT = Path(__file__).with_name("warm_client.py")
READ_BEFORE = (
    "cli",
    "client",
    "data",
    "estimators",
    "statistics",
    "budget.ledger",
    "estimators.forecast",
    "release",
)


@contextmanager
def warm_command(folder: Path) -> Iterator[Path]:
    """Provide a directory for the shell's path that contains the command."""
    place, command = folder / "line", folder / "privlearn"
    real = Path(sys.executable).with_name("privlearn")
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -IS "{CLIENT}" "{place}" "{real}" "$@"\n')
    command.chmod(0o755)
    with (folder / "log").open("wb") as log:  # a reader of the test's output would wait for this process
        server = subprocess.Popen(
            [sys.executable, "-m", "tests.support.warm_command", str(place)],
            cwd=CLIENT.parents[2],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:
        until(
            lambda: place.exists() or server.poll() is not None, COMMAND_SECONDS, "the command's server waits"
        )
        assert server.poll() is None, (folder / "log").read_text()
        yield folder
    finally:
        server.kill()
        server.wait()


def _serve(place: str) -> NoReturn:
    for name in READ_BEFORE:
        import_module(f"privlearn.{name}")
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # no process waits for the children
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{place}.new")
        listener.listen()
        os.rename(f"{place}.new", place)  # once the file exists, a client can connect
        listener.settimeout(2.0)
        parent = os.getppid()
        while os.getppid() == parent:  # a killed test run leaves no process behind
            with suppress(TimeoutError):
                line, _ = listener.accept()
                with line:
                    if os.fork() == 0:
                        _answer(line)
    sys.exit()


def _answer(line: socket.socket) -> NoReturn:
    """Run the client's command in the client's directory, environment and terminal."""
    from privlearn.cli import main

    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    first, files, _, _ = socket.recv_fds(line, 1, 3)
    for number, file in enumerate(files):
        os.dup2(file, number)
    folder, environment, arguments = json.loads(first + line.makefile("rb").read())
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    try:
        main(arguments)
        code = 0
    except SystemExit as exit_:
        code = int(exit_.code or 0)
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    line.sendall(b"%d" % code)
    os._exit(0)


if __name__ == "__main__":
    _serve(sys.argv[1])

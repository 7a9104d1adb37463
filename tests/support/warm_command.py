"""The command `privlearn` without its start: a process that has read the library already forks for every command.

A new interpreter needs three seconds before the command begins, which the examples would pay eighty times.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import NoReturn

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
    """A folder for the shell's path, with the command in it, as long as the block lasts."""
    place, command = folder / "line", folder / "privlearn"
    real = Path(sys.executable).with_name("privlearn")
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -IS "{CLIENT}" "{place}" "{real}" "$@"\n')
    command.chmod(0o755)
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.support.warm_command", str(place)], cwd=CLIENT.parents[2]
    )
    try:
        while not place.exists():
            assert server.poll() is None, "the command's server did not start"
            time.sleep(0.05)
        yield folder
    finally:
        server.kill()
        server.wait()


def _serve(place: str) -> NoReturn:
    for name in READ_BEFORE:
        import_module(f"privlearn.{name}")
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the children
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{place}.new")
        listener.listen()
        os.rename(f"{place}.new", place)  # whoever finds it can connect
        while True:
            line, _ = listener.accept()
            with line:
                if os.fork() == 0:
                    _answer(line)


def _answer(line: socket.socket) -> NoReturn:
    """Run what the client was asked for, in its place: its folder, its environment, its terminal."""
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

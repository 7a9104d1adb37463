"""Wait for other processes and threads, never for ever."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from typing import Any

COMMAND_SECONDS = 240.0
"""For one command of a test on a busy machine; pytest ends a test after `faulthandler_timeout` (pyproject.toml)."""


def until(
    happened: Callable[[], bool],
    seconds: float = 60.0,
    message: str | Callable[[], str] = "it did not happen",
) -> None:
    """Wait until the condition holds; otherwise fail with the message."""
    end = time.monotonic() + seconds
    while not happened():
        if time.monotonic() > end:
            raise AssertionError(f"{message if isinstance(message, str) else message()} (in {seconds:.0f} s)")
        time.sleep(0.05)


def run_to_end(
    command: Sequence[str | os.PathLike[str]], *, seconds: float = COMMAND_SECONDS, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run a command like `subprocess.run`, and return its output.

    A command that takes too long is killed with everything it started, and the test fails with what it had printed.
    `subprocess.run` would kill the command only, and wait for its children, which hold the pipes.
    """
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        **options,
    )
    try:
        printed, errors = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        printed, errors = process.communicate()
        typed = " ".join(map(str, command))
        raise AssertionError(f"not done after {seconds:.0f} s: {typed}\n{printed}{errors}") from None
    return subprocess.CompletedProcess(process.args, process.returncode, printed, errors)

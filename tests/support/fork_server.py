"""Runs the real command line in forked children and kills them on request.

A warmed-up process forks in milliseconds where a new interpreter needs seconds. Reads lines of JSON,
``{"arguments": [...], "kill_after": seconds or null}``, and answers each with one:
``{"killed": bool, "code": int, "seconds": float}``.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from importlib import import_module
from typing import Any

import flint  # noqa: F401  # imported before the fork, like the others, so that no child has to
import threadpoolctl  # noqa: F401

from privlearn.cli import main

for module in ("budget.split", "estimators.by_name", "estimators.forecast.forecast", "release"):
    import_module(f"privlearn.{module}")


def answer(request: dict[str, Any]) -> dict[str, Any]:
    start = time.monotonic()
    child = os.fork()
    if child == 0:
        _run(request["arguments"])
    status = _wait(child, request["kill_after"])
    killed = os.WIFSIGNALED(status)
    return {
        "killed": killed,
        "code": -1 if killed else os.WEXITSTATUS(status),
        "seconds": time.monotonic() - start,
    }


def _run(arguments: list[str]) -> None:
    code = 1
    try:
        silence = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silence, 1)
        main(arguments)
    except SystemExit as exit_:
        code = int(exit_.code or 0)
    finally:
        os._exit(code)


def _wait(child: int, kill_after: float | None) -> int:
    """Return the child's status, once it has ended by itself or was killed without warning."""
    if kill_after is not None:
        deadline = time.monotonic() + kill_after
        while time.monotonic() < deadline:
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                return status
            time.sleep(0.0005)
        os.kill(child, signal.SIGKILL)
    return os.waitpid(child, 0)[1]


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)

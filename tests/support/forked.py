"""Child processes: forks that run one function, and processes of a fork server."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from functools import cache
from multiprocessing.context import ForkServerContext, ForkServerProcess
from typing import Any, NoReturn

_READ_BEFORE = [
    "privlearn.cli",
    "privlearn.parties.run.joint_evaluation",
    "privlearn.budget",
    "privlearn.parties.flower.apps",
    "privlearn.server.jobs.workers",
    "psycopg",
    "pytest",
    "sqlalchemy.dialects.postgresql",
]


def fork(child: Callable[[], object]) -> int:
    with warnings.catch_warnings():  # newer Pythons warn of threads, of which the child uses none
        warnings.simplefilter("ignore", DeprecationWarning)
        process = os.fork()
    if process == 0:
        _run_and_leave(child)
    return process


def _run_and_leave(child: Callable[[], object]) -> NoReturn:
    code = 1
    try:
        child()
        code = 0
    finally:
        os._exit(code)


class _Process(ForkServerProcess):
    """A process with the current environment of its parent; that of the fork server may be older."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self._environment = dict(os.environ)

    def run(self) -> None:
        os.environ.clear()
        os.environ.update(self._environment)
        super().run()


class _Context(ForkServerContext):
    Process = _Process


def child_context() -> Any:
    """Processes that start quickly and share no thread or connection with this one."""
    context = _Context()
    context.set_forkserver_preload(_READ_BEFORE)
    return context


@cache
def warm_up() -> None:
    """Wait until the fork server has imported the library, so that the first test need not wait for it."""
    first = child_context().Process(target=int)
    first.start()
    first.join(timeout=240)
    assert first.exitcode == 0, "the fork server did not start a process within 240 s"

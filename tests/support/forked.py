"""Children: one that runs a function and ends, well or with code 1; and those that a fork server starts."""

from __future__ import annotations

import multiprocessing
import os
import warnings
from collections.abc import Callable
from typing import Any, NoReturn


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


def child_context() -> Any:
    """Processes that start quickly and share no thread or connection with this one."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(
        ["privlearn.ledger", "psycopg", "pytest", "sqlalchemy.dialects.postgresql"]
    )
    return context

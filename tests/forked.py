"""A child that runs one function and ends, well or with code 1."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import NoReturn


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

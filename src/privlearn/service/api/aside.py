"""Threads for what takes seconds, few and apart from the others: however much of it is asked for, answers go on."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from anyio import CapacityLimiter, to_thread
from fastapi import Request

AT_ONCE = 4

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def new_limit() -> CapacityLimiter:
    """What the application keeps as ``app.state.aside``."""
    return CapacityLimiter(AT_ONCE)


async def aside(
    request: Request,
    function: Callable[Arguments, Result],
    *args: Arguments.args,
    **options: Arguments.kwargs,
) -> Result:
    """Call a function in one of these threads; whoever waits for one keeps no thread busy."""
    return await to_thread.run_sync(lambda: function(*args, **options), limiter=request.app.state.aside)

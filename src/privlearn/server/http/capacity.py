"""What the requests of a process share: threads, memory for bodies, and look-ups in progress.

`FairShare` divides a capacity. Each caller has a queue, and the queues take turns, so that a caller with a thousand
requests delays others by one. A caller that has half of the capacity gets no more while others wait.
"""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Coroutine, Hashable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, TypeVar, TypeVarTuple

from anyio import CapacityLimiter, to_thread
from fastapi import Request
from starlette.concurrency import run_in_threadpool
from starlette.types import Scope

from privlearn.data.sources.passes import available_cores
from privlearn.server.holder.settings import Limits
from privlearn.server.refusals import Busy, TooLarge, TooMany

KILOBYTE = 1 << 10
MEGABYTE = 1 << 20
SMALL = 64 * KILOBYTE
"""Bodies up to this size are read at once; larger ones take turns, with a limit on memory."""

HEAVY_AT_ONCE = max(2, min(available_cores(), 4))
"""Threads for heavy requests: more than the cores would only slow down each other, and the event loop."""
QUICK_AT_ONCE = 4
"""Threads for answers that take milliseconds: more of them would only compete for the interpreter."""

TIMEOUT_SECONDS = 20.0

Arguments = TypeVarTuple("Arguments")
Result = TypeVar("Result")


class FairShare:
    """A capacity, for use on one event loop.

    ``what``: its name in messages: "memory to read bodies". ``timeout``: seconds after which a waiting request is
    refused.
    """

    def __init__(self, capacity: int, what: str, timeout: float = TIMEOUT_SECONDS) -> None:
        self.capacity = capacity
        self._what = what
        self._timeout = timeout
        self._taken: Counter[str] = Counter()
        self._queues: OrderedDict[str, deque[tuple[int, asyncio.Future[None]]]] = OrderedDict()

    @asynccontextmanager
    async def acquire(self, name: str, amount: int = 1) -> AsyncIterator[None]:
        """Hold ``amount`` of the capacity inside the block.

        Raises
        ------
        TooLarge
            If the amount exceeds the capacity.
        TooMany, Busy
            If the wait times out: because of other requests of the same caller, or of other callers.
        """
        if amount > self.capacity:
            raise TooLarge(f"this takes more {self._what} than the server has. Send smaller batches.")
        await self._wait(name, amount)
        try:
            yield
        finally:
            self._taken[name] -= amount
            if not self._taken[name]:
                del self._taken[name]
            self._share_out()

    async def _wait(self, name: str, amount: int) -> None:
        granted = asyncio.get_running_loop().create_future()
        self._queues.setdefault(name, deque()).append((amount, granted))
        self._share_out()
        try:
            async with asyncio.timeout(self._timeout):
                await granted
        except BaseException as error:
            if granted.done() and not granted.cancelled():  # granted at the last moment: return it
                self._taken[name] -= amount
            self._remove(name, (amount, granted))
            self._share_out()
            if not isinstance(error, TimeoutError):
                raise
            if self._taken[name]:
                raise TooMany(f"your other requests use all of your {self._what}. Wait for them.") from None
            raise Busy(f"all of the {self._what} are in use. Try again in a few seconds.") from None

    def _share_out(self) -> None:
        """Grant the next requests for as long as they fit."""
        while (name := self._next()) is not None:
            amount, granted = self._queues[name].popleft()
            self._queues.move_to_end(name)
            if not self._queues[name]:
                del self._queues[name]
            if not granted.done():
                self._taken[name] += amount
                granted.set_result(None)

    def _next(self) -> str | None:
        """Return the name whose first request is granted next; ``None`` if it does not fit yet."""
        for name, queue in self._queues.items():
            amount, own = queue[0][0], self._taken[name]
            if own and own + amount > max(self.capacity // 2, 1):
                continue
            return name if self._taken.total() + amount <= self.capacity else None
        return None

    def _remove(self, name: str, entry: tuple[int, asyncio.Future[None]]) -> None:
        queue = self._queues.get(name)
        if queue is not None and entry in queue:
            queue.remove(entry)
            if not queue:
                del self._queues[name]


class Shared:
    """The limits and queues that all requests of a process share: ``app.state.shared``."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.quick = CapacityLimiter(QUICK_AT_ONCE)
        self.threads = FairShare(HEAVY_AT_ONCE, "threads for heavy requests")
        self.computing = FairShare(1, "time to compute predictions")
        self.bodies = FairShare(limits.bodies_megabytes * MEGABYTE, "capacity for large bodies")
        self.reading = FairShare(limits.reading_megabytes * MEGABYTE, "memory to read bodies")
        self._polls: Counter[str] = Counter()
        self._looking_up: dict[Hashable, asyncio.Task[Any]] = {}

    async def run_once(self, key: Hashable, look_up: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
        """Look something up once for all requests that need it at this moment, such as the key of 64 connections."""
        task: asyncio.Task[Result] | None = self._looking_up.get(key)
        if task is None:
            task = self._looking_up[key] = asyncio.create_task(look_up())
            task.add_done_callback(lambda _: self._looking_up.pop(key))
        return await asyncio.shield(task)  # a client that leaves does not end the others' look-up

    @contextmanager
    def waiting(self, name: str) -> Iterator[None]:
        """Count one more request of this analyst that waits for the end of a job."""
        if self._polls[name] >= self.limits.long_polls:
            raise TooMany(f"{self.limits.long_polls} of your requests wait for jobs. Send this without wait.")
        self._polls[name] += 1
        try:
            yield
        finally:
            self._polls[name] -= 1


def shared_of(request: Request) -> Shared:
    """Return what the requests of the application share."""
    shared: Shared = request.app.state.shared
    return shared


def note_caller(scope: Scope, name: str) -> None:
    """Record whose request this is; from here on it takes turns as this caller's."""
    scope["privlearn.caller"] = name


def caller_name(request: Request) -> str:
    """Return the name that `note_caller` recorded."""
    return str(request.scope.get("privlearn.caller", ""))


async def run_computing(
    request: Request, function: Callable[[*Arguments], Result], *args: *Arguments
) -> Result:
    """Call a function that only computes, one at a time: more threads would compete for the interpreter."""
    async with shared_of(request).computing.acquire(caller_name(request)):
        return await run_in_threadpool(function, *args)


async def run_heavy(request: Request, function: Callable[[*Arguments], Result], *args: *Arguments) -> Result:
    """Call a function in one of few threads; callers take turns, and a waiting request occupies no thread."""
    async with shared_of(request).threads.acquire(caller_name(request)):
        return await run_in_threadpool(function, *args)


async def run_quick(request: Request, function: Callable[[*Arguments], Result], *args: *Arguments) -> Result:
    """Call a function that takes milliseconds in a thread."""
    return await to_thread.run_sync(function, *args, limiter=shared_of(request).quick)


@asynccontextmanager
async def large_body(request: Request, megabytes: int) -> AsyncIterator[None]:
    """Allow a larger body for an authenticated caller, within the capacity for all such bodies."""
    maximum = megabytes * MEGABYTE
    size = min(content_length(request.scope) or maximum, maximum)  # the first byte beyond that is refused
    if size <= request.scope["privlearn.body"]:
        yield
        return
    async with shared_of(request).bodies.acquire(caller_name(request), size):
        request.scope["privlearn.body"] = maximum
        yield


def content_length(scope: Scope) -> int:
    """Return the size that the header states; 0 without a valid one."""
    for name, value in scope["headers"]:
        if name == b"content-length":
            return int(value) if value.isdigit() else 0
    return 0

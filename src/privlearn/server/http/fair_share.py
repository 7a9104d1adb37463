"""A limited capacity that callers share fairly: memory for bodies, threads for heavy work.

Each caller has a queue, and the queues take turns, so that a caller with a thousand requests delays others by one. A
caller that has half of the capacity gets no more while it waits.
"""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from privlearn.server.refusals import Busy, TooLarge, TooMany

TIMEOUT_SECONDS = 20.0


class FairShare:
    """A capacity, for use on one event loop.

    Parameters
    ----------
    capacity : int
    what : str
        Its name in messages: "memory to read bodies".
    timeout : float
        Seconds after which a waiting request is refused.
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
                raise TooMany(
                    f"your other requests use all of your {self._what}. Wait until they are answered."
                ) from None
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

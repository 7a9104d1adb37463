"""Turns: what many want and few can have at a time, shared out fairly. Memory for bodies, threads for heavy work.

Whoever asks waits in a line of their own, and the lines take turns, so that one who asks a thousand times delays others
by a turn. No line has more than half of everything while it waits for more.
"""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from privlearn.service.refusals import Busy, TooLarge, TooMany

PATIENCE_SECONDS = 20.0


class Turns:
    """An amount of something, for use on one event loop.

    Parameters
    ----------
    most : int
        All that there is.
    what : str
        For refusals: "memory to read bodies".
    patience : float
        Seconds after which whoever waits is refused.
    """

    def __init__(self, most: int, what: str, patience: float = PATIENCE_SECONDS) -> None:
        self.most = most
        self._what = what
        self._patience = patience
        self._taken: Counter[str] = Counter()
        self._lines: OrderedDict[str, deque[tuple[int, asyncio.Future[None]]]] = OrderedDict()

    @asynccontextmanager
    async def taking(self, name: str, amount: int = 1) -> AsyncIterator[None]:
        """Have so much until the block is left.

        Raises
        ------
        TooLarge
            If there is never so much.
        TooMany, Busy
            If the wait is too long: for what the same name has taken, or for others.
        """
        if amount > self.most:
            raise TooLarge(f"this takes more {self._what} than the server has: send smaller batches")
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
        self._lines.setdefault(name, deque()).append((amount, granted))
        self._share_out()
        try:
            async with asyncio.timeout(self._patience):
                await granted
        except BaseException as error:
            if granted.done() and not granted.cancelled():  # it was given in the last moment: give it back
                self._taken[name] -= amount
            self._forget(name, (amount, granted))
            self._share_out()
            if not isinstance(error, TimeoutError):
                raise
            if self._taken[name]:
                raise TooMany(
                    f"your other requests use all of your {self._what}: wait until they are answered"
                ) from None
            raise Busy(f"others use all of the {self._what}: try again in a few seconds") from None

    def _share_out(self) -> None:
        """Give to the line whose turn it is what fits, and go on to the next."""
        while (name := self._next()) is not None:
            amount, granted = self._lines[name].popleft()
            self._lines.move_to_end(name)
            if not self._lines[name]:
                del self._lines[name]
            if not granted.done():
                self._taken[name] += amount
                granted.set_result(None)

    def _next(self) -> str | None:
        """Nobody is overtaken for want of room; a line that has its share already is passed over."""
        for name, line in self._lines.items():
            amount, own = line[0][0], self._taken[name]
            if own and own + amount > max(self.most // 2, 1):
                continue
            return name if self._taken.total() + amount <= self.most else None
        return None

    def _forget(self, name: str, place: tuple[int, asyncio.Future[None]]) -> None:
        line = self._lines.get(name)
        if line is not None and place in line:
            line.remove(place)
            if not line:
                del self._lines[name]

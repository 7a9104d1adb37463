"""Work on several blocks at a time, with results in the order of the blocks."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Block = TypeVar("Block")
Result = TypeVar("Result")

MAX_THREADS = 4  # each has a block in memory


def in_order(work: Callable[[Block], Result], blocks: Iterable[Block], many: bool = True) -> Iterator[Result]:
    """Yield ``work(block)`` for each block, with threads if there are many: numpy and scipy release the interpreter.

    The caller's thread reads the blocks. Results, and sums of them, do not depend on the number of threads.
    """
    threads = min(MAX_THREADS, _cores()) if many else 1
    if threads == 1:
        yield from map(work, blocks)
        return
    waiting: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        try:
            for block in blocks:
                waiting.append(pool.submit(work, block))
                if len(waiting) > threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:  # a caller that stops early does not wait for work that has not begun
            for future in waiting:
                future.cancel()


def _cores() -> int:
    """Return the number of cores that this process may use; on systems without such limits, of all cores."""
    allowed = getattr(os, "sched_getaffinity", None)
    return (os.cpu_count() or 1) if allowed is None else len(allowed(0))

"""Several blocks at a time, on as many cores as there are; what is made of them comes in their order."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Block = TypeVar("Block")
Result = TypeVar("Result")

MOST_THREADS = 4  # each has a block in memory


def in_order(work: Callable[[Block], Result], blocks: Iterable[Block], many: bool = True) -> Iterator[Result]:
    """``map(work, blocks)``, with threads if blocks are many: numpy and scipy let go of the interpreter in between.

    Blocks are read by the caller's thread. Results do not depend on the number of threads, nor do sums of them.
    """
    threads = min(MOST_THREADS, _cores()) if many else 1
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
        finally:  # whoever stops listening need not wait for what has not begun
            for future in waiting:
                future.cancel()


def _cores() -> int:
    """Those that this process may use, where the system says so: Windows has only the number of all."""
    allowed = getattr(os, "sched_getaffinity", None)
    return (os.cpu_count() or 1) if allowed is None else len(allowed(0))

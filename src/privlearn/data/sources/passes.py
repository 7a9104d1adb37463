"""Passes over rows: their progress, work on several blocks at a time, and numbers that are stored between two passes.

Progress depends on the rows (on the number of passes a solver needs, above all), so only the trusted side may see it.
What does not fit into memory goes to temporary files without a name, in the directory that `spill_to` chooses. No other
process can open such a file, and the system removes it when its owner, or the process, ends.
"""

from __future__ import annotations

import os
import tempfile
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import IO, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from privlearn.errors import InvalidParameter


class Passes:
    """PRIVATE: the progress of the work inside `watch_passes`.

    Attributes
    ----------
    number : int
        Number of the current pass, counted from 1. The total is not known in advance.
    rows : int
        Rows read in the current pass.
    total : int or None
        Rows of the current pass, if known.
    is_under_way : bool
        Whether a pass is being read: reading one of its blocks again is not a pass.
    """

    def __init__(self, report: Callable[[Passes], None] | None) -> None:
        self._report = report
        self.number = self.rows = 0
        self.total: int | None = None
        self.is_under_way = False

    def __str__(self) -> str:
        of_total = "" if self.total is None else f" of {self.total:,}"
        return f"pass {self.number}, row {self.rows:,}{of_total}"

    def begin(self, total: int | None) -> None:
        self.number, self.rows, self.total = self.number + 1, 0, total

    def advance(self, rows: int) -> None:
        self.rows += rows
        if self._report is not None:
            self._report(self)


_current: ContextVar[Passes | None] = ContextVar("passes", default=None)


@contextmanager
def watch_passes(report: Callable[[Passes], None] | None = None) -> Iterator[Passes]:
    """Call ``report`` after every block that is read inside the ``with`` block, on the trusted side.

    Examples
    --------
    >>> from privlearn.data.sources.row_source import TableRows, read_each
    >>> import pyarrow as pa
    >>> with watch_passes(print) as passes:
    ...     read = list(read_each(TableRows(pa.table({"age": [30, 40]})), len))
    pass 1, row 2
    """
    passes = Passes(report)
    token = _current.set(passes)
    try:
        yield passes
    finally:
        _current.reset(token)


def count_pass(blocks: Iterator[Any], total: int | None = None) -> Iterator[Any]:
    """Yield the blocks of one pass, and report them to `watch_passes`."""
    passes = _current.get()
    if passes is None or passes.is_under_way:
        yield from blocks
        return
    passes.begin(total)
    passes.is_under_way = True
    try:
        for block in blocks:
            yield block
            passes.advance(number_of_rows(block))
    finally:
        passes.is_under_way = False


def number_of_rows(block: Any) -> int:
    """Return the number of rows of a table, of a matrix, or of cells by column."""
    return int((block if hasattr(block, "shape") else next(iter(block.values()))).shape[0])


Block = TypeVar("Block")
Result = TypeVar("Result")

MAX_THREADS = 4  # each has a block in memory


def in_order(work: Callable[[Block], Result], blocks: Iterable[Block], many: bool = True) -> Iterator[Result]:
    """Yield ``work(block)`` for each block, with threads if there are many: numpy and scipy release the interpreter.

    The caller's thread reads the blocks. Results, and sums of them, do not depend on the number of threads.
    """
    threads = min(MAX_THREADS, available_cores()) if many else 1
    if threads == 1:
        yield from map(work, blocks)
        return
    waiting: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        try:
            for block in blocks:
                waiting.append(pool.submit(work, block))
                # A bounded queue: a reader that is faster than the work would otherwise hold the whole table in
                # memory.
                if len(waiting) > threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:  # a caller that stops early does not wait for work that has not begun
            for future in waiting:
                future.cancel()


_limits: list[Any] = []  # one entry for each pass under way that has limited BLAS
_limits_lock = threading.Lock()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Inside the ``with`` block, BLAS uses one thread: the passes' own threads do not compete with BLAS's.

    The limit holds for the process, so the first of several passes at once sets it and the last one removes it.
    """
    with _limits_lock:
        _limits.append(_blas().limit(limits=1, user_api="blas") if not _limits else None)
    try:
        yield
    finally:
        with _limits_lock:
            limit = _limits.pop()
            if limit is not None:
                limit.restore_original_limits()


def blas_threads() -> int:
    """Return how many threads BLAS may use, which the user limits by OMP_NUM_THREADS or threadpoolctl."""
    if _limits:
        return 1
    return max((each["num_threads"] for each in _blas().info() if each["user_api"] == "blas"), default=1)


@cache
def _blas() -> Any:
    from threadpoolctl import ThreadpoolController  # not part of privlearn-core

    return ThreadpoolController()


def available_cores() -> int:
    """Return the number of cores that this process may use; on systems without such limits, of all cores."""
    allowed = getattr(os, "sched_getaffinity", None)
    return (os.cpu_count() or 1) if allowed is None else len(allowed(0))


MEMORY_LIMIT = 1 << 22  # numbers; more go to a file
NUMBER = np.dtype(np.float32)

_directory: ContextVar[str | None] = ContextVar("directory", default=None)


@contextmanager
def spill_to(directory: str | Path | None) -> Iterator[None]:
    """Inside the ``with`` block, store what does not fit into memory in nameless files in this directory."""
    if directory is not None and not Path(directory).is_dir():
        raise InvalidParameter(f"{directory} is not a directory. Create it, on a disk with enough space.")
    token = _directory.set(None if directory is None else str(directory))
    try:
        yield
    finally:
        _directory.reset(token)


def spill_directory() -> str | None:
    """Return the directory of `spill_to`; None is the system's directory for temporary files."""
    return _directory.get()


def row_numbers(count: int) -> Any:
    """Return an array of `count` numbers to write and read by slices; in memory if the disk is full."""
    if count > MEMORY_LIMIT:
        file = tempfile.TemporaryFile(dir=spill_directory(), buffering=0)  # noqa: SIM115
        try:
            # Reserve the space now: a fit that has been charged must not fail later on.
            os.posix_fallocate(file.fileno(), 0, count * NUMBER.itemsize)
        except OSError:
            file.close()
        else:
            return NumbersInFile(count, file)
    return np.empty(count, NUMBER)


class NumbersInFile:
    """PRIVATE: the part of an array's interface that `row_numbers` needs; several threads may use it at once."""

    def __init__(self, count: int, file: IO[bytes]) -> None:
        self._count, self._file = count, file
        weakref.finalize(self, file.close)

    def __setitem__(self, rows: slice, numbers: NDArray[Any]) -> None:
        os.pwrite(self._file.fileno(), numbers.astype(NUMBER).tobytes(), rows.start * NUMBER.itemsize)

    def __getitem__(self, rows: slice) -> NDArray[Any]:
        start, stop, stride = rows.indices(self._count)
        if stride == 1:
            return self._read(start, stop)
        return np.concatenate([self._read(index, index + 1) for index in range(start, stop, stride)])

    def _read(self, start: int, stop: int) -> NDArray[Any]:
        size = NUMBER.itemsize
        return np.frombuffer(os.pread(self._file.fileno(), (stop - start) * size, start * size), NUMBER)

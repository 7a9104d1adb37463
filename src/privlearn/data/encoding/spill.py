"""Temporary files without a name, for what does not fit into memory.

`spill_to` chooses their directory. `row_numbers` provides one number per row, which solvers store between two passes.
Nobody else can open such a file, and the system removes it when its owner, or the process, ends.
"""

from __future__ import annotations

import os
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from privlearn.errors import InvalidParameter

MEMORY_LIMIT = 1 << 22  # numbers; more go to a file
NUMBER = np.dtype(np.float32)

_directory: ContextVar[str | None] = ContextVar("directory", default=None)


@contextmanager
def spill_to(directory: str | Path | None) -> Iterator[None]:
    """Inside the ``with`` block, store what does not fit into memory in nameless files in this directory."""
    if directory is not None and not Path(directory).is_dir():
        raise InvalidParameter(
            f"{directory} is not a directory. Create it first, on a disk with enough space."
        )
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

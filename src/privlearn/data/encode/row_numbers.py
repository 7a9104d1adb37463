"""One number per row in single precision: in memory or, where rows are many, in a file that has no name."""

from __future__ import annotations

import os
import tempfile
import weakref
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from privlearn.data.encode.packed_cells import spill_folder

KEPT_IN_MEMORY = 1 << 22  # numbers; more go to a file
NUMBER = np.dtype(np.float32)


def row_numbers(count: int) -> Any:
    """Room for so many numbers, which are written and read by slices; in memory where the disk has no room."""
    if count > KEPT_IN_MEMORY:
        file = tempfile.TemporaryFile(dir=spill_folder(), buffering=0)  # noqa: SIM115
        try:
            os.posix_fallocate(file.fileno(), 0, count * NUMBER.itemsize)
        except OSError:  # nothing of a fit that has been paid for fails later on
            file.close()
        else:
            return NumbersInFile(count, file)
    return np.empty(count, NUMBER)


class NumbersInFile:
    """PRIVATE: as much of an array as `row_numbers` promises; several threads may use it at once."""

    def __init__(self, count: int, file: IO[bytes]) -> None:
        self._count, self._file = count, file
        weakref.finalize(self, file.close)

    def __setitem__(self, rows: slice, numbers: NDArray[Any]) -> None:
        os.pwrite(self._file.fileno(), numbers.astype(NUMBER).tobytes(), rows.start * NUMBER.itemsize)

    def __getitem__(self, rows: slice) -> NDArray[Any]:
        start, stop, stride = rows.indices(self._count)
        if stride == 1:
            return self._read(start, stop)
        return np.concatenate([self._read(place, place + 1) for place in range(start, stop, stride)])

    def _read(self, start: int, stop: int) -> NDArray[Any]:
        size = NUMBER.itemsize
        return np.frombuffer(os.pread(self._file.fileno(), (stop - start) * size, start * size), NUMBER)

"""Points and numbers as bytes, and the points asked so far."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def numbers_to_bytes(numbers: Array) -> bytes:
    """The same bytes for the same numbers, whatever the machine: little-endian, and 0.0 for -0.0."""
    return (numbers + 0.0).astype("<f8").tobytes()


def numbers_from_bytes(content: bytes) -> Array:
    return np.frombuffer(content, dtype="<f8").astype(np.float64)


class PointList:
    """Rows that are only ever added, in one array that grows by doubling."""

    def __init__(self) -> None:
        self._rows: Array | None = None
        self._count = 0

    def add(self, row: Array) -> None:
        if self._rows is None:
            self._rows = np.empty((16, len(row)))
        if self._count == len(self._rows):
            self._rows = np.concatenate([self._rows, np.empty_like(self._rows)])
        self._rows[self._count] = row
        self._count += 1

    @property
    def rows(self) -> Array:
        return np.empty((0, 0)) if self._rows is None else self._rows[: self._count]

    def __len__(self) -> int:
        return self._count

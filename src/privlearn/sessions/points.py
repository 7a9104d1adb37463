"""The points that a session has answered: a key for each, and all of them as a batch for the kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Protocol

import numpy as np

from privlearn.arrays import Array
from privlearn.features.objects import object_from_bytes, object_to_bytes
from privlearn.sessions.durable import numbers_from_bytes, numbers_to_bytes


class PointList(Protocol):
    """A growing list of points, each with a unique key of bytes."""

    key: ClassVar[Callable[[Any], bytes]]

    def add(self, key: bytes) -> None: ...
    def __len__(self) -> int: ...

    @property
    def all(self) -> Any:
        """Return all points, in the order they were added."""

    def and_then(self, points: Any) -> Any:
        """Return all points followed by these, without adding them; valid until the next call of a method."""

    @staticmethod
    def together(points: Sequence[Any]) -> Any:
        """Return single points as a batch for the kernel."""


class NumberPoints:
    """Rows of numbers, in one array that grows by doubling."""

    key = staticmethod(numbers_to_bytes)

    def __init__(self) -> None:
        self._rows: Array | None = None
        self._count = 0

    def add(self, key: bytes) -> None:
        self.and_then(numbers_from_bytes(key)[np.newaxis])
        self._count += 1

    def and_then(self, points: Array) -> Array:
        stop = self._count + len(points)
        if self._rows is None or stop > len(self._rows):
            more = np.empty((max(stop, 16), points.shape[1]))
            self._rows = np.concatenate([self.all, more]) if self._count else more
        self._rows[self._count : stop] = points
        return self._rows[:stop]

    def __len__(self) -> int:
        return self._count

    @property
    def all(self) -> Array:
        return np.empty((0, 0)) if self._rows is None else self._rows[: self._count]

    @staticmethod
    def together(points: Sequence[Any]) -> Array:
        return np.array(points)


class ObjectPoints:
    """Objects that only the user's kernel can read."""

    key = staticmethod(object_to_bytes)

    def __init__(self) -> None:
        self.all: list[Any] = []

    def add(self, key: bytes) -> None:
        self.all.append(object_from_bytes(key))

    def and_then(self, points: list[Any]) -> list[Any]:
        return [*self.all, *points]

    def __len__(self) -> int:
        return len(self.all)

    @staticmethod
    def together(points: Sequence[Any]) -> list[Any]:
        return list(points)


def points_for(keeps_objects: bool) -> NumberPoints | ObjectPoints:
    """Return an empty list for objects or for rows of numbers."""
    return ObjectPoints() if keeps_objects else NumberPoints()

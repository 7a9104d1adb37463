"""The points that a session has answered: how each is known again, and all of them as the kernel takes them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Protocol

import numpy as np

from privlearn.arrays import Array
from privlearn.features.objects import object_from_bytes, object_to_bytes
from privlearn.sessions.durable import numbers_from_bytes, numbers_to_bytes


class PointList(Protocol):
    """Points that are only ever added, each by its key: bytes that no other point has."""

    key: ClassVar[Callable[[Any], bytes]]

    def add(self, key: bytes) -> None: ...
    def __len__(self) -> int: ...

    @property
    def all(self) -> Any:
        """In the order they were added."""

    @staticmethod
    def together(points: Sequence[Any]) -> Any:
        """Single points as the kernel takes several."""


class NumberPoints:
    """Rows of numbers, in one array that grows by doubling."""

    key = staticmethod(numbers_to_bytes)

    def __init__(self) -> None:
        self._rows: Array | None = None
        self._count = 0

    def add(self, key: bytes) -> None:
        row = numbers_from_bytes(key)
        if self._rows is None:
            self._rows = np.empty((16, len(row)))
        if self._count == len(self._rows):
            self._rows = np.concatenate([self._rows, np.empty_like(self._rows)])
        self._rows[self._count] = row
        self._count += 1

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

    def __len__(self) -> int:
        return len(self.all)

    @staticmethod
    def together(points: Sequence[Any]) -> list[Any]:
        return list(points)


def points_for(keeps_objects: bool) -> NumberPoints | ObjectPoints:
    return ObjectPoints() if keeps_objects else NumberPoints()

"""What was looked up a moment ago."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Remembered(Generic[Key, Value]):
    """Values found by looking them up, for some seconds; what was not found is not remembered.

    Parameters
    ----------
    seconds : float
        For so long what has changed meanwhile is not noticed.
    most : int
        So many values are kept; one more, and all are forgotten.
    """

    def __init__(self, seconds: float, most: int) -> None:
        self._seconds = seconds
        self._most = most
        self._lock = Lock()
        self._known: dict[Key, tuple[float, Value]] = {}

    def get(self, key: Key, look_up: Callable[[], Value | None]) -> Value | None:
        known = self._known.get(key)
        if known is not None and time.monotonic() - known[0] < self._seconds:
            return known[1]
        asked_at = time.monotonic()
        value = look_up()
        if value is not None:
            with self._lock:
                if len(self._known) >= self._most:
                    self._known.clear()
                self._known[key] = (asked_at, value)
        return value

    def forget(self) -> None:
        with self._lock:
            self._known.clear()

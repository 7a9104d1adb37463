"""Time: slots of fixed length, and what is remembered for a while."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from datetime import UTC, datetime, timedelta
from threading import Lock
from typing import Generic, TypeVar


def now() -> datetime:
    return datetime.now(UTC)


def as_text(moment: datetime) -> str:
    """One form for all, so that texts compare as times do."""
    return moment.isoformat(timespec="microseconds")


def from_text(text: str) -> datetime:
    return datetime.fromisoformat(text)


def end_of_slot(started: datetime, ended: datetime, first: float) -> datetime:
    """The first end of a slot at which a job has ended; ``first`` is the length of the first slot in seconds."""
    slot = timedelta(seconds=first)
    while started + slot < ended:
        slot *= 2
    return started + slot


def wait_for_end_of_slot(started: str, first: float) -> None:
    """Nothing that others see may happen before it."""
    end = end_of_slot(from_text(started), now(), first)
    time.sleep(max((end - now()).total_seconds(), 0.0))


Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class TtlCache(Generic[Key, Value]):
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

"""Time: slots of fixed length, what is remembered for a while, and what is allowed so often."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from datetime import UTC, datetime
from threading import Lock
from typing import Generic, TypeVar


def now() -> datetime:
    return datetime.now(UTC)


def as_text(moment: datetime) -> str:
    """One form for all, so that texts compare as times do."""
    return moment.isoformat(timespec="microseconds")


def from_text(text: str) -> datetime:
    return datetime.fromisoformat(text)


def end_of_slot(began: float, ended: float, first: float) -> float:
    """The first end of a slot at which a job has ended; ``first`` is the length of the first slot in seconds."""
    slot = first
    while began + slot < ended:
        slot *= 2
    return began + slot


def wait_for_end_of_slot(began: float, first: float) -> None:
    """Nothing that others see may happen before it. Seconds of the monotonic clock: that of the wall may jump."""
    end = end_of_slot(began, time.monotonic(), first)
    time.sleep(max(end - time.monotonic(), 0.0))


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


_MOST_BUCKETS = 10_000  # of an attacker with many addresses the oldest are forgotten: memory stays bounded


class Buckets:
    """A bucket of tokens for each name; it refills at a steady rate.

    Parameters
    ----------
    per_minute : float
        The rate.
    burst : float
        What a full bucket holds.
    """

    def __init__(self, per_minute: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = per_minute / 60.0
        self._burst = max(burst, 1.0)
        self._clock = clock
        self._levels: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = Lock()

    def take(self, name: str, amount: int = 1) -> bool:
        """Take so many tokens; False, and none is taken, if there are fewer."""
        with self._lock:
            level = self._level(name)
            allowed = level >= amount
            self._keep(name, level - amount if allowed else level)
            return allowed

    def _level(self, name: str) -> float:
        level, at = self._levels.get(name, (self._burst, self._clock()))
        return min(self._burst, level + (self._clock() - at) * self._rate)

    def _keep(self, name: str, level: float) -> None:
        self._levels[name] = level, self._clock()
        self._levels.move_to_end(name)
        if len(self._levels) > _MOST_BUCKETS:
            self._levels.popitem(last=False)

"""The server's clock: times as text, slots that hide how long a job took, a cache with an expiry, rate limits.

A job's end is visible, and its computing time depends on the rows. So a job ends only at the end of a slot, and slots
grow by doubling: the end time reveals at most how often its first slot was doubled.
"""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from datetime import UTC, datetime
from threading import Lock
from typing import Generic, TypeVar


def now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)


def as_text(moment: datetime) -> str:
    """Return the time in the format of the store: sorting these texts sorts the times."""
    return moment.isoformat(timespec="microseconds")


def from_text(text: str) -> datetime:
    """Read a time of the store."""
    return datetime.fromisoformat(text)


def end_of_slot(began: float, ended: float, first: float) -> float:
    """Return the end of the slot in which a job ended. Slots end after 1, 2, 4, ... times ``first`` seconds.

    >>> end_of_slot(began=100.0, ended=107.0, first=2.0)  # slots end at 102, 104, 108
    108.0
    """
    slot = first
    while began + slot < ended:
        slot *= 2
    return began + slot


def default_slot(records: int, with_kernel: bool) -> float:
    """Public: return the first slot of a training in seconds: a power of two, at least four times the usual time.

    Measured (CPU seconds of one core, trainings on 300 to 200,000 synthetic rows of 3 and 13 columns): 0.2 s and
    11 microseconds per record for a linear model, 0.3 s and 130 microseconds for random features of a kernel.
    """
    usual = 0.3 + 130e-6 * records if with_kernel else 0.2 + 11e-6 * records
    return max(1.0, 2.0 ** math.ceil(math.log2(4.0 * usual)))


def overran(seconds: float, first: float) -> bool:
    """Return whether a training whose end was visible after ``seconds`` took more than its first slot."""
    # An end becomes visible shortly after `first` or after 2 `first`; 1.5 separates the two.
    return seconds > 1.5 * first


def wait_for_end_of_slot(began: float, first: float) -> None:
    """Sleep until the end of the slot; nothing may be visible before it. Uses the monotonic clock."""
    end = end_of_slot(began, time.monotonic(), first)
    time.sleep(max(end - time.monotonic(), 0.0))


Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class TtlCache(Generic[Key, Value]):
    """A cache whose entries expire after some seconds. Missing values are not cached.

    ``seconds``: time until an entry expires; changes within this time are not noticed. ``max_entries``: size at which
    the cache is emptied.
    """

    def __init__(self, seconds: float, max_entries: int) -> None:
        self._seconds = seconds
        self._max_entries = max_entries
        self._lock = Lock()
        self._entries: dict[Key, tuple[float, Value]] = {}
        self._claimed: set[Key] = set()
        self._forgotten = 0

    @property
    def changes(self) -> int:
        """Return how often all entries were removed: a look-up that began at a lower number may be out of date."""
        return self._forgotten

    def peek(self, key: Key) -> Value | None:
        """Return the cached value, or None."""
        entry = self._entries.get(key)
        return entry[1] if entry is not None and time.monotonic() - entry[0] < self._seconds else None

    def claim(self, key: Key) -> bool:
        """Return whether this caller must `refresh` the value: the first to claim it in the second half of its time.

        Other callers use the cached value meanwhile, so that they do not all wait for the database when it expires.
        """
        with self._lock:
            entry = self._entries.get(key)
            due = entry is not None and time.monotonic() - entry[0] >= self._seconds / 2.0
            if not due or key in self._claimed:
                return False
            self._claimed.add(key)
            return True

    def get(self, key: Key, look_up: Callable[[], Value | None]) -> Value | None:
        """Return the cached value, or look it up."""
        cached = self.peek(key)
        return self.refresh(key, look_up) if cached is None else cached

    def refresh(self, key: Key, look_up: Callable[[], Value | None]) -> Value | None:
        """Look a value up and return it; cache it unless `forget` was called meanwhile."""
        # The value may have been read before the change that `forget` announces, and would then stay for `seconds`.
        started, forgotten = time.monotonic(), self._forgotten
        value = look_up()
        if value is not None:
            with self._lock:
                if forgotten != self._forgotten:
                    return value
                if len(self._entries) >= self._max_entries:
                    self._clear()
                self._entries[key] = (started, value)
                self._claimed.discard(key)
        return value

    def forget(self) -> None:
        """Remove all entries."""
        with self._lock:
            self._clear()
            self._forgotten += 1

    def _clear(self) -> None:
        self._entries.clear()
        self._claimed.clear()


_MAX_BUCKETS = 10_000  # then the oldest are dropped, so that many addresses cannot exhaust memory


class Buckets:
    """A token bucket for each name, refilled at a steady rate.

    ``per_minute``: tokens added per minute. ``burst``: capacity of a bucket.
    """

    def __init__(self, per_minute: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = per_minute / 60.0
        self._burst = max(burst, 1.0)
        self._clock = clock
        self._levels: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = Lock()

    def take(self, name: str, amount: int = 1) -> bool:
        """Take ``amount`` tokens and return True; return False and take none if there are fewer."""
        with self._lock:
            level = self._level(name)
            allowed = level >= amount
            self._set_level(name, level - amount if allowed else level)
            return allowed

    def _level(self, name: str) -> float:
        level, at = self._levels.get(name, (self._burst, self._clock()))
        return min(self._burst, level + (self._clock() - at) * self._rate)

    def _set_level(self, name: str, level: float) -> None:
        self._levels[name] = level, self._clock()
        self._levels.move_to_end(name)
        if len(self._levels) > _MAX_BUCKETS:
            self._levels.popitem(last=False)

"""Token buckets: limits of how often each name may do something."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from threading import Lock

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

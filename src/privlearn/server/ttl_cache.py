"""A cache whose entries expire, for look-ups that many requests repeat."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

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

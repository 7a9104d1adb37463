"""Waiting for what another process, or thread, will do."""

from __future__ import annotations

import time
from collections.abc import Callable


def until(happened: Callable[[], bool], seconds: float = 60.0) -> None:
    """Wait for it."""
    end = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)

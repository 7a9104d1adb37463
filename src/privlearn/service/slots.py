"""When a training ends: its running time depends on the records, the time it shows must hardly.

A job ends one, two, four, eight, ... times ``training_seconds`` after its start, whichever comes next: until then its
result is not committed, its state does not change, and its process takes no other job. Its cost is reserved before a
row is read. What an observer learns from the clock is the number of the slot. A holder who sets ``training_seconds``
above what any training takes gives nothing away: it is the first.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta


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

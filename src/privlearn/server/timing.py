"""The server's clock: times as text, and slots that hide how long a job took.

A job's end is visible, and its computing time depends on the rows. So a job ends only at the end of a slot, and slots
grow by doubling: the end time reveals at most how often its first slot was doubled.
"""

from __future__ import annotations

import math
import time
from datetime import UTC, datetime


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

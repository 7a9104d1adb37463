"""What was reserved in ledgers by the work under way, so that whoever stops it is told what became of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class Reserved(Protocol):
    """A reservation, such as `privlearn.ledger.Reservation`."""

    def state(self) -> str | None:
        """What the ledger says of it now; None if it never got there."""


class Charges:
    """The reservations that were tried, with their costs in words; what became of them the ledger says."""

    def __init__(self) -> None:
        self._tried: list[tuple[Reserved, str]] = []

    def add(self, reservation: Reserved, cost: str) -> None:
        self._tried.append((reservation, cost))

    def __str__(self) -> str:
        states = [(reservation.state(), cost) for reservation, cost in self._tried]
        spent = [cost for state, cost in states if state == "committed"]
        reserved = [cost for state, cost in states if state == "reserved"]
        told = [f"{' and '.join(spent)} is spent"] if spent else []
        told += [f"its cost stays reserved: {' and '.join(reserved)}"] if reserved else []
        return "; ".join(told) or "nothing was charged to a ledger"


_watching: list[Charges] = []
"""Of the process and not of a thread: reservations are made in other threads, too."""


@contextmanager
def watch_charges() -> Iterator[Charges]:
    """Remember what is reserved inside the ``with`` block."""
    charges = Charges()
    _watching.append(charges)
    try:
        yield charges
    finally:
        _watching.remove(charges)


def remember(reservation: Reserved, cost: str) -> None:
    """Before it is written: an interruption may come between the writing and whatever follows."""
    for charges in _watching:
        charges.add(reservation, cost)

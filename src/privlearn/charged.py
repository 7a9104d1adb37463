"""What work under way was charged, in ledgers or at a server, so that whoever stops it is told what became of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class Reserved(Protocol):
    """A reservation, such as `privlearn.ledger.Reservation`."""

    def state(self) -> str | None:
        """What the ledger says of it now; None if it never got there."""


class AskedJob:
    """A job that a server is asked for: it goes on there, whatever becomes of the one who asked."""

    def __init__(self) -> None:
        self.id: str | None = None
        """None until the server has answered."""
        self.is_over = False

    def __str__(self) -> str:
        if self.id is None:
            return (
                "the request may have reached the server, where its job goes on and pays when it is done; "
                "`privlearn ask jobs` shows it then, and `privlearn ask cancel ID` ends it"
            )
        if self.is_over:
            return (
                f"job {self.id} is over at the server; `privlearn ask result {self.id}` fetches what it made"
            )
        return (
            f"job {self.id} goes on at the server, and pays when it is done; `privlearn ask cancel {self.id}` ends it, "
            "and what it has reserved by then stays spent"
        )


class Charges:
    """The reservations that were tried, with their costs in words; what became of them the ledger says."""

    def __init__(self) -> None:
        self._tried: list[tuple[Reserved, str]] = []
        self._asked: list[AskedJob] = []

    def add(self, reservation: Reserved, cost: str) -> None:
        self._tried.append((reservation, cost))

    def add_asked(self, job: AskedJob) -> None:
        self._asked.append(job)

    def __str__(self) -> str:
        states = [(reservation.state(), cost) for reservation, cost in self._tried]
        spent = [cost for state, cost in states if state == "committed"]
        reserved = [cost for state, cost in states if state == "reserved"]
        told = [f"{' and '.join(spent)} is spent"] if spent else []
        told += [f"its cost stays reserved: {' and '.join(reserved)}"] if reserved else []
        told += map(str, self._asked)
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


def remember_asked(job: AskedJob) -> None:
    """Before the request is sent, for the same reason."""
    for charges in _watching:
        charges.add_asked(job)

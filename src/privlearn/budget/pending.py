"""What running work has charged, in ledgers or at a server, so that an interrupted user learns what became of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class Reserved(Protocol):
    """A reservation, such as `privlearn.budget.reservation.Reservation`."""

    def state(self) -> str | None:
        """Return its state in the ledger; None if it was never recorded."""


class RequestedJob:
    """A job that was requested from a server: it continues there if this process is interrupted."""

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


class CoordinatedRun:
    """A run of several holders: it charges the ledgers of its parties, which this process does not see."""

    def __str__(self) -> str:
        return (
            "the run is suspended, and the parties wait for it; every question that they answered is charged to their "
            "ledgers. The same command goes on with it, and `--end` ends it"
        )


class Charges:
    """The reservations that were tried, with their costs as text; their state is read from the ledger."""

    def __init__(self) -> None:
        self._tried: list[tuple[Reserved, str]] = []
        self._jobs: list[RequestedJob | CoordinatedRun] = []

    def add(self, reservation: Reserved, cost: str) -> None:
        self._tried.append((reservation, cost))

    def add_job(self, job: RequestedJob | CoordinatedRun) -> None:
        self._jobs.append(job)

    def __str__(self) -> str:
        states = [(reservation.state(), cost) for reservation, cost in self._tried]
        spent = [cost for state, cost in states if state == "committed"]
        reserved = [cost for state, cost in states if state == "reserved"]
        lines = [f"{' and '.join(spent)} is spent"] if spent else []
        lines += [f"its cost stays reserved: {' and '.join(reserved)}"] if reserved else []
        lines += map(str, self._jobs)
        return "; ".join(lines) or "nothing was charged to a ledger"


_watching: list[Charges] = []
"""One list for the process: reservations are made in other threads, too."""


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
    """Remember a reservation before it is written: an interruption may follow the writing immediately."""
    for charges in _watching:
        charges.add(reservation, cost)


def remember_job(job: RequestedJob | CoordinatedRun) -> None:
    """Remember a job before the request is sent, for the same reason."""
    for charges in _watching:
        charges.add_job(job)

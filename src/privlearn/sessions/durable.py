"""What a session needs of the place that holds its state: a file of its own, or a database shared with others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from privlearn.sessions.answers import Source
from privlearn.sessions.points import Array


@dataclass(frozen=True)
class Record:
    """One answered point, its score for each function, and what the mechanism has to remember of it."""

    point: bytes
    scores: Array
    source: Source
    memory: bytes


class Turn(Protocol):
    """The time in which nobody else answers for this session."""

    def missed(self, known: int) -> Sequence[Record]:
        """Answers that others gave after those known here, in the order they were given. Ask before appending."""

    def append(self, records: Sequence[Record], /) -> None:
        """Make answers durable, all or none; they may leave once the turn is over."""


class State(Protocol):
    """An open state: public facts that the session was opened with, its private function and its answers.

    ``shared`` says that others may answer too: whatever became of answers that could not be written is then learnt in
    the next turn.
    """

    header: dict[str, Any]
    function: bytes
    shared: bool

    def records(self) -> Iterable[Record]:
        """All answers, in the order they were given."""

    def turn(self) -> AbstractContextManager[Turn]: ...
    def check_open(self) -> None: ...
    def close(self) -> None: ...


class StateStore(Protocol):
    """Where a session's state is, or will be."""

    def check_free(self) -> None:
        """Refuse a place at which no new session can begin."""

    def create(self, header: dict[str, Any], function: bytes) -> State: ...
    def open(self) -> State: ...

"""What a session keeps: its points, its answers, and where each comes from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from privlearn.arrays import Array

Source = Literal["noisy", "guess", "exhausted"]
"""``noisy``: the private function's value plus noise. ``guess``: PINP's public function, which passed the private test.
``exhausted``: PINP's public function, no longer compared with the private one."""


@dataclass(frozen=True)
class Answer:
    """The answer at one point."""

    scores: Array
    source: Source


@dataclass(frozen=True, eq=False)
class Answers:
    """The answers at one point or many: scalars for one point, arrays otherwise.

    Attributes
    ----------
    scores : float or array
        Of two classes: above 0 is the second. Of a number: -1 to 1 stands for its bounds. Of several classes: a score
        for each, of which the largest decides.
    predictions : label or number, or array of them
    sources : str or array of str
        See `Source`; a session that has used up its budget says ``exhausted``.
    """

    scores: Any
    predictions: Any
    sources: Any

    @classmethod
    def of(
        cls, answers: list[Answer], predicted: Callable[[Array], NDArray[Any]], *, single: bool
    ) -> Answers:
        scores = np.array([answer.scores for answer in answers])
        sources = np.array([answer.source for answer in answers])
        predictions = predicted(scores)
        if scores.shape[1] == 1:
            scores = scores[:, 0]
        return (
            cls(scores[0], predictions[0], str(sources[0])) if single else cls(scores, predictions, sources)
        )


def numbers_to_bytes(numbers: Array) -> bytes:
    """The same bytes for the same numbers, whatever the machine: little-endian, and 0.0 for -0.0."""
    return (numbers + 0.0).astype("<f8").tobytes()


def numbers_from_bytes(content: bytes) -> Array:
    return np.frombuffer(content, dtype="<f8").astype(np.float64)


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

    Others may have it open too. What became of answers that could not be written is learnt in the next turn.
    """

    header: dict[str, Any]
    function: bytes

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

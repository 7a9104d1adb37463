"""Answers of a session, the records that make them durable, and the points that they are about.

A point has one key, its bytes (`NumberPoints.key`, `ObjectPoints.key`): points with equal keys get the same answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from privlearn.arrays import Array
from privlearn.features.objects import object_from_bytes, object_to_bytes

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
        Two classes: a score above 0 predicts the second class. A number: -1 and 1 are its bounds. Several classes: one
        score per class, and the largest one decides.
    predictions : label or number, or array of them
    sources : str or array of str
        The `Source` of each answer; ``exhausted`` after the session has used up its budget.
    """

    scores: Any
    predictions: Any
    sources: Any

    @classmethod
    def of(
        cls, answers: list[Answer], predicted: Callable[[Array], NDArray[Any]], *, single: bool
    ) -> Answers:
        """Return answers with their predictions; scalars for a single point."""
        scores = np.array([answer.scores for answer in answers])
        sources = np.array([answer.source for answer in answers])
        predictions = predicted(scores)
        if scores.shape[1] == 1:
            scores = scores[:, 0]
        return (
            cls(scores[0], predictions[0], str(sources[0])) if single else cls(scores, predictions, sources)
        )


def numbers_to_bytes(numbers: Array) -> bytes:
    """Return the same bytes for the same numbers on every machine: little-endian, and 0.0 for -0.0."""
    return (numbers + 0.0).astype("<f8").tobytes()


def numbers_from_bytes(content: bytes) -> Array:
    """Return the numbers of `numbers_to_bytes`."""
    return np.frombuffer(content, dtype="<f8").astype(np.float64)


@dataclass(frozen=True)
class Record:
    """One answered point, its score for each function, and the mechanism's memory of it."""

    point: bytes
    scores: Array
    source: Source
    memory: bytes


class NumberPoints:
    """Rows of numbers, in one array that grows by doubling."""

    key = staticmethod(numbers_to_bytes)

    def __init__(self) -> None:
        self._rows: Array | None = None
        self._count = 0

    def add(self, key: bytes) -> None:
        """Append the point that has this key."""
        self.followed_by(numbers_from_bytes(key)[np.newaxis])
        self._count += 1

    def followed_by(self, points: Array) -> Array:
        """Return all rows and then ``points``, in one array; ``points`` are not stored."""
        stop = self._count + len(points)
        if self._rows is None or stop > len(self._rows):
            more = np.empty((max(stop, 16), points.shape[1]))
            self._rows = np.concatenate([self.all, more]) if self._count else more
        self._rows[self._count : stop] = points
        return self._rows[:stop]

    def __len__(self) -> int:
        return self._count

    @property
    def all(self) -> Array:
        return np.empty((0, 0)) if self._rows is None else self._rows[: self._count]

    @staticmethod
    def batch(points: Sequence[Any]) -> Array:
        """Return points as one array."""
        return np.array(points)


class ObjectPoints:
    """Objects that only the user's kernel can read."""

    key = staticmethod(object_to_bytes)

    def __init__(self) -> None:
        self.all: list[Any] = []

    def add(self, key: bytes) -> None:
        self.all.append(object_from_bytes(key))

    def followed_by(self, points: list[Any]) -> list[Any]:
        """Return all objects and then ``points``; ``points`` are not stored."""
        return [*self.all, *points]

    def __len__(self) -> int:
        return len(self.all)

    @staticmethod
    def batch(points: Sequence[Any]) -> list[Any]:
        """Return points as one list."""
        return list(points)


def points_for(keeps_objects: bool) -> NumberPoints | ObjectPoints:
    """Return an empty list for objects or for rows of numbers."""
    return ObjectPoints() if keeps_objects else NumberPoints()

"""Answers from a public guess that is corrected where it is wrong (docs/theory/pinp.md)."""

from __future__ import annotations

import struct

import numpy as np

from privlearn.mechanisms.pinp import PaperPINP, TightPINP
from privlearn.randomness import Randomness
from privlearn.sessions.answers import Source
from privlearn.sessions.durable import Record
from privlearn.sessions.learner import Array, Learner
from privlearn.sessions.points import PointList, numbers_from_bytes, numbers_to_bytes

_UPDATE = struct.Struct("<dq")  # the correction, and the noisy threshold from here on


class PinpSession:
    """The public guess w = sum of corrections times k(z, .), the budget of updates, and the secret noisy threshold."""

    largest_batch = 1  # an update changes the next point's guess

    def __init__(
        self, mechanism: TightPINP | PaperPINP, learner: Learner, randomness: Randomness, threshold: int
    ) -> None:
        self._mechanism = mechanism
        self._learner = learner
        self._randomness = randomness
        self._threshold = threshold
        self._points = PointList()
        self._corrections: list[float] = []
        self._asked = 0

    @property
    def exhausted(self) -> bool:
        """True once no more private tests can be paid for."""
        if len(self._corrections) >= self._mechanism.updates:
            return True
        return self._mechanism.queries is not None and self._asked >= self._mechanism.queries

    def recall(self, record: Record) -> None:
        """Take up an answer that is durable."""
        self._asked += 1
        if record.memory:
            correction, self._threshold = _UPDATE.unpack(record.memory)
            self._points.add(numbers_from_bytes(record.point))
            self._corrections.append(correction)

    def answer(self, points: Array) -> list[Record]:
        """The answer at one new point; `recall` it once it is durable."""
        return [self._decide(points)]

    def _decide(self, point: Array) -> Record:
        guess, key = self._guess(point), numbers_to_bytes(point[0])
        if self.exhausted:
            return _public(key, guess, "exhausted")
        value = float(self._learner.values(point)[0, 0])
        verdict = self._mechanism.ask(value, guess, self._threshold, self._randomness)
        if verdict.score is None:
            return _public(key, guess, "guess")
        fresh = self._mechanism.draw_threshold(self._randomness)
        return Record(key, np.array([verdict.score]), "noisy", _UPDATE.pack(verdict.correction, fresh))

    def _guess(self, point: Array) -> float:
        if not self._corrections:
            return 0.0
        return float(self._learner.similarity(point, self._points.rows)[0] @ np.array(self._corrections))


def _public(key: bytes, guess: float, source: Source) -> Record:
    return Record(key, np.array([guess]), source, b"")

"""Answers from one noisy function (docs/theory/function-release.md)."""

from __future__ import annotations

import struct

import numpy as np

from privlearn.errors import SessionError
from privlearn.mechanisms.function_release import FunctionRelease
from privlearn.mechanisms.gaussian_path import BLOCK, CAPACITY, GaussianPath, PathStep
from privlearn.randomness import Randomness
from privlearn.sessions.learner import Array, Learner
from privlearn.sessions.points import PointList, point_bytes, point_from_bytes
from privlearn.sessions.state import Record

_DRAW = struct.Struct("<q")


class FunctionSession:
    """The path so far, and how it goes on: each point is remembered with its draw and its row of the factor."""

    largest_batch = BLOCK
    exhausted = False

    def __init__(self, mechanism: FunctionRelease, learner: Learner, randomness: Randomness) -> None:
        self._mechanism = mechanism
        self._learner = learner
        self._randomness = randomness
        self._points = PointList()
        self._path = GaussianPath()

    def recall(self, record: Record) -> None:
        """Take up an answer that is durable."""
        self._points.add(point_from_bytes(record.point))
        if record.memory:
            draw = _DRAW.unpack_from(record.memory)[0]
            row = np.frombuffer(record.memory, dtype="<f8", offset=_DRAW.size)
            self._path.remember(row, draw)

    def answer(self, points: Array) -> list[Record]:
        """Answers at new points, different from each other and from all before; `recall` them once they are durable."""
        if len(self._points) + len(points) > CAPACITY:
            raise SessionError(
                f"this session's guarantee covers {CAPACITY} different points, which are used up: points asked before "
                "are still answered; open another session for new ones"
            )
        values = self._learner.values(points)
        steps = self._steps(points)
        return [
            Record(
                point_bytes(point),
                self._mechanism.answer(float(value), step.noise),
                "noisy",
                _DRAW.pack(step.draw) + step.row.astype("<f8").tobytes() if len(step.row) else b"",
            )
            for point, value, step in zip(points, values, steps, strict=True)
        ]

    def _steps(self, points: Array) -> list[PathStep]:
        if not self._mechanism.guarantee.is_private:
            return [PathStep(np.empty(0), 0, 0)] * len(points)
        past = self._points.rows
        cross = self._learner.similarity(points, past) if len(past) else np.empty((len(points), 0))
        return self._path.draw(cross, self._learner.similarity(points, points), self._randomness)

"""Answers from noisy functions (docs/theory/function-release.md)."""

from __future__ import annotations

import numpy as np

from privlearn.errors import SessionError
from privlearn.mechanisms.function_release import FunctionRelease
from privlearn.mechanisms.gaussian_path import BLOCK, CAPACITY, GaussianPaths, PathStep
from privlearn.randomness import Randomness
from privlearn.sessions.durable import Record
from privlearn.sessions.learner import Array, Learner
from privlearn.sessions.points import PointList, numbers_from_bytes, numbers_to_bytes


class FunctionSession:
    """The paths so far, and how they go on: each point is remembered with its draws and its row of the factor."""

    largest_batch = BLOCK
    exhausted = False

    def __init__(self, mechanism: FunctionRelease, learner: Learner, randomness: Randomness) -> None:
        self._mechanism = mechanism
        self._learner = learner
        self._randomness = randomness
        self._points = PointList()
        self._functions = mechanism.facts.task.problems
        self._paths = GaussianPaths(self._functions)

    def recall(self, record: Record) -> None:
        """Take up an answer that is durable."""
        self._points.add(numbers_from_bytes(record.point))
        if record.memory:
            draws = np.frombuffer(record.memory, dtype="<i8", count=self._functions)
            row = numbers_from_bytes(record.memory[draws.nbytes :])
            self._paths.remember(row, draws.tolist())

    def answer(self, points: Array) -> list[Record]:
        """Answers at new points, different from each other and from all before; `recall` them once they are durable."""
        if len(self._points) + len(points) > CAPACITY:
            raise SessionError(
                f"this session's guarantee covers {CAPACITY} different points, which are used up: points asked before "
                "are still answered; open another session for new ones"
            )
        values = self._learner.values(points)
        steps = self._steps(points)
        return [self._record(*answered) for answered in zip(points, values, steps, strict=True)]

    def _record(self, point: Array, values: Array, step: PathStep) -> Record:
        scores = map(self._mechanism.answer, values.tolist(), step.noises)
        memory = np.array(step.draws, dtype="<i8").tobytes() + numbers_to_bytes(step.row)
        return Record(numbers_to_bytes(point), np.array(list(scores)), "noisy", memory)

    def _steps(self, points: Array) -> list[PathStep]:
        if not self._mechanism.guarantee.is_private:
            return [PathStep(np.empty(0), (), (0,) * self._functions)] * len(points)
        past = self._points.rows
        cross = self._learner.similarity(points, past) if len(past) else np.empty((len(points), 0))
        return self._paths.draw(cross, self._learner.similarity(points, points), self._randomness)

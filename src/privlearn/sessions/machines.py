"""The machines that answer: function release, and PINP."""

from __future__ import annotations

import struct
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from privlearn.arrays import Array
from privlearn.errors import SessionError
from privlearn.mechanisms.session.function_release import (
    BLOCK,
    CAPACITY,
    FunctionRelease,
    GaussianPaths,
    PathStep,
)
from privlearn.mechanisms.session.pinp import PaperPINP, TightPINP
from privlearn.mechanisms.session.task import KernelTask
from privlearn.randomness import Randomness
from privlearn.sessions.drawn_ahead import DrawnAhead
from privlearn.sessions.durable import Record, Source, numbers_from_bytes, numbers_to_bytes
from privlearn.sessions.points import points_for


class SessionLearner(Protocol):
    """Functions in a kernel's space, found or to be found, such as `privlearn.estimators.kernel_learner.KernelLearner`.

    The public half may be shown to anyone, the private half to the session alone.
    """

    @property
    def takes_objects(self) -> bool:
        """Public: whether what is asked are objects that only the kernel can read, and not rows or tables."""

    @property
    def keeps_objects(self) -> bool:
        """Public: whether encoded points still are; if not they are rows of numbers."""

    def facts(self, neighbours: str) -> KernelTask:
        """Public: what the mechanisms are calibrated by; a problem is a function."""

    def describe(self) -> dict[str, Any]:
        """Public: encoding, kernel, and labels or bounds of what is predicted, as plain JSON values."""

    def encode(self, data: Any) -> Any:
        """Public: points as rows of norm at most 1, or a list of objects; refuses those beyond the kernel's bound."""

    def similarity(self, points: Any, others: Any) -> Array:
        """Public: the kernel, divided by its bound."""

    def predicted(self, scores: Array) -> NDArray[Any]:
        """Public: the labels or numbers that scores stand for; one row per point, one column per function."""

    def values(self, points: Any) -> Array:
        """PRIVATE: the functions at encoded points; one row per point, one column per function."""

    def solve(self) -> None:
        """PRIVATE: find the functions, unless they are known."""

    def function_bytes(self) -> bytes:
        """PRIVATE: the functions' coefficients."""

    def training_digest(self) -> str:
        """PRIVATE: a digest of the training rows and labels."""

    def restore_function(self, content: bytes) -> None:
        """Take these coefficients instead of one's own."""


class FunctionSession:
    """The paths so far, and how they go on: each point is remembered with its draws and its row of the factor."""

    largest_batch = BLOCK
    exhausted = False

    def __init__(self, mechanism: FunctionRelease, learner: SessionLearner, randomness: Randomness) -> None:
        self._mechanism = mechanism
        self._learner = learner
        # not of a seeded source: what is drawn from it is replayed in its order
        self._randomness = DrawnAhead(randomness) if randomness.secure else randomness
        self._own: set[bytes] = set()  # points answered here last
        self._points = points_for(learner.keeps_objects)
        self._functions = mechanism.facts.functions
        self._paths = GaussianPaths(self._functions)

    def recall(self, record: Record) -> None:
        """Take up an answer that is durable."""
        if record.point not in self._own and isinstance(self._randomness, DrawnAhead):
            self._randomness.forget()  # another process answered: it may be a copy of this one
        self._points.add(record.point)
        if record.memory:
            draws = np.frombuffer(record.memory, dtype="<i8", count=self._functions)
            row = numbers_from_bytes(record.memory[draws.nbytes :])
            self._paths.remember(row, draws.tolist())

    def answer(self, points: Any) -> list[Record]:
        """Answers at new points, different from each other and from all before; `recall` them once they are durable."""
        if len(self._points) + len(points) > CAPACITY:
            raise SessionError(
                f"this session's guarantee covers {CAPACITY} different points, which are used up: points asked before "
                "are still answered; open another session for new ones"
            )
        together = self._points.together(points)
        values = self._learner.values(together)
        steps = self._steps(together)
        records = [self._record(*answered) for answered in zip(points, values, steps, strict=True)]
        self._own = {record.point for record in records}
        return records

    def _record(self, point: Any, values: Array, step: PathStep) -> Record:
        scores = map(self._mechanism.answer, values.tolist(), step.noises)
        memory = np.array(step.draws, dtype="<i8").tobytes() + numbers_to_bytes(step.row)
        return Record(self._points.key(point), np.array(list(scores)), "noisy", memory)

    def _steps(self, points: Any) -> list[PathStep]:
        if not self._mechanism.guarantee.is_private:
            return [PathStep(np.empty(0), (), (0,) * self._functions)] * len(points)
        kernel = self._learner.similarity(points, self._points.and_then(points))
        past = len(self._points)
        return self._paths.draw(kernel[:, :past], kernel[:, past:], self._randomness)


_UPDATE = struct.Struct("<dq")  # the correction, and the noisy threshold from here on


class PinpSession:
    """The public guess w = sum of corrections times k(z, .), the budget of updates, and the secret noisy threshold."""

    largest_batch = 1  # an update changes the next point's guess

    def __init__(
        self,
        mechanism: TightPINP | PaperPINP,
        learner: SessionLearner,
        randomness: Randomness,
        threshold: int,
    ) -> None:
        self._mechanism = mechanism
        self._learner = learner
        self._randomness = randomness
        self._threshold = threshold
        self._points = points_for(learner.keeps_objects)
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
            self._points.add(record.point)
            self._corrections.append(correction)

    def answer(self, points: Any) -> list[Record]:
        """The answer at one new point; `recall` it once it is durable."""
        (point,) = points
        return [self._decide(self._points.together(points), self._points.key(point))]

    def _decide(self, point: Any, key: bytes) -> Record:
        """``point`` is one, as the kernel takes several."""
        guess = self._guess(point)
        if self.exhausted:
            return _public(key, guess, "exhausted")
        value = float(self._learner.values(point)[0, 0])
        verdict = self._mechanism.ask(value, guess, self._threshold, self._randomness)
        if verdict.score is None:
            return _public(key, guess, "guess")
        fresh = self._mechanism.draw_threshold(self._randomness)
        return Record(key, np.array([verdict.score]), "noisy", _UPDATE.pack(verdict.correction, fresh))

    def _guess(self, point: Any) -> float:
        if not self._corrections:
            return 0.0
        return float(self._learner.similarity(point, self._points.all)[0] @ np.array(self._corrections))


def _public(key: bytes, guess: float, source: Source) -> Record:
    return Record(key, np.array([guess]), source, b"")

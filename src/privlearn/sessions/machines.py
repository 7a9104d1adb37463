"""`FunctionSession` and `PinpSession`: the mechanisms that answer, with their memory; and the learner they need."""

from __future__ import annotations

import struct
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from privlearn.arrays import Array
from privlearn.data.parts import Part
from privlearn.data.schema.schema import Schema
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
from privlearn.sessions.records import Record, Source, numbers_from_bytes, numbers_to_bytes, points_for


class SessionLearner(Protocol):
    """The learner with which a session is opened, such as `privlearn.estimators.kernel_learner.KernelLearner`."""

    def freeze(self) -> FrozenLearner:
        """PRIVATE: return what the session answers from; nothing done to the learner afterwards may change it."""


class FrozenLearner(Protocol):
    """Functions in a kernel's space, solved or not, such as `privlearn.estimators.kernel_machine.KernelMachine`.

    No method changes it. Results of PRIVATE methods must not leave the session.
    """

    @property
    def records_schema(self) -> Schema | None:
        """Public: return the schema that the records were read by."""

    @property
    def records_part(self) -> Part | None:
        """Public: return the part of a split that the records are."""

    @property
    def takes_objects(self) -> bool:
        """Public: return whether points are objects that only the kernel can read, rather than rows or tables."""

    @property
    def keeps_objects(self) -> bool:
        """Public: return whether encoded points are objects; otherwise they are rows of numbers."""

    def kernel_task(self, neighbours: str) -> KernelTask:
        """Public: return what the mechanisms are calibrated by; a problem is a function."""

    def describe(self) -> dict[str, Any]:
        """Public: return encoding, kernel, and labels or bounds of the target, as plain JSON values."""

    def encode(self, data: Any) -> Any:
        """Public: return points as rows of norm at most 1, or objects; refuse those beyond the kernel's bound."""

    def similarity(self, points: Any, others: Any) -> Array:
        """Public: return the kernel, divided by its bound."""

    def predict(self, scores: Array) -> NDArray[Any]:
        """Public: return the labels or numbers for scores of shape (points, functions)."""

    def values(self, points: Any) -> Array:
        """PRIVATE: return the functions at encoded points, of shape (points, functions)."""

    def solve(self) -> Self:
        """PRIVATE: return the learner with its functions, solving for them unless they are known."""

    def function_bytes(self) -> bytes:
        """PRIVATE: return the functions' coefficients."""

    def training_digest(self) -> str:
        """PRIVATE: return a digest of the training rows and labels."""

    def restore_function(self, content: bytes) -> Self:
        """PRIVATE: return the learner with these coefficients."""


class FunctionSession:
    """Function release: Gaussian paths so far; each point has its draws and its row of the Cholesky factor."""

    max_batch = BLOCK
    exhausted = False

    def __init__(self, mechanism: FunctionRelease, learner: FrozenLearner, randomness: Randomness) -> None:
        self._mechanism = mechanism
        self._learner = learner
        self._randomness = randomness
        self._points = points_for(learner.keeps_objects)
        self._functions = mechanism.kernel_task.functions
        self._paths = GaussianPaths(self._functions)

    def recall(self, record: Record) -> None:
        """Take a durable answer into memory."""
        self._points.add(record.point)
        if record.memory:
            draws = np.frombuffer(record.memory, dtype="<i8", count=self._functions)
            row = numbers_from_bytes(record.memory[draws.nbytes :])
            self._paths.remember(row, draws.tolist())

    def answer(self, points: Any) -> list[Record]:
        """Return answers at new, distinct points; `recall` them once they are durable."""
        # Rounding in the Cholesky factor grows with the number of points; the theorem bounds it up to here.
        if len(self._points) + len(points) > CAPACITY:
            raise SessionError(
                f"this session's guarantee covers {CAPACITY} different points, which are used up. Earlier points are "
                "still answered. Open another session for new ones"
            )
        # One batch: the kernel of all new points is computed at once, and they are drawn in their order.
        batch = self._points.batch(points)
        values = self._learner.values(batch)
        steps = self._steps(batch)
        return [self._record(*answer) for answer in zip(points, values, steps, strict=True)]

    def _record(self, point: Any, values: Array, step: PathStep) -> Record:
        scores = map(self._mechanism.answer, values.tolist(), step.noises)
        memory = np.array(step.draws, dtype="<i8").tobytes() + numbers_to_bytes(step.row)
        return Record(self._points.key(point), np.array(list(scores)), "noisy", memory)

    def _steps(self, points: Any) -> list[PathStep]:
        if not self._mechanism.guarantee.is_private:
            return [PathStep(np.empty(0), (), (0,) * self._functions)] * len(points)
        kernel = self._learner.similarity(points, self._points.followed_by(points))
        past = len(self._points)
        return self._paths.draw(kernel[:, :past], kernel[:, past:], self._randomness)


_UPDATE = struct.Struct("<dq")  # the correction, and the noisy threshold from here on


class PinpSession:
    """PINP: the public guess, a sum of corrections times k(z, .); the remaining updates; the secret noisy threshold."""

    max_batch = 1  # an update changes the next point's guess

    def __init__(
        self, mechanism: TightPINP | PaperPINP, learner: FrozenLearner, randomness: Randomness, threshold: int
    ) -> None:
        self._mechanism = mechanism
        self._learner = learner
        self._randomness = randomness
        self._threshold = threshold
        self._points = points_for(learner.keeps_objects)
        self._corrections: list[float] = []
        self._query_count = 0

    @property
    def exhausted(self) -> bool:
        """Return whether the budget of private tests is used up."""
        if len(self._corrections) >= self._mechanism.updates:
            return True
        return self._mechanism.queries is not None and self._query_count >= self._mechanism.queries

    def recall(self, record: Record) -> None:
        """Take a durable answer into memory."""
        self._query_count += 1
        if record.memory:
            correction, self._threshold = _UPDATE.unpack(record.memory)
            self._points.add(record.point)
            self._corrections.append(correction)

    def answer(self, points: Any) -> list[Record]:
        """Return the answer at one new point; `recall` it once it is durable."""
        (point,) = points
        return [self._decide(self._points.batch(points), self._points.key(point))]

    def _decide(self, point: Any, key: bytes) -> Record:
        """Return the answer; ``point`` is a batch of one."""
        guess = self._guess(point)
        if self.exhausted:
            return _public_record(key, guess, "exhausted")
        value = float(self._learner.values(point)[0, 0])
        verdict = self._mechanism.ask(value, guess, self._threshold, self._randomness)
        if verdict.score is None:
            return _public_record(key, guess, "guess")
        # The threshold was compared with this answer, so it is used up; it becomes durable with the answer.
        fresh = self._mechanism.draw_threshold(self._randomness)
        return Record(key, np.array([verdict.score]), "noisy", _UPDATE.pack(verdict.correction, fresh))

    def _guess(self, point: Any) -> float:
        if not self._corrections:
            return 0.0
        return float(self._learner.similarity(point, self._points.all)[0] @ np.array(self._corrections))


def _public_record(key: bytes, guess: float, source: Source) -> Record:
    return Record(key, np.array([guess]), source, b"")

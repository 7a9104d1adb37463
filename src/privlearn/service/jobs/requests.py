"""What analysts ask for, and what becomes of it: plain values that the HTTP interface and the pages show."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Literal

import pyarrow as pa
from numpy.typing import NDArray

from privlearn.guarantee import Guarantee

Kind = Literal["release", "session"]
Mechanism = Literal["model", "function_release", "pinp"]
State = Literal["waiting", "running", "done", "failed"]


@dataclass(frozen=True, eq=False)
class TrainingRequest:
    """A model to be trained: to be given out as a file, or to be asked in a session.

    Parameters
    ----------
    dataset, learner : str
        One of the data sets offered, and one of its learners.
    kind : {"release", "session"}
    epsilon, delta : float
        The price; the data set's budget says what neighbours are.
    mechanism : {"model", "function_release", "pinp"}, default="model"
        Of a session. ``model``: a private model that stays with the holder. The others answer from an exact kernel
        machine.
    points : pyarrow.Table, optional
        The analyst's public points, without the target: landmarks of a kernel model.
    trial : bool, default=False
        Train on rows made up from the schema; costs nothing.
    """

    dataset: str
    kind: Kind
    learner: str
    epsilon: float
    delta: float = 0.0
    mechanism: Mechanism = "model"
    points: pa.Table | None = field(default=None, repr=False)
    trial: bool = False

    def points_bytes(self) -> bytes | None:
        """The points as an Arrow stream."""
        if self.points is None:
            return None
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, self.points.schema) as writer:
            writer.write_table(self.points)
        return bytes(sink.getvalue())

    def digest(self) -> str:
        """Equal for equal requests: a retried one is told from another under the same key."""
        facts = (self.dataset, self.kind, self.learner, self.epsilon, self.delta, self.mechanism, self.trial)
        return sha256(repr(facts).encode() + (self.points_bytes() or b"")).hexdigest()


def points_from_bytes(content: bytes | None) -> pa.Table | None:
    return None if content is None else pa.ipc.open_stream(content).read_all()


@dataclass(frozen=True)
class Job:
    """A training: its id is also that of the session or the release it makes."""

    id: str
    analyst: str
    dataset: str
    kind: Kind
    learner: str
    mechanism: Mechanism
    guarantee: Guarantee
    trial: bool
    state: State
    created: str
    started: str
    finished: str
    failure: str


@dataclass(frozen=True)
class Session:
    """A model that answers points and does not leave."""

    id: str
    analyst: str
    dataset: str
    learner: str
    mechanism: Mechanism
    guarantee: Guarantee
    trial: bool
    state: Literal["open", "closed"]
    created: str
    certificate: dict[str, Any] = field(repr=False)


@dataclass(frozen=True)
class ReleaseInfo:
    """A release file, without its content."""

    id: str
    analyst: str
    dataset: str
    learner: str
    guarantee: Guarantee
    trial: bool
    created: str
    size: int
    certificate: dict[str, Any] = field(repr=False)


@dataclass(frozen=True, eq=False)
class Predictions:
    """Answers at points: labels or numbers, scores (one column per class if there are several), and their sources."""

    predictions: NDArray[Any]
    scores: NDArray[Any]
    sources: NDArray[Any]

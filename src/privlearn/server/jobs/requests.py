"""Values that the queue, the HTTP interface and the pages share: requests, jobs, results and predictions."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import JsonValue

from privlearn.data.datasets import FROM_SCHEMA
from privlearn.guarantee import Guarantee

FromSchema = Literal["schema"]
Points: TypeAlias = pa.Table | FromSchema
"""Public points that the analyst sends, or "schema": the server generates them."""

Row: TypeAlias = dict[str, list[Any]]
"""One row: a list with one cell for each column."""

State = Literal["waiting_for_approval", "waiting", "running", "done", "failed", "declined"]
OVER = ("done", "failed", "declined")

SESSION = "session"
"""The kind of job whose result answers points until it is closed."""


@dataclass(frozen=True, eq=False)
class JobRequest:
    """A request to do something with the private rows of a data set.

    Parameters
    ----------
    dataset : str
    kind : str
        One of `JOB_KINDS`.
    epsilon, delta : float
        The price; the data set's budget defines the neighbouring relation.
    trial : bool, default=False
        Use synthetic rows from the schema; costs nothing.
    fields : mapping
        The kind's `JobFields` as JSON values.
    points : pyarrow.Table or "schema", optional
        The analyst's public points, without the target, for kinds that take them.
    note : str, optional
        One line for the ledger, the log and the pages.
    purpose, legal_basis : str, optional
        The purpose of the result and its legal basis: required where a second person must approve.
    """

    dataset: str
    kind: str
    epsilon: float
    delta: float = 0.0
    trial: bool = False
    fields: Mapping[str, JsonValue] = field(default_factory=dict)
    points: Points | None = field(default=None, repr=False)
    note: str = ""
    purpose: str = ""
    legal_basis: str = ""

    def points_bytes(self) -> bytes | None:
        """Return the points as an Arrow stream, or the word "schema"."""
        if self.points is None:
            return None
        if isinstance(self.points, str):
            return self.points.encode()
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, self.points.schema) as writer:
            writer.write_table(self.points)
        return bytes(sink.getvalue())


def points_from_bytes(content: bytes | None) -> Points | None:
    """Read what `JobRequest.points_bytes` wrote."""
    if content is None or content == FROM_SCHEMA.encode():
        return None if content is None else FROM_SCHEMA
    return pa.ipc.open_stream(content).read_all()


@dataclass(frozen=True, kw_only=True)
class AcceptedRequest:
    """The part of a request that a job and its result share; both have the job's id."""

    id: str
    analyst: str
    dataset: str
    version: int
    kind: str
    fields: Mapping[str, JsonValue]
    guarantee: Guarantee
    trial: bool

    @property
    def learner(self) -> str:
        """The learner, for kinds that train; otherwise empty."""
        return str(self.fields.get("learner", ""))

    @property
    def mechanism(self) -> str:
        """The mechanism of the answers, for kinds that train; otherwise empty."""
        return str(self.fields.get("mechanism", ""))


def request_columns(row: Any) -> dict[str, Any]:
    """Return the attributes of `AcceptedRequest` from a row with a job's columns."""
    same = {name: getattr(row, name) for name in ("id", "analyst", "dataset", "version", "kind", "fields")}
    guarantee = Guarantee(row.epsilon, row.delta, row.neighbours)
    return same | {"guarantee": guarantee, "trial": bool(row.trial)}


@dataclass(frozen=True, kw_only=True)
class Job(AcceptedRequest):
    """A request in the queue, or one that is over.

    ``decide_by``: deadline for its approval; empty if it needs none. ``decided``, ``decided_by``, ``decision``: time,
    person and reason of the decision. ``key_id``: id of the analyst's key, or their name at the OpenID provider.
    """

    state: State
    created: str
    started: str
    finished: str
    failure: str
    attempts: int
    note: str
    purpose: str
    legal_basis: str
    decide_by: str
    decided: str
    decided_by: str
    decision: str
    key_id: str

    @property
    def is_over(self) -> bool:
        return self.state in OVER


@dataclass(frozen=True)
class Result:
    """The result of a job; everything in it may leave.

    ``certificate``: the guarantee, with every constant. ``media_type``: media type of the content. Empty if the
    content stays on the server.
    """

    certificate: dict[str, Any]
    content: bytes | None = None
    media_type: str = ""

    def __post_init__(self) -> None:
        """Refuse invalid values while the kind runs, rather than in the store."""
        json.dumps(self.certificate, allow_nan=False, ensure_ascii=False).encode()
        if not (isinstance(self.certificate, dict) and isinstance(self.content, bytes | None)):
            raise TypeError("certificate must be a dict and content must be bytes")
        if not re.fullmatch("[ -~]{0,100}", self.media_type):
            raise ValueError("media_type must be one line of at most 100 characters")


@dataclass(frozen=True, kw_only=True)
class ResultInfo(AcceptedRequest):
    """A result without its content."""

    created: str
    size: int
    media_type: str
    closed: bool
    certificate: dict[str, Any] = field(repr=False)

    @property
    def state(self) -> Literal["open", "closed"] | None:
        """State of a session, which no longer answers once it is closed; ``None`` for other kinds."""
        return None if self.kind != SESSION else "closed" if self.closed else "open"


@dataclass(frozen=True, eq=False)
class Predictions:
    """Answers at points: labels or numbers, scores (one column per class if there are several), and their sources.

    ``probabilities`` has one column per class, by name; it is empty if the loss defines no probabilities.
    """

    predictions: NDArray[Any]
    scores: NDArray[Any]
    sources: NDArray[Any]
    probabilities: Mapping[str, NDArray[Any]] = field(default_factory=dict)


def by_class(classes: Iterable[Any], probabilities: NDArray[Any] | None) -> dict[str, NDArray[Any]]:
    """Return each class's column of probabilities by its name."""
    if probabilities is None:
        return {}
    return {str(label): column for label, column in zip(classes, probabilities.T, strict=True)}


def join_predictions(parts: Sequence[Predictions]) -> Predictions:
    """Return the answers of consecutive parts of a batch as one."""
    if len(parts) == 1:
        return parts[0]
    predictions, scores, sources = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("predictions", "scores", "sources")
    )
    names = parts[0].probabilities
    probabilities = {name: np.concatenate([part.probabilities[name] for part in parts]) for name in names}
    return Predictions(predictions, scores, sources, probabilities)

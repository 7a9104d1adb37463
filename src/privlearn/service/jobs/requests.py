"""What analysts ask for, and what becomes of it: plain values that the HTTP interface and the pages show."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import pyarrow as pa
from numpy.typing import NDArray
from pydantic import JsonValue

from privlearn.data.made_up import FROM_SCHEMA
from privlearn.guarantee import Guarantee

FromSchema = Literal["schema"]
Points: TypeAlias = pa.Table | FromSchema
"""Public points that the analyst brings, or the word that has them made up from the schema."""

State = Literal["waiting_for_approval", "waiting", "running", "done", "failed", "declined"]
OVER = ("done", "failed", "declined")


@dataclass(frozen=True, eq=False)
class JobRequest:
    """Something to be done with the private rows of a data set.

    Parameters
    ----------
    dataset : str
        One of those offered.
    kind : str
        One of `JOB_KINDS`.
    epsilon, delta : float
        The price; the data set's budget says what neighbours are.
    trial : bool, default=False
        Do it with rows made up from the schema; costs nothing.
    fields : mapping
        What the kind is asked with beyond that: its `JobFields` as JSON values.
    points : pyarrow.Table or "schema", optional
        The analyst's public points, without the target, for kinds that take them; the word has them made up.
    note : str, optional
        A line of the analyst's own for the ledger, the log and the pages.
    purpose, legal_basis : str, optional
        What the result is for, and what allows it, in the analyst's words: needed where a second person must approve.
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
        """The points as an Arrow stream, or the word."""
        if self.points is None:
            return None
        if isinstance(self.points, str):
            return self.points.encode()
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, self.points.schema) as writer:
            writer.write_table(self.points)
        return bytes(sink.getvalue())


def points_from_bytes(content: bytes | None) -> Points | None:
    if content is None or content == FROM_SCHEMA.encode():
        return None if content is None else FROM_SCHEMA
    return pa.ipc.open_stream(content).read_all()


@dataclass(frozen=True, kw_only=True)
class Accepted:
    """What a job and its result, which has the job's id, both tell of the request."""

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
        """Of kinds that train; of others empty."""
        return str(self.fields.get("learner", ""))

    @property
    def mechanism(self) -> str:
        """Of kinds that train: what answers; of others empty."""
        return str(self.fields.get("mechanism", ""))


def accepted_in(row: Any) -> dict[str, Any]:
    """The attributes of `Accepted`, from a row that has a job's columns."""
    return {
        "id": row.id,
        "analyst": row.analyst,
        "dataset": row.dataset,
        "version": row.version,
        "kind": row.kind,
        "fields": row.fields,
        "guarantee": Guarantee(row.epsilon, row.delta, row.neighbours),
        "trial": bool(row.trial),
    }


@dataclass(frozen=True, kw_only=True)
class Job(Accepted):
    """A request on its way.

    Attributes
    ----------
    decide_by : str
        Until when somebody may approve it; empty if it needs no approval.
    decided, decided_by, decision : str
        When somebody decided on it, who, and their reason.
    asked_with : str
        Id of the analyst's key, or their name at the provider.
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
    asked_with: str

    @property
    def is_over(self) -> bool:
        return self.state in OVER


@dataclass(frozen=True)
class Result:
    """What a job has made; everything in it may leave.

    Parameters
    ----------
    certificate : dict
        What is promised, with every constant.
    content : bytes, optional
    media_type : str, default=""
        Of the content, as it is fetched. Empty if the content stays on the server.
    """

    certificate: dict[str, Any]
    content: bytes | None = None
    media_type: str = ""

    def __post_init__(self) -> None:
        """A kind's mistake is found while it runs, not by the store."""
        json.dumps(self.certificate, allow_nan=False, ensure_ascii=False).encode()
        if not (isinstance(self.certificate, dict) and isinstance(self.content, bytes | None)):
            raise TypeError("a result is a certificate, a dict, and a content in bytes")
        if not re.fullmatch("[ -~]{0,100}", self.media_type):
            raise ValueError("a media type is one line of at most 100 characters")


@dataclass(frozen=True, kw_only=True)
class ResultInfo(Accepted):
    """What a job has made, without its content."""

    created: str
    size: int
    media_type: str
    closed: bool
    certificate: dict[str, Any] = field(repr=False)

    @property
    def state(self) -> Literal["open", "closed"]:
        """Of a session: a closed one answers no more."""
        return "closed" if self.closed else "open"


@dataclass(frozen=True, eq=False)
class Predictions:
    """Answers at points: labels or numbers, scores (one column per class if there are several), and their sources.

    ``probabilities`` are the classes', by name, where scores have such a meaning; they follow from the scores.
    """

    predictions: NDArray[Any]
    scores: NDArray[Any]
    sources: NDArray[Any]
    probabilities: Mapping[str, NDArray[Any]] = field(default_factory=dict)


def by_class(classes: Iterable[Any], probabilities: NDArray[Any] | None) -> dict[str, NDArray[Any]]:
    """The columns, each under its class."""
    if probabilities is None:
        return {}
    return {str(label): column for label, column in zip(classes, probabilities.T, strict=True)}

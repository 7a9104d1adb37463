"""What is told: ids, names, kinds, prices and a link. Nothing that an analyst has written, and nothing private."""

from __future__ import annotations

import secrets
from dataclasses import asdict, dataclass
from typing import Any, Literal

from privlearn.service.jobs.requests import Job
from privlearn.service.timing import as_text, now

Happening = Literal["waits_for_approval", "approved", "declined", "done", "failed"]

_IN_WORDS: dict[Happening, str] = {
    "waits_for_approval": "waits for approval",
    "approved": "was approved",
    "declined": "was declined",
    "done": "is done",
    "failed": "has failed",
}


@dataclass(frozen=True)
class Notice:
    """One thing that has happened to a job.

    Attributes
    ----------
    id : str
        Of the notice: a receiver who gets it twice, after a lost answer, can tell.
    happening : str
    time : str
        ISO UTC.
    job, analyst, dataset, kind : str
    epsilon, delta : float
    link : str
        The page on which more is said to those who may read it.
    """

    id: str
    happening: Happening
    time: str
    job: str
    analyst: str
    dataset: str
    kind: str
    epsilon: float
    delta: float
    link: str

    @classmethod
    def about(cls, happening: Happening, job: Job, address: str) -> Notice:
        """``address`` is where browsers reach the server."""
        page = "approvals" if happening == "waits_for_approval" else "jobs"
        return cls(
            id=secrets.token_hex(8),
            happening=happening,
            time=as_text(now()),
            job=job.id,
            analyst=job.analyst,
            dataset=job.dataset,
            kind=job.kind,
            epsilon=job.guarantee.epsilon,
            delta=job.guarantee.delta,
            link=f"{address.rstrip('/')}/{page}/{job.id}",
        )

    @property
    def title(self) -> str:
        return f"privlearn: {self.kind} {self.job} on {self.dataset} {_IN_WORDS[self.happening]}"

    @property
    def text(self) -> str:
        delta = f", delta {self.delta:g}" if self.delta else ""
        return (
            f"The request {self.job} of {self.analyst} on {self.dataset} ({self.kind}, epsilon {self.epsilon:g}{delta})"
            f" {_IN_WORDS[self.happening]}.\n\n{self.link}\n"
        )

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

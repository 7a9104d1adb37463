"""Jobs of every kind: asked for, estimated, and on their way."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import ConfigDict, Field

from privlearn.service.access.keys import Caller
from privlearn.service.api.requests import IdempotencyKey, JobAnswer, asked
from privlearn.service.api.schemas import PROMISE_EXAMPLE, Answer, Id, Promise, with_example
from privlearn.service.http.callers import KnownCaller, Served
from privlearn.service.http.limits import aside, quickly, shared_of
from privlearn.service.http.paging import Part
from privlearn.service.http.problems import refused
from privlearn.service.job_kinds.job_kind import JOB_KINDS
from privlearn.service.jobs.requests import Job
from privlearn.service.service import Service

router = APIRouter(prefix="/v1", tags=["jobs"])

_FIRST_PAUSE = 0.05
_LONGEST_PAUSE = 0.5


class KindAnswer(Answer):
    """A kind of job."""

    model_config = with_example(
        {"name": "release", "title": "a release", "about": "A model file.", "fields": {"type": "object"}}
    )

    name: str = Field(description="Its name in requests.")
    title: str = Field(description="Its name in sentences.")
    about: str = Field(description="What it makes, in a sentence.")
    fields: dict[str, Any] = Field(
        description="JSON schema of what it is asked with beyond data set, epsilon, delta and trial."
    )


class JobEstimate(Answer):
    """From public facts alone; a kind that knows more says more."""

    model_config = ConfigDict(extra="allow") | with_example(
        {"rows": 32561, "guarantee": PROMISE_EXAMPLE, "mechanism": "objective", "weakness": None}
    )

    rows: int = Field(description="Number of records.")
    guarantee: Promise = Field(description="What it would cost.")
    mechanism: str = Field(description="Exactly what would run.")
    weakness: str | None = Field(description="Why the promise would be hardly private; null if it would not.")


@router.get("/kinds", summary="List kinds of job", responses=refused())
def list_kinds(_: KnownCaller) -> list[KindAnswer]:
    """What this server does, and what each kind is asked with."""
    return [
        KindAnswer(name=kind.name, title=kind.title, about=kind.about, fields=kind.fields.model_json_schema())
        for kind in JOB_KINDS.values()
    ]


@router.post(
    "/jobs", status_code=202, summary="Ask for a job", responses=refused(400, 404, 408, 409, 413, 415, 422)
)
async def ask_job(
    request: Request, service: Served, caller: KnownCaller, idempotency_key: IdempotencyKey = ""
) -> JobAnswer:
    """Of any kind. Refused at once, free of charge, if it does not fit into the budget or cannot be done. Otherwise to
    be followed at `/v1/jobs/{id}`; its cost is charged before it begins, once, and its result is at
    `/v1/results/{id}`. Where the holder wants a second person to approve it, its state is `waiting_for_approval`
    first; then `purpose` and `legal_basis` must be given."""
    wanted = await asked(request, caller)
    return JobAnswer.of(await aside(request, service.ask, caller, wanted, idempotency_key))


@router.post("/estimates", summary="Estimate a job", responses=refused(400, 404, 408, 413, 415, 422))
async def estimate_job(request: Request, service: Served, caller: KnownCaller) -> JobEstimate:
    """What a job of any kind would cost, from public facts alone: free, and no record is read."""
    return JobEstimate.of(await aside(request, service.estimate, caller, await asked(request, caller)))


@router.get("/jobs", summary="List trainings", responses=refused(422))
def list_jobs(
    service: Served,
    caller: KnownCaller,
    part: Part,
    dataset: Annotated[
        str | None, Query(max_length=64, description="Only those on this data set.", examples=["census"])
    ] = None,
) -> list[JobAnswer]:
    """Your trainings, newest first; everybody's with a key of the holder, an approver or an auditor. The header `Link`
    leads to older ones."""
    found = service.jobs(caller, part.limit, part.before, dataset)
    return [JobAnswer.of(job) for job in part.linked(found)]


@router.get("/jobs/{id}", summary="See how far a training is", responses=refused(404, 422))
async def get_job(
    request: Request,
    service: Served,
    caller: KnownCaller,
    id: Id,
    wait: Annotated[
        float,
        Query(ge=0, le=30, description="Seconds to wait for its end before answering.", examples=[20]),
    ] = 0.0,
) -> JobAnswer:
    """With `wait` the answer comes when the training is over, or after so many seconds, whichever is first. One analyst
    can have so many requests wait as the holder allows."""
    # Hundreds may wait for one job: few of them look into the database, in few threads, so that others get their turn.
    job = await quickly(request, service.watched_job if wait else service.job, caller, id)
    if not wait or job.is_over:
        return JobAnswer.of(job)
    with shared_of(request).waiting(caller.name):
        return JobAnswer.of(await _end_of(request, service, caller, id, wait))


async def _end_of(request: Request, service: Service, caller: Caller, id: str, wait: float) -> Job:
    """The job when it is over, or after so many seconds."""
    loop = asyncio.get_running_loop()
    deadline, pause = loop.time() + wait, _FIRST_PAUSE
    while True:
        job = await quickly(request, service.watched_job, caller, id)
        left = deadline - loop.time()
        over = job.is_over or left <= 0 or request.app.state.stopping
        if over or await request.is_disconnected():
            return job
        await asyncio.sleep(min(pause, left))
        pause = min(2 * pause, _LONGEST_PAUSE)


@router.delete("/jobs/{id}", summary="Cancel a training", responses=refused(404, 409, 422))
def cancel_job(service: Served, caller: KnownCaller, id: Id) -> JobAnswer:
    """One that waits, also for approval, or runs; yours, or anybody's with the holder's key. It ends as failed; what it
    had reserved stays spent, and its `failure` says so."""
    return JobAnswer.of(service.cancel(caller, id))

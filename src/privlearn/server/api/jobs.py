"""Jobs of every kind: request, estimate, follow and cancel them."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request
from pydantic import ConfigDict, Field, computed_field

from privlearn.server.access.keys import Caller
from privlearn.server.api.requests import read_job_request
from privlearn.server.api.schemas import (
    GUARANTEE_EXAMPLE,
    REQUEST_EXAMPLE,
    Answer,
    GuaranteeAnswer,
    Id,
    OfRequest,
    RequestedPage,
    with_example,
)
from privlearn.server.http.callers import KnownCaller, Served
from privlearn.server.http.capacity import run_heavy, run_quick, shared_of
from privlearn.server.http.problems import problem_responses
from privlearn.server.job_kinds.job_kind import JOB_KINDS
from privlearn.server.jobs.requests import Job, State
from privlearn.server.service import Service

router = APIRouter(prefix="/v1", tags=["jobs"])

_FIRST_PAUSE = 0.05
_MAX_PAUSE = 0.5
_STAGES = {"waiting_for_approval": "waiting for approval", "waiting": "waiting", "running": "training"}

IdempotencyKey = Annotated[
    str,
    Header(
        alias="Idempotency-Key",
        max_length=200,
        pattern=r"^[\x21-\x7e]*$",
        description="A new key for each job. A repeated request with the same key returns the same job, charged once.",
        examples=["5f0c2a5e"],
    ),
]


class KindAnswer(Answer):
    """A kind of job."""

    model_config = with_example(
        {"name": "release", "title": "a release", "about": "A model file.", "fields": {"type": "object"}}
    )

    name: str = Field(description="Its name in requests.")
    title: str = Field(description="Its name in sentences.")
    about: str = Field(description="One sentence about its result.")
    fields: dict[str, Any] = Field(
        description="JSON schema of the fields of this kind, in addition to data set, epsilon, delta and trial."
    )


class EstimateAnswer(Answer):
    """The cost of a job, computed from public parameters only. Jobs that train a model have a forecast as well; in it,
    null means infinite. A kind may add more fields."""

    model_config = ConfigDict(extra="allow") | with_example(
        {
            "rows": 32561,
            "guarantee": GUARANTEE_EXAMPLE,
            "mechanism": "objective",
            "weakness": None,
            "features": 108,
            "problems": 1,
            "noise_kind": "norm_gamma",
            "noise_scale": 2.0,
            "regularization": 0.0004,
            "noise": 0.1,
            "worst_case": 0.4,
            "margin": 0.9,
            "ratio": 0.11,
            "verdict": "clear",
            "levers": {"delta 1e-06": 0.03},
            "lost": 0.08,
            "lost_range": [0.04, 0.11],
            "quality": {"measure": "AUC", "expected": 0.87, "range": [0.71, 0.93], "without_privacy": 0.88},
            "smallest_rows": {"clear": 12000, "noisy": 4000},
            "smallest_epsilon": {"clear": 0.4, "noisy": 0.1},
            "curve": [{"epsilon": 1.0, "noise": 0.1, "margin": 0.9, "lost": 0.08, "verdict": "clear"}],
        }
    )

    rows: int = Field(description="Number of records.")
    guarantee: GuaranteeAnswer = Field(description="Its cost.")
    mechanism: str = Field(description="The mechanism that would run.")
    weakness: str | None = Field(
        description="Why the guarantee would hardly protect anyone; null if it would."
    )
    features: int | None = Field(default=None, description="Number of features of an encoded row.")
    problems: int | None = Field(default=None, description="Number of functions that are learnt.")
    noise_kind: str | None = Field(default=None, description="Distribution of the noise.")
    noise_scale: float | None = Field(default=None, description="Scale of that distribution.")
    regularization: float | None = Field(default=None, description="Strength of the regularization.")
    noise: float | None = Field(default=None, description="Noise in the prediction for a typical row.")
    worst_case: float | None = Field(default=None, description="Upper bound of the noise in any prediction.")
    margin: float | None = Field(default=None, description="Margin of the predictions without noise.")
    ratio: float | None = Field(default=None, description="Noise divided by margin: the smaller, the better.")
    lost: float | None = Field(
        default=None,
        description="Fraction of the gain over a constant prediction that is lost to privacy, for a typical signal.",
    )
    lost_range: list[float | None] | None = Field(
        default=None, description="That fraction for a strong and for a weak signal."
    )
    quality: dict[str, Any] | None = Field(
        default=None, description="Expected AUC of classes or R2 of numbers, its range, and without privacy."
    )
    verdict: str | None = Field(
        default=None,
        description="clear: even a weak signal loses at most a quarter; drowned: even a strong one over half.",
    )
    levers: dict[str, float | None] | None = Field(
        default=None, description="The lost fraction after each change that would reduce it."
    )
    smallest_rows: dict[str, int | None] | None = Field(
        default=None, description="Number of records that each verdict would need."
    )
    smallest_epsilon: dict[str, float | None] | None = Field(
        default=None, description="Epsilon that each verdict would need."
    )
    curve: list[dict[str, Any]] | None = Field(
        default=None, description="The same numbers for a range of epsilons."
    )


class JobAnswer(OfRequest):
    """A job: the request and its state. The time that it takes depends on the records, so times are coarse."""

    model_config = with_example(
        {
            **REQUEST_EXAMPLE,
            "state": "done",
            "stage": "finished",
            "created": "2026-11-16T09:00:00.000000+00:00",
            "started": "2026-11-16T09:00:00.100000+00:00",
            "finished": "2026-11-16T09:00:01.100000+00:00",
            "failure": "",
            "reason": "",
            "note": "",
            "purpose": "a risk score for the emergency ward",
            "legal_basis": "consent of the patients, study 2026-14",
            "decide_by": "2026-11-30T08:00:00.000000+00:00",
            "decided": "2026-11-16T08:30:00.000000+00:00",
            "decided_by": "bea",
            "decision": "as agreed by the board",
            "result": "9f86d081884c7d65",
        }
    )

    state: State = Field(description="State of the job.")
    created: str = Field(description="Time of the request (UTC).")
    started: str = Field(description="Time at which it began; empty: not yet.")
    finished: str = Field(description="Time at which its end became visible; empty: not yet.")
    failure: str = Field(description="Why it failed or was declined, and whether its cost stands.")
    reason: str = Field(
        default="",
        description="Why it failed: only in the answer about one job to the holder; otherwise empty.",
    )
    note: str = Field(description="The analyst's note.")
    purpose: str = Field(description="The purpose of the result that the analyst states.")
    legal_basis: str = Field(description="The legal basis that the analyst states.")
    decide_by: str = Field(description="Deadline for its approval; empty: it needs no approval.")
    decided: str = Field(description="Time of the decision; empty: not decided.")
    decided_by: str = Field(description="The person who decided.")
    decision: str = Field(description="The reason for the decision.")

    @computed_field(description="The state for people: waiting for approval, waiting, training, finished.")  # type: ignore[prop-decorator]
    @property
    def stage(self) -> str:
        return _STAGES.get(self.state, "finished")

    @computed_field(description="Id of its result, once it is done.")  # type: ignore[prop-decorator]
    @property
    def result(self) -> str | None:
        return self.id if self.state == "done" else None


@router.get("/kinds", summary="List kinds of job", responses=problem_responses())
def list_kinds(_: KnownCaller) -> list[KindAnswer]:
    """List the kinds of job that this server runs, with their fields."""
    return [
        KindAnswer(name=kind.name, title=kind.title, about=kind.about, fields=kind.fields.model_json_schema())
        for kind in JOB_KINDS.values()
    ]


@router.post(
    "/estimates",
    summary="Estimate a job",
    response_model_exclude_unset=True,
    responses=problem_responses(400, 404, 408, 413, 415, 422),
)
async def estimate_job(request: Request, service: Served, caller: KnownCaller) -> EstimateAnswer:
    """Return the cost of a job of any kind and, for trainings, a forecast of its noise. Free: no record is read. The
    body is that of `POST /v1/jobs`."""
    job_request = await read_job_request(request, caller)
    return EstimateAnswer.of(await run_heavy(request, service.estimate, caller, job_request))


@router.post(
    "/jobs",
    status_code=202,
    summary="Request a job",
    responses=problem_responses(400, 404, 408, 409, 413, 415, 422),
)
async def submit_job(
    request: Request, service: Served, caller: KnownCaller, idempotency_key: IdempotencyKey = ""
) -> JobAnswer:
    """Request a job of any kind: a release, a session, an evaluation, ... If the budget is too small or the request
    cannot be run, it is refused at once, free of charge. Otherwise follow it at `/v1/jobs/{id}`: its cost is charged
    once, before it begins, and its result is at `/v1/results/{id}`. If the holder requires a second person's approval,
    its state is `waiting_for_approval` first, and `purpose` and `legal_basis` are required."""
    job_request = await read_job_request(request, caller)
    return JobAnswer.of(await run_heavy(request, service.ask, caller, job_request, idempotency_key))


@router.get("/jobs", summary="List jobs", responses=problem_responses(422))
def list_jobs(
    service: Served,
    caller: KnownCaller,
    page: RequestedPage,
    dataset: Annotated[
        str | None, Query(max_length=64, description="Only jobs on this data set.", examples=["census"])
    ] = None,
) -> list[JobAnswer]:
    """List your jobs, newest first; with a key of the holder, an approver or an auditor those of all. The header
    `Link` leads to older ones."""
    jobs = service.jobs(caller, page.limit, page.before, dataset)
    return [JobAnswer.of(job) for job in page.with_next_link(jobs)]


@router.get("/jobs/{id}", summary="Follow a job", responses=problem_responses(404, 422))
async def get_job(
    request: Request,
    service: Served,
    caller: KnownCaller,
    id: Id,
    wait: Annotated[
        float, Query(ge=0, le=30, description="Seconds to wait for its end before answering.", examples=[20])
    ] = 0.0,
) -> JobAnswer:
    """Return a job. With `wait` the answer comes when the job is over, or after that time. The holder limits how many
    requests of one analyst may wait at a time."""
    # Hundreds may wait for one job: a short-lived cache and few threads serve them, so that others are not delayed.
    job = await run_quick(request, service.poll_job if wait else service.job, caller, id)
    if wait and not job.is_over:
        with shared_of(request).waiting(caller.name):
            job = await _wait_for_end(request, service, caller, id, wait)
    reason = await run_quick(request, service.failure_reason, caller, job) if caller.is_holder else ""
    return JobAnswer.of(job).model_copy(update={"reason": reason})


async def _wait_for_end(request: Request, service: Service, caller: Caller, id: str, wait: float) -> Job:
    """Return the job when it is over, or after `wait` seconds."""
    loop = asyncio.get_running_loop()
    deadline, pause = loop.time() + wait, _FIRST_PAUSE
    while True:
        job = await run_quick(request, service.poll_job, caller, id)
        left = deadline - loop.time()
        over = job.is_over or left <= 0 or request.app.state.stopping
        if over or await request.is_disconnected():
            return job
        await asyncio.sleep(min(pause, left))
        pause = min(2 * pause, _MAX_PAUSE)


@router.delete("/jobs/{id}", summary="Cancel a job", responses=problem_responses(404, 409, 422))
def cancel_job(service: Served, caller: KnownCaller, id: Id) -> JobAnswer:
    """End a job that waits, also for approval, or runs: your own, or any with the holder's key. It ends as failed; what
    it has reserved stays spent, as its `failure` states."""
    return JobAnswer.of(service.cancel(caller, id))

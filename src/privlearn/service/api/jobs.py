"""Trainings on their way."""

from __future__ import annotations

import asyncio
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request
from pydantic import Field, computed_field
from starlette.concurrency import run_in_threadpool

from privlearn.service.api.schemas import PROMISE_EXAMPLE, Answer, Id, Promise, with_example
from privlearn.service.http.callers import KnownCaller, Served
from privlearn.service.http.problems import refused

router = APIRouter(prefix="/v1/jobs", tags=["jobs"])

_FIRST_PAUSE = 0.05
_LONGEST_PAUSE = 0.5
_STAGES = {"waiting": "waiting", "running": "training", "done": "finished", "failed": "finished"}


class JobAnswer(Answer):
    """A training: what was asked, and how far it is. Its time depends on the records, so it shows in coarse steps."""

    model_config = with_example(
        {
            "id": "9f86d081884c7d65",
            "analyst": "alice",
            "dataset": "census",
            "kind": "release",
            "learner": "logistic",
            "mechanism": "model",
            "guarantee": PROMISE_EXAMPLE,
            "trial": False,
            "state": "done",
            "stage": "finished",
            "created": "2026-11-16T09:00:00.000000+00:00",
            "started": "2026-11-16T09:00:00.100000+00:00",
            "finished": "2026-11-16T09:00:01.100000+00:00",
            "failure": "",
            "result": "9f86d081884c7d65",
        }
    )

    id: str = Field(description="Name of the training.")
    analyst: str = Field(description="Who asked for it.")
    dataset: str = Field(description="The data set it trains on.")
    kind: Literal["release", "session"] = Field(description="What it makes.")
    learner: str = Field(description="The learner on offer that was chosen.")
    mechanism: str = Field(description="What answers a session.")
    guarantee: Promise = Field(description="Its price.")
    trial: bool = Field(description="Whether it trains on made-up rows, for nothing.")
    state: Literal["waiting", "running", "done", "failed"] = Field(description="How far it is.")
    created: str = Field(description="When it was asked for (UTC).")
    started: str = Field(description="When it began; empty: not yet.")
    finished: str = Field(description="When its end became visible; empty: not yet.")
    failure: str = Field(description="Why it failed, and whether its cost stands.")

    @computed_field(description="The state in words: waiting, training, finished.")  # type: ignore[prop-decorator]
    @property
    def stage(self) -> str:
        return _STAGES[self.state]

    @computed_field(description="Once it is done: id of the session or the release it made.")  # type: ignore[prop-decorator]
    @property
    def result(self) -> str | None:
        return self.id if self.state == "done" else None


@router.get("", summary="List trainings", responses=refused(422))
def list_jobs(
    service: Served,
    caller: KnownCaller,
    dataset: Annotated[
        str | None, Query(max_length=64, description="Only those on this data set.", examples=["census"])
    ] = None,
) -> list[JobAnswer]:
    """Your trainings, newest first; all of them with the holder's key."""
    return [JobAnswer.of(job) for job in service.jobs(caller) if dataset in (None, job.dataset)]


@router.get("/{id}", summary="See how far a training is", responses=refused(404, 422))
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
    """With `wait` the answer comes when the training is over, or after so many seconds, whichever is first."""
    loop = asyncio.get_running_loop()
    deadline, pause = loop.time() + wait, _FIRST_PAUSE
    while True:
        job = await run_in_threadpool(service.job, caller, id)
        left = deadline - loop.time()
        over = job.state in ("done", "failed") or left <= 0 or request.app.state.stopping
        if over or await request.is_disconnected():
            return JobAnswer.of(job)
        await asyncio.sleep(min(pause, left))
        pause = min(2 * pause, _LONGEST_PAUSE)

"""What a training would cost and how noisy it would be."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from pydantic import Field

from privlearn.service.api import schemas
from privlearn.service.api.schemas import (
    PROMISE_EXAMPLE,
    Answer,
    DataSetName,
    Delta,
    Epsilon,
    Promise,
    with_example,
)
from privlearn.service.http.callers import KnownCaller, Served, content_of, described, json_body
from privlearn.service.http.limits import aside
from privlearn.service.http.media_types import JSON
from privlearn.service.http.problems import refused
from privlearn.service.job_kinds.session import OPEN_SESSION
from privlearn.service.jobs.recipes import SessionMechanism
from privlearn.service.jobs.requests import JobRequest

router = APIRouter(prefix="/v1/datasets/{name}/estimate", tags=["data sets"])


class EstimateRequest(schemas.Request):
    """A training to be estimated."""

    model_config = with_example({"learner": "logistic", "epsilon": 1.0, "delta": 1e-7})

    learner: str = Field(default="", max_length=64, description="One of those on offer; left out: the first.")
    epsilon: Epsilon
    delta: Delta = 0.0
    mechanism: SessionMechanism = Field(
        default="model", description="What would answer a session; a release is a model."
    )


class EstimateAnswer(Answer):
    """From public facts alone: the schema, the number of records, the learner. null stands for infinite."""

    model_config = with_example(
        {
            "rows": 32561,
            "features": 108,
            "problems": 1,
            "guarantee": PROMISE_EXAMPLE,
            "mechanism": "objective",
            "noise_kind": "norm_gamma",
            "noise_scale": 2.0,
            "regularization": 0.0004,
            "noise": 0.1,
            "worst_case": 0.4,
            "margin": 0.9,
            "ratio": 0.11,
            "verdict": "clear",
            "weakness": None,
            "smallest_rows": {"clear": 12000, "usable": 4000},
            "smallest_epsilon": {"clear": 0.4, "usable": 0.1},
            "curve": [{"epsilon": 1.0, "noise": 0.1, "margin": 0.9, "ratio": 0.11, "verdict": "clear"}],
        }
    )

    rows: int = Field(description="Number of records.")
    features: int = Field(description="Of a row, as encoded.")
    problems: int = Field(description="Functions that are learnt.")
    guarantee: Promise = Field(description="What it would cost.")
    mechanism: str = Field(description="Exactly what would run.")
    noise_kind: str = Field(description="The law of its noise.")
    noise_scale: float | None = Field(description="The scale of that law.")
    regularization: float | None = Field(description="How strongly the model is kept small.")
    noise: float | None = Field(description="Noise in the prediction for a typical row.")
    worst_case: float | None = Field(description="Noise in any prediction, at most.")
    margin: float | None = Field(description="Margin of the predictions without noise.")
    ratio: float | None = Field(description="Noise by margin: the smaller, the better.")
    verdict: str = Field(description="The ratio in words.")
    weakness: str | None = Field(description="Why the promise would be hardly private; null if it would not.")
    smallest_rows: dict[str, int | None] = Field(description="Records that each verdict would need.")
    smallest_epsilon: dict[str, float | None] = Field(description="Epsilon that each verdict would need.")
    curve: list[dict[str, Any]] = Field(description="The same numbers along a range of epsilons.")


@router.post(
    "",
    summary="Estimate a training",
    openapi_extra=described({JSON: content_of(EstimateRequest)}),
    responses=refused(400, 404, 408, 413, 415, 422),
)
async def estimate(
    request: Request,
    service: Served,
    caller: KnownCaller,
    name: DataSetName,
    asked: Annotated[EstimateRequest, Depends(json_body(EstimateRequest))],
) -> EstimateAnswer:
    """What it would cost and how noisy it would be, from public facts alone: free, and no record is read."""
    fields = {"learner": asked.learner, "mechanism": asked.mechanism}
    wanted = JobRequest(name, OPEN_SESSION.name, asked.epsilon, asked.delta, fields=fields)
    return EstimateAnswer.of(await aside(request, service.estimate, caller, wanted))

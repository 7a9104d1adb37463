"""Requests that wait for a second person's approval, and decisions on them."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from pydantic import BeforeValidator, Field

from privlearn.server.api import schemas
from privlearn.server.api.datasets import ShareAnswer
from privlearn.server.api.jobs import JobAnswer
from privlearn.server.api.schemas import Amount, Answer, Id, RequestedPage, with_example
from privlearn.server.http.callers import KnownCaller, Served, content_of, json_body, request_body
from privlearn.server.http.capacity import run_heavy
from privlearn.server.http.media_types import JSON
from privlearn.server.http.problems import problem_responses
from privlearn.server.jobs.approvals import MAX_REASON_LENGTH, Decision

router = APIRouter(prefix="/v1/approvals", tags=["approvals"])


class DecisionRequest(schemas.Body):
    """An approver's decision."""

    model_config = with_example(
        {"decision": "decline", "reason": "half of this epsilon is enough for a pilot"}
    )

    decision: Decision = Field(description="approve: it enters the queue; decline: it ends, free of charge.")
    reason: str = Field(
        default="",
        max_length=MAX_REASON_LENGTH,
        description="One line for the analyst and the log; required to decline.",
    )


def _without_curve(estimate: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in estimate.items() if name != "curve"}


class CaseAnswer(Answer):
    """A request and the facts for a decision on it; no record is read for them."""

    model_config = with_example(
        {
            "job": JobAnswer.model_config["json_schema_extra"]["examples"][0],  # type: ignore[index]
            "estimate": {"mechanism": "objective", "verdict": "clear", "weakness": None},
            "trouble": "",
            "share": {
                "total": {"epsilon": 2.0, "delta": 1e-6, "neighbours": "replace_one"},
                "spent": {"epsilon": 0.5, "delta": 0.0},
                "reserved": {"epsilon": 0.0, "delta": 0.0},
                "left": {"epsilon": 1.5, "delta": 1e-6},
            },
            "left": {"epsilon": 3.0, "delta": 9e-7},
            "obstacle": "",
            "history": [],
            "is_own": False,
        }
    )

    job: JobAnswer = Field(description="The request, with its purpose and legal basis.")
    estimate: Annotated[dict[str, Any], BeforeValidator(_without_curve)] = Field(
        description="The answer of `/v1/estimates`, without the curve; empty if it cannot be computed."
    )
    trouble: str = Field(description="Reason for a missing estimate; empty if there is one.")
    share: ShareAnswer | None = Field(description="State of the analyst's share; null: there is none.")
    left: Amount = Field(description="Remaining budget of the data set.")
    obstacle: str = Field(description="Why it cannot be approved now; empty if it can.")
    history: list[JobAnswer] = Field(description="Other requests of the analyst, newest first.")
    is_own: bool = Field(
        description="Whether it is the approver's own request, on which another person must decide."
    )


@router.get("", summary="List waiting requests", responses=problem_responses(403, 422))
def list_waiting(service: Served, caller: KnownCaller, page: RequestedPage) -> list[JobAnswer]:
    """List the waiting requests, newest first. Needs a key of an approver, an auditor or the holder. The header `Link`
    leads to older ones.
    """
    jobs = service.approvals.waiting(caller, page.limit, page.before)
    return [JobAnswer.of(job) for job in page.with_next_link(jobs)]


@router.get("/{id}", summary="Describe a request", responses=problem_responses(403, 404, 422))
async def get_case(request: Request, service: Served, caller: KnownCaller, id: Id) -> CaseAnswer:
    """Return a request with its estimate, the remaining budget, and other requests of its analyst. Needs a key of an
    approver, an auditor or the holder.
    """
    case = await run_heavy(request, service.approvals.case, caller, id)
    return CaseAnswer.of({**vars(case), "share": case.standing.share, "left": case.standing.left})


@router.post(
    "/{id}",
    summary="Approve or decline a request",
    openapi_extra=request_body({JSON: content_of(DecisionRequest)}),
    responses=problem_responses(400, 403, 404, 408, 409, 413, 415, 422),
)
async def decide(
    request: Request,
    service: Served,
    caller: KnownCaller,
    id: Id,
    body: Annotated[DecisionRequest, Depends(json_body(DecisionRequest))],
) -> JobAnswer:
    """Needs an approver's key, of another person than the analyst. An approved request enters the queue and is charged
    when it begins; a declined one ends, free of charge. Repeating a decision changes nothing.
    """
    reason = body.reason.strip()
    return JobAnswer.of(await run_heavy(request, service.approvals.decide, caller, id, body.decision, reason))

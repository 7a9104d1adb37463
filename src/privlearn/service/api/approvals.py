"""What waits until a second person agrees, and their decision."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from pydantic import Field

from privlearn.service.api import schemas
from privlearn.service.api.datasets import ShareAnswer
from privlearn.service.api.requests import JobAnswer
from privlearn.service.api.schemas import Amount, Answer, Id, with_example
from privlearn.service.approving import MOST_REASON
from privlearn.service.http.callers import KnownCaller, Served, content_of, described, json_body
from privlearn.service.http.limits import aside
from privlearn.service.http.media_types import JSON
from privlearn.service.http.paging import Part
from privlearn.service.http.problems import refused
from privlearn.service.jobs.approvals import Decision

router = APIRouter(prefix="/v1/approvals", tags=["approvals"])


class DecisionRequest(schemas.Request):
    """What an approver decides."""

    model_config = with_example(
        {"decision": "decline", "reason": "half of this epsilon is enough for a pilot"}
    )

    decision: Decision = Field(description="approve: it waits for its turn; decline: it ends, unpaid.")
    reason: str = Field(
        default="",
        max_length=MOST_REASON,
        description="For the analyst and the log, in one line; needed to decline.",
    )


class CaseAnswer(Answer):
    """A request and everything to decide by; no record is read for it."""

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
    estimate: dict[str, Any] = Field(
        description="As at `/v1/estimates`, without the curve; empty if there is none any more."
    )
    trouble: str = Field(description="Why there is no estimate.")
    share: ShareAnswer | None = Field(description="Where the analyst's share stands; null: there is none.")
    left: Amount = Field(description="What is left of the data set's budget.")
    obstacle: str = Field(description="Why it cannot be approved as things stand; empty if it can.")
    history: list[JobAnswer] = Field(description="What else the analyst asked for, newest first.")
    is_own: bool = Field(description="Whether it is the approver's own, and must be decided by another.")


@router.get("", summary="List requests that wait", responses=refused(403, 422))
def list_waiting(service: Served, caller: KnownCaller, part: Part) -> list[JobAnswer]:
    """Those that wait for approval, newest first. Needs a key of an approver, an auditor or the holder. The header
    `Link` leads to older ones."""
    found = service.approvals.waiting(caller, part.limit, part.before)
    return [JobAnswer.of(job) for job in part.linked(found)]


@router.get("/{id}", summary="See what to decide by", responses=refused(403, 404, 422))
async def get_case(request: Request, service: Served, caller: KnownCaller, id: Id) -> CaseAnswer:
    """A request with its estimate, what is left of the budget, and what else its analyst asked for. Needs a key of an
    approver, an auditor or the holder."""
    case = await aside(request, service.approvals.case, caller, id)
    return CaseAnswer.of(
        {
            "job": case.job,
            "estimate": {name: value for name, value in case.estimate.items() if name != "curve"},
            "trouble": case.trouble,
            "share": case.standing.share,
            "left": case.standing.left,
            "obstacle": case.obstacle,
            "history": case.history,
            "is_own": case.is_own,
        }
    )


@router.post(
    "/{id}",
    summary="Approve or decline a request",
    openapi_extra=described({JSON: content_of(DecisionRequest)}),
    responses=refused(400, 403, 404, 408, 409, 413, 415, 422),
)
async def decide(
    request: Request,
    service: Served,
    caller: KnownCaller,
    id: Id,
    decided: Annotated[DecisionRequest, Depends(json_body(DecisionRequest))],
) -> JobAnswer:
    """Needs an approver's key, and not of the person who asked. What is approved waits for its turn, and pays when it
    begins; what is declined ends, unpaid. The same decision sent again changes nothing."""
    reason = decided.reason.strip()
    return JobAnswer.of(await aside(request, service.approvals.decide, caller, id, decided.decision, reason))

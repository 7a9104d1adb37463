"""For approvers: what waits, everything to decide by, and the decision. For holder and auditors: every request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast, get_args

from fastapi import Request
from fastapi.responses import RedirectResponse, Response

from privlearn.errors import BudgetExceeded, InvalidParameter
from privlearn.service.access.keys import Caller
from privlearn.service.approving import MOST_REASON
from privlearn.service.http.callers import Served
from privlearn.service.http.limits import aside
from privlearn.service.jobs.approvals import Decision
from privlearn.service.pages.choices import sentence
from privlearn.service.pages.estimate_view import view_of
from privlearn.service.pages.page import Before, Form, PageId, listed, page_router, render, text_of
from privlearn.service.pages.signing import RequestReader
from privlearn.service.refusals import Conflict
from privlearn.service.service import Service

router = page_router()


@router.get("/approvals")
def approvals(request: Request, service: Served, caller: RequestReader, before: Before) -> Response:
    waiting = listed(lambda most: service.approvals.waiting(caller, most, before), before, lambda job: job.id)
    return render(request, caller, "approvals.html", waiting=waiting)


@router.get("/requests")
def requests(request: Request, service: Served, caller: RequestReader, before: Before) -> Response:
    found = listed(lambda most: service.jobs(caller, most, before), before, lambda job: job.id)
    return render(request, caller, "requests.html", requests=found)


@router.get("/approvals/{id}")
async def approval(request: Request, service: Served, caller: RequestReader, id: PageId) -> Response:
    return await aside(request, _page, request, service, caller, id)


@router.post("/approvals/{id}")
async def decide(
    request: Request, service: Served, caller: RequestReader, id: PageId, form: Form
) -> Response:
    """By the button that was pressed; what cannot be done leads back to the form with the reason typed."""
    return await aside(
        request, _decide, request, service, caller, id, text_of(form, "decision"), _line_of(form)
    )


def _line_of(form: Form) -> str:
    """The reason, which may be typed in several lines, as one."""
    return " ".join(text_of(form, "reason").split())


def _decide(
    request: Request, service: Service, caller: Caller, id: str, pressed: str, reason: str
) -> Response:
    try:
        if pressed not in get_args(Decision):
            raise InvalidParameter("press one of the buttons")
        service.approvals.decide(caller, id, cast(Decision, pressed), reason)
    except InvalidParameter as error:
        return _page(request, service, caller, id, reason, {"reason": sentence(error)})
    except (BudgetExceeded, Conflict) as error:
        return _page(request, service, caller, id, reason, {"": sentence(error)})
    return RedirectResponse(f"/approvals/{id}", 303)


def _page(
    request: Request,
    service: Service,
    caller: Caller,
    id: str,
    reason: str = "",
    errors: Mapping[str, str] | None = None,
) -> Response:
    case = service.approvals.case(caller, id)
    guarantee, offered = case.job.guarantee, case.offered
    return render(
        request,
        caller,
        "approval.html",
        422 if errors else 200,
        case=case,
        job=case.job,
        offered=offered,
        estimate=view_of(case.estimate, guarantee, offered.weakness(guarantee)),
        meaning=offered.meaning(guarantee),
        may_decide=caller.role == "approver" and case.job.state == "waiting_for_approval" and not case.is_own,
        reason=reason,
        most_reason=MOST_REASON,
        errors=errors or {},
    )

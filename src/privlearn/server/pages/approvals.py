"""Pages for approvers: waiting requests, the case for each, and the decision. For holder and auditors: all requests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast, get_args

from fastapi import Request
from fastapi.responses import RedirectResponse, Response

from privlearn.errors import BudgetExceeded, InvalidParameter
from privlearn.server.access.keys import Caller
from privlearn.server.http.callers import Served
from privlearn.server.http.limits import run_heavy
from privlearn.server.jobs.approvals import MAX_REASON_LENGTH, Decision
from privlearn.server.pages.choices import as_sentence
from privlearn.server.pages.estimate_view import make_estimate_view
from privlearn.server.pages.page import Before, Form, PageId, list_page, page_router, render, text_of
from privlearn.server.pages.signing import RequestReader
from privlearn.server.refusals import Conflict
from privlearn.server.service import Service

router = page_router()


@router.get("/approvals")
def approvals(request: Request, service: Served, caller: RequestReader, before: Before) -> Response:
    waiting = list_page(
        lambda limit: service.approvals.waiting(caller, limit, before), before, lambda job: job.id
    )
    return render(request, caller, "approvals.html", waiting=waiting)


@router.get("/requests")
def requests(request: Request, service: Served, caller: RequestReader, before: Before) -> Response:
    found = list_page(lambda limit: service.jobs(caller, limit, before), before, lambda job: job.id)
    return render(request, caller, "requests.html", requests=found)


@router.get("/approvals/{id}")
async def approval(request: Request, service: Served, caller: RequestReader, id: PageId) -> Response:
    return await run_heavy(request, _page, request, service, caller, id)


@router.post("/approvals/{id}")
async def decide(
    request: Request, service: Served, caller: RequestReader, id: PageId, form: Form
) -> Response:
    """Carry out the decision of the pressed button; if it fails, show the form again with the typed reason."""
    return await run_heavy(
        request, _decide, request, service, caller, id, text_of(form, "decision"), _line_of(form)
    )


def _line_of(form: Form) -> str:
    """Return the reason on one line; it may have been typed in several."""
    return " ".join(text_of(form, "reason").split())


def _decide(
    request: Request, service: Service, caller: Caller, id: str, pressed: str, reason: str
) -> Response:
    try:
        if pressed not in get_args(Decision):
            raise InvalidParameter("press one of the buttons")
        service.approvals.decide(caller, id, cast(Decision, pressed), reason)
    except InvalidParameter as error:
        return _page(request, service, caller, id, reason, {"reason": as_sentence(error)})
    except (BudgetExceeded, Conflict) as error:
        return _page(request, service, caller, id, reason, {"": as_sentence(error)})
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
        estimate=make_estimate_view(case.estimate, guarantee, offered.weakness(guarantee)),
        meaning=offered.meaning(guarantee),
        may_decide=caller.role == "approver" and case.job.state == "waiting_for_approval" and not case.is_own,
        reason=reason,
        most_reason=MAX_REASON_LENGTH,
        errors=errors or {},
    )

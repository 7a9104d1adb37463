"""Pages for approvers: waiting requests, the case for each, and the decision. For holder and auditors: all requests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast, get_args

from fastapi.responses import RedirectResponse, Response

from privlearn.errors import BudgetExceeded, InvalidParameter
from privlearn.server.jobs.approvals import MAX_REASON_LENGTH, Decision
from privlearn.server.pages.estimate_view import make_estimate_view
from privlearn.server.pages.formatting import as_sentence
from privlearn.server.pages.page import Before, Form, PageId, Visit, list_page, page_router, text_of
from privlearn.server.pages.signing import RequestReader
from privlearn.server.refusals import Conflict

router = page_router()


@router.get("/approvals")
def approvals(visit: RequestReader, before: Before) -> Response:
    found = list_page(lambda limit: visit.service.approvals.waiting(visit.caller, limit, before), before)
    return visit.render("approvals.html", waiting=found)


@router.get("/requests")
def requests(visit: RequestReader, before: Before) -> Response:
    found = list_page(lambda limit: visit.service.jobs(visit.caller, limit, before), before)
    return visit.render("requests.html", requests=found)


@router.get("/approvals/{id}")
async def approval(visit: RequestReader, id: PageId) -> Response:
    return await visit.run_heavy(_page, id)


@router.post("/approvals/{id}")
async def decide(visit: RequestReader, id: PageId, form: Form) -> Response:
    """Carry out the decision of the pressed button; if it fails, show the form again with the typed reason."""
    reason = " ".join(text_of(form, "reason").split())  # on one line; it may have been typed in several
    return await visit.run_heavy(_decide, id, text_of(form, "decision"), reason)


def _decide(visit: Visit, id: str, pressed: str, reason: str) -> Response:
    try:
        if pressed not in get_args(Decision):
            raise InvalidParameter("press one of the buttons")
        visit.service.approvals.decide(visit.caller, id, cast(Decision, pressed), reason)
    except InvalidParameter as error:
        return _page(visit, id, reason, {"reason": as_sentence(error)})
    except (BudgetExceeded, Conflict) as error:
        return _page(visit, id, reason, {"": as_sentence(error)})
    return RedirectResponse(f"/approvals/{id}", 303)


def _page(visit: Visit, id: str, reason: str = "", errors: Mapping[str, str] | None = None) -> Response:
    case = visit.service.approvals.case(visit.caller, id)
    job, guarantee, offered = case.job, case.job.guarantee, case.offered
    waits = job.state == "waiting_for_approval"
    return visit.render(
        "approval.html",
        422 if errors else 200,
        case=case,
        job=job,
        offered=offered,
        estimate=make_estimate_view(case.estimate, guarantee, offered.weakness(guarantee)),
        meaning=offered.meaning(guarantee),
        may_decide=visit.caller.role == "approver" and waits and not case.is_own,
        reason=reason,
        most_reason=MAX_REASON_LENGTH,
        errors=errors or {},
    )

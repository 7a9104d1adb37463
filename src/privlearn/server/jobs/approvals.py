"""Approval by a second person, before a job may begin.

    waiting_for_approval --approve--> waiting
                         --decline--> declined
                         --deadline passes, cancelled, data set retired--> failed

A request that waits for approval reserves nothing: otherwise one analyst could block the budget for weeks. The budget
is checked when the job is requested and when it is approved, and charged when the job begins, under the job's id, like
every job. So an interruption at any time neither charges twice nor needs a refund.

A decision, the job's new state and the line in the log are one transaction.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import update

from privlearn.budget.statement import Standing
from privlearn.budget.storage import excluding
from privlearn.errors import InvalidParameter, PrivlearnError
from privlearn.server.access.keys import HOLDER, Caller
from privlearn.server.access.openid import OPENID
from privlearn.server.holder.catalog import Catalogs
from privlearn.server.holder.datasets import OfferedDataSet, check_budget_left
from privlearn.server.job_kinds.job_kind import JobContext, job_kind
from privlearn.server.jobs import queue
from privlearn.server.jobs.requests import Job, points_from_bytes
from privlearn.server.notices import Outboxes
from privlearn.server.refusals import Conflict, Forbidden, NotFound
from privlearn.server.store.events import record_with
from privlearn.server.store.tables import ListPage, jobs
from privlearn.server.timing import as_text, now

Decision = Literal["approve", "decline"]


def decide(store: str, job_id: str, by: Caller, decision: Decision, reason: str) -> Job:
    """Approve or decline a job. A repeated decision of the same person changes nothing.

    Raises
    ------
    Forbidden
        If the job is the approver's own.
    Conflict
        If the job no longer waits for approval.
    """
    with excluding(store, "jobs") as connection:
        job = queue.find_with(connection, job_id)
        if not _is_repeated(job, by, decision):
            _check(job, by)
            approved = decision == "approve"
            connection.execute(
                update(jobs)
                .where(jobs.c.id == job_id)
                .values(
                    decided=as_text(now()),
                    decided_by=by.person,
                    decision=reason,
                    **({"state": "waiting"} if approved else _decline_values(by, reason)),
                )
            )
            details = {"job": job_id, "of": job.analyst, "epsilon": job.guarantee.epsilon, "reason": reason}
            action = f"{'approved' if approved else 'declined'} a request"
            record_with(connection, store, by.name, action, job.dataset, key=by.key_id, **details)
    return queue.find(store, job_id)


def end_undecided(store: str) -> list[Job]:
    """End the requests whose deadline for approval has passed, and return them."""
    late = (jobs.c.state == "waiting_for_approval") & (jobs.c.decide_by <= as_text(now()))
    return queue.end_all(store, late, "it was not approved in time")


def end_retired(store: str, datasets: Sequence[str]) -> list[Job]:
    """End the requests for approval about retired data sets, and return them."""
    stuck = (jobs.c.state == "waiting_for_approval") & jobs.c.dataset.in_(datasets)
    return queue.end_all(store, stuck, "its data set was retired") if datasets else []


def is_own(job: Job, by: Caller) -> bool:
    """Return whether the approver is, judging by names, the person who made the request."""
    names = {job.analyst}
    if job.key_id.startswith(OPENID):
        names.add(job.key_id.removeprefix(OPENID))
    return normalize_name(by.person) in map(normalize_name, names)


def normalize_name(name: str) -> str:
    """Return a form that is equal for names that people would consider the same."""
    return unicodedata.normalize("NFKC", name).strip().casefold()


def _check(job: Job, by: Caller) -> None:
    """Raise unless this person may decide on this job now."""
    if is_own(job, by):
        raise Forbidden("this request is your own. Another person must decide on it.")
    if job.state != "waiting_for_approval" or job.decide_by <= as_text(now()):
        decided = f": {job.decided_by} has decided" if job.decided_by else ""
        raise Conflict(f"this request no longer waits for approval{decided}. Look at its state.")


def _is_repeated(job: Job, by: Caller, decision: Decision) -> bool:
    return job.decided_by == by.person and (job.state == "declined") == (decision == "decline")


def _decline_values(by: Caller, reason: str) -> dict[str, Any]:
    failure = f"declined by {by.name}: {reason}; nothing was spent"
    return {"state": "declined", "finished": as_text(now()), "failure": failure, "points": None}


MAX_REASON_LENGTH = 500
_HISTORY = 10


@dataclass(frozen=True)
class Case:
    """Public: what an approver decides by.

    Attributes
    ----------
    job : Job
    offered : OfferedDataSet
    estimate : dict
        The estimate that the analyst would get now; empty if there is none.
    trouble : str
        Why there is none.
    standing : Standing
        The state of the data set's budget, with the analyst's share.
    obstacle : str
        Why it cannot be approved now; empty if it can, or does not wait.
    history : list of Job
        Other requests of the analyst, newest first.
    is_own : bool
        Whether the approver made the request.
    """

    job: Job
    offered: OfferedDataSet
    estimate: dict[str, Any]
    trouble: str
    standing: Standing
    obstacle: str
    history: list[Job]
    is_own: bool


class Approvals:
    """The actions of approvers; the holder and auditors may only read.

    ``wake`` wakes the workers.
    """

    def __init__(self, store: str, catalogs: Catalogs, outboxes: Outboxes, wake: Callable[[], None]) -> None:
        self._store = store
        self._catalogs = catalogs
        self._outboxes = outboxes
        self._wake = wake

    def waiting(self, caller: Caller, limit: int, before: str | None = None) -> list[Job]:
        """Return the requests that wait for approval, newest first."""
        _check_reader(caller)
        page = ListPage(limit, before, self._names(caller))
        return queue.find_all(self._store, None, page, "waiting_for_approval")

    def case(self, caller: Caller, job_id: str) -> Case:
        """Return one request, waiting or decided, with everything to decide by. Reads no record."""
        _check_reader(caller)
        job, offered = self._find(caller, job_id)
        estimate, trouble = self._estimate(job, offered)
        newest = queue.find_all(
            self._store, job.analyst, ListPage(_HISTORY + 1, datasets=self._names(caller))
        )
        return Case(
            job=job,
            offered=offered,
            estimate=estimate,
            trouble=trouble,
            standing=_standing(job, offered),
            obstacle=_obstacle(job, offered),
            history=[other for other in newest if other.id != job.id][:_HISTORY],
            is_own=is_own(job, caller),
        )

    def decide(self, caller: Caller, job_id: str, decision: Decision, reason: str = "") -> Job:
        """Approve or decline. An approved job enters the queue; it is charged when it begins.

        Raises
        ------
        Forbidden
            If the caller is not an approver, or made the request.
        BudgetExceeded
            If the budget is too small for an approval.
        Conflict
            If the request is decided or over.
        """
        if caller.role != "approver":
            raise Forbidden("only approvers may decide. Use an approver's key.")
        if len(reason) > MAX_REASON_LENGTH or not reason.isprintable():
            raise InvalidParameter(f"reason must be one line of at most {MAX_REASON_LENGTH} characters")
        if decision == "decline" and not reason:
            raise InvalidParameter("reason is required to decline. The analyst reads it.")
        job, offered = self._find(caller, job_id)
        if decision == "approve":
            _check_approvable(job, offered)
        decided = decide(self._store, job_id, caller, decision, reason)
        if not job.decided:
            self._outboxes.notify("approved" if decision == "approve" else "declined", decided)
            self._wake()
        return decided

    def _find(self, caller: Caller, job_id: str) -> tuple[Job, OfferedDataSet]:
        """Return a job that needs or needed approval, about a data set that the caller may see."""
        with suppress(NotFound):
            job = queue.find(self._store, job_id)
            if job.decide_by and job.dataset in self._names(caller):
                return job, self._catalogs.now.get(caller, job.dataset)
        raise NotFound("there is no request with this id. List the waiting requests to find it.")

    def _names(self, caller: Caller) -> list[str]:
        return [offered.name for offered in self._catalogs.now.visible_to(caller)]

    def _estimate(self, job: Job, offered: OfferedDataSet) -> tuple[dict[str, Any], str]:
        try:
            kind = job_kind(job.kind)
            points = points_from_bytes(queue.read_points(self._store, job.id))
            fields = kind.read(job.fields)
            context = JobContext(self._store, job.analyst, offered, job.guarantee, fields, points)
            return kind.estimate(context), ""
        except PrivlearnError as error:  # its fields no longer fit the data set
            return {}, str(error)


def _check_approvable(job: Job, offered: OfferedDataSet) -> None:
    if offered.settings.retired:
        raise Conflict(f"data set {offered.name!r} is retired. Decline this request, or let it end.")
    if job.state == "waiting_for_approval":
        check_budget_left(offered, job.analyst, job.guarantee, "the analyst's share")


def _obstacle(job: Job, offered: OfferedDataSet) -> str:
    try:
        if job.state == "waiting_for_approval":
            _check_approvable(job, offered)
    except PrivlearnError as error:
        return str(error)
    return ""


def _standing(job: Job, offered: OfferedDataSet) -> Standing:
    try:
        return offered.ledger_of(job.analyst).standing()
    except Forbidden:  # the analyst no longer has a share
        return offered.ledger_of(HOLDER).standing()


def _check_reader(caller: Caller) -> None:
    if not caller.sees_requests:
        raise Forbidden("only approvers, auditors and the holder may see requests for approval.")

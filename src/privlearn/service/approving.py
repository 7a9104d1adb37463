"""What an approver may ask of the trusted learner: what waits, everything to decide by, and the decision."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from privlearn.errors import InvalidParameter, PrivlearnError
from privlearn.ledger.statement import Standing
from privlearn.service.access.keys import HOLDER, Caller
from privlearn.service.holder.catalogs import Catalogs
from privlearn.service.holder.datasets import OfferedDataSet, check_room
from privlearn.service.job_kinds.job_kind import Asked, job_kind
from privlearn.service.jobs import approvals, queue
from privlearn.service.jobs.approvals import Decision
from privlearn.service.jobs.requests import Job, points_from_bytes
from privlearn.service.notices.outbox import Outboxes
from privlearn.service.refusals import Conflict, Forbidden, NotFound
from privlearn.service.store.paging import Piece

MOST_REASON = 500
_HISTORY = 10


@dataclass(frozen=True)
class Case:
    """Public: what an approver decides by.

    Attributes
    ----------
    job : Job
    offered : OfferedDataSet
    estimate : dict
        As the analyst would get it now; empty if there is none any more.
    trouble : str
        Why there is none.
    standing : Standing
        Of the data set's budget, with the analyst's share.
    obstacle : str
        Why it cannot be approved as things stand; empty if it can, or does not wait.
    history : list of Job
        What else the analyst has asked for, newest first.
    is_own : bool
        Whether the approver is the one who asked.
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
    """The service's part for approvers; holder and auditor may look.

    Parameters
    ----------
    store : str
    catalogs : Catalogs
    outboxes : Outboxes
    wake : callable
        Tells those who train that there may be something to do.
    """

    def __init__(self, store: str, catalogs: Catalogs, outboxes: Outboxes, wake: Callable[[], None]) -> None:
        self._store = store
        self._catalogs = catalogs
        self._outboxes = outboxes
        self._wake = wake

    def waiting(self, caller: Caller, most: int, before: str | None = None) -> list[Job]:
        """Requests that wait for approval, newest first."""
        _check_reader(caller)
        piece = Piece(most, before, self._names(caller))
        return queue.find_all(self._store, None, piece, "waiting_for_approval")

    def case(self, caller: Caller, job_id: str) -> Case:
        """One request, waiting or decided on, and everything to decide by. Reads no record."""
        _check_reader(caller)
        job, offered = self._found(caller, job_id)
        estimate, trouble = self._estimate(job, offered)
        newest = queue.find_all(self._store, job.analyst, Piece(_HISTORY + 1, datasets=self._names(caller)))
        return Case(
            job=job,
            offered=offered,
            estimate=estimate,
            trouble=trouble,
            standing=_standing(job, offered),
            obstacle=_obstacle(job, offered),
            history=[other for other in newest if other.id != job.id][:_HISTORY],
            is_own=approvals.is_own(job, caller),
        )

    def decide(self, caller: Caller, job_id: str, decision: Decision, reason: str = "") -> Job:
        """Approve or decline. What is approved waits for its turn; it pays when it begins, like every other job.

        Raises
        ------
        Forbidden
            If the caller is no approver, or asked for it.
        BudgetExceeded
            If there is no room any more for what would be approved.
        Conflict
            If somebody has decided already, or it ended.
        """
        if caller.role != "approver":
            raise Forbidden("this is for approvers: ask with an approver's key")
        if len(reason) > MOST_REASON or not reason.isprintable():
            raise InvalidParameter(f"reason must be one line of at most {MOST_REASON} characters: shorten it")
        if decision == "decline" and not reason:
            raise InvalidParameter("reason must be given to decline: the analyst reads it")
        job, offered = self._found(caller, job_id)
        if decision == "approve":
            _check_approvable(job, offered)
        decided = approvals.decide(self._store, job_id, caller, decision, reason)
        if not job.decided:
            self._outboxes.tell("approved" if decision == "approve" else "declined", decided)
            self._wake()
        return decided

    def _found(self, caller: Caller, job_id: str) -> tuple[Job, OfferedDataSet]:
        """One that needs, or needed, approval, about a data set that the caller may see."""
        job = queue.find(self._store, job_id)
        if not job.decide_by or job.dataset not in self._names(caller):
            raise NotFound("there is no such request: list those that wait")
        return job, self._catalogs.now.get(caller, job.dataset)

    def _names(self, caller: Caller) -> list[str]:
        return [offered.name for offered in self._catalogs.now.of(caller)]

    def _estimate(self, job: Job, offered: OfferedDataSet) -> tuple[dict[str, Any], str]:
        try:
            kind = job_kind(job.kind)
            points = points_from_bytes(queue.stored_points(self._store, job.id))
            asked = Asked(self._store, job.analyst, offered, job.guarantee, kind.read(job.fields), points)
            return kind.estimate(asked), ""
        except PrivlearnError as error:  # what it was asked with does not fit any more
            return {}, str(error)


def _check_approvable(job: Job, offered: OfferedDataSet) -> None:
    if offered.settings.retired:
        raise Conflict(f"data set {offered.name!r} is retired: decline this, or let it end")
    if job.state == "waiting_for_approval":
        check_room(offered, job.analyst, job.guarantee, "the analyst's share")


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
    except Forbidden:  # the analyst has no share any more
        return offered.ledger_of(HOLDER).standing()


def _check_reader(caller: Caller) -> None:
    if not caller.sees_requests:
        raise Forbidden("this is for approvers, auditors and the holder of the data")

"""Jobs that a second person must approve before they may begin.

    waiting_for_approval --approve--> waiting
                         --decline--> declined
                         --nobody decides in time, it is cancelled, its data set retired--> failed

A job that waits for approval has reserved nothing: otherwise one analyst's requests could keep the budget from all
others for weeks. Whether there is room is looked at when it is asked for and when it is approved, and decided when it
begins and reserves its cost under its own id, like every other job. So whatever is killed meanwhile, nothing is paid
twice and nothing has to be given back.

A decision, the job's new state and the line in the log are one transaction: there is no approved job that does not wait
for its turn.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Any, Literal

from sqlalchemy import update

from privlearn.service.access.keys import Caller
from privlearn.service.access.openid import OPENID
from privlearn.service.jobs import queue
from privlearn.service.jobs.requests import Job
from privlearn.service.refusals import Conflict, Forbidden
from privlearn.service.store.events import record_with
from privlearn.service.store.tables import jobs
from privlearn.service.timing import as_text, now
from privlearn.storage import excluding

Decision = Literal["approve", "decline"]


def decide(store: str, job_id: str, by: Caller, decision: Decision, reason: str) -> Job:
    """Let a job wait for its turn, or end it. The same decision of the same person again changes nothing.

    Raises
    ------
    Forbidden
        If the job is the approver's own.
    Conflict
        If there is nothing to decide any more.
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
                    **({"state": "waiting"} if approved else _declined(by, reason)),
                )
            )
            told = {"job": job_id, "of": job.analyst, "epsilon": job.guarantee.epsilon, "reason": reason}
            action = f"{'approved' if approved else 'declined'} a request"
            record_with(connection, store, by.name, action, job.dataset, key=by.key_id, **told)
    return queue.find(store, job_id)


def end_undecided(store: str) -> list[Job]:
    """End what nobody has decided on in time; gives those jobs."""
    late = (jobs.c.state == "waiting_for_approval") & (jobs.c.decide_by <= as_text(now()))
    return queue.end_all(store, late, "nobody has approved it in time")


def end_retired(store: str, datasets: Sequence[str]) -> list[Job]:
    """End what waits for an approval that nobody can give, of data sets that are retired; gives those jobs."""
    stuck = (jobs.c.state == "waiting_for_approval") & jobs.c.dataset.in_(datasets)
    return queue.end_all(store, stuck, "its data set was retired") if datasets else []


def is_own(job: Job, by: Caller) -> bool:
    """Whether the approver is, as far as names tell, the person who asked: with a key, or by the provider."""
    names = {job.analyst}
    if job.asked_with.startswith(OPENID):
        names.add(job.asked_with.removeprefix(OPENID))
    return alike(by.person) in map(alike, names)


def alike(name: str) -> str:
    """Equal for names that people would take for the same."""
    return unicodedata.normalize("NFKC", name).strip().casefold()


def _check(job: Job, by: Caller) -> None:
    if is_own(job, by):
        raise Forbidden("this request is your own: another person must decide on it")
    if job.state != "waiting_for_approval" or job.decide_by <= as_text(now()):
        who = f", {job.decided_by} has decided" if job.decided_by else ""
        raise Conflict(f"this request does not wait for approval any more{who}: look at its state")


def _is_repeated(job: Job, by: Caller, decision: Decision) -> bool:
    return job.decided_by == by.person and (job.state == "declined") == (decision == "decline")


def _declined(by: Caller, reason: str) -> dict[str, Any]:
    failure = f"{by.name} has declined it: {reason}; nothing was spent"
    return {"state": "declined", "finished": as_text(now()), "failure": failure, "points": None}

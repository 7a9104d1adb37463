"""The job queue: one row per job in the store, so that a restarted server, or another one, continues it.

    waiting --claim--> running --finish--> done | failed
       ^                  |
       +--- lease ends ---+   after `MAX_ATTEMPTS` attempts `run_job` gives up, at the end of a slot;
                              if that fails as well, `claim` ends the job

A request that needs approval waits for it first, outside the queue (`approvals`). Analysts take turns: a hundred jobs
of one analyst delay the one job of another by one job. A waiting or running job may be cancelled; waiting jobs end
when the key that requested them is revoked.

The process that runs a job holds its lease and extends it; when a process dies, its lease ends. If two processes run
one job by mistake, because one paused for longer than its lease, both charge the job's one reservation and only one
result can be stored under the job's id. Leases use the database's clock, because the clocks of several machines
differ.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable
from dataclasses import fields
from datetime import timedelta
from typing import Any, get_args

from sqlalchemy import ColumnElement, Connection, Row, Select, and_, func, or_, select, update

from privlearn.budget.storage import also_excluding, clock, excluding, reading
from privlearn.budget.tables import entries
from privlearn.guarantee import Guarantee
from privlearn.server.holder.settings import DEFAULT_LIMITS, Limits
from privlearn.server.job_kinds.job_kind import job_kind
from privlearn.server.jobs.requests import AcceptedRequest, Job, JobRequest, State, request_columns
from privlearn.server.refusals import Conflict, NotFound, TooMany
from privlearn.server.store.events import record_with
from privlearn.server.store.tables import EVERYTHING, ListPage, jobs, keys
from privlearn.server.timing import as_text, from_text, now

LEASE_SECONDS = 15.0
MAX_ATTEMPTS = 3

FAILED = "the job failed on the holder's side; the holder's pages and log have the reason"
GAVE_UP = f"its process ended {MAX_ATTEMPTS} times before it was done"

_LOCK = "jobs"
NOT_BEGUN = ("waiting_for_approval", "waiting")
_OF_REQUEST = ("dataset", "kind", "trial", "note", "purpose", "legal_basis")
_COLUMNS = [column for column in jobs.c if column.name not in ("points", "reason")]


def find_submission(store: str, analyst: str, request: JobRequest, key: str) -> Job | None:
    """Return the job that this analyst has requested with this idempotency key, if any."""
    with reading(store) as connection:
        return _find_submission(connection, analyst, request, key)


def submit(
    store: str,
    analyst: str,
    request: JobRequest,
    guarantee: Guarantee,
    key: str,
    *,
    key_id: str = "",
    approval_within: timedelta | None = None,
    version: int = 1,
    limits: Limits = DEFAULT_LIMITS,
    record: Callable[[Connection, Job], None] = lambda *_: None,
) -> Job:
    """Create a job, or return the earlier job that this analyst has requested with the same idempotency key.

    ``key_id`` is the id of the analyst's key: when it is revoked, the job ends. ``approval_within`` is the time in
    which a second person must approve the job, or it ends; ``None``: no approval is needed. ``version`` is the data
    set's current version, which the job reads whenever it runs. ``record`` writes the new job's line of the log in the
    same transaction.
    """
    with excluding(store, _LOCK) as connection:
        before = _find_submission(connection, analyst, request, key)
        if before is not None:
            return before
        _check_quota(connection, analyst, request.trial, limits)
        job_id, moment = secrets.token_hex(8), now()
        connection.execute(
            jobs.insert().values(
                id=job_id,
                analyst=analyst,
                key_id=key_id,
                version=version,
                **guarantee.to_dict(),
                **{name: getattr(request, name) for name in _OF_REQUEST},
                fields=dict(request.fields),
                decide_by="" if approval_within is None else as_text(moment + approval_within),
                points=request.points_bytes(),
                idempotency_key=key or None,
                request_digest=job_kind(request.kind).digest(request),
                state="waiting" if approval_within is None else "waiting_for_approval",
                created=as_text(moment),
            )
        )
        job = find_with(connection, job_id)
        record(connection, job)
        return job


def find(store: str, job_id: str) -> Job:
    """Return the job with this id."""
    with reading(store) as connection:
        return find_with(connection, job_id)


def find_with(connection: Connection, job_id: str) -> Job:
    """Return the job with this id, inside a transaction."""
    return _as_job(_row(connection, job_id))


def find_all(
    store: str, analyst: str | None, page: ListPage = EVERYTHING, state: State | None = None
) -> list[Job]:
    """Return the jobs of an analyst, or of all, in one state or in any, newest first."""
    query = page.apply(select(*_COLUMNS), jobs.c.created)
    if analyst is not None:
        query = query.where(jobs.c.analyst == analyst)
    if state is not None:
        query = query.where(jobs.c.state == state)
    with reading(store) as connection:
        return [_as_job(row) for row in connection.execute(query)]


def count_by_state(store: str) -> dict[str, int]:
    """Return the number of jobs in each state."""
    counts = dict.fromkeys(get_args(State), 0)
    with reading(store) as connection:
        for state, count in connection.execute(select(jobs.c.state, func.count()).group_by(jobs.c.state)):
            counts[state] = count
    return counts


def read_points(store: str, job_id: str) -> bytes | None:
    """Return the analyst's public points, as `JobRequest.points_bytes` wrote them."""
    with reading(store) as connection:
        return connection.scalar(select(jobs.c.points).where(jobs.c.id == job_id))


def read_reason(store: str, job_id: str) -> str:
    """PRIVATE: return why a job failed, for the holder only; empty if it did not."""
    with reading(store) as connection:
        return connection.scalar(select(jobs.c.reason).where(jobs.c.id == job_id)) or ""


def expire_leases(store: str) -> None:
    """End the leases of all running jobs; for a process that is the only server."""
    with excluding(store, _LOCK) as connection:
        ended = as_text(clock(connection, store))
        connection.execute(update(jobs).where(jobs.c.state == "running").values(lease=ended))


class RoundRobin:
    """Chooses the analyst that this process served longest ago. Uses no clock, because clocks may jump."""

    def __init__(self) -> None:
        self._served: dict[str, int] = {}

    def next(self, analysts: Iterable[str]) -> str:
        name = min(analysts, key=lambda analyst: self._served.get(analyst, -1))
        self._served[name] = 1 + max(self._served.values(), default=0)
        return name


def claim(store: str, turns: RoundRobin | None = None) -> Job | None:
    """Claim the oldest free job of the next analyst in turn; return ``None`` if there is none."""
    end_revoked(store)
    with reading(store) as connection:  # most calls find nothing, and should not take the lock
        if connection.scalar(_analysts_of(_free(connection, store)).limit(1)) is None:
            return None
    with excluding(store, _LOCK) as connection:
        free = _free(connection, store)
        names = connection.scalars(_analysts_of(free)).all()
        if not names:
            return None
        own_jobs = select(*_COLUMNS).where(free, jobs.c.analyst == (turns or RoundRobin()).next(names))
        row = connection.execute(own_jobs.order_by(jobs.c.created).limit(1)).one()
        # Giving up has failed as well, and the analyst's other jobs must not wait for this one.
        if row.attempts > MAX_ATTEMPTS:
            _end(connection, store, row.id, f"{FAILED}; {_spending(connection, row)}", GAVE_UP)
            return None
        held = {"state": "running", "attempts": row.attempts + 1, "lease": _lease(connection, store)}
        connection.execute(_this(row.id).values(held | {"started": as_text(now())}))
        return _as_job(_row(connection, row.id))


def extend(store: str, job_id: str) -> bool:
    """Extend the lease of a job that runs here; return False if the job was cancelled."""
    with reading(store) as connection:
        row = _row(connection, job_id)
        left = from_text(row.lease) - clock(connection, store)
    if not timedelta(seconds=LEASE_SECONDS / 2.0) <= left <= timedelta(seconds=LEASE_SECONDS):
        with excluding(store, _LOCK) as connection:
            connection.execute(_this(job_id).values(lease=_lease(connection, store)))
    return bool(row.state == "running")


def cancel(store: str, job_id: str, by: str) -> Job:
    """End a job that is not over. What it has reserved stays spent; the process that runs it notices."""
    with excluding(store, _LOCK) as connection:
        row = _row(connection, job_id)
        if row.state not in (*NOT_BEGUN, "running"):
            raise Conflict("this job is already over. There is nothing to cancel.")
        _end(connection, store, job_id, f"cancelled by {by}; {_spending(connection, row)}")
        return _as_job(_row(connection, job_id))


def end_revoked(store: str) -> None:
    """End the waiting jobs that were requested with a key that is now revoked."""
    revoked = select(keys.c.id).where(keys.c.revoked != "")
    own_jobs = jobs.c.state.in_(NOT_BEGUN) & jobs.c.key_id.in_(revoked)
    end_all(store, own_jobs, "the key that requested it was revoked")


def end_all(store: str, which: ColumnElement[bool], why: str) -> list[Job]:
    """End the jobs that match, and return them. Most calls match none, and take no lock."""
    with reading(store) as connection:
        if connection.scalar(select(jobs.c.id).where(which).limit(1)) is None:
            return []
    with excluding(store, _LOCK) as connection:
        return end_with(connection, store, which, why)


def end_with(connection: Connection, store: str, which: ColumnElement[bool], why: str) -> list[Job]:
    """End the jobs that match, inside a transaction that writes, and return them."""
    also_excluding(connection, store, _LOCK)
    rows = connection.execute(select(*_COLUMNS).where(which)).all()
    for row in rows:
        _end(connection, store, row.id, f"{why}; {_spending(connection, row)}")
    return [_as_job(_row(connection, row.id)) for row in rows]


def requeue(store: str, job_id: str, *, count_attempt: bool) -> None:
    """Let a job wait again, because its process has ended or stops on purpose."""
    with excluding(store, _LOCK) as connection:
        row = _row(connection, job_id)
        if row.state == "running":
            attempts = row.attempts - (0 if count_attempt else 1)
            connection.execute(_this(job_id).values(state="waiting", attempts=attempts))


def finish(store: str, job_id: str, failure: str = "", reason: str = "") -> None:
    """End a job; ``failure`` is for the analyst and the log, ``reason`` may depend on rows and is for the holder."""
    with excluding(store, _LOCK) as connection:
        if _row(connection, job_id).state == "running":
            _end(connection, store, job_id, failure, reason)


def _end(connection: Connection, store: str, job_id: str, failure: str, reason: str = "") -> None:
    """End a job and write its line to the log, in one transaction."""
    ended = {"state": "failed" if failure else "done", "failure": failure, "finished": as_text(now())}
    ended["reason"] = reason
    # The points of a finished job are not needed again; a failed job may still run in another process.
    freed = {} if failure else {"points": None}
    connection.execute(_this(job_id).values(ended | freed))
    row = _row(connection, job_id)
    details = {"job": job_id, "failure": failure} if failure else {"job": job_id}
    action = f"{row.kind} {'failed' if failure else 'is made'}"
    record_with(connection, store, row.analyst, action, row.dataset, **details)


def _find_submission(connection: Connection, analyst: str, request: JobRequest, key: str) -> Job | None:
    if not key:
        return None
    same = (jobs.c.analyst == analyst) & (jobs.c.idempotency_key == key)
    row = connection.execute(select(*_COLUMNS).where(same)).one_or_none()
    if row is not None and row.request_digest != job_kind(request.kind).digest(request):
        raise Conflict("this idempotency key was used for a different request. Use a new key.")
    return None if row is None else _as_job(row)


def _check_quota(connection: Connection, analyst: str, trial: bool, limits: Limits) -> None:
    own = select(func.count()).select_from(jobs).where(jobs.c.analyst == analyst)
    if (connection.scalar(own.where(jobs.c.state.in_(NOT_BEGUN))) or 0) >= limits.waiting_jobs:
        raise TooMany(f"{limits.waiting_jobs} of your jobs are already waiting. Try again when one ends.")
    maximum, what = (
        (limits.trials_per_day, "on synthetic rows") if trial else (limits.jobs_per_day, "on the records")
    )
    today = own.where(jobs.c.trial.is_(trial), jobs.c.created > as_text(now() - timedelta(days=1)))
    if (connection.scalar(today) or 0) >= maximum:
        raise TooMany(f"you have requested {maximum} jobs {what} within a day. Try again later.")


def _analysts_of(selected: ColumnElement[bool]) -> Select[Any]:
    """Return a query for the analysts of these jobs; first the one that has waited longest."""
    own_jobs = select(jobs.c.analyst).where(selected).group_by(jobs.c.analyst)
    return own_jobs.order_by(func.min(jobs.c.created))


def _free(connection: Connection, store: str) -> ColumnElement[bool]:
    """Return the condition for jobs that no process runs: waiting, or with a lease that has ended."""
    moment = clock(connection, store)
    # A lease this far in the future can only come from a clock that was set back.
    soon = as_text(moment + timedelta(seconds=2.0 * LEASE_SECONDS))
    lapsed = or_(jobs.c.lease < as_text(moment), jobs.c.lease > soon)
    return or_(jobs.c.state == "waiting", and_(jobs.c.state == "running", lapsed))


def _spending(connection: Connection, row: Row[Any]) -> str:
    """Describe the job's cost, which another process may reserve until it notices that the job has ended."""
    own = (entries.c.reservation == row.id) & (entries.c.dataset == row.dataset)
    kinds = set(connection.scalars(select(entries.c.kind).where(own)))
    is_reserved = kinds and "cancelled" not in kinds
    return "what it had reserved stays spent" if is_reserved else "nothing was spent"


def _row(connection: Connection, job_id: str) -> Row[Any]:
    row = connection.execute(select(*_COLUMNS).where(jobs.c.id == job_id)).one_or_none()
    if row is None:
        raise NotFound("there is no job with this id. List yours to find it.")  # as for a job of others
    return row


def _this(job_id: str) -> Any:
    return update(jobs).where(jobs.c.id == job_id)


def _lease(connection: Connection, store: str) -> str:
    return as_text(clock(connection, store) + timedelta(seconds=LEASE_SECONDS))


_OF_JOB = [
    field.name for field in fields(Job) if field.name not in {of.name for of in fields(AcceptedRequest)}
]


def _as_job(row: Row[Any]) -> Job:
    return Job(**request_columns(row), **{name: getattr(row, name) for name in _OF_JOB})

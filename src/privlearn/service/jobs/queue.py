"""Jobs on their way: a row each in the store, so that a restarted server, or another one, goes on with them.

    waiting --claim--> running --finish--> done | failed
       ^                  |
       +--- lease ends ---+   after `MOST_ATTEMPTS` times `run_job` gives it up, at the end of a slot like every other

What needs approval waits for that first, outside the queue (`approvals`).

Analysts take turns: whoever asks for a hundred jobs delays the one job of another by one. A job that waits or runs may
be cancelled, and those that wait end when the key that asked for them is revoked.

Whoever runs a job holds its lease, which it extends; a process that dies lets it end. Two processes that run one job by
mistake (one stood still for longer than its lease) do no harm: both pay under the job's one reservation, and one result
alone can be stored under the job's id. Leases go by the database's clock, since those of several machines differ.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any, get_args

from sqlalchemy import ColumnElement, Connection, Row, Select, and_, func, or_, select, update

from privlearn.guarantee import Guarantee
from privlearn.service.holder.settings import DEFAULT_LIMITS, Limits
from privlearn.service.job_kinds.job_kind import job_kind
from privlearn.service.jobs.requests import Job, JobRequest, State, accepted_in
from privlearn.service.refusals import Conflict, NotFound, TooMany
from privlearn.service.store.events import record_with
from privlearn.service.store.paging import EVERYTHING, Piece
from privlearn.service.store.tables import jobs, keys
from privlearn.service.timing import as_text, from_text, now
from privlearn.storage import also_excluding, clock, excluding, reading

LEASE_SECONDS = 15.0
MOST_ATTEMPTS = 3

_LOCK = "jobs"
NOT_BEGUN = ("waiting_for_approval", "waiting")
_SHOWN = [column for column in jobs.c if column.name != "points"]


def submitted_before(store: str, analyst: str, request: JobRequest, key: str) -> Job | None:
    """The job for which this analyst has used this idempotency key."""
    with reading(store) as connection:
        return _submitted_before(connection, analyst, request, key)


def submit(
    store: str,
    analyst: str,
    request: JobRequest,
    guarantee: Guarantee,
    key: str,
    *,
    asked_with: str = "",
    approval_within: timedelta | None = None,
    version: int = 1,
    limits: Limits = DEFAULT_LIMITS,
    record: Callable[[Connection, Job], None] = lambda *_: None,
) -> Job:
    """A new job; or, under an idempotency key that this analyst has used before, the job of that time.

    ``asked_with`` is the id of the analyst's own key: when that is revoked, the job ends. ``approval_within`` so much
    time somebody must approve the job, or else it ends; without it there is nothing to approve. ``version`` is the data
    set's at this moment: the job reads that one, whenever it runs. ``record`` writes the new job's line of the log, in
    the same transaction: no job begins unrecorded.
    """
    with excluding(store, _LOCK) as connection:
        before = _submitted_before(connection, analyst, request, key)
        if before is not None:
            return before
        _check_quota(connection, analyst, request.trial, limits)
        job = _insert(connection, analyst, request, guarantee, key, asked_with, approval_within, version)
        record(connection, job)
        return job


def find(store: str, job_id: str) -> Job:
    with reading(store) as connection:
        return find_with(connection, job_id)


def find_with(connection: Connection, job_id: str) -> Job:
    """The same inside a transaction."""
    return _as_job(_row(connection, job_id))


def find_all(
    store: str, analyst: str | None, piece: Piece = EVERYTHING, state: State | None = None
) -> list[Job]:
    """Jobs of an analyst, or of all, in one state or in any, newest first."""
    query = piece.of(select(*_SHOWN), jobs.c.created)
    if analyst is not None:
        query = query.where(jobs.c.analyst == analyst)
    if state is not None:
        query = query.where(jobs.c.state == state)
    with reading(store) as connection:
        return [_as_job(row) for row in connection.execute(query)]


def count_by_state(store: str) -> dict[str, int]:
    """How many jobs wait, run, are done, have failed, ..."""
    counts = dict.fromkeys(get_args(State), 0)
    with reading(store) as connection:
        for state, count in connection.execute(select(jobs.c.state, func.count()).group_by(jobs.c.state)):
            counts[state] = count
    return counts


def stored_points(store: str, job_id: str) -> bytes | None:
    """The analyst's public points, as `JobRequest.points_bytes` wrote them."""
    with reading(store) as connection:
        return connection.scalar(select(jobs.c.points).where(jobs.c.id == job_id))


def expire_leases(store: str) -> None:
    """Called by a process that knows to be the only one: whatever runs has lost its process."""
    with excluding(store, _LOCK) as connection:
        ended = as_text(clock(connection, store))
        connection.execute(update(jobs).where(jobs.c.state == "running").values(lease=ended))


class TakingTurns:
    """Which analyst was served longest ago, as this process knows it: by no clock, which might jump."""

    def __init__(self) -> None:
        self._served: dict[str, int] = {}

    def next(self, analysts: Iterable[str]) -> str:
        chosen = min(analysts, key=lambda name: self._served.get(name, -1))
        self._served[chosen] = 1 + max(self._served.values(), default=0)
        return chosen


def claim(store: str, turns: TakingTurns | None = None) -> Job | None:
    """The oldest job that nobody runs of the analyst whose turn it is, now ours; ``None`` if there is none."""
    end_revoked(store)
    with reading(store) as connection:  # most looks find nothing, and should keep nobody waiting
        if connection.scalar(_analysts_of(_free(connection, store)).limit(1)) is None:
            return None
    with excluding(store, _LOCK) as connection:
        free = _free(connection, store)
        names = connection.scalars(_analysts_of(free)).all()
        if not names:
            return None
        theirs = select(*_SHOWN).where(free, jobs.c.analyst == (turns or TakingTurns()).next(names))
        row = connection.execute(theirs.order_by(jobs.c.created).limit(1)).one()
        held = {"state": "running", "attempts": row.attempts + 1, "lease": _lease(connection, store)}
        connection.execute(_this(row.id).values(held | {"started": as_text(now())}))
        return _as_job(_row(connection, row.id))


def extend(store: str, job_id: str) -> bool:
    """Keep the lease of a job that runs here; False if it shall not go on: it was cancelled."""
    with reading(store) as connection:
        row = _row(connection, job_id)
        left = from_text(row.lease) - clock(connection, store)
    if not timedelta(seconds=LEASE_SECONDS / 2.0) <= left <= timedelta(seconds=LEASE_SECONDS):
        with excluding(store, _LOCK) as connection:
            connection.execute(_this(job_id).values(lease=_lease(connection, store)))
    return bool(row.state == "running")


def cancel(store: str, job_id: str, by: str) -> Job:
    """End a job that is not over. What it had reserved stays spent; the process that runs it notices."""
    with excluding(store, _LOCK) as connection:
        row = _row(connection, job_id)
        if row.state not in (*NOT_BEGUN, "running"):
            raise Conflict("this job is over: there is nothing to cancel")
        _end(connection, store, job_id, f"{by} has cancelled it; {_spent(row)}")
        return _as_job(_row(connection, job_id))


def end_revoked(store: str) -> None:
    """End the jobs that wait and were asked for with a key that is revoked by now."""
    revoked = select(keys.c.id).where(keys.c.revoked != "")
    theirs = jobs.c.state.in_(NOT_BEGUN) & jobs.c.key_id.in_(revoked)
    end_all(store, theirs, "the key that asked for it was revoked")


def end_all(store: str, which: ColumnElement[bool], why: str) -> list[Job]:
    """End jobs; gives those. Most calls find none, and keep nobody waiting."""
    with reading(store) as connection:
        if connection.scalar(select(jobs.c.id).where(which).limit(1)) is None:
            return []
    with excluding(store, _LOCK) as connection:
        return end_with(connection, store, which, why)


def end_with(connection: Connection, store: str, which: ColumnElement[bool], why: str) -> list[Job]:
    """The same inside a transaction that writes."""
    also_excluding(connection, store, _LOCK)
    rows = connection.execute(select(*_SHOWN).where(which)).all()
    for row in rows:
        _end(connection, store, row.id, f"{why}; {_spent(row)}")
    return [_as_job(_row(connection, row.id)) for row in rows]


def give_back(store: str, job_id: str, *, count_attempt: bool) -> None:
    """The job's process is gone, or stops on purpose: it waits again."""
    with excluding(store, _LOCK) as connection:
        row = _row(connection, job_id)
        if row.state == "running":
            attempts = row.attempts - (0 if count_attempt else 1)
            connection.execute(_this(job_id).values(state="waiting", attempts=attempts))


def finish(store: str, job_id: str, failure: str = "", reason: str = "") -> None:
    """The job's end; ``failure`` is for the analyst to read, ``reason`` for the holder."""
    with excluding(store, _LOCK) as connection:
        if _row(connection, job_id).state == "running":
            _end(connection, store, job_id, failure, reason)


def _end(connection: Connection, store: str, job_id: str, failure: str, reason: str = "") -> None:
    """With its line in the log, in one transaction: no end goes unrecorded."""
    ended = {"state": "failed" if failure else "done", "failure": failure, "finished": as_text(now())}
    # Of a job that is done nobody can need the points again; of one that failed another process may still be running.
    done_with = {} if failure else {"points": None}
    connection.execute(_this(job_id).values(ended | done_with))
    row = _row(connection, job_id)
    told = {"job": job_id, "reason": reason or failure} if failure else {"job": job_id}
    action = f"{row.kind} {'failed' if failure else 'is made'}"
    record_with(connection, store, row.analyst, action, row.dataset, **told)


def _submitted_before(connection: Connection, analyst: str, request: JobRequest, key: str) -> Job | None:
    if not key:
        return None
    same = (jobs.c.analyst == analyst) & (jobs.c.idempotency_key == key)
    row = connection.execute(select(*_SHOWN).where(same)).one_or_none()
    if row is not None and row.request_digest != job_kind(request.kind).digest(request):
        raise Conflict("this idempotency key was used for another request: take a new key for a new request")
    return None if row is None else _as_job(row)


def _check_quota(connection: Connection, analyst: str, trial: bool, limits: Limits) -> None:
    own = select(func.count()).select_from(jobs).where(jobs.c.analyst == analyst)
    if (connection.scalar(own.where(jobs.c.state.in_(NOT_BEGUN))) or 0) >= limits.waiting_jobs:
        raise TooMany(f"{limits.waiting_jobs} of your jobs are waiting: ask again when some of them are done")
    most, what = (
        (limits.trials_per_day, "on made-up rows") if trial else (limits.jobs_per_day, "on the records")
    )
    today = own.where(jobs.c.trial.is_(trial), jobs.c.created > as_text(now() - timedelta(days=1)))
    if (connection.scalar(today) or 0) >= most:
        raise TooMany(f"you have asked for {most} jobs {what} within a day: ask again later")


def _analysts_of(chosen: ColumnElement[bool]) -> Select[Any]:
    """Whose these jobs are; first who has waited longest."""
    theirs = select(jobs.c.analyst).where(chosen).group_by(jobs.c.analyst)
    return theirs.order_by(func.min(jobs.c.created))


def _free(connection: Connection, store: str) -> ColumnElement[bool]:
    """Nobody runs it: it waits, or its lease has ended, or is one that only a clock set back can have given."""
    moment = clock(connection, store)
    soon = as_text(moment + timedelta(seconds=2.0 * LEASE_SECONDS))
    lapsed = or_(jobs.c.lease < as_text(moment), jobs.c.lease > soon)
    return or_(jobs.c.state == "waiting", and_(jobs.c.state == "running", lapsed))


def _spent(row: Row[Any]) -> str:
    return "what it had reserved stays spent" if row.started else "nothing was spent"


def _insert(
    connection: Connection,
    analyst: str,
    request: JobRequest,
    guarantee: Guarantee,
    key: str,
    asked_with: str,
    approval_within: timedelta | None,
    version: int,
) -> Job:
    job_id, moment = secrets.token_hex(8), now()
    connection.execute(
        jobs.insert().values(
            id=job_id,
            analyst=analyst,
            key_id=asked_with,
            dataset=request.dataset,
            version=version,
            kind=request.kind,
            fields=dict(request.fields),
            epsilon=guarantee.epsilon,
            delta=guarantee.delta,
            neighbours=guarantee.neighbours,
            trial=request.trial,
            note=request.note,
            purpose=request.purpose,
            legal_basis=request.legal_basis,
            decide_by="" if approval_within is None else as_text(moment + approval_within),
            points=request.points_bytes(),
            idempotency_key=key or None,
            request_digest=job_kind(request.kind).digest(request),
            state="waiting" if approval_within is None else "waiting_for_approval",
            created=as_text(moment),
        )
    )
    return _as_job(_row(connection, job_id))


def _row(connection: Connection, job_id: str) -> Row[Any]:
    row = connection.execute(select(*_SHOWN).where(jobs.c.id == job_id)).one_or_none()
    if row is None:
        raise NotFound("there is no such job: list yours")
    return row


def _this(job_id: str) -> Any:
    return update(jobs).where(jobs.c.id == job_id)


def _lease(connection: Connection, store: str) -> str:
    return as_text(clock(connection, store) + timedelta(seconds=LEASE_SECONDS))


def _as_job(row: Row[Any]) -> Job:
    return Job(
        **accepted_in(row),
        state=row.state,
        created=row.created,
        started=row.started,
        finished=row.finished,
        failure=row.failure,
        attempts=row.attempts,
        note=row.note,
        purpose=row.purpose,
        legal_basis=row.legal_basis,
        decide_by=row.decide_by,
        decided=row.decided,
        decided_by=row.decided_by,
        decision=row.decision,
        asked_with=row.key_id,
    )

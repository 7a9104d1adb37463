"""The trusted learner: everything that a holder and analysts may ask of it, without a transport.

Every method takes the caller first. What a caller may not see is answered like what does not exist.
"""

from __future__ import annotations

import dataclasses
import json
import unicodedata
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar

import pyarrow as pa
from sqlalchemy import Connection

from privlearn.errors import InvalidParameter, LedgerError
from privlearn.guarantee import Guarantee
from privlearn.ledger.composition import Balance
from privlearn.ledger.statement import Entry, Standing
from privlearn.service.access.keys import Caller
from privlearn.service.approving import Approvals
from privlearn.service.holder.catalogs import Catalogs
from privlearn.service.holder.datasets import Catalog, OfferedDataSet, check_room
from privlearn.service.holder.settings import Owner
from privlearn.service.holder.signing import signing_key
from privlearn.service.job_kinds.job_kind import JOB_KINDS, Asked, job_kind, load_job_kinds
from privlearn.service.jobs import approvals, queue, results
from privlearn.service.jobs.answering import OpenSessions
from privlearn.service.jobs.pricing import priced
from privlearn.service.jobs.requests import Job, JobRequest, Predictions, ResultInfo
from privlearn.service.jobs.workers import UnderWay, Worker
from privlearn.service.notices.outbox import Outboxes
from privlearn.service.refusals import Conflict, Forbidden, NotFound, TooLarge, TooMany
from privlearn.service.store import events
from privlearn.service.store.paging import Piece
from privlearn.service.store.store import open_store
from privlearn.service.timing import Buckets, TtlCache
from privlearn.service.watch import Watch
from privlearn.storage.presence import Presence

if TYPE_CHECKING:
    from privlearn.service.telemetry import Telemetry

Found = TypeVar("Found", Job, ResultInfo)

MOST_WORDS = {"note": 200, "purpose": 500, "legal_basis": 200}
"""Characters of what an analyst may say of a request, each in one line."""
_FILLERS = "\u115f\u1160\u2800\u3164\uffa0"
"""Letters and symbols that show nothing."""
MOST_FIELD_BYTES = 16 * 1024
"""Of all that a kind is asked with, as JSON: it is stored, logged and listed with every job."""


class Service:
    """One server process's share of the work; on PostgreSQL there may be several, on SQLite one.

    Parameters
    ----------
    owner : Owner

    Attributes
    ----------
    store : str
        Where everything durable is.
    approvals : Approvals
        What approvers ask.
    """

    def __init__(self, owner: Owner) -> None:
        load_job_kinds(owner.extensions.job_kinds)
        for place, approval in owner.approvals():
            approval.check_kinds(place, JOB_KINDS)
        self.owner = owner
        self.signing_key = signing_key(owner.server)
        if self.signing_key is not None:
            self.signing_key.sign(b"a server starts")  # what cannot sign must be noticed before anybody pays
        self.store = open_store(owner)
        self._lock = None if owner.server.ledger else only_server(owner.server.folder)
        if self._lock is not None:
            queue.expire_leases(self.store)
        self._presence = Presence(self.store)
        if reason := self._presence.keep():
            raise LedgerError(reason)
        self.catalogs = Catalogs(owner)
        self._sessions = OpenSessions(self.store, self.catalogs)
        self._known_sessions: TtlCache[str, ResultInfo] = TtlCache(seconds=1.0, most=1000)
        self._watched_jobs: TtlCache[str, Job] = TtlCache(seconds=0.2, most=1000)
        self._new_points = Buckets(owner.limits.points_per_day / 1440.0, burst=owner.limits.points_per_day)
        turns = queue.TakingTurns()
        self.telemetry = _telemetry(owner.telemetry.endpoint)
        counted, processes = self.catalogs.counted, owner.server.training_processes
        self._workers = [Worker(owner, counted, turns, self._ended) for _ in range(processes)]
        self._outboxes = Outboxes(owner.notices)
        self.approvals = Approvals(self.store, self.catalogs, self._outboxes, self._wake)
        self.watch = Watch(owner.server, self._look_after_workers, self._keep_up, self._presence)

    @property
    def catalog(self) -> Catalog:
        """What is served now."""
        return self.catalogs.now

    def start(self) -> None:
        """Begin to train what waits."""
        if self.telemetry is not None:
            self.telemetry.start()
        self._outboxes.start()
        for worker in self._workers:
            worker.start()
        self.watch.start()

    def hand_over(self) -> None:
        """Take no more jobs, and give back those that run: another server goes on with them, while this one gives its
        last answers. Returns at once."""
        for worker in self._workers:
            worker.hand_over()

    def stop(self) -> None:
        """End now; what was not finished goes on with another server, or after the next start."""
        self.watch.stop()
        for worker in self._workers:
            worker.stop()
        if self.telemetry is not None:
            self.telemetry.stop()
        self._outboxes.stop()
        self._presence.end()
        if self._lock is not None:
            self._lock.close()

    def datasets(self, caller: Caller) -> list[OfferedDataSet]:
        return self.catalog.of(caller)

    def dataset(self, caller: Caller, name: str) -> OfferedDataSet:
        return self.catalog.get(caller, name)

    def budget(self, caller: Caller, name: str) -> Standing:
        """Where the data set's budget stands, and the caller's share of it."""
        return self.dataset(caller, name).ledger_of(caller.account).standing()

    def entries(self, caller: Caller, name: str, most: int, before: str | None = None) -> list[Entry]:
        """The caller's newest costs, or everybody's for those who see all; the newest is last."""
        ledger = self.dataset(caller, name).ledger_of(caller.account)
        return ledger.entries(most, of_account=not caller.sees_requests, before=before)

    def spending(self, caller: Caller, name: str, most: int) -> list[tuple[str, Balance]]:
        """How the caller's share, or the whole budget for those who see all, was spent in time."""
        return self.dataset(caller, name).ledger_of(caller.account).history(most)

    def estimate(self, caller: Caller, request: JobRequest) -> dict[str, Any]:
        """What a job would cost and what its kind can tell of it; reads no record and costs nothing."""
        asked = self._asked(caller, request)
        _check_promise(asked)
        return job_kind(request.kind).estimate(asked)

    def ask(self, caller: Caller, request: JobRequest, idempotency_key: str = "") -> Job:
        """Have a job done. Whatever can be refused is refused now, and costs nothing; what a second person must
        approve waits for that.

        Parameters
        ----------
        idempotency_key : str, optional
            A caller who asks again with the same key, after a lost answer, gets the first job and pays once.
        """
        kind, asked = job_kind(request.kind), self._asked(caller, request)
        request = dataclasses.replace(request, fields=asked.fields.model_dump(mode="json"))
        before = queue.submitted_before(self.store, caller.name, request, idempotency_key)
        if before is not None:  # it is paid for, even if there is no room for another
            return before
        self._check(asked)
        approval_within = _approval_within(asked.offered, request)
        priced(kind, asked, asked.offered.ledger_of(caller.name))
        if not request.trial:
            check_room(asked.offered, caller.name, asked.guarantee)
        job = queue.submit(
            self.store,
            caller.name,
            request,
            asked.guarantee,
            idempotency_key,
            asked_with=caller.key_id,
            approval_within=approval_within,
            version=asked.offered.version,
            limits=self.owner.limits,
            record=partial(self._record_asked, request, asked.offered.version),
        )
        if job.state == "waiting_for_approval":
            self._outboxes.tell("waits_for_approval", job)
        self._wake()
        return job

    def under_way(self, caller: Caller) -> list[UnderWay]:
        """PRIVATE: what this server's processes are doing; nothing for an analyst, to whom it would tell of rows."""
        found = (worker.under_way for worker in self._workers)
        return [one for one in found if one is not None and caller.is_holder]

    def job(self, caller: Caller, job_id: str) -> Job:
        return self._visible(caller, queue.find(self.store, job_id))

    def watched_job(self, caller: Caller, job_id: str) -> Job:
        """The same for those who ask again and again: many of them are one look into the database."""
        found = self._watched_jobs.get(job_id, lambda: queue.find(self.store, job_id))
        assert found is not None  # `queue.find` raises instead
        return self._visible(caller, found)

    def cancel(self, caller: Caller, job_id: str) -> Job:
        """End a job that waits or runs; its analyst and the holder may. What it had reserved stays spent."""
        job = self._own(caller, queue.find(self.store, job_id), "job")
        ended = queue.cancel(self.store, job_id, caller.name)
        self._watched_jobs.forget()
        events.record(self.store, caller.name, "cancelled a job", job.dataset, job=job_id)
        self._outboxes.tell_end(ended)
        return ended

    def jobs(
        self, caller: Caller, most: int, before: str | None = None, dataset: str | None = None
    ) -> list[Job]:
        """The newest, or those before the last one seen."""
        analyst = None if caller.sees_requests else caller.analyst
        return queue.find_all(self.store, analyst, self._piece(caller, most, before, dataset))

    def results(
        self,
        caller: Caller,
        kind: str | None = None,
        *,
        most: int,
        before: str | None = None,
        only_open: bool = False,
    ) -> list[ResultInfo]:
        """What jobs of one kind, or of all, have made; the newest, or those before the last one seen."""
        piece = self._piece(caller, most, before)
        return results.find_all(self.store, _analyst(caller), kind, piece, only_open=only_open)

    def result(self, caller: Caller, result_id: str, kind: str | None = None) -> ResultInfo:
        found = results.find(self.store, _analyst(caller), result_id, kind)
        return self._own(caller, found, kind or "result")

    def fetch(self, caller: Caller, result_id: str, kind: str | None = None) -> tuple[ResultInfo, bytes]:
        """A result with its content."""
        found = self.result(caller, result_id, kind)
        if not found.media_type:
            raise Conflict(f"this {found.kind} stays with the holder: ask it, there is nothing to fetch")
        content = results.content_of(self.store, result_id)
        details = {found.kind: result_id}
        events.record(self.store, caller.name, f"fetched a {found.kind}", found.dataset, **details)
        return found, content

    def session(self, caller: Caller, session_id: str) -> ResultInfo:
        """One session; that another process closed it is noticed within a second."""
        kind = results.SESSION
        found = self._known_sessions.get(session_id, lambda: results.find(self.store, None, session_id, kind))
        assert found is not None  # `results.find` raises instead
        return self._own(caller, found, kind)

    def close_session(self, caller: Caller, session_id: str) -> None:
        """It answers no more; what it cost stays spent."""
        session = self.session(caller, session_id)
        results.close_session(self.store, session_id)
        self._known_sessions.forget()
        self._sessions.let_go(session_id)
        events.record(self.store, caller.name, "closed a session", session.dataset, session=session_id)

    def predict(self, caller: Caller, session_id: str, rows: pa.Table) -> Predictions:
        """Answers at points, each durable before it leaves; the same point has the same answer always."""
        session = self.session(caller, session_id)
        if session.analyst != caller.name:
            raise Forbidden("this session is another's: open one of your own")
        if session.state == "closed":
            raise Conflict("this session is closed: open another")
        most = self.owner.limits.batch_rows
        if rows.num_rows > most:
            raise TooLarge(
                f"{rows.num_rows} rows are more than the {most} allowed at a time: ask in several requests"
            )
        if not rows.num_rows:
            raise InvalidParameter("there are no rows to predict: send at least one")
        return self._sessions.predict(session, rows, partial(self._admit, session))

    def events(self, caller: Caller, limit: int = 100, before: int | None = None) -> list[events.Event]:
        """The log, newest first; for the holder and auditors."""
        if caller.role not in ("holder", "auditor"):
            raise Forbidden("the log is for the holder of the data and for auditors")
        return events.events(self.store, limit, before)

    def _asked(self, caller: Caller, request: JobRequest) -> Asked[Any]:
        if caller.role in ("approver", "auditor"):
            raise Forbidden(f"an {caller.role} asks for nothing: ask with an analyst's key")
        offered, kind = self.dataset(caller, request.dataset), job_kind(request.kind)
        if request.points is not None and not kind.takes_points:
            raise InvalidParameter(f"{kind.title} needs no public points: leave them out")
        if len(json.dumps(dict(request.fields))) > MOST_FIELD_BYTES:
            raise TooLarge(f"the fields are more than {MOST_FIELD_BYTES} bytes as JSON: ask with less")
        for name, most in MOST_WORDS.items():
            words = getattr(request, name)
            if len(words) > most or not words.isprintable():
                raise InvalidParameter(f"{name} must be one line of at most {most} characters: shorten it")
        guarantee = Guarantee(request.epsilon, request.delta, offered.settings.neighbours)
        fields = kind.completed(kind.read(request.fields), offered)
        for result_id, result_kind in kind.reads(fields).items():
            self.result(caller, result_id, result_kind)
        return Asked(self.store, caller.name, offered, guarantee, fields, request.points)

    def _record_asked(self, request: JobRequest, version: int, connection: Connection, job: Job) -> None:
        """The line of the log about a new job."""
        told = {"job": job.id, "epsilon": request.epsilon, "delta": request.delta, "trial": request.trial}
        told |= {name: getattr(request, name) for name in MOST_WORDS if getattr(request, name)}
        told |= {"needs_approval_by": job.decide_by} if job.decide_by else {}
        told |= {"version": version} if version > 1 else {}
        action = f"asked for {job_kind(request.kind).title}"
        details = {**request.fields, **told}
        events.record_with(connection, self.store, job.analyst, action, request.dataset, **details)

    def _check(self, asked: Asked[Any]) -> None:
        """Refuse promises that the holder does not let out, before anything is charged."""
        _check_promise(asked)
        weak = asked.offered.weakness(asked.guarantee)
        if weak and not asked.offered.settings.accept_weak_privacy:
            raise InvalidParameter(
                f"this promise is {weak}. The holder does not let that out: take a smaller epsilon or delta"
            )

    def _admit(self, session: ResultInfo, new: int, before: int) -> None:
        """Refuse new points beyond the holder's limits; those asked before are answered always."""
        limits = self.owner.limits
        most = limits.trial_points if session.trial else limits.session_points
        if new and before + new > most:
            raise TooLarge(
                f"this session answers {most} different points, {before} of them are used up: ask about those again, "
                "or open another session"
            )
        if new and not self._new_points.take(session.analyst, new):
            raise TooMany(f"{limits.points_per_day} new points within a day are allowed: ask again later")

    def _look_after_workers(self) -> str:
        """What is wrong with those who train; empty if nothing is."""
        for worker in self._workers:
            worker.look_after()
        return "a worker stands still" if any(worker.stands_still for worker in self._workers) else ""

    def _own(self, caller: Caller, found: Found, noun: str) -> Found:
        """What was found, if it is the caller's, or the caller the holder."""
        if not caller.is_holder and (
            found.analyst != caller.analyst or not self._may_see(caller, found.dataset)
        ):
            raise NotFound(f"there is no such {noun}: list yours")
        return found

    def _visible(self, caller: Caller, job: Job) -> Job:
        """The job, if the caller may see it."""
        if caller.sees_requests and self._may_see(caller, job.dataset):
            return job
        return self._own(caller, job, "job")

    def _wake(self) -> None:
        for worker in self._workers:
            worker.wake()

    def _ended(self, job: Job, taken_up: float, failed: bool) -> None:
        """Called by a worker."""
        if self.telemetry is not None:
            self.telemetry.job_ended(job, taken_up, failed)
        self._outboxes.tell_end(queue.find(self.store, job.id))

    def _keep_up(self) -> None:
        """Called by the watch, every second: see what another server changed, and end what waits in vain."""
        self.catalogs.refresh()
        queue.end_revoked(self.store)
        retired = [name for name, one in self.catalog.owner.datasets.items() if one.retired]
        for job in (*approvals.end_undecided(self.store), *approvals.end_retired(self.store, retired)):
            self._outboxes.tell_end(job)

    def _piece(self, caller: Caller, most: int, before: str | None, dataset: str | None = None) -> Piece:
        """About the data sets that the caller may see."""
        names = [offered.name for offered in self.catalog.of(caller)]
        return Piece(most, before, [name for name in names if dataset in (None, name)])

    def _may_see(self, caller: Caller, dataset: str) -> bool:
        return any(offered.name == dataset for offered in self.catalog.of(caller))


def _telemetry(endpoint: str | None) -> Telemetry | None:
    if endpoint is None:
        return None
    try:
        from privlearn.service.telemetry import Telemetry
    except ImportError:
        raise InvalidParameter("telemetry needs an extra: pip install 'privlearn[telemetry]'") from None
    return Telemetry(endpoint)


def _check_promise(asked: Asked[Any]) -> None:
    """Of every kind of job."""
    if asked.offered.settings.retired:
        raise InvalidParameter(
            f"data set {asked.offered.name!r} is retired: nothing new is done with it, what was made stays"
        )
    if not asked.guarantee.is_private:
        raise InvalidParameter("epsilon must be finite: the holder lets only private results out")
    least = asked.offered.settings.least_epsilon
    if asked.guarantee.epsilon < least:
        raise InvalidParameter(f"epsilon must be at least {least:g}, the holder's lowest price: ask for more")


def _approval_within(offered: OfferedDataSet, request: JobRequest) -> timedelta | None:
    """How long somebody has to approve it; ``None`` if nobody must."""
    approval = offered.settings.approval
    if request.trial or approval is None or not approval.is_needed(request.kind, request.epsilon):
        return None
    for name in ("purpose", "legal_basis"):
        if not _is_visible(getattr(request, name)):
            raise InvalidParameter(f"{name} must be given: a second person has to approve this, and reads it")
    return approval.patience


def _is_visible(words: str) -> bool:
    """Whether there is anything to read: not marks, spaces and fillers alone."""
    return any(letter not in _FILLERS and unicodedata.category(letter)[0] in "LNPS" for letter in words)


def _analyst(caller: Caller) -> str | None:
    """Whose results a list holds: the holder sees all."""
    return None if caller.is_holder else caller.analyst


def only_server(folder: Path) -> IO[str]:
    """Held for as long as this process lives: sessions on SQLite must have one process that answers."""
    try:
        import fcntl
    except ImportError:
        raise LedgerError(
            "a server on SQLite locks its folder in a way that Windows has not: run it on Linux or macOS, or put "
            '`ledger = "postgresql://..."` into the holder\'s file'
        ) from None
    lock = (folder / "server.lock").open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.close()
        raise LedgerError(
            f'another server runs on {folder}: stop it first, or put `ledger = "postgresql://..."` into the '
            "holder's file, which several servers can share"
        ) from None
    return lock

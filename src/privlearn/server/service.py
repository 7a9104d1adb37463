"""The trusted server without a transport: everything that holders, analysts and other roles may request.

Every method takes the caller first. What a caller may not see is answered like something that does not exist.
"""

from __future__ import annotations

import dataclasses
import logging
import os
import time
from collections import Counter
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from privlearn.budget.composition import Balance
from privlearn.budget.statement import Entry, Standing
from privlearn.budget.storage.presence import Presence
from privlearn.errors import InvalidParameter, LedgerError
from privlearn.guarantee import Guarantee
from privlearn.server.access.keys import Caller
from privlearn.server.holder.catalog import Catalog, Catalogs
from privlearn.server.holder.datasets import OfferedDataSet, check_budget_left
from privlearn.server.holder.settings import Owner
from privlearn.server.holder.signing import signing_key
from privlearn.server.job_kinds.job_kind import JOB_KINDS, JobContext, job_kind, load_job_kinds
from privlearn.server.jobs import approvals, queue, results
from privlearn.server.jobs.admission import (
    check_guarantee,
    check_not_weak,
    check_request,
    record_request,
    time_to_approve,
)
from privlearn.server.jobs.approvals import Approvals
from privlearn.server.jobs.requests import SESSION, Job, JobRequest, Predictions, ResultInfo, Row
from privlearn.server.jobs.running import price_job
from privlearn.server.jobs.sessions import OpenSessions
from privlearn.server.jobs.workers import RunningJob, Worker
from privlearn.server.notices import Outboxes
from privlearn.server.refusals import Conflict, Forbidden, NotFound, Refusal, TooLarge, TooMany
from privlearn.server.store import events
from privlearn.server.store.store import open_store
from privlearn.server.store.tables import ListPage
from privlearn.server.timing import overran
from privlearn.server.token_buckets import Buckets
from privlearn.server.ttl_cache import TtlCache
from privlearn.server.watch import Watch
from privlearn.sessions.interactive import Admission

if TYPE_CHECKING:
    from privlearn.server.telemetry import Telemetry

_log = logging.getLogger("privlearn.service")

Item = TypeVar("Item", Job, ResultInfo)


class Service:
    """One server process's share of the work; on PostgreSQL there may be several processes, on SQLite one.

    ``overruns`` (public): the number of trainings of each data set that took longer than their first slot, in this
    process.
    """

    def __init__(self, owner: Owner) -> None:
        load_job_kinds(owner.extensions.job_kinds)
        for location, approval in owner.approvals():
            approval.check_kinds(location, JOB_KINDS)
        self.owner = owner
        self.signing_key = signing_key(owner.server)
        if self.signing_key is not None:
            self.signing_key.sign(b"a server starts")  # fail now rather than after a job was charged
        self.store = open_store(owner)
        self._lock = None if owner.server.ledger else lock_directory(owner.server.directory)
        if self._lock is not None:
            queue.expire_leases(self.store)
        self._presence = Presence(self.store)
        if reason := self._presence.keep():
            raise LedgerError(reason)
        self.catalogs = Catalogs(owner)
        self._sessions = OpenSessions(self.store, self.catalogs)
        self._known_sessions: TtlCache[str, ResultInfo] = TtlCache(seconds=1.0, max_entries=1000)
        self._watched_jobs: TtlCache[str, Job] = TtlCache(seconds=0.2, max_entries=1000)
        self._new_points = Buckets(owner.limits.points_per_day / 1440.0, burst=owner.limits.points_per_day)
        turns = queue.RoundRobin()
        self.telemetry = _telemetry(owner.telemetry.endpoint)
        counted, processes = self.catalogs.record_counts, owner.server.training_processes
        self.overruns: Counter[str] = Counter()
        self._workers = [Worker(owner, counted, turns, self._report_end) for _ in range(processes)]
        self._outboxes = Outboxes(owner.notices)
        self.approvals = Approvals(self.store, self.catalogs, self._outboxes, self._wake)
        self.watch = Watch(owner.server, self._check_workers, self._keep_up, self._presence)

    @property
    def catalog(self) -> Catalog:
        """The data sets that are served now."""
        return self.catalogs.now

    def start(self) -> None:
        """Start the workers, the watch and the notices."""
        if self.telemetry is not None:
            self.telemetry.start()
        self._outboxes.start()
        for worker in self._workers:
            worker.start()
        self.watch.start()

    def hand_over(self) -> None:
        """Take no more jobs and requeue the running ones for another server. Returns at once; answers in progress
        continue.
        """
        for worker in self._workers:
            worker.hand_over()

    def stop(self) -> None:
        """End now; another server, or the next start, continues what was not finished."""
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
        """Return the data sets that the caller may see."""
        return self.catalog.visible_to(caller)

    def dataset(self, caller: Caller, name: str) -> OfferedDataSet:
        """Return one data set that the caller may see."""
        return self.catalog.get(caller, name)

    def budget(self, caller: Caller, name: str) -> Standing:
        """Return the state of the data set's budget, and of the caller's share."""
        return self.dataset(caller, name).ledger_of(caller.account).standing()

    def entries(self, caller: Caller, name: str, limit: int, before: str | None = None) -> list[Entry]:
        """Return the caller's newest costs, or those of all analysts for roles that see all; the newest is last."""
        ledger = self.dataset(caller, name).ledger_of(caller.account)
        return ledger.entries(limit, of_account=not caller.sees_requests, before=before)

    def spending(self, caller: Caller, name: str, limit: int) -> list[tuple[str, Balance]]:
        """Return how the caller's share, or the whole budget for roles that see all, was spent over time."""
        return self.dataset(caller, name).ledger_of(caller.account).history(limit)

    def estimate(self, caller: Caller, request: JobRequest) -> dict[str, Any]:
        """Return the cost of a job and its kind's forecast. Reads no record and costs nothing."""
        context = self._context(caller, request)
        check_guarantee(context)
        return job_kind(request.kind).estimate(context)

    def ask(self, caller: Caller, request: JobRequest, idempotency_key: str = "") -> Job:
        """Submit a job. What can be refused is refused now, and costs nothing; some jobs wait for a second person's
        approval.

        ``idempotency_key``: a request repeated with the same key, after a lost answer, returns the first job and is
        charged once.
        """
        kind, context = job_kind(request.kind), self._context(caller, request)
        request = dataclasses.replace(request, fields=context.fields.model_dump(mode="json"))
        before = queue.find_submission(self.store, caller.name, request, idempotency_key)
        if before is not None:  # already charged, even if the budget is too small for another
            return before
        check_guarantee(context)
        check_not_weak(context)
        approval_within = time_to_approve(context.offered, request)
        price_job(kind, context, context.offered.ledger_of(caller.name))
        if not request.trial:
            check_budget_left(context.offered, caller.name, context.guarantee)
        job = queue.submit(
            self.store,
            caller.name,
            request,
            context.guarantee,
            idempotency_key,
            key_id=caller.key_id,
            approval_within=approval_within,
            version=context.offered.version,
            limits=self.owner.limits,
            record=partial(record_request, self.store, request, context.offered.version),
        )
        if job.state == "waiting_for_approval":
            self._outboxes.notify("waits_for_approval", job)
        self._wake()
        return job

    def running_jobs(self, caller: Caller) -> list[RunningJob]:
        """PRIVATE: return what this server runs; an empty list for analysts, because progress depends on the rows."""
        running = (worker.running_job for worker in self._workers)
        return [job for job in running if job is not None and caller.is_holder]

    def job(self, caller: Caller, job_id: str) -> Job:
        """Return one job that the caller may see."""
        return self._visible(caller, queue.find(self.store, job_id))

    def failure_reason(self, caller: Caller, job: Job) -> str:
        """PRIVATE: return why a job failed, for the holder; an empty text for all others."""
        return queue.read_reason(self.store, job.id) if caller.is_holder and job.state == "failed" else ""

    def poll_job(self, caller: Caller, job_id: str) -> Job:
        """Return one job from a short-lived cache, so that many waiting clients cause one database access."""
        found = self._watched_jobs.get(job_id, lambda: queue.find(self.store, job_id))
        assert found is not None  # `queue.find` raises instead
        return self._visible(caller, found)

    def cancel(self, caller: Caller, job_id: str) -> Job:
        """End a waiting or running job, as its analyst or the holder. What it has reserved stays spent."""
        job = self._own(caller, queue.find(self.store, job_id), "job")
        ended = queue.cancel(self.store, job_id, caller.name)
        self._watched_jobs.forget()
        events.record(self.store, caller.name, "cancelled a job", job.dataset, job=job_id)
        self._outboxes.notify_end(ended)
        return ended

    def jobs(
        self, caller: Caller, limit: int, before: str | None = None, dataset: str | None = None
    ) -> list[Job]:
        """Return the newest jobs, or those before the last one seen."""
        analyst = None if caller.sees_requests else caller.analyst
        return queue.find_all(self.store, analyst, self._list_page(caller, limit, before, dataset))

    def results(
        self,
        caller: Caller,
        kind: str | None = None,
        *,
        limit: int,
        before: str | None = None,
        only_open: bool = False,
    ) -> list[ResultInfo]:
        """Return the results of one kind or of all: the newest, or those before the last one seen."""
        page = self._list_page(caller, limit, before)
        return results.find_all(self.store, _analyst(caller), kind, page, only_open=only_open)

    def result(self, caller: Caller, result_id: str, kind: str | None = None) -> ResultInfo:
        """Return one result, without its content."""
        found = results.find(self.store, _analyst(caller), result_id, kind)
        return self._own(caller, found, kind or "result")

    def fetch(self, caller: Caller, result_id: str) -> tuple[ResultInfo, bytes]:
        """Return a result with its content."""
        found = self.result(caller, result_id)
        if not found.media_type:
            raise Conflict(f"this {found.kind} stays on the server and has no content. Ask for predictions.")
        content = results.content_of(self.store, result_id)
        details = {found.kind: result_id}
        events.record(self.store, caller.name, f"fetched a {found.kind}", found.dataset, **details)
        return found, content

    def session(self, caller: Caller, session_id: str) -> ResultInfo:
        """Return one session, from the database."""
        find = partial(results.find, self.store, None, session_id, SESSION)
        found = self._known_sessions.refresh(session_id, find)
        assert found is not None  # `results.find` raises instead
        return self._own(caller, found, SESSION)

    def close_session(self, caller: Caller, session_id: str) -> None:
        """Close a session permanently; its cost stays spent."""
        session = self.session(caller, session_id)
        results.close_session(self.store, session_id)
        self._known_sessions.forget()
        self._sessions.discard(session_id)
        events.record(self.store, caller.name, "closed a session", session.dataset, session=session_id)

    @property
    def session_changes(self) -> int:
        """Return how often sessions were closed in this process."""
        return self._known_sessions.changes

    def known_session(self, caller: Caller, session_id: str) -> ResultInfo | None:
        """Return a session as it was in the database a second ago at most; None if it is to be looked up."""
        found = self._known_sessions.peek(session_id)
        known = found is not None and not self._known_sessions.claim(session_id)
        return self._own(caller, found, SESSION) if found is not None and known else None

    def answers_at_once(self, session: ResultInfo) -> bool:
        """Return whether the session answers a few rows within milliseconds, without the database."""
        return self._sessions.is_small(session.id)

    def predict(self, caller: Caller, session: ResultInfo, rows: pa.Table | Row) -> Predictions:
        """Return answers at points. Each is stored before it leaves; the same point always has the same answer."""
        if session.analyst != caller.name:
            raise Forbidden("this session belongs to another analyst. Open your own.")
        if session.state == "closed":
            raise Conflict("this session is closed. Open another.")
        maximum = self.owner.limits.batch_rows
        count = 1 if isinstance(rows, dict) else rows.num_rows
        if count > maximum:
            raise TooLarge(f"{count} rows are more than the {maximum} allowed. Send several requests.")
        if not count:
            raise InvalidParameter("there are no rows to predict. Send at least one.")
        admission = Admission(partial(self._check_points, session), partial(self._charge_points, session))
        return self._sessions.predict(session, rows, admission)

    def events(self, caller: Caller, limit: int = 100, before: int | None = None) -> list[events.Event]:
        """Return the audit log, newest first; for the holder and auditors."""
        if caller.role not in ("holder", "auditor"):
            raise Forbidden("only the holder and auditors may read the log.")
        return events.events(self.store, limit, before)

    def _context(self, caller: Caller, request: JobRequest) -> JobContext[Any]:
        if caller.role in ("approver", "auditor"):
            raise Forbidden(f"an {caller.role} cannot request jobs. Use an analyst's key.")
        offered, kind = self.dataset(caller, request.dataset), job_kind(request.kind)
        check_request(kind, request)
        guarantee = Guarantee(request.epsilon, request.delta, offered.settings.neighbours)
        fields = kind.fill_defaults(kind.read(request.fields), offered)
        for result_id, result_kind in kind.input_results(fields).items():
            self.result(caller, result_id, result_kind)
        return JobContext(self.store, caller.name, offered, guarantee, fields, request.points)

    def _check_points(self, session: ResultInfo, new: int, before: int) -> None:
        """Refuse new points beyond the session's limit; earlier points are always answered."""
        limits = self.owner.limits
        maximum = limits.trial_points if session.trial else limits.session_points
        if new and before + new > maximum:
            raise TooLarge(
                f"this session answers {maximum} different points, and {before} are used. Ask about those again, or "
                "open another session."
            )

    def _charge_points(self, session: ResultInfo, new: int) -> None:
        """Refuse new points beyond an analyst's daily limit in this process."""
        if new and not self._new_points.take(session.analyst, new):
            raise TooMany(
                f"only {self.owner.limits.points_per_day} new points are allowed within a day. Try again later."
            )

    def _check_workers(self) -> str:
        """Restart dead workers; return what is wrong with the workers, or an empty text."""
        for worker in self._workers:
            worker.restart_if_dead()
        return "a worker is stuck" if any(worker.is_stuck for worker in self._workers) else ""

    def _own(self, caller: Caller, item: Item, noun: str) -> Item:
        """Return the item if it is the caller's, or if the caller is the holder; otherwise it does not exist."""
        if not caller.is_holder and (
            item.analyst != caller.analyst or not self._may_see(caller, item.dataset)
        ):
            raise NotFound(f"there is no {noun} with this id. List yours to find it.")
        return item

    def _visible(self, caller: Caller, job: Job) -> Job:
        """Return the job if the caller may see it."""
        if caller.sees_requests and self._may_see(caller, job.dataset):
            return job
        return self._own(caller, job, "job")

    def _wake(self) -> None:
        for worker in self._workers:
            worker.wake()

    def _report_end(self, job: Job, claimed: float, failed: bool) -> None:
        """Report the end of a job; called by a worker."""
        if self.telemetry is not None:
            self.telemetry.job_ended(job, claimed, failed)
        with suppress(Refusal):  # the data set may be gone by now
            self._watch_slot(job, time.time() - claimed)
        self._outboxes.notify_end(queue.find(self.store, job.id))

    def _watch_slot(self, job: Job, seconds: float) -> None:
        """Count a training that took longer than its first slot; warn the holder once per data set."""
        first = self.catalog.find(job.dataset, job.version).first_slot(job.learner)
        if job.trial or not overran(seconds, first):
            return
        if not self.overruns[job.dataset]:
            _log.warning(
                "a training on %s took longer than its first slot of %g seconds, so its end reveals how long it took. "
                "Set training_seconds for this data set to more than any training takes.",
                job.dataset,
                first,
            )
        self.overruns[job.dataset] += 1

    def _keep_up(self) -> None:
        """See changes by other servers, and end jobs that wait for nothing; called by the watch every second."""
        self.catalogs.refresh()
        queue.end_revoked(self.store)
        retired = [name for name, one in self.catalog.owner.datasets.items() if one.retired]
        for job in (*approvals.end_undecided(self.store), *approvals.end_retired(self.store, retired)):
            self._outboxes.notify_end(job)

    def _list_page(
        self, caller: Caller, limit: int, before: str | None, dataset: str | None = None
    ) -> ListPage:
        """Return which part of a list to read: only data sets that the caller may see."""
        names = [offered.name for offered in self.catalog.visible_to(caller)]
        return ListPage(limit, before, [name for name in names if dataset in (None, name)])

    def _may_see(self, caller: Caller, dataset: str) -> bool:
        return any(offered.name == dataset for offered in self.catalog.visible_to(caller))


def _telemetry(endpoint: str | None) -> Telemetry | None:
    if endpoint is None:
        return None
    try:
        from privlearn.server.telemetry import Telemetry
    except ImportError:
        raise InvalidParameter("telemetry needs an extra: pip install 'privlearn[telemetry]'") from None
    return Telemetry(endpoint)


def _analyst(caller: Caller) -> str | None:
    """Return the analyst whose results a list contains; ``None`` for the holder, who sees all."""
    return None if caller.is_holder else caller.analyst


def lock_directory(directory: Path) -> IO[str]:
    """Return a locked file, held until this process ends: sessions on SQLite need one process that answers."""
    try:
        import fcntl
    except ImportError:
        raise LedgerError(
            "a server on SQLite locks its directory, which Windows cannot do. Run it on Linux or macOS, or put "
            '`ledger = "postgresql://..."` into the holder\'s file'
        ) from None
    lock = os.fdopen(os.open(directory / "server.lock", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.close()
        raise LedgerError(
            f"another server or upgrade runs on {directory}. Stop it first, or put "
            '`ledger = "postgresql://..."` into the holder\'s file, which several servers can share'
        ) from None
    return lock

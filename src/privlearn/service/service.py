"""The trusted learner: everything that a holder and analysts may ask of it, without a transport.

Every method takes the caller first. What a caller may not see is answered like what does not exist.
"""

from __future__ import annotations

import fcntl
from pathlib import Path
from typing import IO, Any, TypeVar

import pyarrow as pa

from privlearn.errors import InvalidParameter, LedgerError
from privlearn.guarantee import Guarantee
from privlearn.ledger import Statement
from privlearn.service.access.keys import Caller
from privlearn.service.holder.datasets import Catalog, OfferedDataSet, check_room, statement_for
from privlearn.service.holder.settings import Owner
from privlearn.service.jobs import queue, results
from privlearn.service.jobs.answering import OpenSessions
from privlearn.service.jobs.estimates import check_request, estimate
from privlearn.service.jobs.requests import Job, Predictions, ReleaseInfo, Session, TrainingRequest
from privlearn.service.jobs.workers import Worker
from privlearn.service.refusals import Conflict, Forbidden, NotFound, TooLarge
from privlearn.service.store import events
from privlearn.service.store.store import open_store
from privlearn.service.timing import TtlCache

Found = TypeVar("Found", Job, Session, ReleaseInfo)


class Service:
    """One server process's share of the work; on PostgreSQL there may be several, on SQLite one.

    Parameters
    ----------
    owner : Owner

    Attributes
    ----------
    store : str
        Where everything durable is.
    """

    def __init__(self, owner: Owner) -> None:
        self.owner = owner
        self.store = open_store(owner)
        self._lock = None if owner.server.ledger else only_server(owner.server.folder)
        if self._lock is not None:
            queue.expire_leases(self.store)
        self.catalog = Catalog(owner)
        counted = self.catalog.check()
        self._sessions = OpenSessions(self.store, self.catalog)
        self._known_sessions: TtlCache[str, Session] = TtlCache(seconds=1.0, most=1000)
        self._workers = [Worker(owner, counted, self._ended) for _ in range(owner.server.training_processes)]

    def start(self) -> None:
        """Begin to train what waits."""
        for worker in self._workers:
            worker.start()

    def stop(self) -> None:
        """End now; what was not finished goes on after the next start."""
        for worker in self._workers:
            worker.stop()
        if self._lock is not None:
            self._lock.close()

    def datasets(self, caller: Caller) -> list[OfferedDataSet]:
        return self.catalog.of(caller)

    def dataset(self, caller: Caller, name: str) -> OfferedDataSet:
        return self.catalog.get(caller, name)

    def budget(self, caller: Caller, name: str) -> Statement:
        """Where the data set's budget stands, and the caller's share of it."""
        return statement_for(self.dataset(caller, name), caller)

    def estimate(
        self, caller: Caller, name: str, learner: str, guarantee: Guarantee, **options: Any
    ) -> dict[str, Any]:
        """What a training would cost and how noisy it would be; reads no record and costs nothing."""
        offered = self.dataset(caller, name)
        return estimate(offered, offered.recipe(learner), guarantee, **options)

    def ask(self, caller: Caller, request: TrainingRequest, idempotency_key: str = "") -> Job:
        """Have a model trained. Whatever can be refused is refused now, and costs nothing.

        Parameters
        ----------
        idempotency_key : str, optional
            A caller who asks again with the same key, after a lost answer, gets the first job and pays once.
        """
        offered = self.dataset(caller, request.dataset)
        before = queue.submitted_before(self.store, caller.name, request, idempotency_key)
        if before is not None:  # it is paid for, even if there is no room for another
            return before
        guarantee = Guarantee(request.epsilon, request.delta, offered.settings.neighbours)
        self._check(offered, request, guarantee)
        if not request.trial:
            check_room(offered, caller, guarantee)
        job = queue.submit(self.store, caller.name, request, guarantee, idempotency_key)
        events.record(
            self.store, caller.name, f"asked for a {request.kind}", request.dataset, job=job.id,
            learner=request.learner, epsilon=request.epsilon, delta=request.delta, trial=request.trial,
        )  # fmt: skip
        for worker in self._workers:
            worker.wake()
        return job

    def job(self, caller: Caller, job_id: str) -> Job:
        return self._own(caller, queue.find(self.store, job_id))

    def jobs(self, caller: Caller) -> list[Job]:
        return [
            job for job in queue.find_all(self.store, _analyst(caller)) if self._may_see(caller, job.dataset)
        ]

    def sessions(self, caller: Caller) -> list[Session]:
        found = results.find_sessions(self.store, _analyst(caller))
        return [session for session in found if self._may_see(caller, session.dataset)]

    def session(self, caller: Caller, session_id: str) -> Session:
        """One session; that another process closed it is noticed within a second."""
        found = self._known_sessions.get(session_id, lambda: results.find_session(self.store, session_id))
        assert found is not None  # find_session raises instead
        return self._own(caller, found)

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
        return self._sessions.predict(session, rows)

    def releases(self, caller: Caller) -> list[ReleaseInfo]:
        found = results.find_releases(self.store, _analyst(caller))
        return [release for release in found if self._may_see(caller, release.dataset)]

    def release(self, caller: Caller, release_id: str) -> ReleaseInfo:
        return self._own(caller, results.find_release(self.store, release_id))

    def release_file(self, caller: Caller, release_id: str) -> bytes:
        release = self.release(caller, release_id)
        content = results.release_file(self.store, release_id)
        events.record(self.store, caller.name, "fetched a release", release.dataset, release=release_id)
        return content

    def events(self, caller: Caller, limit: int = 100, before: int | None = None) -> list[events.Event]:
        """The log, newest first; for the holder."""
        if not caller.is_holder:
            raise Forbidden("the log is for the holder of the data")
        return events.events(self.store, limit, before)

    def _check(self, offered: OfferedDataSet, request: TrainingRequest, guarantee: Guarantee) -> None:
        """Refuse what no theorem covers and what does not fit the schema, before anything is charged."""
        if not guarantee.is_private:
            raise InvalidParameter("epsilon must be finite: the holder lets only private results out")
        weak = offered.weakness(guarantee)
        if weak and not offered.settings.accept_weak_privacy:
            raise InvalidParameter(
                f"this promise is {weak}. The holder does not let that out: take a smaller epsilon or delta"
            )
        if request.kind == "release" and request.mechanism != "model":
            raise InvalidParameter("a release is a model: leave out mechanism, or ask for a session")
        check_request(offered, offered.recipe(request.learner), guarantee, request.mechanism, request.points)

    def _ended(self, job: Job, reason: str) -> None:
        told = {"reason": reason} if reason else {}
        action = "training failed" if reason else f"{job.kind} is made"
        events.record(self.store, job.analyst, action, job.dataset, job=job.id, **told)

    def _own(self, caller: Caller, found: Found) -> Found:
        """What was found, if the caller may see it."""
        if not caller.is_holder and (
            found.analyst != caller.name or not self._may_see(caller, found.dataset)
        ):
            raise NotFound(f"there is no such {_NOUNS[type(found)]}: list yours")
        return found

    def _may_see(self, caller: Caller, dataset: str) -> bool:
        return any(offered.name == dataset for offered in self.catalog.of(caller))


def _analyst(caller: Caller) -> str | None:
    """Whose things a list holds: the holder sees all."""
    return None if caller.is_holder else caller.name


def only_server(folder: Path) -> IO[str]:
    """Held for as long as this process lives: sessions on SQLite must have one process that answers."""
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


_NOUNS = {Job: "training", Session: "session", ReleaseInfo: "release"}

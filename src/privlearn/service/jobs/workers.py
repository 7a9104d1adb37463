"""Processes that train while the server answers: a thread of the server hands each its jobs, one after another."""

from __future__ import annotations

import logging
import multiprocessing
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

from privlearn.data.sources.passes import Passes, watch_passes
from privlearn.errors import LedgerError, StoreUnusable
from privlearn.extensions import load_extensions
from privlearn.service.holder.catalogs import Catalogs
from privlearn.service.holder.settings import Owner
from privlearn.service.http.logs import log_to_stderr, log_uncaught
from privlearn.service.job_kinds.job_kind import load_job_kinds
from privlearn.service.jobs import queue
from privlearn.service.jobs.requests import Job
from privlearn.service.jobs.training import run_job

LOOK_SECONDS = 0.5
"""How often to look for jobs that another server took in, or let go of."""

STILL_SECONDS = 60.0
"""A look at a database may take 30 seconds before it is given up."""

PROCESSES: Any = multiprocessing.get_context("spawn")
"""How training processes are started: anew, since a fork would copy the threads' locks."""

_log = logging.getLogger("privlearn.service")


@dataclass(frozen=True)
class UnderWay:
    """PRIVATE: a job that is being done, and how far it is. How many passes it takes follows from the rows."""

    job: Job
    told: str


class Worker:
    """One training process and the thread that keeps it busy.

    Parameters
    ----------
    owner : Owner
    counted : mapping from data sets to their numbers of records
        Public: what a training costs follows from it before a row is read.
    turns : TakingTurns
        Of all workers of the server.
    ended : callable
        Is told of a job whose end may be seen, when it was taken up, and whether it failed.

    Attributes
    ----------
    under_way : UnderWay or None
        For the holder alone.
    """

    def __init__(
        self,
        owner: Owner,
        counted: Mapping[str, int],
        turns: queue.TakingTurns,
        ended: Callable[[Job, float, bool], None] = lambda *_: None,
    ) -> None:
        self._owner = owner
        self._counted = counted
        self._store = owner.server.store
        self._turns = turns
        self._ended = ended
        self._process: BaseProcess | None = None
        self._looked = time.monotonic()
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._ready = False
        self._thread: threading.Thread | None = None
        self.under_way: UnderWay | None = None

    def start(self) -> None:
        self._looked = time.monotonic()
        self._thread = threading.Thread(target=self._loop, name="privlearn-worker", daemon=True)
        self._thread.start()

    def look_after(self) -> None:
        """Start again if the thread has died; called every second."""
        if self._thread is not None and not self._thread.is_alive() and not self._stopping.is_set():
            _log.error("a worker's thread has ended: starting another")
            self.start()

    @property
    def stands_still(self) -> bool:
        """Whether it has not looked for work, or after its process, for longer than it ever should."""
        return time.monotonic() - self._looked > STILL_SECONDS

    def wake(self) -> None:
        """There may be something to do."""
        self._wake.set()

    def hand_over(self) -> None:
        """Take no more jobs. One that is running waits again, and goes on under its reservation with another server."""
        self._stopping.set()
        self._wake.set()

    def stop(self) -> None:
        """The same, and wait for it."""
        self.hand_over()
        if self._thread is not None:
            self._thread.join()
        self._end_process()

    def _loop(self) -> None:
        while not self._stopping.is_set():
            self._looked = time.monotonic()
            try:
                # the first seconds of a process are imports, and no part of a training
                job = queue.claim(self._store, self._turns) if self._is_ready() else None
                if job is not None:
                    self._run(job)
                    continue
            except LedgerError as error:
                _log.error("the store cannot be used, trying again: %s", error)
            except Exception as error:  # no room for a process, no descriptors: the thread must outlive it
                _log.error("a worker failed, starting again: %s", type(error).__name__)
                self._end_process()
            self._wake.wait(LOOK_SECONDS)
            self._wake.clear()

    def _run(self, job: Job) -> None:
        """Hand the job over and wait for its end, the process's end, or our own."""
        self.under_way = UnderWay(job, "reading the rows")
        taken_up = time.time()
        try:
            self._pipe.send(job.id)
            ended = self._await(job)
        except (EOFError, ConnectionError):
            ended = "process", "its process was killed"
            self._end_process()
        finally:
            self.under_way = None
        if ended is None:
            return
        trouble, reason = ended
        if not trouble:
            self._ended(job, taken_up, bool(reason))
            return
        _log.error("job %s was interrupted: %s", job.id, reason)
        queue.give_back(self._store, job.id, count_attempt=trouble == "process")
        self._stopping.wait(LOOK_SECONDS)

    def _await(self, job: Job) -> tuple[str, str] | None:
        """What the process says at the job's end; None if the job shall not go on here."""
        while True:
            if self._pipe.poll(LOOK_SECONDS):
                said = self._pipe.recv()
                if isinstance(said, tuple):
                    return said
                self.under_way = UnderWay(job, said)
            if self._stopping.is_set():
                self._end_process()
                queue.give_back(self._store, job.id, count_attempt=False)
                return None
            if not self._keep_lease(job):
                self._end_process()
                return None

    def _is_ready(self) -> bool:
        """Whether the process has begun to take jobs; one that has ended is replaced."""
        if self._process is not None and not self._process.is_alive():
            _log.error("a training process ended between two jobs: starting another")
            self._end_process()
        if self._process is None:
            self._start_process()
        try:
            if not self._ready and self._pipe.poll(LOOK_SECONDS):
                self._ready = bool(self._pipe.recv())
        except (EOFError, ConnectionError):
            _log.error("a training process ended before it took a job: starting another")
            self._end_process()
        return self._ready

    def _keep_lease(self, job: Job) -> bool:
        """False if the job shall not go on."""
        self._looked = time.monotonic()
        try:
            return queue.extend(self._store, job.id)
        except LedgerError as error:  # the process may still reach the store when it is done
            _log.error("the lease of job %s could not be extended: %s", job.id, error)
            return True

    def _start_process(self) -> None:
        self._pipe, end = PROCESSES.Pipe()
        self._ready = False  # until it says so
        arguments = (self._owner, self._counted, end)
        process = PROCESSES.Process(target=train_for, args=arguments, daemon=True)
        try:
            process.start()
        except BaseException:
            self._pipe.close()
            raise
        finally:
            end.close()  # so that this side notices when the process is gone
        self._process = process

    def _end_process(self) -> None:
        """If there is one; the next look for work starts another."""
        process, self._process, self._ready = self._process, None, False
        if process is not None:
            process.kill()
            process.join()
            self._pipe.close()


def train_for(owner: Owner, counted: Mapping[str, int], pipe: Connection) -> None:
    """A training process, whose errors are lines of the log like those of its server."""
    log_to_stderr()
    try:
        _train_for(owner, counted, pipe)
    except Exception as error:
        log_uncaught(error)
        sys.exit(1)


def _train_for(owner: Owner, counted: Mapping[str, int], pipe: Connection) -> None:
    """Does one job after another until its server is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which ends this process
    load_extensions(owner.extensions.modules)
    load_job_kinds(owner.extensions.job_kinds)
    store = owner.server.store
    catalogs = Catalogs(owner, counted)
    pipe.send(True)
    while True:
        try:
            job_id = pipe.recv()
        except EOFError:
            return
        try:
            catalogs.refresh()
            with watch_passes(_telling(pipe)):
                reason = run_job(store, catalogs.now, queue.find(store, job_id))
            pipe.send(("", reason))
        except StoreUnusable as error:  # says nothing about the job: it goes on when the store does
            pipe.send(("store", str(error)))
        except LedgerError as error:
            pipe.send(("process", str(error)))


def _telling(pipe: Connection) -> Callable[[Passes], None]:
    """Says now and then, to the server's side, how far the passes are."""
    last = time.monotonic()

    def tell(passes: Passes) -> None:
        nonlocal last
        if time.monotonic() - last > LOOK_SECONDS:
            last = time.monotonic()
            pipe.send(str(passes))

    return tell

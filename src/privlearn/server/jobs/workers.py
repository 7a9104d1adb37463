"""Worker processes that run jobs while the server answers; a thread of the server hands each its jobs in turn."""

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
from privlearn.imports import load_extensions
from privlearn.server.holder.catalog import Catalogs
from privlearn.server.holder.settings import Owner
from privlearn.server.http.logs import log_to_stderr, log_uncaught
from privlearn.server.job_kinds.job_kind import load_job_kinds
from privlearn.server.jobs import queue
from privlearn.server.jobs.requests import Job
from privlearn.server.jobs.running import run_job

LOOK_SECONDS = 0.5
"""How often to look for jobs that another server has accepted or requeued."""

STILL_SECONDS = 60.0
"""A thread without activity for this time is stuck: an access to the database fails after 30 seconds."""

PROCESSES: Any = multiprocessing.get_context("spawn")
"""Spawned, not forked: a fork would copy the locks of other threads."""

_log = logging.getLogger("privlearn.service")


@dataclass(frozen=True)
class RunningJob:
    """PRIVATE: a running job and its progress. The number of passes depends on the rows."""

    job: Job
    progress: str


class Worker:
    """One worker process and the thread that keeps it busy.

    Parameters
    ----------
    owner : Owner
    counted : mapping from data sets to their numbers of records
        Public: the cost of a training depends on it.
    turns : RoundRobin
        Shared by all workers of the server.
    ended : callable
        Called when the end of a job may be visible, with the job, the time at which it was claimed, and whether it
        failed.

    Attributes
    ----------
    running_job : RunningJob or None
        PRIVATE: only for the holder.
    """

    def __init__(
        self,
        owner: Owner,
        counted: Mapping[str, int],
        turns: queue.RoundRobin,
        ended: Callable[[Job, float, bool], None] = lambda *_: None,
    ) -> None:
        self._owner = owner
        self._counted = counted
        self._store = owner.server.store
        self._turns = turns
        self._ended = ended
        self._process: BaseProcess | None = None
        self._last_look = time.monotonic()
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._ready = False
        self._thread: threading.Thread | None = None
        self.running_job: RunningJob | None = None

    def start(self) -> None:
        self._last_look = time.monotonic()
        self._thread = threading.Thread(target=self._loop, name="privlearn-worker", daemon=True)
        self._thread.start()

    def restart_if_dead(self) -> None:
        """Start the thread again if it has died; called every second."""
        if self._thread is not None and not self._thread.is_alive() and not self._stopping.is_set():
            _log.error("a worker's thread has ended: starting another")
            self.start()

    @property
    def is_stuck(self) -> bool:
        """Return whether the thread has neither looked for work nor checked its process for `STILL_SECONDS`."""
        return time.monotonic() - self._last_look > STILL_SECONDS

    def wake(self) -> None:
        """Look for work now."""
        self._wake.set()

    def hand_over(self) -> None:
        """Take no more jobs. A running job is requeued, and another server continues it under its reservation."""
        self._stopping.set()
        self._wake.set()

    def stop(self) -> None:
        """Hand over, and wait until the thread has ended."""
        self.hand_over()
        if self._thread is not None:
            self._thread.join()
        self._end_process()

    def _loop(self) -> None:
        while not self._stopping.is_set():
            self._last_look = time.monotonic()
            try:
                # claim only when the process is ready: its imports take seconds, and must not count as training time
                job = queue.claim(self._store, self._turns) if self._is_ready() else None
                if job is not None:
                    self._run(job)
                    continue
            except LedgerError as error:
                _log.error("the store cannot be used, trying again: %s", error)
            except Exception as error:  # no memory or descriptors: the thread must survive it
                _log.error("a worker failed, starting again: %s", type(error).__name__)
                self._end_process()
            self._wake.wait(LOOK_SECONDS)
            self._wake.clear()

    def _run(self, job: Job) -> None:
        """Send the job to the process, and wait until the job or the process ends, or this worker is stopped."""
        self.running_job = RunningJob(job, "reading the rows")
        claimed = time.time()
        try:
            self._pipe.send(job.id)
            ended = self._await(job)
        except (EOFError, ConnectionError):
            ended = "process", "its process was killed"
            self._end_process()
        finally:
            self.running_job = None
        if ended is None:
            return
        trouble, reason = ended
        if not trouble:
            if reason:
                _log.error("job %s failed: %s", job.id, reason)
            self._ended(job, claimed, bool(reason))
            return
        _log.error("job %s was interrupted: %s", job.id, reason)
        queue.requeue(self._store, job.id, count_attempt=trouble == "process")
        self._stopping.wait(LOOK_SECONDS)

    def _await(self, job: Job) -> tuple[str, str] | None:
        """Return the process's last message about the job; ``None`` if the job must not continue here."""
        is_over = False
        while True:
            if self._pipe.poll(LOOK_SECONDS):
                message = self._pipe.recv()
                if isinstance(message, tuple):
                    return message
                self.running_job = RunningJob(job, message)
            if self._stopping.is_set():
                self._end_process()
                queue.requeue(self._store, job.id, count_attempt=False)
                return None
            if not self._keep_lease(job):
                if is_over:
                    self._end_process()
                    return None
                is_over = True  # it may have ended just now: then its message is on its way

    def _is_ready(self) -> bool:
        """Return whether the process takes jobs; replace one that has ended."""
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
        """Extend the job's lease; return False if the job must not continue."""
        self._last_look = time.monotonic()
        try:
            return queue.extend(self._store, job.id)
        except LedgerError as error:  # the process may reach the store when it is done
            _log.error("the lease of job %s could not be extended: %s", job.id, error)
            return True

    def _start_process(self) -> None:
        self._pipe, end = PROCESSES.Pipe()
        self._ready = False
        arguments = (self._owner, self._counted, end)
        process = PROCESSES.Process(target=train_for, args=arguments, daemon=True)
        try:
            process.start()
        except BaseException:
            self._pipe.close()
            raise
        finally:
            end.close()  # so that this side notices when the process ends
        self._process = process

    def _end_process(self) -> None:
        """End the process, if there is one; the next look for work starts another."""
        process, self._process, self._ready = self._process, None, False
        if process is not None:
            process.kill()
            process.join()
            self._pipe.close()


def train_for(owner: Owner, counted: Mapping[str, int], pipe: Connection) -> None:
    """Run a worker process; its errors become lines of the log like those of its server."""
    log_to_stderr()
    try:
        _train_for(owner, counted, pipe)
    except Exception as error:
        log_uncaught(error)
        sys.exit(1)


def _train_for(owner: Owner, counted: Mapping[str, int], pipe: Connection) -> None:
    """Run one job after another until the server is gone."""
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
            with watch_passes(_progress_sender(pipe)):
                reason = run_job(store, catalogs.now, queue.find(store, job_id))
            pipe.send(("", reason))
        except StoreUnusable as error:  # not the job's fault: it is tried again
            pipe.send(("store", str(error)))
        except LedgerError as error:
            pipe.send(("process", str(error)))


def _progress_sender(pipe: Connection) -> Callable[[Passes], None]:
    """Return a callback that sends the progress of passes to the server at most every `LOOK_SECONDS`."""
    last = time.monotonic()

    def send(passes: Passes) -> None:
        nonlocal last
        if time.monotonic() - last > LOOK_SECONDS:
            last = time.monotonic()
            pipe.send(str(passes))

    return send

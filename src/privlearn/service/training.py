"""What a training does, in a process of its own: read, fit, store, commit.

An error that says something about the records is for the holder's log: the analyst reads one sentence for all of them.
"""

from __future__ import annotations

from typing import Any

from privlearn.data import Schema
from privlearn.errors import BudgetExceeded, LedgerError, PrivlearnError, SessionError
from privlearn.estimators import KernelLearner
from privlearn.ledger import Budget, Ledger
from privlearn.ledger.reservation import Reservation
from privlearn.service import jobs, results
from privlearn.service.charging import FreeOfCharge, JobBudget
from privlearn.service.datasets import Catalog, OfferedDataSet
from privlearn.service.recipes import estimator, kernel_learner
from privlearn.service.refusals import Refusal
from privlearn.service.requests import Job, points_from_bytes
from privlearn.service.slots import wait_for_end_of_slot
from privlearn.sessions import InteractivePredictor
from privlearn.sessions.shared import SharedStore

TRIAL_ROWS = 2000


def run_job(store: str, catalog: Catalog, job: Job) -> str:
    """Train, make the result durable, pay, and end the job; a job that was interrupted goes on where it was.

    Returns
    -------
    str
        Empty, or why the training failed: for the holder alone.

    Raises
    ------
    LedgerError
        If the store cannot be reached: the job is to be tried again.
    """
    try:
        offered = catalog.named(job.dataset)
        ledger = offered.ledger_of(job.analyst)
    except Refusal as refusal:  # the holder's file has changed since the job was asked for
        jobs.finish(store, job.id, f"{refusal}; {_what_was_spent(store, job)}")
        return str(refusal)
    failure = reason = ""
    try:
        if not results.is_stored(store, job):
            _train(store, offered, ledger, job)
    except BudgetExceeded as error:
        failure, reason = f"{error}. Nothing was spent", str(error)
    except LedgerError:
        raise
    except Exception as error:
        reason = reason_of(error)
        failure = _FAILED + _what_was_spent(store, job)
    if not job.trial:  # made-up rows have no secrets
        wait_for_end_of_slot(job.started, offered.settings.training_seconds)
        if not failure:
            Reservation(store, job.dataset, job.id).commit()
    jobs.finish(store, job.id, failure)
    return reason


def _train(store: str, offered: OfferedDataSet, ledger: Ledger, job: Job) -> None:
    schema, rows = rows_of(offered, job.trial)
    budget = FreeOfCharge() if job.trial else JobBudget(ledger, job, offered.settings.training_seconds)
    if job.mechanism != "model":
        _open_session(store, offered, job, schema, rows, budget)
        return
    points = points_from_bytes(jobs.stored_points(store, job.id))
    learner = estimator(
        offered.learners[job.learner],
        schema,
        job.guarantee,
        public_points=points,
        ledger=budget,
        accept_weak_privacy=_accepts_weakness(offered, job),
    )
    release = learner.fit(rows).release_
    if job.kind == "release":
        results.store_release(store, job, release)
    else:
        results.store_session(store, job, release.certificate, release)


def _open_session(
    store: str, offered: OfferedDataSet, job: Job, schema: Schema, rows: Any, budget: Budget
) -> None:
    """A session that answers from a kernel machine: its state has the session's id."""
    learner = kernel_learner(offered.learners[job.learner], schema, job.guarantee)
    accepted = _accepts_weakness(offered, job)
    with _first_or_same(SharedStore(store, job.id), learner, rows, job, budget, accepted) as session:
        results.store_session(store, job, session.certificate, None)


def _first_or_same(
    state: SharedStore, learner: KernelLearner, rows: Any, job: Job, budget: Budget, accepted: bool
) -> InteractivePredictor:
    """A new session; or the one that an earlier attempt has begun, or another process that runs this job."""
    try:
        if not state.exists():
            return InteractivePredictor(
                learner.read(rows),
                job.guarantee,
                job.mechanism,
                state=state,
                ledger=budget,
                accept_weak_privacy=accepted,
            )
    except SessionError:
        if not state.exists():
            raise
    return InteractivePredictor.reopen(state, learner.read(rows))


def _accepts_weakness(offered: OfferedDataSet, job: Job) -> bool:
    """The holder's word; a trial was judged by the number of records, and made-up rows have nobody to protect."""
    return job.trial or offered.settings.accept_weak_privacy


def rows_of(offered: OfferedDataSet, trial: bool) -> tuple[Schema, Any]:
    """The private rows; or, for a trial, made-up ones under a name that says so."""
    if not trial:
        return offered.schema, offered.read_rows()
    schema = offered.schema.model_copy(update={"name": f"{offered.schema.name} (made-up rows)"})
    return schema, offered.synthetic(TRIAL_ROWS, seed=0)


def reason_of(error: Exception) -> str:
    """For the holder alone; and other errors' texts may quote a cell."""
    return str(error) if isinstance(error, PrivlearnError) else type(error).__name__


def _what_was_spent(store: str, job: Job) -> str:
    charged = not job.trial and Reservation(store, job.dataset, job.id).state() is not None
    return "its cost stands" if charged else "nothing was spent"


_FAILED = "the training failed on the holder's side, who finds the reason in the log; "

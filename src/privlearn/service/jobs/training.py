"""What a training does, in a process of its own: reserve, read, fit, store, commit.

An error that says something about the records is for the holder's log: the analyst reads one sentence for all of them.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from privlearn.data import Schema
from privlearn.data.schema.schema import with_purchases
from privlearn.errors import BudgetExceeded, DataError, LedgerError, PrivlearnError, SessionError
from privlearn.estimators import KernelLearner
from privlearn.guarantee import check_strength
from privlearn.ledger import Cost, Ledger
from privlearn.ledger.charge import Reservation
from privlearn.randomness import SecureRandomness
from privlearn.service.holder.datasets import Catalog, OfferedDataSet
from privlearn.service.jobs import queue, results
from privlearn.service.jobs.estimates import planned
from privlearn.service.jobs.recipes import Recipe, estimator, kernel_learner
from privlearn.service.jobs.requests import Job, points_from_bytes
from privlearn.service.refusals import Refusal
from privlearn.service.timing import wait_for_end_of_slot
from privlearn.sessions import InteractivePredictor
from privlearn.sessions.opening import calibrated
from privlearn.sessions.shared import SharedStore

TRIAL_ROWS = 2000


def run_job(store: str, catalog: Catalog, job: Job) -> str:
    """Reserve, train, make the result durable, commit, and end the job; one that was interrupted goes on where it was.

        reserve -> read the rows and compute -> store the result, unseen -> end of the slot -> commit -> show it

    The cost is known from public facts and reserved before a row is read, so that whatever fails afterwards is paid
    for, and looks the same for every table. A process that dies in between leaves a reservation under the job's own id
    that the job goes on with: a restart neither pays twice nor loses what was paid, and one result alone is ever seen.

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
        queue.finish(store, job.id, f"{refusal}; {_what_was_spent(store, job)}")
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
    queue.finish(store, job.id, failure)
    return reason


def _train(store: str, offered: OfferedDataSet, ledger: Ledger, job: Job) -> None:
    points = points_from_bytes(queue.stored_points(store, job.id))
    recipe = offered.learners[job.learner]
    reserved = None if job.trial else _reserved(offered, ledger, job, recipe, points)
    schema, rows = rows_of(offered, job.trial)
    if job.mechanism != "model":
        machine = kernel_learner(recipe, schema, job.guarantee).read(rows)
        with _first_or_same(SharedStore(store, job.id), machine, job, reserved) as session:
            results.store_session(store, job, session.certificate, None)
        return
    learner = estimator(
        recipe,
        schema,
        job.guarantee,
        expected_records=offered.settings.expected_records,
        public_points=points,
    )
    work = learner.prepare(rows, None, private=True)
    mechanism = work.plan(job.guarantee)
    _check_same(mechanism, reserved)
    release = work.release(mechanism, SecureRandomness())
    if job.kind == "release":
        results.store_release(store, job, release)
    else:
        results.store_session(store, job, release.certificate, release)


def _reserved(
    offered: OfferedDataSet, ledger: Ledger, job: Job, recipe: Recipe, points: pa.Table | None
) -> Any:
    """The mechanism that public facts call for, its cost reserved."""
    promise = with_purchases(job.guarantee, offered.schema.bought)
    check_strength(promise, offered.records, offered.settings.accept_weak_privacy)
    plan = planned(offered, recipe, job.guarantee, job.mechanism, points)
    told = f"{job.kind}, {job.learner} ({plan.name})"
    ledger.reserve(Cost(plan.guarantee, plan.renyi), told, offered.schema.digest, id=job.id)
    return plan


def _check_same(mechanism: Any, reserved: Any) -> None:
    """What is run must be what was paid for; the number of records alone can have changed, and that is public."""
    if reserved is not None and mechanism != reserved:
        raise DataError(
            "the table has another number of records than at the server's start: restart the server"
        )


def _first_or_same(
    state: SharedStore, learner: KernelLearner, job: Job, reserved: Any
) -> InteractivePredictor:
    """A new session; or the one that an earlier attempt has begun, or another process that runs this job."""
    try:
        if not state.exists():
            plan = calibrated(learner, job.guarantee, job.mechanism, "tight")
            _check_same(plan, reserved)
            return InteractivePredictor.paid(learner, plan, state)
    except SessionError:
        if not state.exists():
            raise
    return InteractivePredictor.reopen(state, learner)


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

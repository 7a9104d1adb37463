"""What a job of any kind does, in a process of its own: reserve, read, run, store, commit.

An error that says something about the records is for the holder's log: the analyst reads one sentence for all of them.
"""

from __future__ import annotations

import time

from privlearn.data.schema.purchases import with_purchases
from privlearn.errors import BudgetExceeded, PrivlearnError, StoreUnusable
from privlearn.guarantee import check_strength
from privlearn.ledger.charge import Reservation
from privlearn.ledger.ledger import Ledger
from privlearn.service.holder.datasets import Catalog, OfferedDataSet
from privlearn.service.job_kinds.job_kind import Asked, job_kind
from privlearn.service.jobs import queue, results
from privlearn.service.jobs.pricing import Priced, priced
from privlearn.service.jobs.requests import Job, points_from_bytes
from privlearn.service.refusals import Refusal
from privlearn.service.timing import wait_for_end_of_slot


def run_job(store: str, catalog: Catalog, job: Job) -> str:
    """Reserve, run, make the result durable, commit, and end the job; one that was interrupted goes on where it was.

        reserve -> read the rows and compute -> store the result, unseen -> end of the slot -> commit -> show it

    The cost is known from public facts and reserved before a row is read, so that whatever fails afterwards is paid
    for, and looks the same for every table. A process that dies in between leaves a reservation under the job's own id
    that the job goes on with: a restart neither pays twice nor loses what was paid, and one result alone is ever seen.

    Returns
    -------
    str
        Empty, or why the job failed: for the holder alone.

    Raises
    ------
    StoreUnusable
        If the store cannot be reached: the job is to be tried again. Every other failure is final, whoever's fault it
        is, since how often a job is tried and when it ends can be seen.
    """
    began = time.monotonic()
    try:
        offered = catalog.named(job.dataset, job.version)
        ledger = offered.ledger_of(job.analyst)
    except Refusal as refusal:  # the holder's file has changed since the job was asked for
        queue.finish(store, job.id, f"{refusal}; {_what_was_spent(store, job)}", str(refusal))
        return str(refusal)
    failure = reason = ""
    try:
        if not results.is_stored(store, job):
            _make(store, offered, ledger, job)
    except BudgetExceeded as error:
        reason = str(error)  # said to the analyst only if it was the ledger's, before a row was read
        failure = _FAILED + _STANDS if _is_charged(store, job) else f"{error}. {_UNSPENT.capitalize()}"
    except StoreUnusable:
        raise
    except Exception as error:
        reason = reason_of(error)
        failure = _FAILED + _what_was_spent(store, job)
    if not job.trial:  # made-up rows have no secrets
        wait_for_end_of_slot(began, offered.settings.training_seconds)
        if not failure:
            Reservation(store, job.dataset, job.id).commit()
    queue.finish(store, job.id, failure, reason)
    return reason


def _make(store: str, offered: OfferedDataSet, ledger: Ledger, job: Job) -> None:
    """What the job makes, stored and unseen."""
    if job.attempts > queue.MOST_ATTEMPTS:
        raise PrivlearnError(f"its process ended {queue.MOST_ATTEMPTS} times before it was done")
    kind = job_kind(job.kind)
    asked = Asked(
        store,
        job.analyst,
        offered.made_up if job.trial else offered,
        job.guarantee,
        kind.read(job.fields),
        points_from_bytes(queue.stored_points(store, job.id)),
    )
    price = priced(kind, asked, ledger)
    if not job.trial:  # made-up rows are about nobody, so a trial is priced, and pays nothing
        _reserve(offered, ledger, job, price)
    with asked.offered.rows_to_train(kind.on_cluster(asked), kind.reads_blocks) as rows:
        made = kind.run(asked, price.plan, rows, job.id)
    results.store_result(store, job, made)


def _reserve(offered: OfferedDataSet, ledger: Ledger, job: Job, price: Priced) -> None:
    """Public: the cost of what public facts call for, which is no more than was asked for."""
    promise = with_purchases(price.plan.guarantee, offered.schema.bought)
    check_strength(promise, offered.records, offered.settings.accept_weak_privacy)
    ledger.with_note(job.note).reserve(price.cost, price.purpose, offered.schema.digest, id=job.id)


def reason_of(error: Exception) -> str:
    """For the holder alone; and other errors' texts may quote a cell."""
    return str(error) if isinstance(error, PrivlearnError) else type(error).__name__


def _what_was_spent(store: str, job: Job) -> str:
    return _STANDS if _is_charged(store, job) else _UNSPENT


def _is_charged(store: str, job: Job) -> bool:
    return not job.trial and Reservation(store, job.dataset, job.id).state() is not None


_STANDS, _UNSPENT = "its cost stands", "nothing was spent"
_FAILED = "the job failed on the holder's side, who finds the reason in the log; "

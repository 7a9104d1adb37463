"""Price and run one job: reserve its cost, compute, store the result, commit.

The mechanism and the ledger's entry are computed from public parameters when the job is requested, and again before it
runs; for trials too.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from privlearn.budget.composition import Cost
from privlearn.budget.ledger import Ledger, check_purpose
from privlearn.budget.reservation import Reservation
from privlearn.data.schema.private_bounds import add_private_bounds
from privlearn.errors import BudgetExceeded, InvalidParameter, LedgerError, PrivlearnError, StoreUnusable
from privlearn.guarantee import check_strength
from privlearn.server.holder.catalog import Catalog
from privlearn.server.holder.datasets import OfferedDataSet
from privlearn.server.job_kinds.job_kind import AnyJobKind, JobContext, Mechanism, job_kind
from privlearn.server.job_kinds.person_rows import PersonRows
from privlearn.server.jobs import queue, results
from privlearn.server.jobs.requests import Job, points_from_bytes
from privlearn.server.refusals import Refusal
from privlearn.server.timing import wait_for_end_of_slot

_STANDS, _UNSPENT = "its cost stands", "nothing was spent"


@dataclass(frozen=True)
class PricedJob:
    """Public: the mechanism that will run, its cost, and the purpose for the ledger."""

    mechanism: Mechanism
    cost: Cost
    purpose: str


def price_job(kind: AnyJobKind, context: JobContext[Any], ledger: Ledger) -> PricedJob:
    """Calibrate the job's mechanism; refuse one that costs more than requested, or that the ledger cannot record."""
    mechanism: Mechanism = kind.calibrate(context)
    if not mechanism.guarantee <= context.guarantee:
        raise InvalidParameter(f"{mechanism.name} costs more than was requested. Nothing is run.")
    purpose = f"{kind.purpose(context.fields)} ({mechanism.name})"
    cost = Cost(mechanism.guarantee, mechanism.renyi)
    rule = ledger.rule()  # outside of the try: its errors name the holder's paths, and must not be quoted
    try:
        check_purpose(purpose)
        rule.price(cost)
    except LedgerError as error:
        raise InvalidParameter(f"the ledger cannot record the cost of {kind.title}: {error}") from None
    return PricedJob(mechanism, cost, purpose)


def run_job(store: str, catalog: Catalog, job: Job) -> str:
    """Reserve, run, store the result, commit and end the job; continue one that was interrupted.

        reserve -> read the rows and compute -> store the result, unseen -> end of the slot -> commit -> show it

    The cost is known from public parameters and reserved before a row is read. So every later failure is charged, and
    looks the same for every table. If the process dies, its reservation under the job's id remains, and the next
    attempt continues with it: a restart neither charges twice nor loses the charge, and only one result is ever seen.

    Returns
    -------
    str
        PRIVATE: empty, or why the job failed; it may name columns and paths.

    Raises
    ------
    StoreUnusable
        If the store cannot be reached: the job will be tried again. Every other failure is final, because the number
        and times of attempts are visible.
    """
    began = time.monotonic()
    try:
        offered = catalog.find(job.dataset, job.version)
        ledger = offered.ledger_of(job.analyst)
    except Refusal as refusal:  # the holder's file has changed since the job was requested
        queue.finish(store, job.id, f"{str(refusal).rstrip('.')}; {_spending(store, job)}", str(refusal))
        return str(refusal)
    failure = reason = ""
    try:
        if not results.is_stored(store, job):
            _compute(store, offered, ledger, job)
    except BudgetExceeded as error:
        reason = str(error)  # quoted to the analyst only if the ledger raised it before a row was read
        failure = (
            f"{queue.FAILED}; {_STANDS}"
            if _is_charged(store, job)
            else f"{str(error).rstrip('.')}. {_UNSPENT.capitalize()}"
        )
    except StoreUnusable:
        raise
    except Exception as error:
        reason = reason_of(error)
        failure = f"{queue.FAILED}; {_spending(store, job)}"
    if not job.trial:  # synthetic rows have no secrets that the end time could reveal
        wait_for_end_of_slot(began, offered.first_slot(job.learner))
        if not failure:
            failure, reason = _commit(store, job)
    queue.finish(store, job.id, failure, reason)
    return reason


def _commit(store: str, job: Job) -> tuple[str, str]:
    """Make the cost final; return the texts of a failure for the analyst and for the holder, or empty ones.

    A refusal of the ledger is final: the reservation will not come back, and the result is never shown without it.
    """
    try:
        Reservation(store, job.dataset, job.id).commit()
    except StoreUnusable:
        raise
    except LedgerError as error:
        return f"{queue.FAILED}; {_spending(store, job)}", str(error)
    return "", ""


def _compute(store: str, offered: OfferedDataSet, ledger: Ledger, job: Job) -> None:
    """Touch the data: charge and run the job, and store its result, which is not visible yet."""
    if job.attempts > queue.MAX_ATTEMPTS:
        raise PrivlearnError(queue.GAVE_UP)
    kind = job_kind(job.kind)
    context = JobContext(
        store,
        job.analyst,
        offered.trial_dataset if job.trial else offered,
        job.guarantee,
        kind.read(job.fields),
        points_from_bytes(queue.read_points(store, job.id)),
    )
    price = price_job(kind, context, ledger)
    if not job.trial:
        _reserve(offered, ledger, job, price)
    with context.offered.rows_to_train(kind.on_cluster(context), kind.reads_blocks) as rows:
        result = kind.run(context, price.mechanism, PersonRows(rows, context.offered.schema), job.id)
    results.store_result(store, job, result)


def _reserve(offered: OfferedDataSet, ledger: Ledger, job: Job, price: PricedJob) -> None:
    """Public: reserve the cost, which is at most what was requested."""
    guarantee = add_private_bounds(price.mechanism.guarantee, offered.schema.private_bounds)
    check_strength(guarantee, offered.records, offered.settings.accept_weak_privacy)
    ledger = ledger.with_note(job.note)
    reservation = ledger.reserve(price.cost, price.purpose, offered.schema.digest, id=job.id)
    if queue.find(ledger.store, job.id).state != "running":  # cancelled meanwhile, and no row was read
        reservation.cancel()
        raise PrivlearnError("the job was cancelled")


def reason_of(error: Exception) -> str:
    """PRIVATE: return a reason for the holder. Messages of other libraries may quote a cell, and are left out."""
    return str(error) if isinstance(error, PrivlearnError) else type(error).__name__


def _spending(store: str, job: Job) -> str:
    return _STANDS if _is_charged(store, job) else _UNSPENT


def _is_charged(store: str, job: Job) -> bool:
    return not job.trial and Reservation(store, job.dataset, job.id).state() in ("reserved", "committed")

"""Open the store of a server, and settle a store that was restored from a backup."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from sqlalchemy import Connection, delete, inspect, select, update

from privlearn.budget.composition import Amount, Cost, RenyiComposition
from privlearn.budget.ledger import Ledger, create_budget
from privlearn.budget.storage import SERVICE, also_excluding, creating, excluding
from privlearn.budget.tables import creating as ledger_creating
from privlearn.budget.totals import read_composition
from privlearn.errors import InvalidParameter, LedgerError
from privlearn.guarantee import Guarantee
from privlearn.server.access.keys import HOLDER
from privlearn.server.holder.dataset_settings import DataSet
from privlearn.server.holder.settings import Owner
from privlearn.server.jobs import queue
from privlearn.server.store import events, tables
from privlearn.server.store.tables import jobs, keys, logins, results
from privlearn.server.timing import as_text, now


def open_store(owner: Owner) -> str:
    """Return the URL of the store; create missing budgets and tables.

    Raises
    ------
    LedgerError
        If a data set's budget differs from the ledger's: a budget cannot be changed.
    """
    store = owner.server.store
    _create_directory(owner.server.directory)
    with ledger_creating(store) as connection:
        for name, dataset in owner.datasets.items():
            open_budget(connection, store, name, dataset)
    with creating(store) as connection:
        if not inspect(connection).has_table(tables.formats.name):
            tables.create_all(connection)
        SERVICE.check(connection, store)
    return store


def _create_directory(directory: Path) -> None:
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise LedgerError(
            f"server.directory: cannot create {directory}: {error.strerror}. Use another directory."
        ) from None


def open_budget(connection: Connection, store: str, name: str, dataset: DataSet) -> None:
    """Create a budget inside a transaction, or check the one that exists: it is about the same people."""
    also_excluding(connection, store, "tables")
    try:
        create_budget(connection, name, dataset.guarantee, dataset.composition)
    except LedgerError:
        recorded = read_composition(connection, store, name)
        composition = "renyi" if isinstance(recorded, RenyiComposition) else "basic"
        if (recorded.total, composition) != (dataset.guarantee, dataset.composition):
            raise LedgerError(
                f"datasets.{name}: the ledger has {recorded.total}, {composition} composition, and a budget "
                "cannot be changed. Write these numbers, or serve the table under another name."
            ) from None


_FAILED = "the holder restored an older backup. Request it again; its cost stands."
_PURPOSE = "spent, or assumed to be spent, after a backup that was restored"


def settle(store: str, lost: Mapping[str, Amount]) -> dict[str, Guarantee]:
    """Assume the worst about a restored store; no server may be running.

    Parameters
    ----------
    store : str
        As in `Owner.server.store`.
    lost : mapping from str to Amount
        The cost that was spent after the backup, for data sets where this is certain. For all others, everything that
        is left counts as spent.

    Returns
    -------
    dict from str to Guarantee
        The cost that was marked as spent, for data sets that had budget left.
    """
    datasets = Ledger.datasets(store)
    for name in lost:
        if name not in datasets:
            raise InvalidParameter(f"the ledger has no data set {name!r}. It has {', '.join(datasets)}")
    _end_open_work(store)
    spent = {name: _spend(Ledger.open(store, name), lost.get(name)) for name in datasets}
    events.record(store, HOLDER, "settled a restored backup")
    return {name: guarantee for name, guarantee in spent.items() if guarantee is not None}


def _end_open_work(store: str) -> None:
    moment = as_text(now())
    with excluding(store, "jobs") as connection:
        open_jobs = jobs.c.state.in_((*queue.NOT_BEGUN, "running"))
        for job in connection.execute(select(jobs).where(open_jobs)).all():
            details = {"job": job.id, "reason": "an older backup was restored"}
            events.record_with(connection, store, job.analyst, f"{job.kind} failed", job.dataset, **details)
        ended = {"state": "failed", "failure": _FAILED, "finished": moment}
        connection.execute(update(jobs).where(open_jobs).values(ended))
        noisy = results.c.content.is_(None)  # the noise of a content is complete in the backup
        connection.execute(update(results).where(noisy).values(closed=True))
        connection.execute(delete(logins))
        connection.execute(update(keys).where(keys.c.revoked == "").values(revoked=moment))


def _spend(ledger: Ledger, lost: Amount | None) -> Guarantee | None:
    """Commit one entry for what was lost, or for everything that is left."""
    standing = ledger.standing()
    amount = standing.left if lost is None else lost
    if amount.epsilon == 0:
        return None
    divergence = amount.renyi
    guarantee = Guarantee(amount.epsilon, amount.delta, standing.total.neighbours)
    cost = Cost(guarantee, renyi=None if divergence is None else lambda _order: divergence)
    with ledger.reserve(cost, _PURPOSE) as reservation:
        reservation.commit()
    return cost.guarantee

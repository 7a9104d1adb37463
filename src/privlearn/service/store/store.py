"""The one store of a service: budgets and tables, made at the first start and checked at every one."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import inspect

from privlearn.errors import LedgerError
from privlearn.ledger.ledger import Ledger
from privlearn.service.holder.settings import DataSet, Owner
from privlearn.service.store import tables
from privlearn.storage import SERVICE, creating


def open_store(owner: Owner) -> str:
    """Where the service keeps what must outlive it; budgets and tables that are missing are made.

    Raises
    ------
    LedgerError
        If a data set's budget differs from the ledger's: a budget cannot be changed.
    """
    store = owner.server.store
    _make_folder(owner.server.folder)
    for name, dataset in owner.datasets.items():
        open_budget(store, name, dataset)
    with creating(store) as connection:
        if not inspect(connection).has_table(tables.formats.name):
            tables.create_all(connection)
        SERVICE.check(connection, store)
    return store


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise LedgerError(
            f"server.folder: cannot make {folder}: {error.strerror}. Name another folder"
        ) from None


def open_budget(store: str, name: str, dataset: DataSet) -> None:
    """Create it; if that cannot be, one must be there already, perhaps made by another server just now."""
    try:
        Ledger.create(store, name, dataset.guarantee, composition=dataset.composition)
    except LedgerError:
        recorded = Ledger.open(store, name).standing()
        if (recorded.total, recorded.composition) != (dataset.guarantee, dataset.composition):
            raise LedgerError(
                f"datasets.{name}: the ledger says {recorded.total}, {recorded.composition} composition, and a budget "
                "cannot be changed: write these numbers, or serve the table under another name"
            ) from None

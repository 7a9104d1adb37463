"""Changes of data sets: add one from a table of an allowed source, refresh it, retire it.

Refreshing adds a new version of the same people. Its name is the key of its ledger, so all versions are charged to one
budget. The schema is compared by digest; the holder is responsible for the people in the table. The argument is in
docs/how-to/pages.md. A request reads the version that was current when it was made.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, insert, update

from privlearn.data.schema.schema import Schema
from privlearn.errors import InvalidParameter, LedgerError, StoreUnusable
from privlearn.server.access.keys import Caller
from privlearn.server.changes.change import change_transaction, check_allowed, one_line, refuse_declared
from privlearn.server.holder.catalog import check_recipe
from privlearn.server.holder.console_state import (
    ConsoleDataSet,
    console_tables,
    declared_tables,
    find_other_name,
)
from privlearn.server.holder.dataset_settings import DataSet, check_distinct, check_name
from privlearn.server.holder.datasets import OfferedDataSet
from privlearn.server.holder.recipes import default_recipes
from privlearn.server.refusals import Conflict, NotFound
from privlearn.server.service import Service
from privlearn.server.store.store import open_budget
from privlearn.server.store.tables import datasets, versions
from privlearn.server.timing import as_text, now

_OF_VERSION = {"table", "endpoint", "region", "database", "query", "schema_file", "retired", "approval"}
"""Settings that differ between versions."""


@dataclass(frozen=True)
class Table:
    """The source of a version; ``table`` and ``schema`` are names in the console's sources."""

    table: str
    schema: str
    path: Path
    schema_path: Path
    content: Schema


def check_new_dataset(
    service: Service, name: str, table: str, schema: str, settings: Mapping[str, Any]
) -> tuple[DataSet, Table]:
    """Return settings and source of a new data set; refuse it if it is not allowed, before any row is read.

    ``table`` and ``schema``: as the console's sources list them. ``settings``: the budget and other settings of
    `DataSet`, without the source.
    """
    try:
        check_name(name)
    except ValueError as error:
        raise InvalidParameter(f"name: {error}") from None
    path, schema_path = (service.owner.console.find(one) for one in (table, schema))
    _check_free(service, name, path)
    found = DataSet(**{**settings, "table": str(path), "schema": schema_path})
    content = Schema.load(schema_path)
    for recipe in (found.learners or default_recipes(content)).values():
        check_recipe(recipe, content)
    return found, Table(table, schema, path, schema_path, content)


def add_dataset(
    service: Service, caller: Caller, name: str, table: str, schema: str, settings: Mapping[str, Any]
) -> None:
    """Serve a table under a budget that is fixed from now on. All rows are read once, and must fit the schema."""
    check_allowed(service, caller)
    found, rows = check_new_dataset(service, name, table, schema, settings)
    records = _count(service, name, found, rows.content)
    details = {"epsilon": found.epsilon, "delta": found.delta, "neighbours": found.neighbours}
    details |= {"composition": found.composition, **_log_details(rows, records)}
    with change_transaction(service, caller, "added a data set", name, **details) as connection:
        _check_free(service, name, rows.path)
        _open_budget(connection, service.store, name, found)
        stated = found.model_dump(mode="json", exclude=_OF_VERSION, exclude_none=True)
        connection.execute(insert(datasets).values(name=name, settings=stated, created=as_text(now())))
        _insert_version(connection, name, 1, rows, records)


def check_new_version(
    service: Service, name: str, table: str, schema: str = ""
) -> tuple[ConsoleDataSet, Table]:
    """Return the data set and its new source; refuse a different schema before any row is read.

    An empty ``schema`` is the file of the previous version.
    """
    made = find_editable_dataset(service, name)
    before = made.version()
    path = service.owner.console.find(table)
    _check_not_served(service, name, path)
    old = Schema.from_dict(before.schema)
    schema_path = service.owner.console.find(schema) if schema else before.schema_file
    content = Schema.load(schema_path) if schema else old
    if content.digest != old.digest:
        raise Conflict(
            "the schema is different. A new version must have the columns, bounds, categories and target of the "
            "first. If the table is about other people, add it as a new data set"
        )
    return made, Table(table, schema or "as before", path, schema_path, content)


def refresh_dataset(
    service: Service, caller: Caller, name: str, table: str, schema: str = "", reason: str = ""
) -> int:
    """Add a version of the same people under the same budget; return its number. All rows are read once."""
    check_allowed(service, caller)
    reason = one_line(reason, "reason")
    made, rows = check_new_version(service, name, table, schema)
    number = made.version().number + 1
    settings = made.settings_at(made.version(), service.owner.console)
    settings = settings.model_copy(update={"table": str(rows.path)})
    records = _count(service, name, settings, rows.content)
    details = {"version": number, **_log_details(rows, records), "reason": reason}
    with change_transaction(service, caller, "refreshed a data set", name, **details) as connection:
        if find_editable_dataset(service, name) != made:
            raise Conflict("this data set was changed in the meantime. Look again and repeat the change.")
        _check_not_served(service, name, rows.path)
        _insert_version(connection, name, number, rows, records)
    return number


def retire_dataset(service: Service, caller: Caller, name: str, reason: str = "") -> None:
    """Refuse new requests permanently. Results stay, and sessions continue to answer.

    Requests that wait for approval end within a second (`Watch`); other requests are carried out.
    """
    reason = one_line(reason, "reason")
    with change_transaction(service, caller, "retired a data set", name, reason=reason) as connection:
        find_editable_dataset(service, name)
        connection.execute(update(datasets).where(datasets.c.name == name).values(retired=as_text(now())))


def _open_budget(connection: Connection, store: str, name: str, settings: DataSet) -> None:
    """Open the budget in the change's transaction, so that a refused change leaves none."""
    try:
        open_budget(connection, store, name, settings)
    except StoreUnusable:
        raise
    except LedgerError as error:
        raise Conflict(str(error)) from None


def find_editable_dataset(service: Service, name: str) -> ConsoleDataSet:
    """Return a data set of the console; refuse those of the holder's file, and retired ones."""
    if name in service.owner.datasets:
        raise refuse_declared(f"data set {name}")
    if name not in service.catalogs.console_state.datasets:
        raise NotFound("there is no such data set. Choose one of the list.")
    made = service.catalogs.console_state.datasets[name]
    if made.retired:
        raise Conflict(f"data set {name} is retired and cannot be changed")
    return made


def _check_free(service: Service, name: str, path: Path) -> None:
    """Refuse a name or a table that is taken."""
    if name in service.owner.datasets:
        raise refuse_declared(f"data set {name}")
    if name in service.catalogs.console_state.datasets:
        raise Conflict(f"data set {name} exists already. Choose another name, or refresh that one")
    try:
        check_distinct(name, (*service.owner.datasets, *service.catalogs.console_state.datasets))
    except ValueError as error:
        raise Conflict(f"name: {error}") from None
    _check_not_served(service, name, path)


def _check_not_served(service: Service, name: str, path: Path) -> None:
    """Refuse a table that is served under another name: the same people would have two budgets."""
    served = (*declared_tables(service.owner), *console_tables(service.catalogs.console_state))
    other = find_other_name(name, path, served)
    if other is not None:
        raise Conflict(
            f"this table is already served as {other}, and the same people would have two budgets. Refresh {other}, "
            "or use another table"
        )


def _count(service: Service, name: str, settings: DataSet, schema: Schema) -> int:
    """Touch the data: read all rows once, refuse those that do not fit. Public: their number, or the expected one."""
    learners = settings.learners or default_recipes(schema)
    return OfferedDataSet(name, settings, schema, learners, service.catalog.owner).records


def _insert_version(connection: Connection, name: str, number: int, rows: Table, records: int) -> None:
    connection.execute(
        insert(versions).values(
            dataset=name,
            number=number,
            source=str(rows.path),
            schema_file=str(rows.schema_path),
            schema=rows.content.to_dict(),
            records=records,
            created=as_text(now()),
        )
    )


def _log_details(rows: Table, records: int) -> dict[str, Any]:
    return {"table": rows.table, "schema": rows.schema, "digest": rows.content.digest, "records": records}

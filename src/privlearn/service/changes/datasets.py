"""Data sets: made from a table of a source that the holder's file allows, refreshed, retired.

A refreshed data set is a new version of the same people. Its name is its ledger's key, so all versions are paid from
one budget; that its schema is the same is checked by digest; who is in the table, the holder answers for. The argument
is in docs/how-to/console.md. Whatever is asked for reads the version of the moment in which it was asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, insert, update

from privlearn.data.schema.schema import Schema
from privlearn.errors import InvalidParameter, LedgerError, StoreUnusable
from privlearn.service.access.keys import Caller
from privlearn.service.changes.change import changing, check_allowed, one_line, refuse_declared
from privlearn.service.holder.datasets import OfferedDataSet, check_recipe
from privlearn.service.holder.made import MadeDataSet
from privlearn.service.holder.same_files import declared_tables, made_tables, served_as
from privlearn.service.holder.settings import DataSet, servable
from privlearn.service.jobs.recipes import default_recipes
from privlearn.service.refusals import Conflict, NotFound
from privlearn.service.service import Service
from privlearn.service.store.store import open_budget
from privlearn.service.store.tables import datasets, versions
from privlearn.service.timing import as_text, now

_OF_VERSION = {"table", "endpoint", "region", "database", "query", "schema_file", "retired", "approval"}
"""Settings that are no property of all versions."""


@dataclass(frozen=True)
class Table:
    """What a version is made of; ``table`` and ``schema`` are names in the console's sources."""

    table: str
    schema: str
    path: Path
    schema_path: Path
    content: Schema


def check_new_dataset(
    service: Service, name: str, table: str, schema: str, settings: Mapping[str, Any]
) -> tuple[DataSet, Table]:
    """Refuse whatever can be refused before a row is read.

    Parameters
    ----------
    name : str
    table, schema : str
        As the console's sources list them.
    settings : mapping
        The budget and whatever else `DataSet` has, but the source.
    """
    try:
        servable(name)
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
    """Serve a table, under a budget that is fixed from now on. All rows are read once, and must fit the schema."""
    check_allowed(service, caller)
    found, rows = check_new_dataset(service, name, table, schema, settings)
    records = _count(service, name, found, rows.content)
    _open_budget(service, name, found)
    told = {"epsilon": found.epsilon, "delta": found.delta, "neighbours": found.neighbours}
    told |= {"composition": found.composition, **_told(rows, records)}
    with changing(service, caller, "added a data set", name, **told) as connection:
        _check_free(service, name, rows.path)
        stated = found.model_dump(mode="json", exclude=_OF_VERSION, exclude_none=True)
        connection.execute(insert(datasets).values(name=name, settings=stated, created=as_text(now())))
        _insert_version(connection, name, 1, rows, records)


def check_new_version(service: Service, name: str, table: str, schema: str = "") -> tuple[MadeDataSet, Table]:
    """Refuse a schema that means something else, before a row is read; without one it is that of before."""
    made = made_named(service, name)
    before = made.version()
    path = service.owner.console.find(table)
    _check_not_served(service, name, path)
    old = Schema.from_dict(before.schema)
    schema_path = service.owner.console.find(schema) if schema else before.schema_file
    content = Schema.load(schema_path) if schema else old
    if content.digest != old.digest:
        raise Conflict(
            "the schema is another: a new version has the columns, bounds, categories and target of the first. Serve "
            "it as a data set of its own, with a budget of its own, only if it is about other people"
        )
    return made, Table(table, schema or "as before", path, schema_path, content)


def refresh_dataset(
    service: Service, caller: Caller, name: str, table: str, schema: str = "", reason: str = ""
) -> int:
    """A new version of the same people under the same budget; its number. All rows are read once."""
    check_allowed(service, caller)
    reason = one_line(reason, "reason")
    made, rows = check_new_version(service, name, table, schema)
    number = made.version().number + 1
    records = _count(
        service,
        name,
        made.at(made.version(), service.owner.console).model_copy(update={"table": str(rows.path)}),
        rows.content,
    )
    told = {"version": number, **_told(rows, records), "reason": reason}
    with changing(service, caller, "refreshed a data set", name, **told) as connection:
        if made_named(service, name) != made:
            raise Conflict("somebody else has changed it meanwhile: look at it again")
        _check_not_served(service, name, rows.path)
        _insert_version(connection, name, number, rows, records)
    return number


def retire_dataset(service: Service, caller: Caller, name: str, reason: str = "") -> None:
    """Nothing new is done with it, for good. What was made stays, sessions answer; what waits for
    approval ends within a second (the watch), what else was asked for is done."""
    reason = one_line(reason, "reason")
    with changing(service, caller, "retired a data set", name, reason=reason) as connection:
        made_named(service, name)
        connection.execute(update(datasets).where(datasets.c.name == name).values(retired=as_text(now())))


def _open_budget(service: Service, name: str, settings: DataSet) -> None:
    """A name that had a budget before has it still: it is the name of the same people."""
    try:
        open_budget(service.store, name, settings)
    except StoreUnusable:
        raise
    except LedgerError as error:
        raise Conflict(str(error)) from None


def made_named(service: Service, name: str) -> MadeDataSet:
    """One that the console may change: refuses those of the holder's file, and retired ones."""
    if name in service.owner.datasets:
        raise refuse_declared(f"data set {name}")
    if name not in service.catalogs.made.datasets:
        raise NotFound("there is no such data set: list them")
    made = service.catalogs.made.datasets[name]
    if made.retired:
        raise Conflict(f"data set {name} is retired: nothing new is done with it")
    return made


def _check_free(service: Service, name: str, path: Path) -> None:
    """Refuse a name or a table that is taken."""
    if name in service.owner.datasets:
        raise refuse_declared(f"data set {name}")
    if name in service.catalogs.made.datasets:
        raise Conflict(f"there is a data set {name} already: choose another name, or refresh that one")
    _check_not_served(service, name, path)


def _check_not_served(service: Service, name: str, path: Path) -> None:
    """One table under two names would give the same people two budgets."""
    served = (*declared_tables(service.owner), *made_tables(service.catalogs.made))
    other = served_as(name, path, served)
    if other is not None:
        raise Conflict(
            f"this table is served as {other} already: the same people would have two budgets. Refresh {other}, or "
            "take another table"
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


def _told(rows: Table, records: int) -> dict[str, Any]:
    return {"table": rows.table, "schema": rows.schema, "digest": rows.content.digest, "records": records}

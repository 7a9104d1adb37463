"""Formats of a store, and tables to which rows are only added."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from sqlalchemy import Connection, Integer, Table, TableClause, column, func, insert, inspect, select, table

from privlearn.errors import LedgerError


def protect(connection: Connection, tables: Mapping[Table, str]) -> None:
    """Gives tables just created their triggers.

    Parameters
    ----------
    connection : Connection
    tables : mapping from Table to str
        With each table the condition, in SQL, under which one of its rows would be replaced by the row ``NEW``: its
        keys are equal. (SQLite's INSERT OR REPLACE deletes without firing the triggers on DELETE, so it is met
        before it inserts.)
    """
    if connection.dialect.name == "sqlite":
        statements = [text for table, same in tables.items() for text in _sqlite_triggers(table.name, same)]
    else:
        statements = [_POSTGRESQL_FUNCTION]
        statements += [text for table in tables for text in _postgresql_triggers(table.name)]
    for statement in statements:
        connection.exec_driver_sql(statement)


@contextmanager
def removing_from(connection: Connection, name: str) -> Iterator[None]:
    """Inside the block rows of a protected table can be removed, in this transaction alone; others wait, or see none of
    it."""
    if connection.dialect.name == "sqlite":
        trigger = f"{name}_delete"
        known = connection.exec_driver_sql("SELECT sql FROM sqlite_master WHERE name = ?", (trigger,))
        statement = known.scalar_one()
        connection.exec_driver_sql(f"DROP TRIGGER {trigger}")
        yield
        connection.exec_driver_sql(statement)
    else:
        connection.exec_driver_sql(f"ALTER TABLE {name} DISABLE TRIGGER {name}_append_only")
        yield
        connection.exec_driver_sql(f"ALTER TABLE {name} ENABLE ALWAYS TRIGGER {name}_append_only")


def _sqlite_triggers(name: str, same_row: str) -> Iterator[str]:
    replaced = f"WHEN EXISTS (SELECT 1 FROM {name} WHERE {same_row})"
    for action, when in (("UPDATE", ""), ("DELETE", ""), ("INSERT", replaced)):
        yield (
            f"CREATE TRIGGER {name}_{action.lower()} BEFORE {action} ON {name} {when} "
            "BEGIN SELECT RAISE(ABORT, 'this table is append-only'); END"
        )


def _postgresql_triggers(name: str) -> Iterator[str]:
    yield (
        f"CREATE TRIGGER {name}_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON {name} "
        "FOR EACH STATEMENT EXECUTE FUNCTION ledger_append_only()"
    )
    # ALWAYS: also in sessions that ask for no triggers, as a restore does.
    yield f"ALTER TABLE {name} ENABLE ALWAYS TRIGGER {name}_append_only"


_POSTGRESQL_FUNCTION = """
CREATE OR REPLACE FUNCTION ledger_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'this table is append-only' USING ERRCODE = 'integrity_constraint_violation';
END
$$
"""


@dataclass(frozen=True)
class Part:
    """Tables that belong together.

    Attributes
    ----------
    name : str
    oldest : int
        The format of version 0.1; older ones were never published.
    newest : int
        The format that this version makes, reads and writes.
    """

    name: str
    oldest: int
    newest: int

    @property
    def formats(self) -> TableClause:
        return table(f"{self.name}_format", column("version", Integer))

    def format(self, connection: Connection) -> int | None:
        """The format of the tables, or None where there are none."""
        if not inspect(connection).has_table(self.formats.name):
            return None
        found: int | None = connection.scalar(select(func.max(self.formats.c.version)))
        return found

    def check(self, connection: Connection, store: str) -> None:
        """Refuse every format but the newest."""
        version = self.check_known(connection, store)
        if version is None:
            raise LedgerError(
                f"{store} is not a {self.name}: give another one, or create it with `privlearn budget create`"
            )
        if version < self.newest:
            raise LedgerError(
                f"{store} was written by an older privlearn ({self.name} format {version}, this version needs "
                f"{self.newest}): stop what uses it, make a backup, and type `privlearn upgrade {shlex.quote(store)}`"
            )

    def check_known(self, connection: Connection, store: str) -> int | None:
        """The format, unless it is one from which there is no way to the newest."""
        version = self.format(connection)
        if version is not None and version < self.oldest:
            raise LedgerError(
                f"{store} was written by a privlearn older than 0.1 ({self.name} format {version}): go on with that "
                "version, or have it show what is left and create a ledger of that total at another place"
            )
        if version is not None and version > self.newest:
            raise LedgerError(
                f"{store} was written by a newer privlearn ({self.name} format {version}): install that version"
            )
        return version

    def record(self, connection: Connection, version: int) -> None:
        """From now on the tables have this format."""
        connection.execute(insert(self.formats).values(version=version))


LEDGER = Part("ledger", oldest=2, newest=6)
SERVICE = Part("service", oldest=1, newest=9)
PARTS: Mapping[str, Part] = {part.name: part for part in (LEDGER, SERVICE)}

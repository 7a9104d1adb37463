"""What all tables of a store share: format numbers, and triggers that keep rows from being changed or removed."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from sqlalchemy import Connection, Integer, Table, TableClause, column, func, insert, inspect, select, table

from privlearn.errors import LedgerError


def protect(connection: Connection, tables: Mapping[Table, str]) -> None:
    """Create the triggers that refuse changes to the rows of new tables.

    Parameters
    ----------
    connection : Connection
    tables : mapping from Table to str
        For each table the SQL condition under which one of its rows would be replaced by the row ``NEW``: its keys are
        equal. (SQLite's INSERT OR REPLACE deletes without firing the triggers on DELETE, so it is checked before it
        inserts.)
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
    """Allow rows of a protected table to be removed inside the block, in this transaction alone.

    If the block raises, the protection is not restored here: the transaction must end, which undoes its removal.
    """
    if connection.dialect.name == "sqlite":
        trigger = f"{name}_delete"
        stored = connection.exec_driver_sql("SELECT sql FROM sqlite_master WHERE name = ?", (trigger,))
        statement = stored.scalar_one()
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
    # ALWAYS: also in sessions that disable triggers, as a restore does.
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
    """Tables that belong together and share one format number, counted from 1. (`data.parts.Part` is another one.)

    Attributes
    ----------
    name : str
    newest : int
        The format that this version creates, reads and writes.
    """

    name: str
    newest: int

    @property
    def formats(self) -> TableClause:
        """Return the table whose largest number is the format of the tables."""
        return table(f"{self.name}_format", column("version", Integer))

    def format(self, connection: Connection) -> int | None:
        """Return the format of the tables, or None if the store has no such tables."""
        if not inspect(connection).has_table(self.formats.name):
            return None
        version: int | None = connection.scalar(select(func.max(self.formats.c.version)))
        return version

    def check(self, connection: Connection, store: str) -> None:
        """Raise LedgerError unless the tables have the newest format."""
        version = self.check_known(connection, store)
        if version is None:
            raise LedgerError(
                f"{store} is not a {self.name}. Pass another path, or create one with `privlearn budget create`."
            )
        if version < self.newest:
            raise LedgerError(
                f"{store} was written by an older privlearn ({self.name} format {version}, this version needs "
                f"{self.newest}). Stop all programs that use it, make a backup, and run "
                f"`privlearn upgrade {shlex.quote(store)}`."
            )

    def check_known(self, connection: Connection, store: str) -> int | None:
        """Return the format; raise LedgerError if it is newer than this version."""
        version = self.format(connection)
        if version is not None and version > self.newest:
            raise LedgerError(
                f"{store} was written by a newer privlearn ({self.name} format {version}). Install that version."
            )
        return version

    def record(self, connection: Connection, version: int) -> None:
        """Record that the tables have this format from now on."""
        connection.execute(insert(self.formats).values(version=version))


LEDGER = Part("ledger", newest=1)
SERVICE = Part("service", newest=1)
PARTS: Mapping[str, Part] = {part.name: part for part in (LEDGER, SERVICE)}

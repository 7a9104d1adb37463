"""Tables to which rows are only ever added: the database itself refuses to change or remove one.

The triggers guard against mistakes, not against an owner of the file or of the tables who removes them first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqlalchemy import Connection, Table


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

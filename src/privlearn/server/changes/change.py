"""The transaction of a change by the holder: checked, and stored together with its line in the audit log.

Locks are always taken in one order: "console" or "keys", then "jobs", then "events".
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection

from privlearn.budget.storage import also_excluding, excluding
from privlearn.errors import InvalidParameter
from privlearn.server.access.keys import Caller
from privlearn.server.changes.commands import MAX_TEXT_LENGTH
from privlearn.server.refusals import Conflict, Forbidden
from privlearn.server.service import Service
from privlearn.server.store.events import record_with


@contextmanager
def change_transaction(
    service: Service, caller: Caller, action: str, dataset: str = "", /, **details: Any
) -> Iterator[Connection]:
    """Yield a transaction that stores a change and its line in the log, or neither.

    Inside it the catalog is up to date and no other change can happen, so check there that nothing exists twice.
    """
    check_allowed(service, caller)
    with excluding(service.store, "console") as connection:
        also_excluding(connection, service.store, "keys")
        service.catalogs.refresh()
        yield connection
        record_with(connection, service.store, caller.name, action, dataset, by=caller.key_id, **details)
    service.catalogs.refresh()


def check_allowed(service: Service, caller: Caller) -> None:
    """Refuse callers other than the holder, and every change if owner.toml forbids them."""
    if not caller.is_holder:
        raise Forbidden("this is for the holder of the data")
    if not service.owner.console.changes:
        raise Forbidden("owner.toml makes the console read-only. Change it there, or in the shell")


def refuse_declared(what: str) -> Conflict:
    """Return the refusal to change what the holder's file declares."""
    return Conflict(
        f"{what} is declared in owner.toml, which takes precedence. Change it there, and start the server again"
    )


def one_line(text: str, name: str) -> str:
    """Return the text without surrounding blanks; refuse more than one short printable line."""
    text = text.strip()
    if len(text) > MAX_TEXT_LENGTH or (text and not text.isprintable()):
        raise InvalidParameter(f"{name} must be one line of at most {MAX_TEXT_LENGTH} characters")
    return text

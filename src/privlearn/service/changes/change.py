"""A change by the holder: allowed, written down with its line in the audit log, and known here at once.

Names of locks are taken in one order: "console" or "keys", then "jobs", then "events".
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection

from privlearn.errors import InvalidParameter
from privlearn.service.access.keys import Caller
from privlearn.service.refusals import Conflict, Forbidden
from privlearn.service.service import Service
from privlearn.service.store.events import record_with
from privlearn.storage import also_excluding, excluding

MOST_TEXT = 200


@contextmanager
def changing(
    service: Service, caller: Caller, action: str, dataset: str = "", /, **told: Any
) -> Iterator[Connection]:
    """A transaction that changes what is served: it and its line in the log are durable, or neither.

    Inside it the catalog is as the last change has left it: what must not be there twice is checked then.
    """
    check_allowed(service, caller)
    with excluding(service.store, "console") as connection:
        also_excluding(connection, service.store, "keys")
        service.catalogs.refresh()
        yield connection
        record_with(connection, service.store, caller.name, action, dataset, by=caller.key_id, **told)
    service.catalogs.refresh()


def check_allowed(service: Service, caller: Caller) -> None:
    if not caller.is_holder:
        raise Forbidden("this is for the holder of the data")
    if not service.owner.console.changes:
        raise Forbidden("owner.toml says that the console changes nothing: change it there, or in the shell")


def refuse_declared(what: str) -> Conflict:
    """What the holder's file declares is as it says there."""
    return Conflict(
        f"{what} is declared in owner.toml, which wins: change it there, and start the server again"
    )


def one_line(text: str, name: str, *, required: bool = False) -> str:
    """What somebody typed for others to read."""
    text = text.strip()
    if len(text) > MOST_TEXT or (text and not text.isprintable()) or (required and not text):
        raise InvalidParameter(f"{name} must be one line of {1 if required else 0} to {MOST_TEXT} characters")
    return text

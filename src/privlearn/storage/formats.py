"""Which format the tables of a store have, and what to do about an older or a newer one.

The tables of each part carry their format with them, in a table of one row for each format that they have had: the
largest one holds. It is append-only like the others, every version of privlearn from 0.1 on looks at it before it reads
or writes, and roles that may only append can read it.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, Integer, TableClause, column, func, insert, inspect, select, table

from privlearn.errors import LedgerError


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


LEDGER = Part("ledger", oldest=2, newest=3)
SERVICE = Part("service", oldest=1, newest=2)
PARTS: Mapping[str, Part] = {part.name: part for part in (LEDGER, SERVICE)}

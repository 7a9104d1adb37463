"""Bringing the tables of an older version to the formats of this one.

Each step is one of alembic's revision scripts in ``versions``: ``ledger_3`` leads from the ledger's format 2 to its
format 3. A script writes its changes out and imports no table of privlearn, since those will change again.

Where a store stands is read from its own tables (`storage.formats`), not from a version table of alembic's: those
tables are append-only, version 0.1 looks at them too, and so refuses what it does not know.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection

from privlearn.errors import LedgerError
from privlearn.storage.formats import PARTS, Part
from privlearn.storage.store import reading, rebuilding

if TYPE_CHECKING:
    from alembic.script import Script, ScriptDirectory

Steps = Mapping[str, tuple[int, int]]
"""The format of each part before and after."""


def pending(store: str) -> Steps:
    """What `upgrade` would do; it only reads."""
    with reading(store) as connection:
        return {name: step for name, step in _steps(connection, store).items() if step[0] < step[1]}


def upgrade(store: str) -> Steps:
    """Bring every part of a store to its newest format, all or none, while nobody else uses it.

    Parameters
    ----------
    store : str
        As `locate` writes it.

    Returns
    -------
    dict from str to tuple of two ints
        The format before and after of each part that was not up to date.

    Raises
    ------
    LedgerError
        If it is no store of privlearn, or one of a newer version, or cannot be changed: then nothing was.
    """
    from alembic.migration import MigrationContext
    from alembic.operations import Operations

    scripts = _scripts()
    with rebuilding(store) as connection:
        steps = _steps(connection, store)
        with Operations.context(MigrationContext.configure(connection)):
            for name, (before, _) in steps.items():
                for script in _scripts_after(scripts, PARTS[name], before):
                    script.module.upgrade()
                    PARTS[name].record(connection, _format_of(script))
    return {name: step for name, step in steps.items() if step[0] < step[1]}


def _steps(connection: Connection, store: str) -> Steps:
    """The format that each part has and will have, up to date or not."""
    found = {name: part.check_known(connection, store) for name, part in PARTS.items()}
    steps = {name: (before, PARTS[name].newest) for name, before in found.items() if before is not None}
    if not steps:
        raise LedgerError(f"{store} is not a ledger: give another one")
    return steps


@cache
def _scripts() -> ScriptDirectory:
    from alembic.script import ScriptDirectory

    folder = Path(__file__).parent
    return ScriptDirectory(str(folder), version_locations=[str(folder / "versions")])


def _scripts_after(scripts: ScriptDirectory, part: Part, version: int) -> Iterator[Script]:
    """In the order in which they are to be run."""
    newest, present = (f"{part.name}_{number}" for number in (part.newest, version))
    return reversed(list(scripts.iterate_revisions(newest, present)))


def _format_of(script: Script) -> int:
    return int(script.revision.rpartition("_")[2])

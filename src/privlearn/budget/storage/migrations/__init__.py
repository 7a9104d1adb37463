"""Upgrade the tables of a store to the formats of this version.

Each step is one alembic revision script in `VERSIONS`: ``ledger_2`` leads from the ledger's format 1 to its format 2,
and ``ledger_1`` marks where the scripts begin. A script writes its changes out and imports no table of privlearn,
since those will change again.

The format of a store is read from its own append-only tables (`storage.formats`), not from alembic's version table:
every version of privlearn looks at them, and refuses formats that it does not know.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection

from privlearn.budget.storage.formats import PARTS, Part
from privlearn.budget.storage.store import reading, rebuilding
from privlearn.errors import LedgerError

if TYPE_CHECKING:
    from alembic.script import Script, ScriptDirectory

VERSIONS = Path(__file__).parent / "versions"

Steps = Mapping[str, tuple[int, int]]
"""The format of each part before and after."""


def pending(store: str) -> Steps:
    """Return what `upgrade` would do, without writing."""
    with reading(store) as connection:
        return {name: step for name, step in _steps(connection, store).items() if step[0] < step[1]}


def upgrade(store: str) -> Steps:
    """Upgrade every part of a store to its newest format, all or none, while no other program uses it.

    Parameters
    ----------
    store : str
        As `locate` returns it.

    Returns
    -------
    dict from str to tuple of two ints
        The format before and after, for each part that was not up to date.

    Raises
    ------
    LedgerError
        If it is not a store of privlearn, was written by a newer version, or cannot be changed. The store is then
        unchanged.
    """
    from alembic.migration import MigrationContext
    from alembic.operations import Operations

    scripts = read_scripts(VERSIONS)
    with rebuilding(store) as connection:
        steps = _steps(connection, store)
        with Operations.context(MigrationContext.configure(connection)):
            for name, (before, _) in steps.items():
                for script in _scripts_after(scripts, PARTS[name], before):
                    script.module.upgrade()
                    PARTS[name].record(connection, _format_of(script))
    return {name: step for name, step in steps.items() if step[0] < step[1]}


@cache
def read_scripts(directory: Path) -> ScriptDirectory:
    """Return the revision scripts of a directory."""
    from alembic.script import ScriptDirectory

    return ScriptDirectory(str(directory.parent), version_locations=[str(directory)])


def _steps(connection: Connection, store: str) -> Steps:
    """Return the present and the newest format of each part of the store, up to date or not."""
    formats = {name: part.check_known(connection, store) for name, part in PARTS.items()}
    steps = {name: (before, PARTS[name].newest) for name, before in formats.items() if before is not None}
    if not steps:
        raise LedgerError(f"{store} is not a ledger. Pass another path.")
    return steps


def _scripts_after(scripts: ScriptDirectory, part: Part, version: int) -> Iterator[Script]:
    """Yield the scripts that lead from a format to the newest, in the order in which to run them."""
    newest, present = (f"{part.name}_{number}" for number in (part.newest, version))
    return reversed(list(scripts.iterate_revisions(newest, present)))


def _format_of(script: Script) -> int:
    return int(script.revision.rpartition("_")[2])

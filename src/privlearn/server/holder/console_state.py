"""What the holder has added in the console, as the database stores it.

Every server process that shares the database reads the same. owner.toml takes precedence: what it declares cannot be
changed in the console.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, select

from privlearn.budget.storage import reading
from privlearn.data.sources.directories import list_files
from privlearn.errors import DataError, InvalidParameter
from privlearn.server.holder.console import Console
from privlearn.server.holder.dataset_settings import DataSet, Share
from privlearn.server.holder.settings import Owner
from privlearn.server.store import tables


@dataclass(frozen=True)
class ConsoleAnalyst:
    """An analyst of the console; ``title`` is the name to display, ``disabled`` is empty or a time."""

    name: str
    title: str
    created: str
    disabled: str


@dataclass(frozen=True)
class Version:
    """The data set's table at one time; versions are numbered from 1. Schema and number of records are public."""

    number: int
    source: Path
    schema_file: Path
    schema: Mapping[str, Any] = field(repr=False)
    records: int
    created: str


@dataclass(frozen=True)
class ConsoleDataSet:
    """A data set of the console with all its versions, oldest first."""

    name: str
    settings: Mapping[str, Any]
    created: str
    retired: str
    versions: tuple[Version, ...]

    def version(self, number: int | None = None) -> Version:
        """Return the version with this number, or the current one if there is no such version."""
        return next((one for one in self.versions if one.number == number), self.versions[-1])

    def settings_at(self, version: Version, console: Console) -> DataSet:
        """Return the settings that owner.toml would contain for this version."""
        source: dict[str, Any] = {"table": str(version.source), "schema": version.schema_file}
        return DataSet(**self.settings, **source, retired=bool(self.retired), approval=console.approval)


@dataclass(frozen=True)
class ConsoleState:
    """Analysts, shares (by analyst and data set) and data sets of the console."""

    analysts: Mapping[str, ConsoleAnalyst] = field(default_factory=dict)
    shares: Mapping[tuple[str, str], Share] = field(default_factory=dict)
    datasets: Mapping[str, ConsoleDataSet] = field(default_factory=dict)


EMPTY = ConsoleState()


def read_console_state(store: str) -> ConsoleState:
    """Read everything in one transaction."""
    with reading(store) as connection:
        people = connection.execute(select(tables.analysts).order_by(tables.analysts.c.name))
        shares = connection.execute(select(tables.shares).order_by(tables.shares.c.dataset))
        return ConsoleState(
            {row.name: ConsoleAnalyst(**row._mapping) for row in people.all()},
            {(row.analyst, row.dataset): Share(epsilon=row.epsilon, delta=row.delta) for row in shares.all()},
            _datasets(connection),
        )


def _datasets(connection: Connection) -> dict[str, ConsoleDataSet]:
    versions: dict[str, list[Version]] = {}
    for row in connection.execute(select(tables.versions).order_by(tables.versions.c.number)):
        values = {**row._mapping, "source": Path(row.source), "schema_file": Path(row.schema_file)}
        versions.setdefault(values.pop("dataset"), []).append(Version(**values))
    rows = connection.execute(select(tables.datasets).order_by(tables.datasets.c.name))
    return {row.name: ConsoleDataSet(**row._mapping, versions=tuple(versions[row.name])) for row in rows}


def merge(owner: Owner, state: ConsoleState) -> Owner:
    """Return the holder's file with the console's additions; the file wins where both declare something."""
    datasets = {name: one.settings_at(one.version(), owner.console) for name, one in state.datasets.items()}
    datasets = owner.datasets | {name: one for name, one in datasets.items() if name not in owner.datasets}
    analysts = {name: dict(shares) for name, shares in owner.analysts.items()}
    for name, one in state.analysts.items():
        if not one.disabled:
            analysts.setdefault(name, {})
    for (analyst, dataset), share in state.shares.items():
        if analyst in analysts and dataset in datasets:
            analysts[analyst].setdefault(dataset, share)
    return owner.model_copy(update={"datasets": datasets, "analysts": analysts})


def with_console_state(owner: Owner) -> Owner:
    """Read the console's additions once, and merge them into the holder's file."""
    return merge(owner, read_console_state(owner.server.store))


TableOfDataSet = tuple[str, Path]
"""A data set's name, and the file, directory or pattern of its table."""


def declared_tables(owner: Owner) -> Iterator[TableOfDataSet]:
    """Yield the local tables of the holder's file; the console never serves tables from remote storage."""
    for name, dataset in owner.datasets.items():
        if dataset.table and isinstance(path := dataset.table_location, Path):
            yield name, path


def console_tables(state: ConsoleState) -> Iterator[TableOfDataSet]:
    """Yield the tables of the console in all versions, also retired ones: their budget stays spent."""
    return ((one.name, version.source) for one in state.datasets.values() for version in one.versions)


def find_other_name(name: str, path: Path, tables_in_use: Iterable[TableOfDataSet]) -> str | None:
    """Return a name other than ``name`` under which a file of the path is served, if there is one."""
    return next((other for other, source in tables_in_use if other != name and _overlap(path, source)), None)


def check_declared(owner: Owner, state: ConsoleState) -> None:
    """Refuse a table of the holder's file that the console serves under another name."""
    for name, path in declared_tables(owner):
        other = find_other_name(name, path, console_tables(state))
        if other is not None:
            raise InvalidParameter(
                f"datasets.{name}: the console serves this table, or a part of it, as {other}, and these people would "
                f"have two budgets. Name it {other} here too, or remove it"
            )


def _overlap(one: Path, other: Path) -> bool:
    one, other = one.resolve(), other.resolve()
    below = one == other or one in other.parents or other in one.parents
    return below or not _file_ids(one).isdisjoint(_file_ids(other))


def _file_ids(path: Path) -> set[tuple[int, int]]:
    """Return device and inode of each file of the table: one file can have several names."""
    try:
        stats = [file.stat() for file in list_files(path)[1] if isinstance(file, Path)]
    except (DataError, OSError):  # the table of an old version may be gone
        return set()
    return {(one.st_dev, one.st_ino) for one in stats}

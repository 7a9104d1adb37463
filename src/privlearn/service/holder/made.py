"""What the holder made in the console, as the database has it; every server process that shares it reads the same.

The holder's file wins: what it declares is as it says there, whatever was made beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, select

from privlearn.service.holder.console_sources import Console
from privlearn.service.holder.settings import DataSet, Owner, Share
from privlearn.service.store import tables
from privlearn.storage import reading


@dataclass(frozen=True)
class MadeAnalyst:
    """Somebody who may be given shares and keys; ``title`` is for people to read, ``disabled`` empty or a time."""

    name: str
    title: str
    created: str
    disabled: str


@dataclass(frozen=True)
class Version:
    """A table about the data set's people, as it was at a time.

    Attributes
    ----------
    number : int
        From 1 on.
    source, schema_file : path
    schema : dict
        Public: of all versions with the same digest.
    records : int
        Public.
    created : str
    """

    number: int
    source: Path
    schema_file: Path
    schema: Mapping[str, Any] = field(repr=False)
    records: int
    created: str


@dataclass(frozen=True)
class MadeDataSet:
    """One that was made in the console, with all its versions, oldest first."""

    name: str
    settings: Mapping[str, Any]
    created: str
    retired: str
    versions: tuple[Version, ...]

    def version(self, number: int | None = None) -> Version:
        """One of them; by default the current one. A number that there never was is the current one's."""
        return next((one for one in self.versions if one.number == number), self.versions[-1])

    def at(self, version: Version, console: Console) -> DataSet:
        """As the holder's file would state it."""
        source: dict[str, Any] = {"table": str(version.source), "schema": version.schema_file}
        return DataSet(**self.settings, **source, retired=bool(self.retired), approval=console.approval)


@dataclass(frozen=True)
class Made:
    """Everything."""

    analysts: Mapping[str, MadeAnalyst] = field(default_factory=dict)
    shares: Mapping[tuple[str, str], Share] = field(default_factory=dict)
    datasets: Mapping[str, MadeDataSet] = field(default_factory=dict)


NOTHING = Made()


def read_made(store: str) -> Made:
    """As of one moment."""
    with reading(store) as connection:
        people = connection.execute(select(tables.analysts).order_by(tables.analysts.c.name))
        shares = connection.execute(select(tables.shares).order_by(tables.shares.c.dataset))
        return Made(
            {row.name: MadeAnalyst(**row._mapping) for row in people.all()},
            {(row.analyst, row.dataset): Share(epsilon=row.epsilon, delta=row.delta) for row in shares.all()},
            _datasets(connection),
        )


def _datasets(connection: Connection) -> dict[str, MadeDataSet]:
    found: dict[str, list[Version]] = {}
    for row in connection.execute(select(tables.versions).order_by(tables.versions.c.number)):
        facts = {**row._mapping, "source": Path(row.source), "schema_file": Path(row.schema_file)}
        found.setdefault(facts.pop("dataset"), []).append(Version(**facts))
    rows = connection.execute(select(tables.datasets).order_by(tables.datasets.c.name))
    return {row.name: MadeDataSet(**row._mapping, versions=tuple(found[row.name])) for row in rows.all()}


def beside(owner: Owner, made: Made) -> Owner:
    """The holder's file with what was made beside it."""
    of_console = {name: one.at(one.version(), owner.console) for name, one in made.datasets.items()}
    datasets = owner.datasets | {name: one for name, one in of_console.items() if name not in owner.datasets}
    analysts = {name: dict(shares) for name, shares in owner.analysts.items()}
    for name, one in made.analysts.items():
        if not one.disabled:
            analysts.setdefault(name, {})
    for (analyst, dataset), share in made.shares.items():
        if analyst in analysts and dataset in datasets:
            analysts[analyst].setdefault(dataset, share)
    return owner.model_copy(update={"datasets": datasets, "analysts": analysts})


def load_with_made(owner: Owner) -> Owner:
    """The same for a program that looks once."""
    return beside(owner, read_made(owner.server.store))

"""Whether two data sets read a file in common: the same people would have two budgets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from privlearn.data.sources.folders import files_of
from privlearn.errors import DataError, InvalidParameter
from privlearn.service.holder.made import Made
from privlearn.service.holder.settings import Owner

Served = tuple[str, Path]


def declared_tables(owner: Owner) -> Iterator[Served]:
    """Names of the holder's file with their files, folders or patterns; console and storage have none in common."""
    for name, dataset in owner.datasets.items():
        if dataset.table and isinstance(place := dataset.place, Path):
            yield name, place


def made_tables(made: Made) -> Iterator[Served]:
    """Of the console, in all versions, retired ones too: what was spent on their people stays spent."""
    return ((one.name, version.source) for one in made.datasets.values() for version in one.versions)


def served_as(name: str, path: Path, served: Iterable[Served]) -> str | None:
    """Under which other name than this one a file of the path is served."""
    return next((other for other, source in served if other != name and _overlap(path, source)), None)


def check_declared(owner: Owner, made: Made) -> None:
    """Refuse a table of the holder's file that the console serves under another name."""
    for name, path in declared_tables(owner):
        other = served_as(name, path, made_tables(made))
        if other is not None:
            raise InvalidParameter(
                f"datasets.{name}: the console serves this table, or a part of it, as {other}: the same people would "
                f"have two budgets. Name it {other} here too, or take it out"
            )


def _overlap(one: Path, other: Path) -> bool:
    one, other = one.resolve(), other.resolve()
    below = one == other or one in other.parents or other in one.parents
    return below or not _opened(one).isdisjoint(_opened(other))


def _opened(path: Path) -> set[tuple[int, int]]:
    """The files that reading the path opens, told apart as the disk does: a file can have several names."""
    try:
        found = [file.stat() for file in files_of(path)[1] if isinstance(file, Path)]
    except (DataError, OSError):  # an old version's may be gone
        return set()
    return {(one.st_dev, one.st_ino) for one in found}

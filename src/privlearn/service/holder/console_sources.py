"""The part of owner.toml about the console: whether it changes anything, and which files it may make data sets of.

A file is named by its source and its place below it, `exports/2026/census.csv`. Whatever lies elsewhere, also by way of
a link, is answered like what does not exist: nobody can feel their way through the server's folders.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import Annotated

from pydantic import Field, StrictBool, StrictStr

from privlearn.data.schema.public import PublicModel
from privlearn.data.sources.files import is_parquet
from privlearn.errors import DataError
from privlearn.service.holder.approval import Approval
from privlearn.service.refusals import NotFound

MOST_LISTED = 500
_SourceName = Annotated[StrictStr, Field(pattern="^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$")]


class Console(PublicModel):
    """What the holder may change in a browser, or over HTTP, beside this file.

    Parameters
    ----------
    changes : bool, default=True
        False: the console only shows; everything is changed in this file and in the shell.
    sources : dict of str to path
        Folders by name. Data sets can be made from tables in and below them, and from nothing else; by default none.
    approval : Approval, optional
        Which requests about data sets that were made there a second person must approve; by default none.
    """

    changes: StrictBool = True
    sources: dict[_SourceName, Path] = Field(default_factory=dict)
    approval: Approval | None = None

    def tables(self) -> list[str]:
        """Names of the tables that there are: files, and folders of files."""
        return _listed(self, _is_table, folders=True)

    def schemas(self) -> list[str]:
        return _listed(self, _is_schema, folders=False)

    def name_of(self, path: Path) -> str:
        """As `find` takes it; of a source that is not named any more, the file's name alone."""
        for source, root in self.sources.items():
            if path.is_relative_to(root.resolve()):
                return f"{source}/{path.relative_to(root.resolve()).as_posix()}"
        return path.name

    def find(self, name: str) -> Path:
        """The file or folder of this name.

        Raises
        ------
        NotFound
            If there is none in or below a source.
        """
        source, _, place = name.partition("/")
        parts = PurePosixPath(place).parts
        if source in self.sources and place.isprintable() and not any(map(_leads_elsewhere, parts)):
            found = _inside(self.sources[source].resolve(), place)
            if found is not None:
                return found
        raise NotFound("there is no such file in the console's sources: take one of those that are listed")


def _inside(root: Path, place: str) -> Path | None:
    """A file, or a folder, of which no part lies elsewhere."""
    try:
        found = (root / place).resolve(strict=True)
        parts = [found, *found.rglob("*")]
        return found if all(part.resolve().is_relative_to(root) for part in parts) else None
    except (OSError, RuntimeError):  # not there, not ours to read, too long a name, links in a circle
        return None


def _leads_elsewhere(part: str) -> bool:
    """Up, back to the root, to what is hidden; or a pattern, which a table's name might be."""
    return part[0] in "./" or bool(set("*?[\\") & set(part))


def _listed(console: Console, wanted: Callable[[Path], bool], *, folders: bool) -> list[str]:
    """By name; of very many the first."""
    found = [
        f"{source}/{path.relative_to(root).as_posix()}"
        for source, root in console.sources.items()
        for path in _below(root, wanted, folders)
    ]
    return sorted(found)[:MOST_LISTED]


def _below(root: Path, wanted: Callable[[Path], bool], folders: bool) -> Iterator[Path]:
    for folder, inner, names in os.walk(root):  # follows no links
        inner[:] = [name for name in inner if not _leads_elsewhere(name)]
        here = Path(folder)
        files = [here / name for name in names if not _leads_elsewhere(name)]
        fitting = [file for file in files if wanted(file) and not file.is_symlink()]
        if folders and fitting and here != root:
            yield here
        yield from fitting


def _is_table(file: Path) -> bool:
    try:
        is_parquet(file)
    except DataError:
        return False
    return True


def _is_schema(file: Path) -> bool:
    return file.suffix.lower() in (".yaml", ".yml", ".json")

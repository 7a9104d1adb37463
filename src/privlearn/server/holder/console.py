"""The part of owner.toml about the console: whether it changes anything, and from which files it may add data sets.

A file is named by its source and its path below it: `exports/2026/census.csv`. A file outside the sources, also one
reached through a link, gets the same answer as a missing file, so that answers do not reveal the server's directories.
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
from privlearn.server.holder.dataset_settings import Approval
from privlearn.server.refusals import NotFound

MAX_FILES = 500
_SourceName = Annotated[StrictStr, Field(pattern="^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$")]


class Console(PublicModel):
    """Changes that the holder may make in a browser or over HTTP, in addition to this file.

    Parameters
    ----------
    changes : bool, default=True
        False: the console is read-only; everything is changed in this file and in the shell.
    sources : dict of str to path
        Directories by name. Data sets can be added only from tables in and below them; by default there are none.
    approval : Approval, optional
        Requests about data sets of the console that a second person must approve; by default none.
    """

    changes: StrictBool = True
    sources: dict[_SourceName, Path] = Field(default_factory=dict)
    approval: Approval | None = None

    def tables(self) -> list[str]:
        """Return the names of the tables in the sources: files, and directories of files."""
        return _list_files(self, _is_table, directories=True)

    def schemas(self) -> list[str]:
        return _list_files(self, _is_schema, directories=False)

    def name_of(self, path: Path) -> str:
        """Return the name that `find` accepts; for a source that was removed, only the file's name."""
        for source, root in self.sources.items():
            if path.is_relative_to(root.resolve()):
                return f"{source}/{path.relative_to(root.resolve()).as_posix()}"
        return path.name

    def find(self, name: str) -> Path:
        """Return the file or directory with this name; raise NotFound if it is not in or below a source."""
        source, _, relative = name.partition("/")
        parts = PurePosixPath(relative).parts
        if source in self.sources and relative.isprintable() and not any(map(_leads_elsewhere, parts)):
            path = _inside(self.sources[source].resolve(), relative)
            if path is not None:
                return path
        raise NotFound("there is no such file in the console's sources. Choose one of the list.")


def _inside(root: Path, relative: str) -> Path | None:
    """Return the file or directory, or None if a part of it lies outside the root."""
    try:
        path = (root / relative).resolve(strict=True)
        parts = [path, *path.rglob("*")]
        return path if all(part.resolve().is_relative_to(root) for part in parts) else None
    except (OSError, RuntimeError):  # missing, unreadable, too long a name, or links in a circle
        return None


def _leads_elsewhere(part: str) -> bool:
    """Return whether a part of a path leads up, to the root or to a hidden file, or could be a pattern."""
    return part[0] in "./" or bool(set("*?[\\") & set(part))


def _list_files(console: Console, accepts: Callable[[Path], bool], *, directories: bool) -> list[str]:
    """Return the sorted names of at most `MAX_FILES` accepted files."""
    names = [
        f"{source}/{path.relative_to(root).as_posix()}"
        for source, root in console.sources.items()
        for path in _walk(root, accepts, directories)
    ]
    return sorted(names)[:MAX_FILES]


def _walk(root: Path, accepts: Callable[[Path], bool], directories: bool) -> Iterator[Path]:
    for directory, inner, names in os.walk(root):  # follows no links
        inner[:] = [name for name in inner if not _leads_elsewhere(name)]
        here = Path(directory)
        files = [here / name for name in names if not _leads_elsewhere(name)]
        accepted = [file for file in files if accepts(file) and not file.is_symlink()]
        if directories and accepted and here != root:
            yield here
        yield from accepted


def _is_table(file: Path) -> bool:
    try:
        is_parquet(file)
    except DataError:
        return False
    return True


def _is_schema(file: Path) -> bool:
    return file.suffix.lower() in (".yaml", ".yml", ".json")

"""The files that a path stands for (a file, a directory or a pattern), and the checks that they belong together.

Directories may state a column for all rows of their files, as Hive does: ``year=2024/ward=east/part.parquet``.
`UnchangedFile` refuses a file that changes between two passes: all results must be about the same rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path, PurePath
from typing import Any
from urllib.parse import unquote

from privlearn.data.sources.addresses import StoredPath, TablePath
from privlearn.data.sources.row_source import RowSource, TableSource
from privlearn.data.sources.table import is_number
from privlearn.errors import DataError
from privlearn.imports import pa

_PATTERN = set("*?[")
NULL_DIRECTORY = "__HIVE_DEFAULT_PARTITION__"


def list_files(path: TablePath) -> tuple[TablePath, list[TablePath]]:
    """Return the directory below which names of directories may state columns, and the files in order of their names.

    Names that begin with a dot or an underscore are skipped; other files that are not tables are refused later.
    """
    if path.is_file():
        return path, [path]
    root, below = _stored_files(path) if isinstance(path, StoredPath) else _local_files(path)
    files = [file for file in below if not _is_hidden(relative(file, root))]
    if not files:
        raise DataError(
            f"{path} is a directory or pattern without tables. Name one with .csv, .csv.gz or .parquet files."
        )
    return root, files


def _local_files(path: Path) -> tuple[Path, list[Path]]:
    if path.is_dir():
        root, below = path, path.rglob("*")
    else:
        plain = _plain_parts(path)
        root = Path(*path.parts[:plain])
        below = root.glob(str(Path(*path.parts[plain:])))
    return root, sorted(file for file in below if file.is_file())


def _stored_files(path: StoredPath) -> tuple[StoredPath, list[StoredPath]]:
    if path.is_dir():
        return path, sorted(path.files_below())
    plain = _plain_parts(path)
    root, pattern = path.ancestor(plain), path.parts[plain:]
    return root, sorted(file for file in root.files_below() if _matches(file.parts[plain:], pattern))


def _plain_parts(path: TablePath) -> int:
    """Return the number of parts before the first one with a wildcard."""
    count = next((index for index, part in enumerate(path.parts) if _PATTERN & set(part)), None)
    if count is None:
        raise DataError(f"{path} is not a file. Check the path.")
    return count


def _matches(parts: tuple[str, ...], pattern: tuple[str, ...]) -> bool:
    """Return whether names match a pattern, part by part; ``**`` stands for any number of parts."""
    if not pattern:
        return not parts
    if pattern[0] == "**":
        return any(_matches(parts[skipped:], pattern[1:]) for skipped in range(len(parts) + 1))
    return bool(parts) and fnmatchcase(parts[0], pattern[0]) and _matches(parts[1:], pattern[1:])


def relative(file: TablePath, root: TablePath) -> PurePath:
    """Return the path of a file relative to a root of the same kind."""
    return file.relative_to(root)  # type: ignore[arg-type]


def _is_hidden(path: PurePath) -> bool:
    return any(part[0] in "._" for part in path.parts)


def partition(file: TablePath, root: TablePath) -> dict[str, str | None]:
    """Return the cells that directories between a root and a file state for all its rows; None for a gap.

    Names are decoded like addresses: ``ward=east%20wing``.
    """
    directories = relative(file, root).parts[:-1] if root != file else ()
    cells: dict[str, str | None] = {}
    for name, cell in (part.split("=", 1) for part in directories if "=" in part):
        name = _unquote(name, file)
        if name in cells:
            raise DataError(f"{file}: two directories state column {name!r}. Rename one of them.")
        cells[name] = None if cell == NULL_DIRECTORY else _unquote(cell, file)
    return cells


def _unquote(text: str, file: TablePath) -> str:
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError:
        pass
    raise DataError(f"the name of a directory above {file} is not UTF-8. Rename it.")


def check_same_columns(columns_of: Mapping[TablePath, Mapping[str, Any]]) -> None:
    """Refuse files that are read together and differ in their columns, or in the kinds of cells.

    Only names and types of columns are compared, and no cell is read.
    """
    (first, columns), *others = columns_of.items()
    for file, types in others:
        for name in (*columns, *types):
            if (name in columns) != (name in types):
                without, having = (file, first) if name in columns else (first, file)
                raise DataError(
                    f"{without} has no column {name!r}, but {having} has one. Files that are read together need the "
                    "same columns."
                )
            # A CSV file, or a column without cells, states no type.
            if len({_kind(columns[name]), _kind(types[name])} - {None}) > 1:
                raise DataError(f"column {name!r} has different types in {file} and {first}. Write one type.")


def _kind(type_: Any) -> str | None:
    if type_ is None or pa.types.is_null(type_):
        return None
    if pa.types.is_dictionary(type_):
        return _kind(type_.value_type)
    if pa.types.is_boolean(type_):
        return "truth"
    if pa.types.is_temporal(type_):
        return "date"
    return "number" if is_number(type_) else "text"


class UnchangedFile(TableSource):
    """The rows of a file; raises an error in the first pass that sees a changed file."""

    def __init__(self, rows: RowSource[pa.Table], path: TablePath) -> None:
        self._rows, self._path = rows, path
        self._opened_as = _state(path)

    def __len__(self) -> int:
        self._check()
        return len(self._rows)

    def blocks(self) -> Iterator[pa.Table]:
        self._check()
        try:
            yield from self._rows.blocks()
        except DataError:
            self._check()  # a file that seems damaged may have changed during the pass
            raise
        self._check()

    def _check(self) -> None:
        if _state(self._path) != self._opened_as:
            raise DataError(
                f"{self._path} has changed since it was opened. Make a copy that no program writes to, and start again."
            )


def _state(path: TablePath) -> tuple[object, ...] | None:
    if isinstance(path, StoredPath):
        return path.state()
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns

"""Which files a path stands for: itself, all files of a folder, or those that fit a pattern; and whether they fit
together."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path, PurePath
from typing import Any

from privlearn.data.sources.addresses import StoredPath, TablePath
from privlearn.errors import DataError
from privlearn.heavy import pa

_PATTERN = set("*?[")


def files_of(path: TablePath) -> tuple[TablePath, list[TablePath]]:
    """The folder below which folders' names speak of rows, and the files in the order of their names.

    Names that begin with a dot or an underscore are left out; any other kind of file in a folder is refused later.
    """
    if path.is_file():
        return path, [path]
    root, found = _stored(path) if isinstance(path, StoredPath) else _on_disk(path)
    files = [file for file in found if not _is_hidden(relative(file, root))]
    if not files:
        raise DataError(
            f"{path} is a folder or pattern without a table: it needs files that end in .csv, .csv.gz or .parquet, for "
            "example"
        )
    return root, files


def _on_disk(path: Path) -> tuple[Path, list[Path]]:
    if path.is_dir():
        root, found = path, path.rglob("*")
    else:
        plain = _first_pattern(path)
        root = Path(*path.parts[:plain])
        found = root.glob(str(Path(*path.parts[plain:])))
    return root, sorted(file for file in found if file.is_file())


def _stored(path: StoredPath) -> tuple[StoredPath, list[StoredPath]]:
    if path.is_dir():
        return path, sorted(path.files_below())
    plain = _first_pattern(path)
    root, wanted = path.above(plain), path.parts[plain:]
    return root, sorted(file for file in root.files_below() if _fits(file.parts[plain:], wanted))


def _first_pattern(path: TablePath) -> int:
    """The place of the first part that stands for several names."""
    found = next((place for place, part in enumerate(path.parts) if _PATTERN & set(part)), None)
    if found is None:
        raise DataError(f"{path} is not a file: check the path")
    return found


def _fits(parts: tuple[str, ...], wanted: tuple[str, ...]) -> bool:
    """Whether names are as a pattern says, part by part; ``**`` is any number of parts."""
    if not wanted:
        return not parts
    if wanted[0] == "**":
        return any(_fits(parts[skipped:], wanted[1:]) for skipped in range(len(parts) + 1))
    return bool(parts) and fnmatchcase(parts[0], wanted[0]) and _fits(parts[1:], wanted[1:])


def relative(file: TablePath, root: TablePath) -> PurePath:
    """The names between a root and a file, which are of the same kind."""
    return file.relative_to(root)  # type: ignore[arg-type]


def _is_hidden(path: PurePath) -> bool:
    return any(part[0] in "._" for part in path.parts)


def partition(file: TablePath, root: TablePath) -> dict[str, str]:
    """What the folders between a root and a file say of all its rows: ``year=2024/ward=east/part.parquet``."""
    folders = relative(file, root).parts[:-1] if root != file else ()
    return dict(part.split("=", 1) for part in folders if "=" in part)


def check_alike(kinds: Mapping[TablePath, Mapping[str, Any]]) -> None:
    """Refuse files of which one has other columns, or text where the others have numbers.

    Only names and types are compared, of columns that the schema speaks of, and no cell is read.
    """
    (first, columns), *others = kinds.items()
    for file, found in others:
        for name in (*columns, *found):
            if (name in columns) != (name in found):
                lacking, having = (file, first) if name in columns else (first, file)
                raise DataError(
                    f"{lacking} has no column {name!r}, but {having} has: files that are read together need the same "
                    "columns"
                )
            if not _agree(columns[name], found[name]):
                raise DataError(
                    f"column {name!r} has another type in {file} than in {first}: write it alike in all files"
                )


def _agree(one: Any, other: Any) -> bool:
    """Whether cells of two types could be read as the same kind; a CSV file, or a column without cells, states none."""
    kinds = {_kind(one), _kind(other)} - {None}
    return len(kinds) <= 1


def _kind(type_: Any) -> str | None:
    if type_ is None or pa.types.is_null(type_):
        return None
    if pa.types.is_dictionary(type_):
        return _kind(type_.value_type)
    if pa.types.is_boolean(type_):
        return "truth"
    if pa.types.is_temporal(type_):
        return "date"
    is_number = pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_)
    return "number" if is_number else "text"

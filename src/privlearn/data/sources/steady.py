"""Files that must not change between two passes over them."""

from __future__ import annotations

from collections.abc import Iterator

from privlearn.data.sources.addresses import StoredPath, TablePath
from privlearn.data.sources.row_source import Places, RowSource, TableRows, taken
from privlearn.errors import DataError
from privlearn.heavy import pa


class SteadyRows(RowSource["pa.Table"]):
    """A file's rows, refused as soon as the file has changed since it was opened: every pass must see the same ones.

    Parameters
    ----------
    rows : RowSource
        What reads the file.
    path : Path or StoredPath
    """

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
            self._check()  # what seems broken may have changed under way
            raise
        self._check()

    def take(self, places: Places) -> TableRows:
        return taken(self.blocks(), places)

    def _check(self) -> None:
        if _state(self._path) != self._opened_as:
            raise DataError(
                f"{self._path} has changed since it was opened, and all that is computed must be about the same rows: "
                "take a copy that nobody writes to, and begin again"
            )


def _state(path: TablePath) -> tuple[object, ...] | None:
    if isinstance(path, StoredPath):
        return path.state()
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns

"""Files that must not change between two passes: all results must be about the same rows."""

from __future__ import annotations

from collections.abc import Iterator

from privlearn.data.sources.addresses import StoredPath, TablePath
from privlearn.data.sources.row_source import RowSource, TableSource
from privlearn.errors import DataError
from privlearn.imports import pa


class UnchangedFile(TableSource):
    """The rows of a file; raises an error in the first pass that sees a changed file.

    Parameters
    ----------
    rows : RowSource
        Reads the file.
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

"""Cells of a table in as few bytes as they need: in memory or, where they are many, in a file that has no name.

A solver goes through the rows many times. Cells take a tenth of the room of the vectors that they are encoded as, and
expanding them costs less than reading the table again.
"""

from __future__ import annotations

import os
import tempfile
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from privlearn.data.sources.passes import number_of_rows
from privlearn.data.sources.row_source import Places, RowSource
from privlearn.errors import DataError, InvalidParameter
from privlearn.heavy import pa, sparse

BLOCK = 1 << 15  # rows
KEPT_IN_MEMORY = 1 << 26  # bytes of packed cells; more go to a file
MOST_DISTINCT = BLOCK // 4  # values of a block that are worth a list of their own
ALIGNED = 8  # bytes
MOST_AT_ONCE = 1 << 30  # bytes; systems read no more than 2 GiB, and say so by giving less

Cells = Mapping[str, Any]
"""A block: an array of one number per row, or a CSR array, for each column."""


_folder: ContextVar[str | None] = ContextVar("folder", default=None)


@contextmanager
def spill_to(folder: str | Path | None) -> Iterator[None]:
    """Inside the ``with`` block, cells beyond `KEPT_IN_MEMORY` go to nameless files in this folder."""
    if folder is not None and not Path(folder).is_dir():
        raise InvalidParameter(f"{folder} is not a folder: make it first, where there is room")
    token = _folder.set(None if folder is None else str(folder))
    try:
        yield
    finally:
        _folder.reset(token)


def spill_folder() -> str | None:
    """The folder of `spill_to`; None is the one for temporary files."""
    return _folder.get()


class PackedCells(RowSource[Cells]):
    """PRIVATE: blocks of cells, in the order in which they are added.

    Where they are many they go to a file in the folder of `spill_to`, or the one for temporary files. It has no name
    there: nobody else can open it, and the system removes it when this object, or the process, ends.
    """

    def __init__(self) -> None:
        self._folder = spill_folder()
        self._blocks: list[PackedBlock] = []
        self._waiting: list[Cells] = []
        self._rows_waiting = self._kept = 0
        self._file: IO[bytes] | None = None

    def add(self, cells: Cells) -> None:
        """The next rows; a few wait for others, or for who asks how many there are: small files are as many blocks."""
        self._waiting.append(cells)
        self._rows_waiting += number_of_rows(cells)
        if self._rows_waiting >= BLOCK:
            self._pack()

    def _pack(self) -> None:
        """Make blocks of the rows that wait: several of many, since those would need more memory."""
        if not self._waiting:
            return
        cells = {name: _stacked([part[name] for part in self._waiting]) for name in self._waiting[0]}
        self._waiting, self._rows_waiting = [], 0
        for start in range(0, max(number_of_rows(cells), 1), BLOCK):
            part = {name: column[start : start + BLOCK] for name, column in cells.items()}
            columns = {name: _packed(column) for name, column in part.items()}
            block = PackedBlock(number_of_rows(part), columns)
            self._kept += block.size
            if self._kept > KEPT_IN_MEMORY:
                block = self._written(block)
            self._blocks.append(block)

    def __len__(self) -> int:
        self._pack()
        return sum(block.rows for block in self._blocks)

    def blocks(self) -> Iterator[Cells]:
        self._pack()
        for block in self._blocks:
            yield self._read(block)

    def take(self, places: Places) -> PackedCells:
        order = np.argsort(places, kind="stable")
        wanted, start = places[order], 0
        parts: list[dict[str, Any]] = []
        self._pack()
        for block in self._blocks:
            first, last = np.searchsorted(wanted, (start, start + block.rows))
            if first < last or not parts:
                cells, inside = self._read(block), wanted[first:last] - start
                parts.append({name: column[inside] for name, column in cells.items()})
            start += block.rows
        back = np.argsort(order)
        taken = PackedCells()
        taken.add({name: _stacked([part[name] for part in parts])[back] for name in parts[0]})
        return taken

    def hardly_repeated(self) -> set[str]:
        """Columns in which most rows of the first block have a number of their own."""
        self._pack()
        return {
            name
            for block in self._blocks[:1]
            for name, (kind, arrays) in block.columns.items()
            if kind == "plain" and arrays[0].dtype.kind == "f"
        }

    def _written(self, block: PackedBlock) -> PackedBlock:
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115
                weakref.finalize(self, self._file.close)
            place = self._file.seek(0, 2)
            for array in block.arrays():
                self._file.write(array.tobytes().ljust(_room(array), b"\0"))
            self._file.flush()
        except OSError as error:
            message = error.strerror
            with suppress(OSError):  # what is still to be written has no room either
                if self._file is not None:
                    self._file.close()
        else:
            return block.at(place)
        raise DataError(
            f"the cells could not be kept in a file: {message}. Name a folder with more room: --cache FOLDER, in "
            "Python `with privlearn.data.spill_to(folder)`"
        )

    def _read(self, block: PackedBlock) -> PackedBlock:
        if block.place is None or self._file is None:
            return block
        file, end = self._file.fileno(), block.place + block.size
        starts = range(block.place, end, MOST_AT_ONCE)
        return block.filled(
            b"".join(os.pread(file, min(MOST_AT_ONCE, end - start), start) for start in starts)
        )


Packed = tuple[str, list[NDArray[Any]]]
"""How a column is kept, and its arrays."""


class PackedBlock(Mapping[str, Any]):
    """Some rows' cells by column, each unpacked when it is asked for."""

    def __init__(self, rows: int, columns: dict[str, Packed], place: int | None = None) -> None:
        self.rows, self.columns, self.place = rows, columns, place

    def __getitem__(self, name: str) -> Any:
        return _unpacked(self.columns[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    @property
    def shape(self) -> tuple[int, int]:
        return self.rows, len(self.columns)

    @property
    def size(self) -> int:
        """Bytes in a file."""
        return sum(map(_room, self.arrays()))

    def arrays(self) -> Iterator[NDArray[Any]]:
        for _, arrays in self.columns.values():
            yield from arrays

    def at(self, place: int) -> PackedBlock:
        """The same once it is in a file: of each array only what it was like."""
        gone = {
            name: (kind, [np.broadcast_to(np.zeros(1, array.dtype), array.shape) for array in arrays])
            for name, (kind, arrays) in self.columns.items()
        }
        return PackedBlock(self.rows, gone, place)

    def filled(self, written: bytes) -> PackedBlock:
        """The same with its arrays again."""
        start = 0

        def array_like(one: NDArray[Any]) -> NDArray[Any]:
            nonlocal start
            found = np.frombuffer(written, one.dtype, one.size, start)
            start += _room(one)
            return found

        columns = {
            name: (kind, [array_like(one) for one in arrays]) for name, (kind, arrays) in self.columns.items()
        }
        return PackedBlock(self.rows, columns)


def listed(cells: Cells, name: str) -> tuple[NDArray[Any], NDArray[np.intp] | None]:
    """The different numbers of a column, and the place among them of each row's; None where every row has its own."""
    kind, arrays = cells.columns[name] if isinstance(cells, PackedBlock) else ("plain", [cells[name]])
    if kind == "listed":
        return arrays[0], arrays[1].astype(np.intp)
    (numbers,) = arrays
    if numbers.dtype.kind != "i":
        return numbers, None
    numbers = numbers.astype(
        np.intp
    )  # places follow from them, which the smallest type that holds them may not hold
    first, last = int(numbers.min(initial=0)), int(numbers.max(initial=0))
    return (np.arange(first, last + 1), numbers - first) if last - first < len(numbers) else (numbers, None)


def _room(array: NDArray[Any]) -> int:
    """Bytes of a file, so many that the next array begins where numbers may."""
    return -(-array.nbytes // ALIGNED) * ALIGNED


def _packed(column: Any) -> Packed:
    """Whole numbers in the smallest type that holds them; others as places in a list of those that occur, if few do."""
    if isinstance(column, sparse.csr_array):
        return "sparse", [column.data, column.indices, column.indptr, np.array(column.shape)]
    if column.dtype.kind == "i":
        longest = max(-int(column.min(initial=0)), int(column.max(initial=0)) + 1)
        return "plain", [column.astype(np.min_scalar_type(-longest))]
    listed = pa.array(column).dictionary_encode()  # many times as quick as to sort
    values = listed.dictionary.to_numpy()
    if len(values) > MOST_DISTINCT:
        return "plain", [column]
    return "listed", [values, listed.indices.to_numpy().astype(np.min_scalar_type(max(len(values) - 1, 0)))]


def _unpacked(column: Packed) -> Any:
    kind, arrays = column
    if kind == "plain":
        return arrays[0]
    if kind == "listed":
        return arrays[0][arrays[1]]
    data, indices, starts, shape = arrays
    return sparse.csr_array((data, indices, starts), shape=tuple(shape))


def _stacked(parts: list[Any]) -> Any:
    if len(parts) == 1:
        return parts[0]
    if sparse.issparse(parts[0]):
        return sparse.csr_array(sparse.vstack(parts, format="csr"))
    return np.concatenate(parts)

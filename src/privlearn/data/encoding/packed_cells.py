"""The cells of a table in as few bytes as they need, in memory or in a temporary file.

Solvers make many passes over the rows. Packed cells take a tenth of the space of the vectors that they are encoded as,
and expanding them is faster than reading the table again. A column of n rows is packed in one of three ways:

- "plain": one array of shape (n,); integers in the smallest type that holds them;
- "dictionary": the v distinct values, and for each row the index of its value (n small integers), if v is small;
- "sparse": the arrays of a CSR matrix (hashed words).

>>> kind, (values, indices) = _pack(np.array([0.25, 0.5, 0.25, 0.25]))
>>> kind, values, indices
('dictionary', array([0.25, 0.5 ]), array([0, 1, 0, 0], dtype=uint8))
>>> _pack(np.array([3, 0, 2]))
('plain', [array([3, 0, 2], dtype=int8)])
"""

from __future__ import annotations

import os
import tempfile
import weakref
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from privlearn.data.sources.passes import number_of_rows, spill_directory
from privlearn.data.sources.row_source import RowIndices, RowSource
from privlearn.errors import DataError
from privlearn.imports import pa, sparse

BLOCK = 1 << 15  # rows
MEMORY_LIMIT = 1 << 26  # bytes of packed cells; more go to a file
MAX_DISTINCT = BLOCK // 4  # values of a block for which a dictionary saves space
ALIGNMENT = 8  # bytes
MAX_READ = 1 << 30  # bytes; systems return at most 2 GiB per read, without an error

Cells = Mapping[str, Any]
"""A block: for each column an array of shape (n,), or a CSR array of n rows."""


class PackedCells(RowSource[Cells]):
    """PRIVATE: blocks of cells, in the order in which they are added."""

    def __init__(self) -> None:
        self._directory = spill_directory()
        self._blocks: list[PackedBlock] = []
        self._waiting: list[Cells] = []
        self._rows_waiting = self._bytes = 0
        self._file: IO[bytes] | None = None

    def add(self, cells: Cells) -> None:
        """Append rows; a few of them wait for others, since many small blocks would be slow."""
        self._waiting.append(cells)
        self._rows_waiting += number_of_rows(cells)
        if self._rows_waiting >= BLOCK:
            self._pack_waiting()

    def _pack_waiting(self) -> None:
        if not self._waiting:
            return
        cells = {name: _stack([part[name] for part in self._waiting]) for name in self._waiting[0]}
        self._waiting, self._rows_waiting = [], 0
        for start in range(0, max(number_of_rows(cells), 1), BLOCK):
            part = {name: column[start : start + BLOCK] for name, column in cells.items()}
            columns = {name: _pack(column) for name, column in part.items()}
            block = PackedBlock(number_of_rows(part), columns)
            self._bytes += block.size
            self._blocks.append(self._write(block) if self._bytes > MEMORY_LIMIT else block)

    def __len__(self) -> int:
        self._pack_waiting()
        return sum(block.rows for block in self._blocks)

    def blocks(self) -> Iterator[Cells]:
        self._pack_waiting()
        for block in self._blocks:
            yield self._read(block)

    def take(self, indices: RowIndices) -> PackedCells:
        # Every block is read once, for all of its requested rows; `back` restores the requested order.
        order = np.argsort(indices, kind="stable")
        ascending, start = indices[order], 0
        parts: list[dict[str, Any]] = []
        self._pack_waiting()
        for block in self._blocks:
            first, last = np.searchsorted(ascending, (start, start + block.rows))
            if first < last or not parts:
                cells, inside = self._read(block), ascending[first:last] - start
                parts.append({name: column[inside] for name, column in cells.items()})
            start += block.rows
        back = np.argsort(order)
        result = PackedCells()
        result.add({name: _stack([part[name] for part in parts])[back] for name in parts[0]})
        return result

    def rarely_repeated(self) -> set[str]:
        """Return the columns in which most rows of the first block have a number that no other row has."""
        self._pack_waiting()
        return {
            name
            for block in self._blocks[:1]
            for name, (kind, arrays) in block.columns.items()
            if kind == "plain" and arrays[0].dtype.kind == "f"
        }

    def _write(self, block: PackedBlock) -> PackedBlock:
        try:
            if self._file is None:
                # Without a name, so that private cells disappear with the process, even if it crashes.
                self._file = tempfile.TemporaryFile(dir=self._directory)  # noqa: SIM115
                weakref.finalize(self, self._file.close)
            offset = self._file.seek(0, 2)
            for array in block.arrays():
                self._file.write(array.tobytes().ljust(_aligned_size(array), b"\0"))
            self._file.flush()
        except OSError as error:
            message = error.strerror
            with suppress(OSError):  # closing flushes what does not fit either
                if self._file is not None:
                    self._file.close()
        else:
            return block.without_arrays(offset)
        raise DataError(
            f"the cells could not be written to a temporary file: {message}. Name a directory with more space: "
            "--cache DIRECTORY, in Python `with privlearn.data.spill_to(directory)`"
        )

    def _read(self, block: PackedBlock) -> PackedBlock:
        if block.offset is None or self._file is None:
            return block
        file, end = self._file.fileno(), block.offset + block.size
        starts = range(block.offset, end, MAX_READ)
        return block.with_arrays(
            b"".join(os.pread(file, min(MAX_READ, end - start), start) for start in starts)
        )


Packed = tuple[str, list[NDArray[Any]]]
"""How a column is packed, and its arrays."""


class PackedBlock(Mapping[str, Any]):
    """The cells of some rows by column; a column is unpacked when it is accessed.

    Parameters
    ----------
    rows : int
    columns : dict of str to Packed
    offset : int, optional
        Position in the file, if the block was written to it: its arrays then have a type and a shape, and no content.
    """

    def __init__(self, rows: int, columns: dict[str, Packed], offset: int | None = None) -> None:
        self.rows, self.columns, self.offset = rows, columns, offset

    def __getitem__(self, name: str) -> Any:
        return _unpack(self.columns[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    @property
    def shape(self) -> tuple[int, int]:
        return self.rows, len(self.columns)

    @property
    def size(self) -> int:
        """Return the number of bytes in a file."""
        return sum(map(_aligned_size, self.arrays()))

    def arrays(self) -> Iterator[NDArray[Any]]:
        for _, arrays in self.columns.values():
            yield from arrays

    def without_arrays(self, offset: int) -> PackedBlock:
        """Return the block after it was written to a file; only types and shapes stay in memory."""
        columns = {
            name: (kind, [np.broadcast_to(np.zeros(1, array.dtype), array.shape) for array in arrays])
            for name, (kind, arrays) in self.columns.items()
        }
        return PackedBlock(self.rows, columns, offset)

    def with_arrays(self, content: bytes) -> PackedBlock:
        """Return the block with the arrays that were read from a file."""
        start, columns = 0, dict[str, Packed]()
        for name, (kind, arrays) in self.columns.items():
            columns[name] = kind, []
            for array in arrays:
                columns[name][1].append(np.frombuffer(content, array.dtype, array.size, start))
                start += _aligned_size(array)
        return PackedBlock(self.rows, columns)


def distinct_values(cells: Cells, name: str) -> tuple[NDArray[Any], NDArray[np.intp] | None]:
    """Return the v distinct numbers of a column, and for each row the index of its number.

    The index is None where looking up would save nothing: then the first array is the column itself.
    """
    kind, arrays = cells.columns[name] if isinstance(cells, PackedBlock) else ("plain", [cells[name]])
    if kind == "dictionary":
        return arrays[0], arrays[1].astype(np.intp)
    (numbers,) = arrays
    if numbers.dtype.kind != "i":
        return numbers, None
    numbers = numbers.astype(np.intp)  # the packed type may be too small for differences
    first, last = int(numbers.min(initial=0)), int(numbers.max(initial=0))
    return (np.arange(first, last + 1), numbers - first) if last - first < len(numbers) else (numbers, None)


def _aligned_size(array: NDArray[Any]) -> int:
    """Return the number of bytes in a file, rounded up so that the next array is aligned."""
    return -(-array.nbytes // ALIGNMENT) * ALIGNMENT


def _pack(column: Any) -> Packed:
    if isinstance(column, sparse.csr_array):
        return "sparse", [column.data, column.indices, column.indptr, np.array(column.shape)]
    if column.dtype.kind == "i":
        # A signed type reaches one number further below 0 than above it.
        extreme = max(-int(column.min(initial=0)), int(column.max(initial=0)) + 1)
        return "plain", [column.astype(np.min_scalar_type(-extreme))]
    encoded = pa.array(column).dictionary_encode()  # many times faster than sorting
    values = encoded.dictionary.to_numpy()
    if len(values) > MAX_DISTINCT:
        return "plain", [column]
    small = np.min_scalar_type(max(len(values) - 1, 0))
    return "dictionary", [values, encoded.indices.to_numpy().astype(small)]


def _unpack(column: Packed) -> Any:
    kind, arrays = column
    if kind == "plain":
        return arrays[0]
    if kind == "dictionary":
        return arrays[0][arrays[1]]
    data, indices, starts, shape = arrays
    return sparse.csr_array((data, indices, starts), shape=tuple(shape))


def _stack(parts: list[Any]) -> Any:
    if len(parts) == 1:
        return parts[0]
    if sparse.issparse(parts[0]):
        return sparse.csr_array(sparse.vstack(parts, format="csr"))
    return np.concatenate(parts)

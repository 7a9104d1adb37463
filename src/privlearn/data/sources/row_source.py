"""Rows that come in blocks: from a table or an array in memory, from a file, or encoded from another source.

Whoever goes through the blocks needs memory for one of them, wherever the rows are.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import Any, Generic, Protocol, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from privlearn.data.sources.parallel import in_order
from privlearn.data.sources.passes import number_of_rows, watched
from privlearn.errors import DataError
from privlearn.heavy import pa, sparse

Block = TypeVar("Block")
Result = TypeVar("Result")
Matrix: TypeAlias = "NDArray[np.float64] | sparse.csr_array"
Places = NDArray[np.int64]

BLOCK = 1 << 16  # rows; a few hundred features of them fit into any memory
FEW = 1 << 17  # rows, for which threads cost more than they save
FEWEST_AT_A_TIME = 1 << 12  # sparse rows; measured best of 2048 to 16384 on the census of benchmarks/scale.py


class RowSource(ABC, Generic[Block]):
    """Rows in a fixed order, which may be gone through again and again."""

    @abstractmethod
    def __len__(self) -> int:
        """Number of rows."""

    @abstractmethod
    def blocks(self) -> Iterator[Block]:
        """The rows in their order, some of them at a time; where there are none, one empty block."""

    @abstractmethod
    def take(self, places: Places) -> RowSource[Block]:
        """The rows at some places, in the order of the places."""


class TableRows(RowSource["pa.Table"]):
    """An Arrow table in memory."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def blocks(self) -> Iterator[pa.Table]:
        return (self.table.slice(start, BLOCK) for start in _starts(len(self)))

    def take(self, places: Places) -> TableRows:
        return TableRows(self.table.take(places))


class BatchRows(RowSource["pa.Table"]):
    """Tables that come one after the other and only once, whoever makes them.

    Parameters
    ----------
    tables : iterator of pyarrow.Table
    """

    def __init__(self, tables: Iterator[pa.Table]) -> None:
        self._first = next(tables, None)  # its columns are looked at before a row is read
        self._rest: Iterator[pa.Table] | None = tables

    def __len__(self) -> int:
        raise DataError("how many record batches will come is not known: read them into a table first")

    @property
    def column_names(self) -> list[str]:
        return [] if self._first is None else list(self._first.column_names)

    def blocks(self) -> Iterator[pa.Table]:
        if self._rest is None:
            raise DataError("these record batches have been read: make a reader of them again")
        if self._first is None:
            raise DataError("there are no record batches: give at least one, which may be empty")
        first, rest = self._first, self._rest
        self._first = self._rest = None
        return chain([first], rest)

    def take(self, places: Places) -> TableRows:
        return taken(self.blocks(), places)


class JoinedRows(RowSource["pa.Table"]):
    """The rows of several sources, one after the other; each has a name for messages."""

    def __init__(self, parts: Sequence[tuple[str, RowSource[pa.Table]]]) -> None:
        self._parts = parts
        self.reading = ""

    def __len__(self) -> int:
        return sum(len(part) for _, part in self._parts)

    def blocks(self) -> Iterator[pa.Table]:
        for name, part in self._parts:
            self.reading = name
            yield from part.blocks()

    def take(self, places: Places) -> TableRows:
        return taken(self.blocks(), places)


class ChosenRows(RowSource["pa.Table"]):
    """Some rows of a source, in its order.

    Parameters
    ----------
    source : RowSource
    chosen : array of bool
        Whether a row is one of them, for each row of the source.
    """

    def __init__(self, source: RowSource[pa.Table], chosen: NDArray[np.bool_]) -> None:
        self._source, self._chosen = source, chosen

    def __len__(self) -> int:
        return int(np.count_nonzero(self._chosen))

    def blocks(self) -> Iterator[pa.Table]:
        start = 0
        for block in self._source.blocks():
            yield block.filter(pa.array(self._chosen[start : start + block.num_rows]))
            start += block.num_rows
        if start != len(self._chosen):
            raise DataError("the source's blocks have another number of rows than it says")

    def take(self, places: Places) -> TableRows:
        return taken(self.blocks(), places)


def read_each(source: RowSource[Block], read: Callable[[Block], Result]) -> Iterator[Result]:
    """What is read of each block; if one of several files does not fit, with its name."""
    for block in watched(source.blocks()):
        try:
            found = read(block)
        except DataError as error:
            if not isinstance(source, JoinedRows):
                raise
            problem = f"{source.reading}: {error}"
        else:
            yield found
            continue
        raise DataError(problem)
    pa.default_memory_pool().release_unused()  # a row group's room, else kept for the next file


def joined(blocks: Iterable[pa.Table]) -> pa.Table:
    """All blocks as one table; files may differ in how they write the same numbers."""
    tables = list(blocks)  # outside: what a block has to say of itself may be said
    try:
        return pa.concat_tables(tables, promote_options="permissive")
    except (pa.ArrowException, ValueError):
        pass  # its message may quote a cell
    raise DataError("the files differ in the types of their columns: write a column in one type everywhere")


def taken(blocks: Iterable[pa.Table], places: Places) -> TableRows:
    """The rows at some places among those of all blocks, in the order of the places."""
    order = np.argsort(places, kind="stable")
    wanted, parts, start = places[order], [], 0
    for block in blocks:
        first, last = np.searchsorted(wanted, (start, start + block.num_rows))
        parts.append(block.take(wanted[first:last] - start))
        start += block.num_rows
    return TableRows(joined(parts).take(np.argsort(order)))


class ArrayRows(RowSource[Any]):
    """A dense or CSR matrix in memory."""

    def __init__(self, matrix: Any) -> None:
        self.matrix = matrix

    def __len__(self) -> int:
        return int(self.matrix.shape[0])

    def blocks(self) -> Iterator[Any]:
        return (self.matrix[start : start + BLOCK] for start in _starts(len(self)))

    def take(self, places: Places) -> ArrayRows:
        return ArrayRows(self.matrix[places])


class Tables(Protocol):
    """Other coordinates for vectors, in which a block's products are quickly made.

    Attributes
    ----------
    width : int
        Number of coordinates.
    most_rows : int
        Of a block.
    product_depth, sum_depth : int
        Most roundings that a term of a row's product, and of a sum over a block's rows, passes through.
    """

    width: int
    most_rows: int
    product_depth: int
    sum_depth: int

    def block(self, cells: Any) -> Any:
        """Rows ``x`` for ``x @ spread(coefficients)`` and ``gathered(x.T @ weights)``."""
        ...

    def spread(self, vectors: Any) -> Any: ...

    def gathered(self, sums: Any) -> Any: ...

    def gathered_squares(self, sums: Any) -> Any: ...


class EncodedRows(RowSource[Matrix]):
    """Another source's rows as an encoder makes vectors of them: block by block, when they are asked for.

    Parameters
    ----------
    source : RowSource
    encode : callable
        From a block to its vectors; each vector depends on its own row and on public facts only.
    dimension : int
        Of a vector.
    is_sparse : bool
        Whether blocks are CSR.
    tables : Tables, optional
        How products with a block are made without its vectors.
    """

    def __init__(
        self,
        source: RowSource[Any],
        encode: Callable[[Any], Matrix],
        dimension: int,
        is_sparse: bool,
        tables: Tables | None = None,
    ) -> None:
        self._source = source
        self._encode = encode
        self._dimension = dimension
        self.is_sparse = is_sparse
        self.tables = tables

    def __len__(self) -> int:
        return len(self._source)

    @property
    def shape(self) -> tuple[int, int]:
        return len(self), self._dimension

    def blocks(self) -> Iterator[Matrix]:
        return watched(map(self._encode, self._source.blocks()), len(self))

    def mapped(self, work: Callable[[slice, Any], Result], tables: Tables | None = None) -> Iterator[Result]:
        """What ``work`` makes of each part and its place among all rows, in order; blocks on several cores."""
        size = rows_at_a_time(self._dimension) if tables is None else tables.most_rows
        encode = self._encode if tables is None else tables.block

        def placed() -> Iterator[tuple[int, Any]]:
            start = 0
            for block in watched(self._source.blocks(), len(self)):
                yield start, block
                start += number_of_rows(block)

        def made(place: tuple[int, Any]) -> list[Result]:
            start, block = place
            found = []
            for part in _parts(block, size):
                rows = slice(start, start + number_of_rows(part))
                found.append(work(rows, encode(part)))
                start = rows.stop
            return found

        return chain.from_iterable(in_order(made, placed(), many=len(self) > FEW))

    def take(self, places: Places) -> EncodedRows:
        return EncodedRows(
            self._source.take(places), self._encode, self._dimension, self.is_sparse, self.tables
        )

    def lifted(self, lift: Callable[[Matrix], Matrix], dimension: int) -> EncodedRows:
        """The rows as a further map makes dense vectors of them."""
        encode = self._encode
        return EncodedRows(self._source, lambda block: lift(encode(block)), dimension, False)

    def at_hand(self) -> EncodedRows | Matrix:
        """The rows for many passes: what tables make of their blocks, kept in memory; or all vectors."""
        if self.tables is None or len(self) < self.tables.width // 8:  # a pass costs as much as so many rows
            return self.in_memory()
        return KeptRows(self._source, self._encode, self._dimension, self.is_sparse, self.tables)

    def in_memory(self) -> Matrix:
        """All vectors at once, for what goes through them many times."""
        blocks: Iterator[Any] = self.blocks()
        first = next(blocks)
        if first.shape[0] == len(self):
            return cast(Matrix, first)
        if sparse.issparse(first):
            return stacked(chain([first], blocks), self._dimension)
        whole, start = np.empty(self.shape), 0
        for block in chain([first], blocks):
            if start + len(block) > len(whole):
                break
            whole[start : start + len(block)] = block
            start += len(block)
        if start != len(whole) or next(blocks, None) is not None:
            raise DataError("the source's blocks have another number of rows than it says")
        return whole


class KeptRows(EncodedRows):
    """Encoded rows few enough to keep what tables make of their blocks, in less room than their vectors."""

    def mapped(self, work: Callable[[slice, Any], Result], tables: Tables | None = None) -> Iterator[Result]:
        if tables is None:
            return super().mapped(work)
        return in_order(lambda placed: work(*placed), self._in_tables, many=len(self) > FEW)

    def take(self, places: Places) -> EncodedRows:
        taken = super().take(places)
        return KeptRows(taken._source, taken._encode, taken._dimension, taken.is_sparse, taken.tables)

    @cached_property
    def _in_tables(self) -> list[tuple[slice, Any]]:
        return list(super().mapped(lambda rows, block: (rows, block), self.tables))


def stacked(blocks: Iterable[Any], dimension: int) -> sparse.csr_array:
    """One CSR array of the rows of several, which grows as they come: there is never a second copy of all."""
    values, places, lengths = np.empty(0), np.empty(0, dtype=np.int32), []
    for block in blocks:
        start, stop = len(values), len(values) + block.nnz
        values.resize(stop, refcheck=False)
        places.resize(stop, refcheck=False)
        values[start:], places[start:] = block.data, block.indices
        lengths.append(np.diff(block.indptr))
    starts = np.concatenate([[0], *lengths]).cumsum()
    if starts[-1] < 2**31:
        starts = starts.astype(np.int32)
    return sparse.csr_array((values, places, starts), shape=(len(starts) - 1, dimension))


def in_memory(rows: Any) -> Any:
    """The matrix of encoded rows, whether it is one already or a source of blocks."""
    return rows.in_memory() if isinstance(rows, EncodedRows) else rows


def row_blocks(rows: Any) -> Iterator[tuple[slice, Any]]:
    """The blocks of a matrix or of a source of them, each with its place among all rows."""
    start = 0
    for block in (rows if isinstance(rows, RowSource) else ArrayRows(rows)).blocks():
        yield slice(start, start + block.shape[0]), block
        start += block.shape[0]


def rows_at_a_time(dimension: int) -> int:
    """Public: so many sparse rows stay in a core's cache from one product to the next.

    More where columns are many, since every sum over rows has an entry for each of them.
    """
    return min(max(FEWEST_AT_A_TIME, dimension // 4), BLOCK)


def _parts(block: Any, size: int) -> Iterator[Any]:
    """Cells by column in parts of so many rows; other blocks as they are."""
    rows = number_of_rows(block)
    if rows <= size or not isinstance(block, Mapping):
        yield block
        return
    for start in range(0, rows, size):
        yield {name: column[start : start + size] for name, column in block.items()}


def _starts(rows: int) -> range:
    return range(0, max(rows, 1), BLOCK)

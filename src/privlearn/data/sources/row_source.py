"""Row sources: rows in a fixed order that come in blocks, from memory, from a file, or encoded from another source.

A pass over the blocks needs memory for one block, wherever the rows are. `TableSource` yields Arrow tables;
`EncodedRows` yields vectors, or look-up rows for fast products (`Tables`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import Any, ClassVar, Generic, Protocol, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from privlearn.arrays import Array
from privlearn.data.sources.passes import count_pass, in_order, number_of_rows
from privlearn.errors import DataError
from privlearn.imports import pa, sparse

Block = TypeVar("Block")
Result = TypeVar("Result")
Matrix: TypeAlias = "NDArray[np.float64] | sparse.csr_array"
RowIndices = NDArray[np.int64]

BLOCK = 1 << 16  # rows; a few hundred features of them fit into any memory
FEW_ROWS = 1 << 17  # up to here threads cost more than they save
MAX_CACHED = 1 << 28  # bytes of look-up rows; more are looked up anew in each pass
MIN_SPARSE_ROWS = 1 << 12  # measured best of 2048 to 16384 on the census of benchmarks/scale.py
_WRONG_LENGTH = "the source yielded another number of rows than its length. Correct __len__ or the blocks."


class RowSource(ABC, Generic[Block]):
    """Rows in a fixed order, of which any number of passes may be made."""

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of rows."""

    @abstractmethod
    def blocks(self) -> Iterator[Block]:
        """Yield the rows in their order, in blocks; one empty block if there are none."""

    @abstractmethod
    def take(self, indices: RowIndices) -> RowSource[Block]:
        """Return the rows at these indices, in the order of the indices."""


class TableSource(RowSource["pa.Table"]):
    """A source whose blocks are Arrow tables; without a known length, a pass counts the rows."""

    def __len__(self) -> int:
        return self._counted_rows

    @cached_property
    def _counted_rows(self) -> int:
        return sum(block.num_rows for block in self.blocks())

    def take(self, indices: RowIndices) -> TableRows:
        order = np.argsort(indices, kind="stable")
        ascending, parts, start = indices[order], [], 0
        for block in self.blocks():
            first, last = np.searchsorted(ascending, (start, start + block.num_rows))
            parts.append(block.take(ascending[first:last] - start))
            start += block.num_rows
        return TableRows(concatenate_tables(parts).take(np.argsort(order)))


class TableRows(TableSource):
    """An Arrow table in memory."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def blocks(self) -> Iterator[pa.Table]:
        return (self.table.slice(start, BLOCK) for start in _starts(len(self)))

    def take(self, indices: RowIndices) -> TableRows:
        return TableRows(self.table.take(indices))


class BatchRows(TableSource):
    """Tables from an iterator, which can be read only once."""

    def __init__(self, tables: Iterator[pa.Table]) -> None:
        self._first = next(tables, None)  # its columns are checked before a row is read
        self._rest: Iterator[pa.Table] | None = tables

    def __len__(self) -> int:
        raise DataError("the number of record batches is not known in advance. Read them into a table first.")

    @property
    def column_names(self) -> list[str]:
        return [] if self._first is None else list(self._first.column_names)

    def blocks(self) -> Iterator[pa.Table]:
        if self._rest is None:
            raise DataError("these record batches were already read. Create a new reader.")
        if self._first is None:
            raise DataError("the iterator has no record batch. Pass at least one, which may be empty.")
        first, rest = self._first, self._rest
        self._first = self._rest = None
        return chain([first], rest)


class JoinedRows(TableSource):
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


class SelectedRows(TableSource):
    """Some rows of a source, in its order.

    ``selected``: for each row of the source, whether it belongs to the selection.
    """

    def __init__(self, source: RowSource[pa.Table], selected: NDArray[np.bool_]) -> None:
        self._source, self._selected = source, selected

    def __len__(self) -> int:
        return int(np.count_nonzero(self._selected))

    def blocks(self) -> Iterator[pa.Table]:
        start = 0
        for block in self._source.blocks():
            yield block.filter(pa.array(self._selected[start : start + block.num_rows]))
            start += block.num_rows
        if start != len(self._selected):
            raise DataError(_WRONG_LENGTH)


def read_each(source: RowSource[Block], read: Callable[[Block], Result]) -> Iterator[Result]:
    """Yield ``read(block)`` for each block; if one of several files cannot be read, the error names it."""
    for block in count_pass(source.blocks()):
        try:
            result = read(block)
        except DataError as error:
            if not isinstance(source, JoinedRows):
                raise
            problem = f"{source.reading}: {error}"
        else:
            yield result
            continue
        raise DataError(problem)
    pa.default_memory_pool().release_unused()  # Arrow would keep the memory of a row group for the next file


def concatenate_tables(blocks: Iterable[pa.Table]) -> pa.Table:
    """Return all blocks as one table; files may write the same numbers in different types."""
    tables = list(blocks)  # outside the try: errors of a block itself are passed on
    try:
        return pa.concat_tables(tables, promote_options="permissive")
    except (pa.ArrowException, ValueError):
        pass  # its message may quote a cell
    raise DataError("the files differ in the types of their columns. Write each column in one type.")


class ArrayRows(RowSource[Any]):
    """A dense or CSR matrix in memory."""

    def __init__(self, matrix: Any) -> None:
        self.matrix = matrix

    def __len__(self) -> int:
        return int(self.matrix.shape[0])

    def blocks(self) -> Iterator[Any]:
        return (self.matrix[start : start + BLOCK] for start in _starts(len(self)))

    def take(self, indices: RowIndices) -> ArrayRows:
        return ArrayRows(self.matrix[indices])


class UnexpandedRows(ABC):
    """A block of rows in the coordinates of `Tables`: it multiplies like a matrix, without vectors in memory."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """Number of rows and of coordinates."""

    @abstractmethod
    def __matmul__(self, coefficients: Array) -> Array:
        """Return the product of each row with coefficients."""

    @abstractmethod
    def sums(self, weights: Array, power: int = 1) -> Array:
        """Return ``sum_i weights_i x_ij^power`` for every coordinate j."""

    @abstractmethod
    def row_squares(self) -> Array:
        """Return the squared norm of each row."""


class Tables(Protocol):
    """Coordinates in which products with a block of rows are fast; `encoding.lookup_rows` implements them.

    ``width``: number of coordinates. ``max_rows``: maximum number of rows of a block. ``product_depth`` and
    ``sum_depth``: maximum number of roundings of a term in a row's product, and in a sum over a block's rows.
    """

    width: int
    max_rows: int
    product_depth: int
    sum_depth: int

    def block(self, cells: Any) -> Any:
        """Return rows ``x`` for ``x @ table_coefficients(w)`` and ``feature_sums(x.T @ weights)``."""
        ...

    def table_coefficients(self, vectors: Any) -> Any: ...

    def feature_sums(self, sums: Any) -> Any: ...

    def feature_square_sums(self, sums: Any) -> Any: ...


class RoughTables(Tables, Protocol):
    """Tables whose products have more rounding than certificates allow; `encoding.rough_rows` implements them."""

    @property
    def row_bytes(self) -> int: ...

    def around(self, centre: Any) -> RoughTables:
        """Return the tables for the rows that a `CentredEncoder` lifts."""
        ...


class EncodedRows(RowSource[Matrix]):
    """The rows of another source, encoded as vectors in each pass, block by block.

    Parameters
    ----------
    source : RowSource
    encode : callable
        Returns the vectors of a block; each vector depends only on its own row and on public information.
    dimension : int
        Length of a vector.
    is_sparse : bool
        Whether blocks are CSR arrays.
    tables : Tables, optional
        Computes products with a block without expanding its vectors.
    rough : RoughTables, optional
        The same, with more rounding than certificates allow.
    """

    on_cluster: ClassVar[bool] = False
    """Whether only the workers of a cluster see the vectors."""
    _rough: RoughTables | None = None

    def __init__(
        self,
        source: RowSource[Any],
        encode: Callable[[Any], Matrix],
        dimension: int,
        is_sparse: bool,
        tables: Tables | None = None,
        rough: RoughTables | None = None,
    ) -> None:
        self._source = source
        self._encode = encode
        self._dimension = dimension
        self.is_sparse = is_sparse
        self.tables = tables
        self._rough = rough

    def __len__(self) -> int:
        return len(self._source)

    @property
    def shape(self) -> tuple[int, int]:
        return len(self), self._dimension

    def blocks(self) -> Iterator[Matrix]:
        return count_pass(map(self._encode, self._source.blocks()), len(self))

    def map_blocks(
        self, work: Callable[[slice, Any], Result], tables: Tables | None = None
    ) -> Iterator[Result]:
        """Yield ``work(rows, block)`` in order, on several cores; ``rows`` is the block's slice of all rows."""
        size = rows_at_a_time(self._dimension) if tables is None else tables.max_rows
        encode = self._encode if tables is None else tables.block

        def numbered_blocks() -> Iterator[tuple[int, Any]]:
            start = 0
            for block in count_pass(self._source.blocks(), len(self)):
                yield start, block
                start += number_of_rows(block)

        def work_on(numbered: tuple[int, Any]) -> list[Result]:
            start, block = numbered
            results = []
            for part in _parts(block, size):
                rows = slice(start, start + number_of_rows(part))
                results.append(work(rows, encode(part)))
                start = rows.stop
            return results

        return chain.from_iterable(in_order(work_on, numbered_blocks(), many=len(self) > FEW_ROWS))

    def take(self, indices: RowIndices) -> EncodedRows:
        source = self._source.take(indices)
        return type(self)(source, self._encode, self._dimension, self.is_sparse, self.tables, self._rough)

    def apply(self, transform: Callable[[Matrix], Matrix], dimension: int) -> EncodedRows:
        """Return the rows after a further map to dense vectors."""
        encode = self._encode
        return EncodedRows(self._source, lambda block: transform(encode(block)), dimension, False)

    def centre(self, encoder: Any) -> EncodedRows:
        """Return the rows that a `CentredEncoder` lifts."""
        rows = self.apply(encoder.lift, encoder.dimension)
        rows._rough = None if self._rough is None else self._rough.around(encoder)
        return rows

    def roughly(self) -> EncodedRows | None:
        """Return the rows for products with more rounding, for warm starts; None if these would not be faster."""
        if self._rough is None:
            return None
        kind = CachedRows if len(self) * self._rough.row_bytes <= MAX_CACHED else EncodedRows
        return kind(self._source, self._encode, self._dimension, self.is_sparse, self._rough)

    def for_many_passes(self) -> EncodedRows | Matrix:
        """Return the rows in memory: look-up rows if there are tables and enough rows, else all vectors."""
        # A pass with tables costs as much as this number of rows, however few there are.
        if self.tables is None or len(self) < self.tables.width // 8:
            return self.in_memory()
        return CachedRows(self._source, self._encode, self._dimension, self.is_sparse, self.tables)

    def in_memory(self) -> Matrix:
        """Return all vectors as one matrix."""
        blocks: Iterator[Any] = self.blocks()
        first = next(blocks)
        if first.shape[0] == len(self):
            return cast(Matrix, first)
        if sparse.issparse(first):
            return stack_csr(chain([first], blocks), self._dimension)
        whole, start = np.empty(self.shape, first.dtype), 0
        for block in chain([first], blocks):
            if start + len(block) > len(whole):
                break
            whole[start : start + len(block)] = block
            start += len(block)
        if start != len(whole) or next(blocks, None) is not None:
            raise DataError(_WRONG_LENGTH)
        return whole


class CachedRows(EncodedRows):
    """Encoded rows whose look-up rows stay in memory, where they take less space than vectors."""

    def map_blocks(
        self, work: Callable[[slice, Any], Result], tables: Tables | None = None
    ) -> Iterator[Result]:
        if tables is None:
            return super().map_blocks(work)
        return in_order(lambda both: work(*both), self._lookup_rows, many=len(self) > FEW_ROWS)

    @cached_property
    def _lookup_rows(self) -> list[tuple[slice, Any]]:
        return list(super().map_blocks(lambda rows, block: (rows, block), self.tables))


def stack_csr(blocks: Iterable[Any], dimension: int) -> sparse.csr_array:
    """Return the rows of several CSR arrays as one; arrays grow in place, so memory never holds a second copy."""
    values, indices, lengths = np.empty(0), np.empty(0, dtype=np.int32), []
    for block in blocks:
        start, stop = len(values), len(values) + block.nnz
        values.resize(stop, refcheck=False)
        indices.resize(stop, refcheck=False)
        values[start:], indices[start:] = block.data, block.indices
        lengths.append(np.diff(block.indptr))
    starts = np.concatenate([[0], *lengths]).cumsum()
    if starts[-1] < 2**31:
        starts = starts.astype(np.int32)
    return sparse.csr_array((values, indices, starts), shape=(len(starts) - 1, dimension))


def in_memory(rows: Any) -> Any:
    """Return encoded rows as a matrix; a matrix is returned as it is."""
    return rows.in_memory() if isinstance(rows, EncodedRows) else rows


def row_blocks(rows: Any) -> Iterator[tuple[slice, Any]]:
    """Yield the blocks of a matrix or of a source of matrices, each with its slice of all rows."""
    start = 0
    for block in (rows if isinstance(rows, RowSource) else ArrayRows(rows)).blocks():
        yield slice(start, start + block.shape[0]), block
        start += block.shape[0]


def rows_at_a_time(dimension: int) -> int:
    """Public: return a number of sparse rows that stay in a core's cache from one product to the next.

    It grows with the dimension, since every sum over rows has one entry per feature.
    """
    return min(max(MIN_SPARSE_ROWS, dimension // 4), BLOCK)


def _parts(block: Any, size: int) -> Iterator[Any]:
    """Yield cells by column in parts of at most `size` rows; other blocks whole."""
    rows = number_of_rows(block)
    if rows <= size or not isinstance(block, Mapping):
        yield block
        return
    for start in range(0, rows, size):
        yield {name: column[start : start + size] for name, column in block.items()}


def _starts(rows: int) -> range:
    return range(0, max(rows, 1), BLOCK)

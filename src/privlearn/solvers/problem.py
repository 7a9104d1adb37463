"""The problem to solve (rows, signs, loss, weights, a perturbation), and sums over its rows.

Rows come in blocks: dense, CSR, or `UnexpandedRows`, which multiply without vectors in memory. All sums have a known
number of additions in a chain, on which the certificates' rounding bounds rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from privlearn.arrays import Array
from privlearn.data.sources import row_source
from privlearn.data.sources.passes import blas_threads, in_order, one_blas_thread, row_numbers
from privlearn.errors import InvalidParameter, check_positive
from privlearn.imports import sparse
from privlearn.solvers.certifiable import DENSE_BLOCK, MAX_LEVELS, PIECE, SPARSE_BLOCK, product_chain
from privlearn.solvers.losses import Loss

Result = TypeVar("Result")
Features = Any
"""A dense float64 or float32 array, a scipy CSR matrix or array of those, or `EncodedRows`, which come in blocks."""

Progress = Callable[[int, float], None]
"""Called with the number of iterations so far and the certified gradient norm (or duality gap) reached."""


@dataclass(frozen=True, eq=False, repr=False)
class Problem:
    """``J(w) = (1/N) sum_i weight_i loss(sign_i <w, x_i> - offset_i) + (Lambda/2) |w|^2 + <linear, w>``.

    There is no intercept: it is one more bounded feature, regularised like the others.

    Parameters
    ----------
    features : array or CSR matrix of shape (n, d)
        Rows of Euclidean norm at most ``norm_bound``; float64 or float32.
    signs : array of shape (n,)
        +1 or -1.
    loss : Loss
    regularization : float
        Lambda above 0; it makes the minimiser unique.
    total : int
        N, the public number of records; an empty or deleted record still counts.
    row_weights : array of shape (n,), optional
        Non-negative (weights of classes or persons); ones by default.
    linear : array of shape (d,), optional
        The perturbation of objective perturbation, already divided by N; zero by default.
    norm_bound : float, default=1.0
        R, public.
    offsets : array of shape (n,), optional
        Subtracted from the margins, so that a regression loss receives residuals; zero by default.
    """

    features: Features
    signs: NDArray[Any]
    loss: Loss
    regularization: float
    total: int
    row_weights: Array | None = None
    linear: Array | None = None
    norm_bound: float = 1.0
    offsets: Array | None = None

    def __post_init__(self) -> None:
        check_features(self.features)
        check_positive(regularization=self.regularization, total=self.total, norm_bound=self.norm_bound)
        rows, columns = self.features.shape
        check_signs(self.signs, rows)
        check_row_weights(self.row_weights, rows)
        if self.linear is not None:
            check_vector("linear", self.linear, columns)
        if self.offsets is not None:
            check_vector("offsets", self.offsets, rows)


@dataclass(frozen=True, eq=False, repr=False)
class Solution:
    """A point and a proven bound on its distance from the minimiser.

    Attributes
    ----------
    coefficients : array
    gradient_norm : float
        Upper bound on the norm of the exact gradient there, rounding errors included. For the hinge,
        which has no gradient, ``regularization * distance``.
    distance : float
        Upper bound on the distance to the exact minimiser.
    iterations : int
    """

    coefficients: Array
    gradient_norm: float
    distance: float
    iterations: int


def check_features(features: Features) -> None:
    """Raise InvalidParameter for features that the solvers cannot read without a copy."""
    if isinstance(features, row_source.EncodedRows):
        return
    if sparse.issparse(features):
        if cast(Any, features).format != "csr":
            raise InvalidParameter("sparse features must be in CSR format. Call .tocsr() first")
    elif not isinstance(features, np.ndarray):
        raise InvalidParameter("features must be a numpy array or a scipy CSR matrix")
    if features.ndim != 2 or features.shape[1] == 0:
        raise InvalidParameter("features must have two dimensions and at least one column")
    if features.dtype not in (np.float64, np.float32):
        raise InvalidParameter("features must be float64 or float32. Call .astype(numpy.float64) first")


def check_signs(signs: NDArray[Any], rows: int) -> None:
    """Raise InvalidParameter unless there is a sign, +1 or -1, for each row."""
    check_vector("signs", signs, rows)
    if not np.all(np.abs(signs) == 1):
        raise InvalidParameter("signs must be +1 or -1: map the two classes to them")


def check_row_weights(row_weights: Array | None, rows: int) -> None:
    """Raise InvalidParameter for negative weights: the objective would not be convex."""
    if row_weights is None:
        return
    check_vector("row_weights", row_weights, rows)
    if np.any(row_weights < 0):
        raise InvalidParameter("row_weights must not be negative")


def check_vector(name: str, vector: NDArray[Any], length: int) -> None:
    """Raise InvalidParameter unless there is a finite number for each row or column."""
    if vector.shape != (length,):
        raise InvalidParameter(f"{name} must have shape ({length},), not {vector.shape}")
    if not np.all(np.isfinite(vector)):
        raise InvalidParameter(f"{name} must be finite")


def _rows_in_cache(dimension: int) -> int:
    """Return a number of dense rows that stay in the cache between their two products."""
    return min(max(CACHE // dimension, 64), DENSE_BLOCK)


CACHE = 1 << 18  # numbers
MANY_NUMBERS = 1 << 22  # dense numbers from which several threads save time
BLOCKS_PER_THREAD = 8  # handed over at once
NORM_SLACK = 1e-9  # relative; rows scaled to the bound exceed it by a few rounding errors


class Rows:
    """Blocks of rows of a dense or CSR matrix, as float64.

    Attributes
    ----------
    chain : int
        Maximal number of additions in a chain for any entry of a sum over all rows (the k of ``gamma_k``), for any
        number of rows; for a row's product see `product_chain`.
    """

    def __init__(self, features: Features, norm_bound: float) -> None:
        self.count, self.dimension = features.shape
        in_blocks = isinstance(features, row_source.EncodedRows)
        self.is_sparse = features.is_sparse if in_blocks else sparse.issparse(features)
        self._size = (
            min(SPARSE_BLOCK, row_source.rows_at_a_time(self.dimension))
            if self.is_sparse
            else _rows_in_cache(self.dimension)
        )
        # Inside a block, terms are added in one chain; the blocks are added as a tree (`pairwise_sum`).
        self.chain = (SPARSE_BLOCK if self.is_sparse else DENSE_BLOCK) + MAX_LEVELS
        self.is_single = isinstance(features, np.ndarray) and features.dtype == np.float32
        self._features = features
        self._tables = _tables_of(features)
        self.width: int = self.dimension if self._tables is None else self._tables.width
        self.is_encoded, self.is_looked_up = in_blocks, self._tables is not None
        self._blocks = (
            None if in_blocks or not self.is_sparse else list(self._pieces(slice(0, self.count), features))
        )
        self._norm_bound = norm_bound
        self._longest = (norm_bound * (1.0 + NORM_SLACK)) ** 2
        self._is_checked = False
        for _ in () if in_blocks else self.map_blocks(lambda rows, block: None):
            pass  # checks the norms before the first step; rows in blocks are checked in their first pass

    def __iter__(self) -> Iterator[tuple[slice, Any]]:
        return self._iterate(np.float64)

    def _iterate(self, kind: Any) -> Iterator[tuple[slice, Any]]:
        if self._blocks is not None:
            yield from self._blocks
            return
        for rows, block in row_source.row_blocks(self._features):
            yield from self._pieces(rows, block, kind)

    def map_blocks(self, work: Callable[[slice, Any], Result], kind: Any = np.float64) -> Iterator[Result]:
        """Yield ``work(rows, block)`` for each block, in order; encoded rows and large arrays on several cores.

        Dense blocks have the type ``kind``: float64, or float32 for products that may be inexact.
        """
        if isinstance(self._features, row_source.EncodedRows):
            for results in self._features.map_blocks(
                lambda rows, block: self._apply(work, self._pieces(rows, block, kind)), self._tables
            ):
                yield from results
        elif self._blocks is None and self.count * self.dimension > MANY_NUMBERS and blas_threads() > 1:
            # Blocks are too small for the threads of BLAS, so each thread takes blocks.
            with one_blas_thread():
                for results in in_order(
                    lambda group: self._apply(work, self._pieces(*group, kind)), self._groups()
                ):
                    yield from results
        else:
            for part in self._iterate(kind):
                yield from self._apply(work, iter([part]))
        self._is_checked = True

    def _groups(self) -> Iterator[tuple[slice, Any]]:
        """Yield dense rows in groups of blocks, each for one thread."""
        size = BLOCKS_PER_THREAD * self._size
        for start in range(0, self.count, size):
            rows = slice(start, min(start + size, self.count))
            yield rows, self._features[rows]

    def _apply(
        self, work: Callable[[slice, Any], Result], pieces: Iterator[tuple[slice, Any]]
    ) -> list[Result]:
        results = []
        for rows, block in pieces:
            if not self._is_checked:
                self._check_norms(block)
            results.append(work(rows, block))
        return results

    def _pieces(self, rows: slice, block: Any, kind: Any = np.float64) -> Iterator[tuple[slice, Any]]:
        """Yield a block in parts that are small enough for the chain, dense ones as ``kind``."""
        if isinstance(block, row_source.UnexpandedRows):  # already small enough
            yield rows, block
            return
        for start in range(rows.start, rows.stop, self._size):
            part = slice(start, min(start + self._size, rows.stop))
            inside = slice(part.start - rows.start, part.stop - rows.start)
            yield part, _csr_view(block, inside) if self.is_sparse else np.asarray(block[inside], kind)

    def sum_values_and_gradients(
        self, work: Callable[[slice, Any], tuple[float, Array]], shape: int | tuple[int, int]
    ) -> tuple[float, Array]:
        """Return the sums of the values and of the gradients that ``work`` returns for each block."""
        values = []

        def gradients() -> Iterator[Array]:
            for value, gradient in self.map_blocks(work):
                values.append(value)
                yield gradient

        gradient = self.feature_sums(pairwise_sum(gradients(), shape))
        return sum(values), gradient

    def every(self, stride: int) -> Rows:
        """Return every ``stride``-th row, in memory."""
        return Rows(sample_rows(self._features, stride), self._norm_bound)

    def roughly(self) -> Rows | None:
        """Return the rows for products with more rounding, for warm starts; None if these would not be faster."""
        rough = self._features.roughly() if self.is_encoded else None
        return None if rough is None else Rows(rough, self._norm_bound)

    def block_coefficients(self, vectors: Array) -> Array:
        """Return coefficients in the form by which the blocks of `map_blocks` are multiplied."""
        return vectors if self._tables is None else self._tables.table_coefficients(vectors)

    def feature_sums(self, sums: Array) -> Array:
        """Return the sums over rows, (d,), from sums over blocks, (`width`,)."""
        return sums if self._tables is None else self._tables.feature_sums(sums)

    def feature_square_sums(self, sums: Array) -> Array:
        """Return the sums of squares over rows, from those over blocks."""
        return sums if self._tables is None else self._tables.feature_square_sums(sums)

    def numbers(self) -> Any:
        """Return an array for one number per row in single precision, on disk for many encoded rows."""
        if isinstance(self._features, row_source.EncodedRows):
            return row_numbers(self.count)
        return np.empty(self.count, dtype=np.float32)

    def times(self, vector: Array) -> Array:
        """Return ``X v``."""
        product = np.empty(self.count)
        for rows, block in self:
            product[rows] = row_products(block, vector)
        return product

    def transpose_times(self, vector: Array) -> Array:
        """Return ``X' v``."""
        return pairwise_sum((block.T @ vector[rows] for rows, block in self), self.dimension)

    def gram(self, weights: Any, kind: type[np.floating[Any]] = np.float64) -> Array:
        """Return ``X' diag(weights) X``; numpy computes ``A.T @ A`` at half the cost of another product."""
        gram = np.zeros((self.dimension, self.dimension), dtype=kind)
        for rows, block in row_source.row_blocks(self._features) if self._blocks is None else self._blocks:
            for part in _dense_parts(block, np.sqrt(weights[rows]).astype(kind)):
                gram += part.T @ part
        return gram.astype(np.float64)

    def sample_gram(self, weights: Any, columns: NDArray[np.intp], stride: int) -> Array:
        """Return ``X' diag(weights) X`` in some columns, over every ``stride``-th row."""
        sample = row_source.in_memory(sample_rows(self._features, stride))[:, columns]
        roots = np.sqrt(weights[::stride])
        if self.is_sparse:
            part = _scale_rows(sparse.csr_array(sample), roots)
            return np.asarray((part.T @ part).toarray())
        dense = sample * roots[:, np.newaxis]
        return np.asarray(dense.T @ dense)

    def _check_norms(self, block: Any) -> None:
        if not np.all(row_squares(block) <= self._longest):  # also catches NaN
            raise InvalidParameter(
                "features have rows that are not finite or longer than norm_bound: clip the rows first"
            )


def threads_for(features: Features) -> AbstractContextManager[None]:
    """Return a context in which BLAS has one thread, unless the rows are many dense numbers.

    Its threads wait for each other in a busy loop, which takes longer than small products, and encoded rows have
    threads of their own.
    """
    is_large = isinstance(features, np.ndarray) and features.size > MANY_NUMBERS
    return nullcontext() if is_large else one_blas_thread()


def _tables_of(features: Features) -> row_source.Tables | None:
    """Return the tables for products without vectors, unless they round more often than the certificate allows."""
    tables = features.tables if isinstance(features, row_source.EncodedRows) else None
    if tables is None or tables.product_depth > product_chain(features.shape[1]):
        return None
    return tables if tables.sum_depth <= SPARSE_BLOCK else None


def sample_rows(features: Features, stride: int) -> Features:
    """Return every ``stride``-th row, in memory, for solvers that make many passes."""
    if not isinstance(features, row_source.EncodedRows):
        return features[::stride]
    return features.take(np.arange(0, features.shape[0], stride)).for_many_passes()


def row_products(block: Any, vectors: Array) -> Array:
    """Return ``block @ vectors``, long rows in pieces of `PIECE` terms: fewer roundings in a chain."""
    if isinstance(block, row_source.UnexpandedRows):
        return block @ vectors
    if _is_sparse(block):
        return _sparse_products(block, vectors)
    product: Array = block[:, :PIECE] @ vectors[:PIECE]
    for start in range(PIECE, block.shape[1], PIECE):
        product += block[:, start : start + PIECE] @ vectors[start : start + PIECE]
    return product


def column_products(block: Any, vectors: Array) -> Array:
    """Return ``block.T @ vectors`` for several vectors; dense rows the other way round, which BLAS does faster."""
    product: Array = (vectors.T @ block).T if isinstance(block, np.ndarray) else block.T @ vectors
    return product


def _sparse_products(block: Any, vectors: Array) -> Array:
    lengths = np.diff(block.indptr)
    if np.max(lengths, initial=0) <= PIECE:
        product: Array = block @ vectors
        return product
    # An empty row gets one empty piece: without one, `reduceat` would return the sum of the next row for it.
    counts = np.maximum(-(-lengths // PIECE), 1)
    first = np.cumsum(counts) - counts
    steps = np.arange(counts.sum()) - np.repeat(first, counts)
    cuts = np.append(np.repeat(block.indptr[:-1], counts) + PIECE * steps, block.indptr[-1])
    pieces = sparse.csr_array((block.data, block.indices, cuts), shape=(len(steps), block.shape[1]))
    sums: Array = np.add.reduceat(pieces @ vectors, first, axis=0)
    return sums


def pairwise_sum(terms: Iterable[Array], shape: int | tuple[int, int]) -> Array:
    """Return the sum of fresh arrays, added as a binary tree: a chain is as long as the tree is high."""
    waiting: list[tuple[int, Array]] = []  # (height, sum of 2^height terms), in decreasing height
    for term in terms:
        height = 0
        while waiting and waiting[-1][0] == height:
            # In place: the terms are fresh arrays, and no caller uses them again.
            term += waiting.pop()[1]
            height += 1
        waiting.append((height, term))
    total = np.zeros(shape)
    while waiting:
        total += waiting.pop()[1]
    return total


def _dense_parts(block: Any, roots: Any) -> Iterator[Any]:
    """Yield rows of positive weight times the roots of their weights, few enough at a time to be dense."""
    active = np.flatnonzero(roots)
    for start in range(0, len(active), DENSE_BLOCK):
        rows: Any = active[start : start + DENSE_BLOCK]
        if rows[-1] - rows[0] == len(rows) - 1:  # a slice needs no copy
            rows = slice(rows[0], rows[-1] + 1)
        part = block[rows].toarray() if _is_sparse(block) else block[rows]
        part = part.astype(roots.dtype)
        part *= roots[rows, np.newaxis]
        yield part


def row_squares(block: Any) -> Array:
    """Return the squared Euclidean norm of each row."""
    if isinstance(block, row_source.UnexpandedRows):
        return block.row_squares()
    if _is_sparse(block):
        squares: Array = _square_entries(block) @ np.ones(block.shape[1])
        return squares
    norms: Array = np.einsum("ij,ij->i", block, block)
    return norms


def column_squares(block: Any, weights: NDArray[Any]) -> Array:
    """Return ``sum_i weights_i x_ij^2`` for every column j."""
    if isinstance(block, row_source.UnexpandedRows):
        return block.sums(weights, 2)
    squares: Array = (_square_entries(block) if _is_sparse(block) else block**2).T @ weights
    return squares


def _is_sparse(block: Any) -> bool:
    return sparse.issparse(block)


def _square_entries(block: Any) -> Any:
    return sparse.csr_array((block.data**2, block.indices, block.indptr), shape=block.shape)


def _scale_rows(block: Any, factors: Array) -> Any:
    data = block.data * np.repeat(factors, np.diff(block.indptr))
    return sparse.csr_array((data, block.indices, block.indptr), shape=block.shape)


def _csr_view(features: Any, rows: slice) -> Any:
    first, last = features.indptr[rows.start], features.indptr[rows.stop]
    offsets = features.indptr[rows.start : rows.stop + 1] - first
    parts = (features.data[first:last], features.indices[first:last], offsets)
    return sparse.csr_array(parts, shape=(rows.stop - rows.start, features.shape[1]))

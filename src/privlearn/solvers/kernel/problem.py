"""The problem of a kernel machine, its solution, and products with its signed Gram matrix."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privlearn.arrays import Array
from privlearn.errors import InvalidParameter, check_positive, preview
from privlearn.solvers.certifiable import SAFETY, gamma
from privlearn.solvers.gradients import SKETCHED, Single, sketch
from privlearn.solvers.losses import Loss
from privlearn.solvers.problem import check_row_weights, check_signs, check_vector

SYMMETRY = 1e-9  # relative; what rounding can explain
TILE = 128  # rows and columns that stay in the cache


@dataclass(frozen=True, eq=False, repr=False)
class KernelProblem:
    """``J(f) = (1/N) sum_i weight_i loss(sign_i f(x_i) - offset_i) + (Lambda/2) |f|_H^2``.

    f runs over the reproducing space H of a kernel k. The minimiser is ``f = sum_i dual_i k(x_i, .)``.
    There is no intercept: add a constant to the kernel.

    Parameters
    ----------
    gram : array of shape (n, n)
        ``k(x_i, x_j)``, float64, positive semidefinite, of any rank; symmetric up to rounding errors.
    signs, loss, regularization, total, row_weights
        As for `Problem`.
    offsets : array of shape (n,), optional
        Subtracted from the margins, so that a regression loss receives residuals; zero by default, and for the hinge.
    gram_error : float, default=0.0
        Bound on the difference between each entry of ``gram`` and the exact kernel. At 0 the kernel is the matrix
        itself, or the mean of it and its transpose.
    symmetric : bool, default=False
        Whether the matrix is known to be exactly symmetric and finite: checking takes as long as a step.

    Attributes
    ----------
    asymmetry : float
        Maximal difference between two entries that should be equal.
    """

    gram: Array
    signs: NDArray[Any]
    loss: Loss
    regularization: float
    total: int
    row_weights: Array | None = None
    offsets: Array | None = None
    gram_error: float = 0.0
    symmetric: bool = False
    asymmetry: float = field(init=False)

    def __post_init__(self) -> None:
        _check_gram(self.gram)
        object.__setattr__(self, "asymmetry", 0.0 if self.symmetric else _asymmetry(self.gram))
        check_positive(regularization=self.regularization, total=self.total)
        check_signs(self.signs, len(self.gram))
        check_row_weights(self.row_weights, len(self.gram))
        if self.offsets is not None:
            check_vector("offsets", self.offsets, len(self.gram))
            if math.isinf(self.loss.smoothness):
                raise InvalidParameter(
                    "offsets need a loss with a bounded second derivative. Use loss='huber'"
                )
        if not 0 <= self.gram_error < math.inf:
            raise InvalidParameter(
                f"gram_error must be finite and not negative, not {preview(self.gram_error)}"
            )


@dataclass(frozen=True, eq=False, repr=False)
class KernelSolution:
    """A function and a proven bound on its distance from the minimiser.

    Attributes
    ----------
    dual : array of shape (n,)
        The function is ``sum_i dual_i k(x_i, .)``; zero for the rows that do not matter.
    gap : float
        Upper bound on ``J(f) - min J``, rounding errors included.
    distance : float
        Upper bound on ``|f - f*|_H``, ``sqrt(2 gap / Lambda)``.
    iterations : int
        Linear systems solved.
    """

    dual: Array
    gap: float
    distance: float
    iterations: int


@dataclass(frozen=True, eq=False, repr=False)
class CertifiedPoint:
    """A point of the dual with its proven gap, after a number of steps."""

    alpha: Array
    gap: float
    steps: int


def _check_gram(gram: Any) -> None:
    """Raise InvalidParameter for an impossible Gram matrix; that it has no negative eigenvalue is trusted."""
    if not isinstance(gram, np.ndarray) or gram.dtype != np.float64:
        raise InvalidParameter("gram must be a numpy array of float64. Call numpy.asarray(gram, float) first")
    if gram.ndim != 2 or gram.shape[0] != gram.shape[1] or len(gram) == 0:
        raise InvalidParameter("gram must be a square matrix with a row for each record, and at least one")
    if np.any(gram.diagonal() < 0):
        raise InvalidParameter("gram has a negative diagonal entry, so it belongs to no kernel")


def _asymmetry(gram: Array) -> float:
    """Return the asymmetry; raise InvalidParameter for infinite entries, and for more than rounding explains."""
    with np.errstate(invalid="ignore", over="ignore"):
        differences = [np.max(np.abs(gram[one, other] - gram[other, one].T)) for one, other in _tiles(gram)]
    asymmetry = float(np.max(differences))
    if not np.isfinite(asymmetry):
        raise InvalidParameter("gram must be finite. Check the kernel's settings")
    if asymmetry > SYMMETRY * float(gram.diagonal().max()):
        raise InvalidParameter("gram must be symmetric: a kernel has k(x, z) = k(z, x)")
    return asymmetry


def make_symmetric(gram: Array) -> None:
    """Replace the matrix by the mean of it and its transpose, in place."""
    for one, other in _tiles(gram):
        mean = gram[one, other] + gram[other, one].T
        mean *= 0.5
        gram[one, other], gram[other, one] = mean, mean.T


def _tiles(gram: Array) -> Iterator[tuple[slice, slice]]:
    """Return the rows and columns of the tiles on and above the diagonal."""
    starts = range(0, len(gram), TILE)
    return ((slice(i, i + TILE), slice(j, j + TILE)) for i in starts for j in starts if i <= j)


# That of float64 on platforms without a wider type.
EXTENDED_ROUNDOFF = float(np.finfo(np.longdouble).eps) / 2.0
BLOCK = 64  # rows widened at a time
CHUNK = 32  # rows copied at a time: few enough to stay in the cache
MAX_SELECTED = 0.6  # share of the rows up to which selecting them is faster than a product with all
NEGLIGIBLE = 1e-17  # eigenvalues, relative to the sum of all

Rows = NDArray[np.intp]


def wide_gamma(operations: int) -> float:
    """Return `certifiable.gamma` in extended precision."""
    return operations * EXTENDED_ROUNDOFF / (1.0 - operations * EXTENDED_ROUNDOFF)


class SignedGram:
    """The matrix ``Q_ij = sign_i sign_j k(x_i, x_j) / scale`` of a `KernelProblem`, with scale = Lambda N."""

    def __init__(self, gram: Array, signs: Array, scale: float, gram_error: float = 0.0) -> None:
        self._gram = gram
        self.count = len(gram)
        self.signs = signs
        self.scale = scale
        self.diagonal: Array = gram.diagonal()
        # A kernel has |k(x, z)| <= max k(x, x), and each side is off by at most the error.
        self.max_entry = float(self.diagonal.max()) + 2.0 * gram_error
        self._gram_error = gram_error
        self._last: tuple[Array, Array] | None = None

    def restrict(self, rows: Rows, share: float = 1.0) -> SignedGram:
        """Return the matrix in those rows and columns, for a problem with that share of the records."""
        return SignedGram(self.block(rows), self.signs[rows], self.scale * share, self._gram_error)

    @cached_property
    def sketch(self) -> Single:
        """B of `gradients`, one row for each row."""
        sample = np.linspace(0, self.count - 1, SKETCHED).astype(np.intp)
        return sketch(self._gram[sample].astype(np.float32), sample)

    def root_rows(self) -> Array:
        """Return rows, (n, rank), whose Gram matrix is this one without signs and scale."""
        values, vectors = np.linalg.eigh(self.block(np.arange(self.count)))
        significant = values > NEGLIGIBLE * np.sum(values)
        if not significant.any():
            return np.zeros((self.count, 1))
        return np.ascontiguousarray(vectors[:, significant] * np.sqrt(values[significant]))

    def row(self, index: int) -> Array:
        """Return ``k(x_i, .)`` at all rows, neither signed nor scaled."""
        row: Array = self._gram[index]
        return row

    def times(self, vector: Array) -> Array:
        """Return ``Q v``. The last product is stored: a certificate and the step after it need the same one."""
        signed = self.signs * vector
        if self._last is None or not np.array_equal(self._last[0], signed):
            self._last = signed, self.signs * self._product(signed) / self.scale
        return self._last[1].copy()

    def _product(self, vector: Array) -> Array:
        """Return the product with the Gram matrix; where the vector has few non-zeros, read only their rows."""
        used = np.flatnonzero(vector)
        if len(used) > MAX_SELECTED * self.count:
            return self._gram @ vector
        product = np.zeros(self.count)
        for start in range(0, len(used), CHUNK):
            some = used[start : start + CHUNK]
            product += vector[some] @ self._gram[some]  # rows for columns: the matrix is symmetric
        return product

    def block(self, rows: Rows, kind: type[np.floating[Any]] = np.float64) -> NDArray[Any]:
        """Return the Gram matrix in those rows and columns, neither signed nor scaled: a fresh array."""
        block = np.empty((len(rows), len(rows)), kind)
        for start in range(0, len(rows), CHUNK):
            some = slice(start, start + CHUNK)
            block[some] = np.take(self._gram[rows[some]], rows, axis=1)
        return block

    def margin_error(self, alpha: Array) -> float:
        """Return a bound on the error of every entry of ``times(alpha)`` as a margin of the function of `dual`."""
        return SAFETY * self._sum_error(gamma(self.count + 8), self.dual(alpha))

    def wide_margins(self, rows: Rows, alpha: Array) -> tuple[Array, float]:
        """Return the margins in those rows, summed in extended precision, and a bound on the error of each."""
        dual = self.dual(alpha)
        used = np.flatnonzero(dual)
        wide = dual[used].astype(np.longdouble)
        margins = np.empty(len(rows))
        for start in range(0, len(rows), BLOCK):
            some = rows[start : start + BLOCK]
            sums = self._gram[some][:, used].astype(np.longdouble) @ wide
            margins[start : start + BLOCK] = self.signs[some] * sums
        rounding = gamma(1) * float(np.max(np.abs(margins), initial=0.0))  # of each sum to float64
        return margins, SAFETY * (self._sum_error(wide_gamma(len(used) + 2), dual) + rounding)

    def dual(self, alpha: Array) -> Array:
        """Return the coefficients of the function ``f = sum_i dual_i k(x_i, .)``."""
        return self.signs * alpha / self.scale

    def square(self, vector: Array) -> float:
        """Return an upper bound on ``v' Q v``."""
        size = float(np.sum(np.abs(vector)))
        bound = (2.0 * gamma(self.count + 8) * self.max_entry + self._gram_error) * size / self.scale * size
        return max(float(vector @ self.times(vector)), 0.0) + SAFETY * bound

    def _sum_error(self, relative: float, dual: Array) -> float:
        return (relative * self.max_entry + self._gram_error) * float(np.sum(np.abs(dual)))

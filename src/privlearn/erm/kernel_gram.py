"""Products with the signed Gram matrix ``Q_ij = sign_i sign_j k(x_i, x_j) / (Lambda N)``, and their rounding.

With ``alpha_i = Lambda N sign_i dual_i`` the signed margins are ``Q alpha`` and the norm is
``Lambda N |f|_H^2 = alpha' Q alpha``. Q is never formed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from privlearn.erm.losses import Array
from privlearn.erm.objective import SAFETY, gamma

EXTENDED_ROUNDOFF = float(np.finfo(np.longdouble).eps) / 2.0  # that of float64 where there is nothing wider
BLOCK = 64  # rows widened at a time
CHUNK = 32  # rows copied at a time: few enough to stay in the cache
WORTH_CHOOSING = 0.6  # share of the rows up to which choosing them is quicker than a product with all

Rows = NDArray[np.intp]


def extended_gamma(operations: int) -> float:
    """`objective.gamma` in extended precision."""
    return operations * EXTENDED_ROUNDOFF / (1.0 - operations * EXTENDED_ROUNDOFF)


class SignedGram:
    """The matrix Q of a `KernelProblem`."""

    def __init__(self, gram: Array, signs: Array, scale: float, gram_error: float = 0.0) -> None:
        self._gram = gram
        self.count = len(gram)
        self.signs = signs
        self.scale = scale
        self.diagonal: Array = gram.diagonal()
        # No entry is larger: a kernel has |k(x, z)| <= max k(x, x), and neither side is off by more than the error.
        self.largest = float(self.diagonal.max()) + 2.0 * gram_error
        self._gram_error = gram_error

    def restricted(self, rows: Rows, share: float = 1.0) -> SignedGram:
        """The matrix in those rows and columns, for a problem with that share of the records."""
        return SignedGram(self.block(rows), self.signs[rows], self.scale * share, self._gram_error)

    def row(self, index: int) -> Array:
        """``k(x_i, .)`` at all rows, neither signed nor scaled."""
        row: Array = self._gram[index]
        return row

    def times(self, vector: Array) -> Array:
        """``Q v``; only the rows of the matrix where ``v`` is not zero are read, if those are few."""
        signed = self.signs * vector
        used = np.flatnonzero(signed)
        if len(used) > WORTH_CHOOSING * self.count:
            return self.signs * (self._gram @ signed) / self.scale
        product = np.zeros(self.count)
        for start in range(0, len(used), CHUNK):
            some = used[start : start + CHUNK]
            product += signed[some] @ self._gram[some]  # rows for columns: the matrix is symmetric
        return self.signs * product / self.scale

    def block(self, rows: Rows, kind: type[np.floating[Any]] = np.float64) -> NDArray[Any]:
        """The Gram matrix in those rows and columns, neither signed nor scaled: a fresh array."""
        block = np.empty((len(rows), len(rows)), kind)
        for start in range(0, len(rows), CHUNK):
            some = slice(start, start + CHUNK)
            block[some] = self._gram[rows[some]][:, rows]
        return block

    def margin_error(self, alpha: Array) -> float:
        """Bound on the error of every entry of ``times(alpha)`` as a margin of the function `dual` stands for."""
        return SAFETY * self._sum_error(gamma(self.count + 8), self.dual(alpha))

    def extended_margins(self, rows: Rows, alpha: Array) -> tuple[Array, float]:
        """The margins in those rows, summed in extended precision, and a bound on the error of each."""
        dual = self.dual(alpha)
        used = np.flatnonzero(dual)
        wide = dual[used].astype(np.longdouble)
        margins = np.empty(len(rows))
        for start in range(0, len(rows), BLOCK):
            some = rows[start : start + BLOCK]
            sums = self._gram[some][:, used].astype(np.longdouble) @ wide
            margins[start : start + BLOCK] = self.signs[some] * sums
        rounding = gamma(1) * float(np.max(np.abs(margins), initial=0.0))  # of each sum to float64
        return margins, SAFETY * (self._sum_error(extended_gamma(len(used) + 2), dual) + rounding)

    def dual(self, alpha: Array) -> Array:
        """The coefficients of the function: ``f = sum_i dual_i k(x_i, .)``."""
        return self.signs * alpha / self.scale

    def square(self, vector: Array) -> float:
        """Upper bound on ``v' Q v``."""
        size = float(np.sum(np.abs(vector)))
        bound = (2.0 * gamma(self.count + 8) * self.largest + self._gram_error) * size / self.scale * size
        return max(float(vector @ self.times(vector)), 0.0) + SAFETY * bound

    def _sum_error(self, relative: float, dual: Array) -> float:
        return (relative * self.largest + self._gram_error) * float(np.sum(np.abs(dual)))

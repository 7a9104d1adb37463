"""The hinge's dual, roughly: coordinate descent on two rows at a time.

With ``share_i = sign_i alpha_i`` the dual is ``(1/2) share' K share / (Lambda N) - signs' share`` over a box. A step
reads two rows of the matrix and keeps ``pull = signs - K share / (Lambda N)`` up to date. Two rows, because a
large constant part of a kernel ties all rows together: one alone could hardly move.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg.blas import daxpy

from privlearn.erm.kernel_gram import SignedGram
from privlearn.erm.kernel_newton import DualPoint
from privlearn.erm.losses import Array

NEAR = 0.005  # distance of the margins from where they belong at which Newton's method is quicker
FLAT = 1e-12  # relative: a smaller square or determinant is rounding


def descend_in_pairs(gram: SignedGram, weights: Array) -> DualPoint:
    """From 0 until all margins are `NEAR` where they belong, or for as many steps as there are rows."""
    search = _PairSearch(gram, weights)
    for _ in range(gram.count):
        first = search.furthest(search.pull)
        if abs(search.open[first]) <= NEAR:
            break
        search.move(first, search.partner(first))
    return DualPoint(np.abs(search.shares), 1.0 - gram.signs * search.pull)


class _PairSearch:
    def __init__(self, gram: SignedGram, weights: Array) -> None:
        self._gram = gram
        self._low = np.minimum(gram.signs * weights, 0.0)
        self._high = np.maximum(gram.signs * weights, 0.0)
        self._down = np.where(self._low < 0, -np.inf, 0.0)  # the least and
        self._up = np.where(self._high > 0, np.inf, 0.0)  # the largest pull that a row can follow
        self._squares = np.maximum(gram.diagonal, FLAT * (gram.largest or 1.0)) / gram.scale
        self.shares: Array = np.zeros(gram.count)
        self.pull: Array = gram.signs.copy()
        self.open: Array = np.empty(gram.count)

    def furthest(self, pull: Array) -> int:
        """The row with the strongest pull of those that it can follow, which are left in `open`."""
        np.maximum(pull, self._down, out=self.open)
        np.minimum(self.open, self._up, out=self.open)  # quicker than clip()
        most, least = int(self.open.argmax()), int(self.open.argmin())
        return most if self.open[most] >= -self.open[least] else least

    def partner(self, first: int) -> int:
        """The row that would be next if ``first`` moved alone."""
        end = self._cut(first, self.shares[first] + self.pull[first] / self._squares[first])
        pull = self._pulled(self.pull.copy(), first, end)
        pull[first] = 0.0
        return self.furthest(pull)

    def move(self, first: int, second: int) -> None:
        """Put both where they are best together.

        The best place for the first row if the second had no limits, then for the second, then for the first
        again, which moves only if the second has met a limit: that is exact, docs/theory/kernel-machine.md says why.
        """
        here, there = self.shares[first], self.shares[second]
        product = self._gram.row(first)[second] / self._gram.scale
        one, other = self._squares[first], self._squares[second]
        determinant = max(one * other - product**2, FLAT * one * other)
        joint = (other * self.pull[first] - product * self.pull[second]) / determinant
        near = self._cut(first, here + joint)
        far = self._cut(second, there + (self.pull[second] - product * (near - here)) / other)
        near = self._cut(first, here + (self.pull[first] - product * (far - there)) / one)
        for row, end in ((first, near), (second, far)):
            self.pull = self._pulled(self.pull, row, end)
            self.shares[row] = end
            self._down[row] = -np.inf if end > self._low[row] else 0.0
            self._up[row] = np.inf if end < self._high[row] else 0.0

    def _cut(self, row: int, share: float) -> float:
        return float(min(max(share, self._low[row]), self._high[row]))

    def _pulled(self, pull: Array, row: int, end: float) -> Array:
        """``pull`` after that row's move; its array is used again."""
        step = (end - self.shares[row]) / self._gram.scale
        pulled: Array = daxpy(self._gram.row(row), pull, a=-step)
        return pulled

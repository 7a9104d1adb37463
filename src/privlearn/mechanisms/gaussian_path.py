"""Paths of a Gaussian process, drawn point by point, in exact integers.

The noise at the points asked so far is L x + j in units of 2^-60 of its scale: L a lower triangular matrix of integers
(multiples of 2^-40), x and j exact discrete Gaussian draws. L is public, a function of the points alone, and its rows
never change; so the covariance of the noise is L L' + `VALUE_JITTER` I exactly, however L was computed. What the
floating-point Cholesky factorisation has to achieve is that L L' is nowhere smaller than the kernel matrix:
`FACTOR_JITTER` on the diagonal exceeds all its rounding errors. Several paths are independent: each has draws of its
own, and all share L. See docs/theory/function-release.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from operator import mul

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular

from privlearn.mechanisms.kernel_task import KERNEL_ROUNDING
from privlearn.randomness import Randomness

Array = NDArray[np.float64]

FACTOR_BITS = 40
DRAW_BITS = 20
PATH_BITS = FACTOR_BITS + DRAW_BITS
FACTOR_JITTER = 2.0**-16
VALUE_JITTER = 2.0**-14
CAPACITY = 2**15
"""Number of different points that a path can be asked at; up to there the rounding bounds are below the jitter."""

MOST_PATHS = 128
"""Up to here the discrete law is as near the Gaussian's as the guarantee's margin allows."""

BLOCK = 512
"""Rows of L kept together; as many new points at most are best taken at once."""


@dataclass(frozen=True, eq=False)
class PathStep:
    """What one new point adds: its row of L (multiples of 2^-40), and of each path its draw x and the noise in units
    of 2^-60."""

    row: Array
    draws: tuple[int, ...]
    noises: tuple[int, ...]


class GaussianPaths:
    """The past of some independent paths: rows of L and draws. Both are needed to go on, and neither may leave."""

    def __init__(self, count: int = 1) -> None:
        self._blocks: list[Array] = []
        self._draws: list[list[int]] = [[] for _ in range(count)]

    def __len__(self) -> int:
        return len(self._draws[0])

    def draw(self, cross: Array, own: Array, randomness: Randomness) -> list[PathStep]:
        """Draw the paths at m new points; `remember` each step once it is durable.

        Parameters
        ----------
        cross : array of shape (m, len(self))
            Kernel between the new points and the past ones, in the order they were asked.
        own : array of shape (m, m)
            Kernel among the new points.
        """
        rows = self._new_rows(cross, own)
        shape = (len(own), len(self._draws))
        draws = _integers(2.0**DRAW_BITS, shape, randomness)
        jitter = _integers(VALUE_JITTER**0.5 * 2.0**PATH_BITS, shape, randomness)
        known, steps = [list(past) for past in self._draws], []
        for row, new, extras in zip(rows, draws, jitter, strict=True):
            integers = np.ldexp(row, FACTOR_BITS).astype(np.int64).tolist()
            for past, draw in zip(known, new, strict=True):
                past.append(draw)
            noises = [
                sum(map(mul, integers, past)) + extra for past, extra in zip(known, extras, strict=True)
            ]
            steps.append(PathStep(row, tuple(new), tuple(noises)))
        return steps

    def remember(self, row: Array, draws: Sequence[int]) -> None:
        """Append a point's row and draws to the past."""
        start, place = divmod(len(self), BLOCK)
        if place == 0:
            self._blocks.append(np.zeros((BLOCK, (start + 1) * BLOCK)))
        self._blocks[-1][place, : len(row)] = row
        for past, draw in zip(self._draws, draws, strict=True):
            past.append(draw)

    def _new_rows(self, cross: Array, own: Array) -> list[Array]:
        """Rows of the Cholesky factor of the kernel matrix plus `FACTOR_JITTER`, each rounded to its grid."""
        left = _to_grid(self._solve(cross.T).T)
        # From the rounded rows, so that their rounding stays out of the new points' own variances.
        rest = own - left @ left.T
        rest[np.diag_indices_from(rest)] += FACTOR_JITTER
        right = _to_grid(cholesky(rest, lower=True, check_finite=False))
        return [np.concatenate([left[i], right[i, : i + 1]]) for i in range(len(own))]

    def _solve(self, targets: Array) -> Array:
        """L^-1 targets, block by block: the blocks are never joined into one matrix."""
        solved = np.empty_like(targets)
        for number, block in enumerate(self._blocks):
            start = number * BLOCK
            stop = min(start + BLOCK, len(self))
            rows = block[: stop - start]
            rest = targets[start:stop] - rows[:, :start] @ solved[:start]
            solved[start:stop] = solve_triangular(rows[:, start:stop], rest, lower=True, check_finite=False)
        return solved


def rounding_bound(points: int) -> float:
    """Bound on the norm of (kernel matrix + `FACTOR_JITTER`) - L L' at so many points.

    Backward error of conventional Cholesky factorisation and substitution (Higham 2002, Theorems 8.5 and 10.3, with
    a factor 4 for blocking), rounding of L to its grid, and rounding of kernel values; 1.01 covers the jitter.
    """
    factorisation = 4.0 * points * (points + 1) * 2.0**-53
    grid = points * math.sqrt(points) * 2.0 ** -(FACTOR_BITS + 1)
    return 1.01 * (factorisation + grid + points * KERNEL_ROUNDING)


def _integers(scale: float, shape: tuple[int, int], randomness: Randomness) -> list[list[int]]:
    """Exact draws, a row a point and a column a path."""
    drawn: list[list[int]] = randomness.discrete_gaussian(scale, shape[0] * shape[1]).reshape(shape).tolist()
    return drawn


def _to_grid(values: Array) -> Array:
    return np.ldexp(np.rint(np.ldexp(values, FACTOR_BITS)), -FACTOR_BITS)

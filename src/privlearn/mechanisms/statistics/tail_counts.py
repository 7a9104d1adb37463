"""Tail counts from noisy counts in cells of four sizes: how many numbers lie beyond each of many edges.

A tail that is a sum over small cells alone adds up the noise of thousands of them. So numbers are counted in cells of
four sizes, each eight times as wide as the one before. Every tail is then a sum of at most 28 noisy counts
(docs/theory/multiparty.md, "Bounds and lists").
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from privlearn.arrays import Array

BRANCHES = 8  # cells of one size in a cell of the next larger size
SIZES = (8, 64, 512, 4096)
"""Number of cells of each size; the smallest lie between `EDGES` edges."""
EDGES = SIZES[-1] - 1  # between the smallest cells

_STEPS = 16
"""Number of edges in each interval between two powers of two."""
_MIN_EXPONENT = -64
"""The smallest edge above 0 is 2^-64, the largest is 2^64."""


def edges(between: tuple[float, float] | None = None) -> Array:
    """Public: return equally spaced edges; or 0 and both signs of numbers with 5 bits from 2^-64 to 2^64."""
    if between is not None:
        return np.linspace(*between, EDGES)
    index = np.arange(1, EDGES // 2 + 1)
    sizes = np.ldexp(1.0 + index % _STEPS / _STEPS, index // _STEPS + _MIN_EXPONENT)
    return np.concatenate([-sizes[::-1], [0.0], sizes])


def cells_of_all_sizes(smallest: Array) -> list[Array]:
    """Return the counts in the cells of each size in `SIZES`, from those in the smallest cells, of shape (4096,)."""
    return [smallest.reshape(size, -1).sum(axis=1) for size in SIZES]


def from_edge(counts: Sequence[Array]) -> Array:
    """Return how many numbers lie at or above each edge, given the counts in cells of all sizes."""
    start = np.arange(1, EDGES + 1)  # the first cell above each edge
    tail = counts[-1][start]
    for size, count in zip(SIZES, counts, strict=True):
        siblings = count.reshape(-1, BRANCHES)
        right = siblings[:, ::-1].cumsum(axis=1)[:, ::-1] - siblings
        tail = tail + right.ravel()[start // (SIZES[-1] // size)]
    return np.asarray(tail)


def below_edge(counts: Sequence[Array]) -> Array:
    """Return how many numbers lie below each edge."""
    return from_edge([count[::-1] for count in counts])[::-1]


@cache
def cells_per_tail() -> Array:
    """Return the number of counts in each tail of `from_edge`: its variance relative to that of a count."""
    return from_edge([np.ones(size) for size in SIZES])


def bounds(counts: Sequence[Array], edges: Array, deviation: float, tolerance: float) -> tuple[float, float]:
    """Return the innermost edges beyond which noisy tails are at most ``tolerance`` times their deviations.

    Parameters
    ----------
    counts : sequence of arrays
        Noisy counts in cells of all sizes.
    edges : array
    deviation : float
        Standard deviation of the noise in each count.
    tolerance : float

    Examples
    --------
    >>> numbers = np.repeat(np.linspace(20.0, 80.0, 61), 100)
    >>> grid = edges(between=(0.0, 100.0))
    >>> smallest = np.bincount(np.searchsorted(grid, numbers, "right"), minlength=SIZES[-1]).astype(float)
    >>> [round(bound, 1) for bound in bounds(cells_of_all_sizes(smallest), grid, deviation=1.0, tolerance=3.0)]
    [20.0, 80.0]
    """
    above, below = from_edge(counts), below_edge(counts)
    middle = int(np.argmin(np.abs(above - below)))
    allowed = tolerance * deviation * np.sqrt(cells_per_tail())
    upper = np.flatnonzero(above[middle:] <= allowed[middle:])
    lower = np.flatnonzero(below[: middle + 1] <= allowed[::-1][: middle + 1])
    highest = middle + int(upper[0]) if upper.size else EDGES - 1
    lowest = int(lower[-1]) if lower.size else 0
    return float(edges[lowest]), float(edges[highest])

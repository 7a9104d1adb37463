"""Centre, spread and quantiles of released histograms, as far as they are not noise. No row is read."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from privlearn.arrays import Array
from privlearn.imports import optimize
from privlearn.mechanisms.statistics.locations import Grid

_FINEST = 2.0**-12
"""Coarser than for targets: fewer cells, hence less noise in sums of them."""
_TAILS = ((0.25, 0.6745, 1.0), (0.1, 1.2816, 0.5), (0.025, 1.96, 0.25))
"""Shares of a tail, the normal quantile at each, and its weight in the spread: where most numbers are equal, a smaller
tail shows that there is a spread."""


def grid_between(lower: float, upper: float, cells: int) -> Grid:
    """Return the cells of a histogram: fine near 0 and coarse far away, so that wide bounds cost a few cells."""
    return Grid.between(lower, upper, cells, finest=_FINEST)


@dataclass(frozen=True, eq=False)
class NoisyHistogram:
    """Released counts between edges; ``noise`` is their standard deviation in a cell."""

    counts: Array
    edges: Array
    noise: float

    @property
    def total(self) -> float:
        """Return about how many records were counted."""
        return max(float(np.sum(self.counts)), 1.0)

    @property
    def tail(self) -> float:
        """Return the share of records beyond which quantiles are noise."""
        noise = self.noise * math.sqrt(len(self.counts)) / self.total
        return float(np.clip(1.5 * noise, 0.01, 0.25))

    @property
    def trimmed(self) -> Array:
        """Return quantiles at equal steps, without the tails that are noise."""
        return self.quantiles(np.clip((np.arange(100) + 0.5) / 100.0, self.tail, 1.0 - self.tail))

    def quantiles(self, shares: Array) -> Array:
        """Return the numbers below which these shares of the records lie."""
        return np.asarray(np.interp(shares, self.below, self.edges))

    @cached_property
    def below(self) -> Array:
        """Return the share of the records below each edge."""
        below = np.concatenate([[0.0], np.cumsum(self.counts)])
        return np.asarray(np.clip(optimize.isotonic_regression(below).x / self.total, 0.0, 1.0))

    @property
    def location(self) -> tuple[float, float]:
        """Return the median, and a spread of at least the width of its cell, also where noise has drowned both.

        The spread is above 0 even where the bounds are so narrow that both ends of a cell are the same number.
        """
        centre = float(self.quantiles(np.array([0.5]))[0])
        cell = int(np.clip(np.searchsorted(self.edges, centre), 1, len(self.counts)))
        spreads = [float(self.edges[cell] - self.edges[cell - 1]), math.ulp(centre)]
        for share, normal, weight in _TAILS:
            if share >= min(self.tail, 0.25):
                low, high = self.quantiles(np.array([share, 1.0 - share]))
                spreads.append(weight * float(high - low) / (2.0 * normal))
        return centre, max(spreads)

"""Private centre and spread of numbers: noisy histograms, each over a grid around the centre of the one before.

Wide bounds cost little: a grid is fine near an origin and coarse far away. The argument: docs/theory/locations.md.
"""

from __future__ import annotations

import dataclasses
import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from privlearn.arrays import Array
from privlearn.errors import InvalidParameter, check_positive, whole_number
from privlearn.imports import optimize
from privlearn.mechanisms.statistics.statistic import HistogramStatistic, count
from privlearn.randomness import Randomness

CELLS, ROUNDS = 32, 3
"""Cells of a histogram, and histograms of a column: together as noisy as a single one of 96 cells (288, pure noise)."""

FINEST = 2.0**-20
"""Half width of the part of a grid with equal cells, relative to the range: bounds may be far too wide."""

_TAILS = ((0.25, 1.0), (0.1, 0.5), (0.025, 0.25))
"""Tail shares whose quantiles measure the spread, and the weight of each: where most numbers are equal, the quartiles
coincide, and a smaller tail shows that there is a spread."""

_NORMAL_QUANTILES = {0.25: 0.6744897501960817, 0.1: 1.2815515655446004, 0.025: 1.9599639845400545}


@dataclass(frozen=True)
class Location:
    """Centre and spread of numbers: about their median and their standard deviation."""

    centre: float
    spread: float


@dataclass(frozen=True)
class Grid:
    """A public partition of the numbers between two bounds: equal steps of asinh around an origin.

    Parameters
    ----------
    lower, upper : float
        Public bounds; numbers outside count in the outer cells.
    origin : float
        Where the cells are finest.
    cells : int
    finest : float, default=FINEST
        Half width of the part with equal cells, relative to the range.
    """

    lower: float
    upper: float
    origin: float
    cells: int
    finest: float = FINEST

    def __post_init__(self) -> None:
        if not (self.lower < self.upper and math.isfinite(self.upper - self.lower)):
            raise InvalidParameter("a grid needs two finite bounds, the lower one first")
        if (self.upper - self.lower) * self.finest == 0.0:
            raise InvalidParameter("the bounds are too close for floating point. Use a smaller unit")
        if not self.lower <= self.origin <= self.upper:
            raise InvalidParameter("the origin of a grid must lie between its bounds")
        whole_number(self.cells, "cells")

    @classmethod
    def between(
        cls, lower: float, upper: float, cells: int, typical: float | None = None, finest: float = FINEST
    ) -> Grid:
        """Return the grid around a typical number; by default around the number within the bounds nearest to 0."""
        nearest = 0.0 if typical is None else typical
        return cls(lower, upper, min(max(nearest, lower), upper), cells, finest)

    def around(self, location: Location) -> Grid:
        """Return the grid that is finest around a released centre, as far as a quarter of the spread."""
        finest = location.spread / 4.0 / (self.upper - self.lower)
        # Rounding must not raise an error after rows were read.
        origin = min(max(location.centre, self.lower), self.upper)
        return dataclasses.replace(self, origin=origin, finest=max(finest, FINEST))

    @property
    def edges(self) -> Array:
        """Ends of the cells, from lower to upper."""
        finest = (self.upper - self.lower) * self.finest
        first, last = (math.asinh((end - self.origin) / finest) for end in (self.lower, self.upper))
        edges = self.origin + finest * np.sinh(np.linspace(first, last, self.cells + 1))
        edges[0], edges[-1] = self.lower, self.upper
        return np.asarray(np.maximum.accumulate(edges))

    def count(self, numbers: Array, weights: Array | None = None) -> Array:
        """PRIVATE: return the exact weight of the numbers in each cell; see `statistic.count`."""
        return count(np.searchsorted(self.edges[1:-1], numbers), self.cells, weights)


class CountsTargets(Protocol):
    """Reads the numbers to predict, and counts them."""

    @abstractmethod
    def target_counts(self, grids: Sequence[Grid]) -> Array:
        """PRIVATE: return the exact weight of the records in each cell: one histogram per number, concatenated."""


@dataclass(frozen=True)
class Locations(HistogramStatistic):
    """Centre and spread of one or several columns of numbers, from `ROUNDS` noisy histograms each.

    **Theorem**: that of `HistogramStatistic`, for all rounds together. The cells of a later round depend on the records
    only through what was released before, and costs add up as if they were fixed. Quantiles are post-processing.

    Parameters
    ----------
    grids : tuple of Grid
        Of the first round: one for each column, with as many cells as ``cells`` has in each round.

    Examples
    --------
    >>> from privlearn.guarantee import get_relation
    >>> statistic = Locations.on([Grid.between(0.0, 100.0, 32)], "gaussian", noise_scale=20.0)
    >>> statistic.numbers, round(statistic.ratio(get_relation("replace_one")), 4)
    (96, 0.1225)
    """

    grids: tuple[Grid, ...]

    released: ClassVar[str] = "centre and spread of the target"

    def __post_init__(self) -> None:
        super().__post_init__()
        if _cells(self.grids) * ROUNDS != self.cells:
            raise InvalidParameter(
                f"there must be one grid for each column, and its number of cells {ROUNDS} times"
            )

    @classmethod
    def on(cls, grids: Sequence[Grid], noise: str, noise_scale: float) -> Self:
        """Return the statistic of these grids."""
        return cls(_cells(grids) * ROUNDS, noise, noise_scale, tuple(grids))

    @property
    def sum_deviation(self) -> float:
        """Upper bound of the standard deviation of a cumulative count whose total is known."""
        return self.deviation * math.sqrt(max(self.cells)) / 2.0

    def run(self, oracle: CountsTargets, total: int | None, randomness: Randomness) -> list[Location]:
        """Touch the data: return a location for each number to predict, which may be released.

        Where records have weights, whose ``total`` is private, the noisy counts' own sum takes its place.
        """
        one_round = HistogramStatistic(_cells(self.grids), self.noise, self.noise_scale)
        grids, locations = list(self.grids), list[Location]()
        for _ in range(ROUNDS):
            counts = np.split(oracle.target_counts(grids), np.cumsum(one_round.cells)[:-1])
            noisy = one_round.add_noise(counts, randomness)
            locations = [
                location_of(
                    table, grid, max(float(table.sum()), 1.0) if total is None else total, self.sum_deviation
                )
                for table, grid in zip(noisy, grids, strict=True)
            ]
            grids = [grid.around(location) for grid, location in zip(self.grids, locations, strict=True)]
        return locations

    def to_dict(self) -> dict[str, Any]:
        grids = [[grid.lower, grid.upper, grid.origin] for grid in self.grids]
        return super().to_dict() | {"grids": grids}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Self:
        cells = tuple(record["cells"])
        grids = tuple(
            Grid(float(lower), float(upper), float(origin), size)
            for (lower, upper, origin), size in zip(record["grids"], cells, strict=False)
        )
        return cls(cells, record["noise"], float(record["noise_scale"]), grids)


def _cells(grids: Sequence[Grid]) -> tuple[int, ...]:
    return tuple(grid.cells for grid in grids)


def location_of(noisy: Array, grid: Grid, total: float, sum_deviation: float = 0.0) -> Location:
    """Return centre and spread of a noisy histogram of ``total`` records; valid numbers even if noise dominates it.

    The cumulative counts are moved to end at the public total, and then to the nearest increasing sequence. Quantiles
    are read where this sequence crosses a share of the total. The spread is at least the width of the centre's cell. A
    tail is ignored if it holds fewer records than three times ``sum_deviation``, the noise in a cumulative count.

    Examples
    --------
    >>> grid = Grid.between(0.0, 100.0, 64)
    >>> ages = np.linspace(20.0, 60.0, 1_001)
    >>> location = location_of(grid.count(ages), grid, total=1_001)
    >>> round(location.centre), round(location.spread)
    (40, 15)
    """
    check_positive(total=total)
    edges, below = grid.edges, np.concatenate([[0.0], np.cumsum(noisy)])
    below += np.linspace(0.0, 1.0, len(below)) * (total - below[-1])
    shares = np.clip(optimize.isotonic_regression(below).x / total, 0.0, 1.0)

    def quantile(share: float) -> float:
        return float(np.interp(share, shares, edges))

    centre = quantile(0.5)
    spreads = [
        weight * (quantile(1.0 - tail) - quantile(tail)) / (2.0 * _NORMAL_QUANTILES[tail])
        for tail, weight in _TAILS
        if weight == 1.0 or tail * total > 3.0 * sum_deviation
    ]
    cell = int(np.clip(np.searchsorted(edges, centre), 1, grid.cells))
    # Narrow bounds may round both ends of a cell to one number; the spread must still be above 0.
    return Location(centre, max(*spreads, float(edges[cell] - edges[cell - 1]), math.ulp(centre)))

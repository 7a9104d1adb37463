"""STAND-IN for mechanisms/statistics/locations.py."""
from __future__ import annotations
import math
from dataclasses import dataclass
import numpy as np
from privlearn.arrays import Array
from privlearn.imports import optimize
from privlearn.mechanisms.statistics.counts import count
_FINEST = 2.0**-20
_TAILS = ((0.25, 1.0), (0.1, 0.5), (0.025, 0.25))
_NORMAL_QUANTILES = {0.25: 0.6744897501960817, 0.1: 1.2815515655446004, 0.025: 1.9599639845400545}

@dataclass(frozen=True)
class Location:
    centre: float
    spread: float

@dataclass(frozen=True)
class Grid:
    lower: float
    upper: float
    origin: float
    cells: int
    finest: float = _FINEST
    @classmethod
    def between(cls, lower: float, upper: float, cells: int, typical: float | None = None, finest: float = _FINEST) -> Grid:
        nearest = 0.0 if typical is None else typical
        return cls(lower, upper, min(max(nearest, lower), upper), cells, finest)
    @property
    def edges(self) -> Array:
        finest = (self.upper - self.lower) * self.finest
        ends = [math.asinh((end - self.origin) / finest) for end in (self.lower, self.upper)]
        edges = self.origin + finest * np.sinh(np.linspace(*ends, self.cells + 1))
        edges[0], edges[-1] = self.lower, self.upper
        return np.asarray(np.maximum.accumulate(edges))
    def count(self, numbers: Array, weights: Array | None = None) -> Array:
        return count(np.searchsorted(self.edges[1:-1], numbers), self.cells, weights)

def quantiles_of(noisy: Array, grid: Grid, total: float, shares: Array) -> Array:
    edges, below = grid.edges, np.concatenate([[0.0], np.cumsum(noisy)])
    below += np.linspace(0.0, 1.0, len(below)) * (total - below[-1])
    known = np.clip(optimize.isotonic_regression(below).x / total, 0.0, 1.0)
    return np.asarray(np.interp(shares, known, edges))

def location_of(noisy: Array, grid: Grid, total: float, noise: float = 0.0) -> Location:
    centre = float(quantiles_of(noisy, grid, total, np.array([0.5]))[0])
    spreads = []
    for tail, weight in _TAILS:
        if spreads and tail * total < 1.5 * noise * math.sqrt(grid.cells):
            break  # a smaller tail would be noise
        low, high = quantiles_of(noisy, grid, total, np.array([tail, 1.0 - tail]))
        spreads.append(weight * float(high - low) / (2.0 * _NORMAL_QUANTILES[tail]))
    edges = grid.edges
    cell = int(np.clip(np.searchsorted(edges, centre), 1, grid.cells))
    return Location(centre, max([*spreads, float(edges[cell] - edges[cell - 1])]))

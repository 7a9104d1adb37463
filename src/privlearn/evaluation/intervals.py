"""Intervals around what follows from noisy counts. Post-processing: nothing here sees a record.

An interval covers the value in the population that the records are a sample of. Its width comes from simulation: from
the noisy counts, made counts again, records are drawn anew and noise of the known law is added, so that both what
sampling does and what the noise does are in it (docs/theory/evaluation.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from privlearn.arrays import Array

REPLICATES = 4000
LEVEL = 0.95
_SEED = 20250117
"""Public: whoever reads the counts computes the same intervals."""

TOO_NOISY = 10.0
"""A group whose noisy count is below so many deviations of its noise is said to be too noisy."""

Statistics = Mapping[str, Array]
Statistic = Callable[..., Statistics]
"""From counts, with any leading axes, to named numbers with the same leading axes."""


@dataclass(frozen=True)
class Estimate:
    """A number measured with noise, and an interval that covers the population's with probability 0.95."""

    value: float
    lower: float
    upper: float

    @property
    def is_known(self) -> bool:
        """False where the noise has drowned it."""
        return bool(np.isfinite([self.value, self.lower, self.upper]).all())

    def __str__(self) -> str:
        if not self.is_known:
            return "too noisy"
        return f"{self.value:.3f} ({self.lower:.3f} to {self.upper:.3f})"


@dataclass(frozen=True, eq=False)
class NoisyTable:
    """One table of noisy counts, with the law of its noise.

    Parameters
    ----------
    noisy : array
    noise : {"gaussian", "laplace"}
    scale : float
        Of the noise in a cell; 0 without any.
    records : int, optional
        What the exact counts add up to, where that is public.
    """

    noisy: Array
    noise: str
    scale: float
    records: int | None = None

    @cached_property
    def counts(self) -> Array:
        """The noisy counts, moved evenly so that they add up to the public number of records."""
        return self._moved(self.noisy, 0)

    @cached_property
    def plausible(self) -> Array:
        """Counts that could be exact: the nearest ones that are not negative and add up to the same."""
        return nearest_counts(self.counts, self._total)

    def draws(self, replicates: int, seed: int) -> Array:
        """Tables that could have been released if `plausible` were the population; the first axis counts them."""
        source = np.random.default_rng([_SEED, seed])
        chances = self.plausible.ravel() / self.plausible.sum()
        drawn = source.multinomial(round(self._total), chances, size=replicates).reshape(
            replicates, *self.noisy.shape
        )
        sample = source.normal if self.noise == "gaussian" else source.laplace
        return self._moved(drawn + sample(0.0, self.scale, drawn.shape), 1)

    @property
    def _total(self) -> float:
        return self.records if self.records is not None else max(float(self.noisy.sum()), 1.0)

    def _moved(self, tables: Array, leading: int) -> Array:
        if self.records is None:
            return tables
        axes = tuple(range(leading, tables.ndim))
        gap = self.records - tables.sum(axis=axes, keepdims=True)
        return np.asarray(tables + gap / self.noisy.size)


def nearest_counts(counts: Array, total: float) -> Array:
    """The nearest table, in L2, that is not negative and adds up to a total (Duchi et al. 2008)."""
    falling = np.sort(counts, axis=None)[::-1]
    excess = (np.cumsum(falling) - total) / np.arange(1, counts.size + 1)
    kept = np.flatnonzero(falling > excess)[-1]
    return np.asarray(np.maximum(counts - excess[kept], 0.0))


RATE = (0.0, 1.0)
UNBOUNDED = (-math.inf, math.inf)


def estimates(
    statistic: Statistic, *tables: NoisyTable, within: tuple[float, float] = RATE
) -> dict[str, list[Estimate]]:
    """A statistic's numbers with their intervals, each as a list: of one, or along the statistic's last axis.

    Tables are simulated independently of each other. What noise pushes out of the numbers' range is cut off.
    """
    found = statistic(*(table.counts for table in tables))
    centre = statistic(*(table.plausible for table in tables))
    drawn = statistic(*(table.draws(REPLICATES, place) for place, table in enumerate(tables)))
    return {
        name: _with_intervals(np.atleast_1d(found[name]), np.atleast_1d(centre[name]), drawn[name], within)
        for name in found
    }


_UNKNOWN = Estimate(math.nan, math.nan, math.nan)


def magnitude(found: Estimate) -> Estimate:
    """What cannot be negative; unknown where the noise made it so."""
    return Estimate(found.value, max(found.lower, 0.0), found.upper) if found.value >= 0.0 else _UNKNOWN


def root(found: Estimate) -> Estimate:
    """Square root of a magnitude."""
    known = magnitude(found)
    return Estimate(math.sqrt(known.value), math.sqrt(known.lower), math.sqrt(known.upper))


def quotient(above: Estimate, below: Estimate) -> Estimate:
    """Of two independent numbers, by Fieller (1954): all q for which above - q below may be 0.

    Unknown where ``below`` may be 0 itself: such q have no end.
    """
    (part, spread), (whole, other) = ((one.value, (one.upper - one.lower) / 2.0) for one in (above, below))
    if not whole > other:
        return _UNKNOWN
    square, middle = whole**2 - other**2, part * whole
    reach = math.sqrt(max(middle**2 - square * (part**2 - spread**2), 0.0))
    return Estimate(part / whole, (middle - reach) / square, (middle + reach) / square)


def _with_intervals(found: Array, centre: Array, drawn: Array, within: tuple[float, float]) -> list[Estimate]:
    """The errors of the simulation, put around what was found; not a number where one of them is none."""
    errors = drawn.reshape(len(drawn), -1) - centre
    outside = (1.0 - LEVEL) / 2.0
    low, high = np.quantile(errors, [outside, 1.0 - outside], axis=0)
    ends = np.clip([found, found - high, found - low], *within).T
    return [Estimate(*map(float, each)) for each in ends]

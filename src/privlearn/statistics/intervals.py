"""Intervals around numbers that are computed from noisy counts. Post-processing: nothing here reads a record.

An interval covers the value in the population that the records are a sample of. Its width comes from simulation:
records are drawn from the nearest plausible counts and noise of the known distribution is added, so that the interval
accounts for both sampling and noise (docs/theory/evaluation.md).
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
"""Public and fixed, so that every reader of the counts computes the same intervals."""

TOO_NOISY = 10.0
"""A group is reported as too noisy if its noisy count is below this many standard deviations of its noise."""

Statistics = Mapping[str, Array]
Statistic = Callable[..., Statistics]
"""Takes counts with any leading axes and returns named numbers with the same leading axes."""


@dataclass(frozen=True)
class Estimate:
    """A number measured with noise, and an interval that covers the true value with probability 0.95."""

    value: float
    lower: float
    upper: float

    @property
    def is_known(self) -> bool:
        """Return False where the noise leaves no usable number."""
        return bool(np.isfinite([self.value, self.lower, self.upper]).all())

    def __str__(self) -> str:
        if not self.is_known:
            return "too noisy"
        return f"{self.value:.3f} ({self.lower:.3f} to {self.upper:.3f})"


@dataclass(frozen=True)
class CellNoise:
    """Second moments of the noise in a table's cells, which a quadratic statistic subtracts to be unbiased.

    A linear function with coefficients a of the cells has the noise variance
    ``variance * sum(a^2) + covariance * sum(a)^2``.

    Parameters
    ----------
    variance : float
        Variance of the noise that was added to a cell.
    covariance : float
        Covariance between two cells: ``-variance / cells`` if the counts were shifted to a public total, else 0.
    """

    variance: float = 0.0
    covariance: float = 0.0


NO_NOISE = CellNoise()


@dataclass(frozen=True, eq=False)
class NoisyTable:
    """One table of noisy counts, with the distribution of its noise.

    ``scale``: scale of the noise in a cell; 0 without noise. ``records``: the sum of the exact counts, where that is
    public. ``rows_per_person``: rows of one person may be alike, and nothing identifies them. The simulation draws
    persons with this number of equal rows, the sample with the largest variance.
    """

    noisy: Array
    noise: str
    scale: float
    records: int | None = None
    rows_per_person: int = 1

    @cached_property
    def counts(self) -> Array:
        """Return the noisy counts, shifted evenly so that they add up to the public number of records."""
        return self._shift(self.noisy, 0)

    @property
    def cell_noise(self) -> CellNoise:
        """Return the second moments of the noise in `counts`."""
        variance = self.scale**2 * {"gaussian": 1.0, "laplace": 2.0}[self.noise]
        return CellNoise(variance, 0.0 if self.records is None else -variance / self.noisy.size)

    @cached_property
    def plausible(self) -> Array:
        """Return the nearest counts that are not negative and have the same sum."""
        return nearest_counts(self.counts, self._total)

    def draws(self, replicates: int, seed: int) -> Array:
        """Return tables that could have been released if `plausible` were the population: (replicates, *shape)."""
        source = np.random.default_rng([_SEED, seed])
        probabilities = self.plausible.ravel() / self.plausible.sum()
        persons = max(round(self._total / self.rows_per_person), 1)
        drawn = source.multinomial(persons, probabilities, size=replicates) * (self._total / persons)
        drawn = drawn.reshape(replicates, *self.noisy.shape)
        sample = source.normal if self.noise == "gaussian" else source.laplace
        return self._shift(drawn + sample(0.0, self.scale, drawn.shape), 1)

    @property
    def _total(self) -> float:
        return self.records if self.records is not None else max(float(self.noisy.sum()), 1.0)

    def _shift(self, tables: Array, leading: int) -> Array:
        if self.records is None:
            return tables
        axes = tuple(range(leading, tables.ndim))
        gap = self.records - tables.sum(axis=axes, keepdims=True)
        return np.asarray(tables + gap / self.noisy.size)


def nearest_counts(counts: Array, total: float) -> Array:
    """Return the nearest table, in L2, that is not negative and adds up to ``total`` (Duchi et al. 2008)."""
    descending = np.sort(counts, axis=None)[::-1]
    excess = (np.cumsum(descending) - total) / np.arange(1, counts.size + 1)
    last_positive = np.flatnonzero(descending > excess)[-1]
    return np.asarray(np.maximum(counts - excess[last_positive], 0.0))


RATE = (0.0, 1.0)
UNBOUNDED = (-math.inf, math.inf)


def estimates(
    statistic: Statistic, table: NoisyTable, *, within: tuple[float, float] = RATE, quadratic: bool = False
) -> dict[str, list[Estimate]]:
    """Return a statistic's numbers with their intervals, each as a list along the statistic's last axis.

    Parameters
    ----------
    statistic : callable
    table : NoisyTable
    within : pair of float
        The range of the numbers, to which estimates are clipped.
    quadratic : bool, default=False
        Whether the statistic multiplies counts. It then takes a `CellNoise` as ``noise`` and corrects its bias.
    """
    correction = {"noise": table.cell_noise} if quadratic else {}
    values = statistic(table.counts, **correction)
    centre = statistic(table.plausible)
    drawn = statistic(table.draws(REPLICATES, 0), **correction)
    return {
        name: _with_intervals(np.atleast_1d(values[name]), np.atleast_1d(centre[name]), drawn[name], within)
        for name in values
    }


def largest_share(shares: Callable[[Array], Array], table: NoisyTable) -> Estimate:
    """Return the largest of a table's shares, which add up to 1.

    Noise makes the largest of several numbers too large: the value is less by the simulation's median excess. The
    interval covers an error from the least of any class to the largest of all, so it contains the value
    (docs/theory/evaluation.md).
    """
    values, centre = shares(table.counts), shares(table.plausible)
    drawn = shares(table.draws(REPLICATES, 0))
    errors, excess = drawn - centre, drawn.max(-1) - centre.max()
    outside = (1.0 - LEVEL) / 2.0
    high, low = np.quantile(errors.max(-1), 1.0 - outside), np.quantile(errors, outside, axis=0).min()
    ends = values.max() - np.array([np.median(excess), high, low])
    return Estimate(*np.clip(ends, 1.0 / len(values), 1.0).tolist())


_UNKNOWN = Estimate(math.nan, math.nan, math.nan)


def magnitude(estimate: Estimate) -> Estimate:
    """Return an estimate of a number that cannot be negative; unknown if the noise made it negative."""
    if not estimate.value >= 0.0:  # also if it is not a number
        return _UNKNOWN
    return Estimate(estimate.value, max(estimate.lower, 0.0), estimate.upper)


def root(estimate: Estimate) -> Estimate:
    """Return the square root of a magnitude."""
    known = magnitude(estimate)
    return Estimate(math.sqrt(known.value), math.sqrt(known.lower), math.sqrt(known.upper))


def quotient(above: Estimate, below: Estimate) -> Estimate:
    """Return the quotient of two independent numbers, by Fieller (1954): all q for which above - q below may be 0.

    Unknown where ``below`` itself may be 0: the interval would be unbounded.
    """
    (part, half), (whole, whole_half) = ((one.value, (one.upper - one.lower) / 2.0) for one in (above, below))
    if not whole > whole_half:
        return _UNKNOWN
    square, middle = whole**2 - whole_half**2, part * whole
    reach = math.sqrt(max(middle**2 - square * (part**2 - half**2), 0.0))
    return Estimate(part / whole, (middle - reach) / square, (middle + reach) / square)


def _with_intervals(
    values: Array, centre: Array, drawn: Array, within: tuple[float, float]
) -> list[Estimate]:
    """Return intervals from the errors of the simulation; NaN where any simulated error is NaN."""
    errors = drawn.reshape(len(drawn), -1) - centre
    outside = (1.0 - LEVEL) / 2.0
    low, high = np.quantile(errors, [outside, 1.0 - outside], axis=0)
    ends = np.clip([values, values - high, values - low], *within).T
    return [Estimate(*map(float, each)) for each in ends]

"""Rates, curves and their intervals from noisy counts. Post-processing: nothing here sees a record.

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
from numpy.typing import NDArray

from privlearn.arrays import Array

REPLICATES = 4000
LEVEL = 0.95
_SEED = 20250117
"""Public: whoever reads the counts computes the same intervals."""

TOO_NOISY = 10.0
"""A group whose noisy count is below so many deviations of its noise is said to be too noisy."""

Places = NDArray[np.int64]
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


def _with_intervals(found: Array, centre: Array, drawn: Array, within: tuple[float, float]) -> list[Estimate]:
    """The errors of the simulation, put around what was found; not a number where one of them is none."""
    errors = drawn.reshape(len(drawn), -1) - centre
    outside = (1.0 - LEVEL) / 2.0
    low, high = np.quantile(errors, [outside, 1.0 - outside], axis=0)
    ends = np.clip([found, found - high, found - low], *within).T
    return [Estimate(*map(float, each)) for each in ends]


def share(part: Array, whole: Array) -> Array:
    """A ratio; not a number where the noise left nothing to divide by."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(whole > 0, part / whole, np.nan)


def two_classes(counts: Array, place: int) -> Statistics:
    """Of scores counted by class and bin, see `decided`."""
    return _of_confusion(decided(counts, place)) | {"auc": area(counts)}


def decided(counts: Array, place: int) -> Array:
    """Counts by true and predicted class, if from the edge ``place`` on the second class is said."""
    return np.stack([counts[..., :place].sum(-1), counts[..., place:].sum(-1)], axis=-1)


def _of_confusion(cells: Array) -> dict[str, Array]:
    """Of counts by true and predicted class, the last two axes."""
    (right_no, false_yes), (false_no, right_yes) = (
        (cells[..., true, 0], cells[..., true, 1]) for true in (0, 1)
    )
    wrong, every = false_yes + false_no, cells.sum((-2, -1))
    return {
        "accuracy": 1.0 - share(wrong, every),
        "error": share(wrong, every),
        "false positive rate": share(false_yes, false_yes + right_no),
        "false negative rate": share(false_no, false_no + right_yes),
        "precision": share(right_yes, right_yes + false_yes),
        "recall": share(right_yes, right_yes + false_no),
        "share of the second class": share(false_no + right_yes, every),
    }


def confusion(counts: Array, place: int | None) -> Statistics:
    """Shares of all records by true and predicted class, row by row; of scores in bins, by the edge ``place``."""
    counts = counts if place is None else decided(counts, place)
    cells = counts.reshape(*counts.shape[:-2], -1)
    return {"confusion": share(cells, cells.sum(-1, keepdims=True))}


def area(counts: Array) -> Array:
    """Under the ROC curve: how often a record of the second class has the higher score; within a bin nobody knows."""
    return _extrapolated(_area_with_ties(counts), _area_with_ties(joined(counts)))


def _area_with_ties(counts: Array) -> Array:
    negative, positive = counts[..., 0, :], counts[..., 1, :]
    below = np.cumsum(negative, axis=-1) - negative / 2.0
    return share((positive * below).sum(-1), positive.sum(-1) * negative.sum(-1))


def joined(counts: Array) -> Array:
    """Two bins become one; there is an even number of them."""
    return np.asarray(counts[..., ::2] + counts[..., 1::2])


def _extrapolated(fine: Array, coarse: Array) -> Array:
    """Bins of width h lose about c h^2; what joining them two by two loses tells c (Richardson)."""
    return np.asarray((4.0 * fine - coarse) / 3.0)


def along_thresholds(counts: Array) -> Statistics:
    """At each edge, from the lowest: what is found, what is falsely found, and how much of what is found is right."""
    above = np.flip(np.cumsum(np.flip(counts, -1), axis=-1), -1)
    above = np.concatenate([above, np.zeros_like(above[..., :1])], axis=-1)
    negative, positive = above[..., 0, :], above[..., 1, :]
    return {
        "recall": share(positive, positive[..., :1]),
        "false positive rate": share(negative, negative[..., :1]),
        "precision": share(positive, positive + negative),
    }


def calibration(counts: Array, starts: Places) -> Statistics:
    """In groups of bins: which share belongs to the second class."""
    grouped = np.add.reduceat(counts, starts, axis=-1)
    return {"calibration": share(grouped[..., 1, :], grouped.sum(-2))}


def probability_losses(counts: Array, edges: Array) -> Statistics:
    """Brier score and log-loss of probabilities."""
    fine, coarse = _mean_losses(counts, edges), _mean_losses(joined(counts), edges[::2])
    names = ("Brier score", "log-loss")
    return {
        name: _extrapolated(*pair) for name, pair in zip(names, zip(fine, coarse, strict=True), strict=True)
    }


def _mean_losses(counts: Array, edges: Array) -> tuple[Array, ...]:
    every = counts.sum((-2, -1))
    return tuple(share((counts * losses).sum((-2, -1)), every) for losses in bin_losses(edges))


CLIP = 0.01
"""The log-loss is that of probabilities clipped to 0.01 from 0 and 1: a single surprise would outweigh all else."""
_INSIDE = 65


def bin_losses(edges: Array) -> tuple[Array, Array]:
    """Mean squared error and mean clipped log-loss in each bin, for either class; evenly spread on the bins' scale."""
    angles = np.arcsin(np.sqrt(np.clip(edges, 0.0, 1.0)))
    spread = np.linspace(0.0, 1.0, _INSIDE)
    inside = np.sin(angles[:-1, np.newaxis] + np.diff(angles)[:, np.newaxis] * spread) ** 2
    likely = np.clip(inside, CLIP, 1.0 - CLIP)
    squared = np.stack([inside**2, (1.0 - inside) ** 2]).mean(-1)
    return squared, np.stack([-np.log1p(-likely), -np.log(likely)]).mean(-1)


def groups(counts: Array) -> Statistics:
    """Of counts by group, true and predicted class."""
    told = _of_confusion(counts)
    return {name: told[name] for name in ("error", "false positive rate", "false negative rate")}


def group_errors(counts: Array) -> Statistics:
    """Of counts by group, right or wrong."""
    return {"error": share(counts[..., 1], counts.sum(-1))}


def group_distances(counts: Array, edges: Array) -> Statistics:
    """Of counts by group and residual."""
    distances, _ = residual_moments(edges)
    return {"mean absolute error": share((counts * distances).sum(-1), counts.sum(-1))}


def several_classes(counts: Array) -> Statistics:
    """Of counts by true and predicted class."""
    every = counts.sum((-2, -1))
    right = np.diagonal(counts, axis1=-2, axis2=-1)
    return {
        "accuracy": share(right.sum(-1), every),
        "error": 1.0 - share(right.sum(-1), every),
        "recall": share(right, counts.sum(-1)),
        "precision": share(right, counts.sum(-2)),
    }


QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


def residuals(counts: Array, edges: Array) -> Statistics:
    """Of clipped residuals, prediction less truth."""
    distances, squares = residual_moments(edges)
    every = counts.sum(-1)
    return {
        "mean absolute error": share((counts * distances).sum(-1), every),
        "root mean squared error": np.sqrt(np.maximum(share((counts * squares).sum(-1), every), 0.0)),
    }


def determination(residual: Array, target: Array, edges: Array, target_edges: Array) -> Statistics:
    """R2: what share of the target's variance the predictions leave nothing of."""
    _, squares = residual_moments(edges)
    missed = share((residual * squares).sum(-1), residual.sum(-1))
    middles = (target_edges[1:] + target_edges[:-1]) / 2.0
    _, target_squares = residual_moments(target_edges)
    every = target.sum(-1)
    mean = share((target * middles).sum(-1), every)
    variance = share((target * target_squares).sum(-1), every) - mean**2
    return {"R2": 1.0 - share(missed, variance)}


def residual_moments(edges: Array) -> tuple[Array, Array]:
    """Mean distance from 0 and mean square in each bin, spread evenly; no bin has 0 inside."""
    low, high = edges[:-1], edges[1:]
    return np.abs(low + high) / 2.0, (low**2 + low * high + high**2) / 3.0


def residual_quantiles(counts: Array, edges: Array) -> Statistics:
    """By straight lines through the cumulated counts, made rising."""
    below = np.maximum.accumulate(np.cumsum(counts, axis=-1), axis=-1)
    below = np.concatenate([np.zeros_like(below[..., :1]), below], axis=-1)
    shape = (*counts.shape[:-1], len(QUANTILES))
    rows = below.reshape(-1, below.shape[-1])
    found = [np.interp(np.array(QUANTILES) * row[-1], row, edges) for row in rows]
    return {"residual quantiles": np.array(found).reshape(shape)}


def bins_for(records: int, deviation: float) -> int:
    """Public: so many bins that neither their width nor their noise spoils the area under the curve; even.

    Bins lose about 1 / bins^2 of the area, the noise grows like sqrt(bins) deviation / records.
    """
    ratio = records / max(deviation, 1.0)
    return 2 * int(np.clip(round(0.45 * ratio**0.4), 4, 32))


def probability_edges(bins: int) -> Array:
    """Bins on which a probability is equally well known: even in arcsin(sqrt(p)), finer near 0 and 1."""
    edges = np.sin(np.pi / 2.0 * np.arange(bins + 1) / bins) ** 2
    edges[bins // 2], edges[-1] = 0.5, 1.0
    return edges


def even_edges(low: float, high: float, bins: int) -> Array:
    """Bins of one width."""
    return np.linspace(low, high, bins + 1)


def residual_edges(bound: float, bins: int) -> Array:
    """Bins of residuals, narrow around 0, where most are; no bin has 0 inside."""
    places = np.linspace(-1.0, 1.0, bins + 1)
    return bound * np.sign(places) * places**2


def calibration_groups(counts: Array, deviation: float) -> Places:
    """Where groups of bins begin that hold enough records each: so many that the noise is a twentieth of them."""
    starts, held = [0], 0.0
    every = counts.sum(0)
    enough = max(20.0 * deviation * np.sqrt(2.0), every.sum() / 12.0)
    for place, records in enumerate(every[:-1], start=1):
        held += records
        if held >= enough and every[place:].sum() >= enough:
            starts.append(place)
            held = 0.0
    return np.array(starts, dtype=np.int64)


def rising(values: Array) -> Array:
    """The nearest values that never fall: neighbours that do are pooled (isotonic regression)."""
    pools: list[tuple[float, int]] = []
    for value in values:
        pools.append((float(value), 1))
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            (one, few), (other, many) = pools[-2:]
            pools[-2:] = [((one * few + other * many) / (few + many), few + many)]
    return np.array([value for value, size in pools for _ in range(size)])


def straight_to_the_ends(scores: Array, shares: Array, low: float, high: float) -> tuple[Array, Array]:
    """Corners of a line, led on to both ends of the scores by its outermost slopes, within 0 and 1."""
    slopes = np.diff(shares) / np.diff(scores)
    first = shares[0] - slopes[0] * (scores[0] - low)
    last = shares[-1] + slopes[-1] * (high - scores[-1])
    return np.array([low, *scores, high]), np.clip([first, *shares, last], 0.0, 1.0)

"""Rates and curves from counts, noisy or exact. Post-processing: nothing here sees a record.

Every function takes counts with any leading axes, so that thousands of simulated tables are measured at once
(`evaluation.intervals`), and gives named numbers with the same leading axes. See docs/theory/evaluation.md.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privlearn.arrays import Array
from privlearn.evaluation.intervals import Statistics

Places = NDArray[np.int64]


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


BY_THRESHOLD = frozenset(
    ["accuracy", "error", "false positive rate", "false negative rate", "precision", "recall"]
)
"""Which numbers of two classes another threshold changes."""


def most_frequent(counts: Array) -> Statistics:
    """Of counts by true class and bin, or predicted class: the share of the class that most records have."""
    return {"most frequent": share(counts.sum(-1).max(-1), counts.sum((-2, -1)))}


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


LOSSES = ("Brier score", "log-loss")


def probability_losses(counts: Array, edges: Array) -> Statistics:
    """Brier score and log-loss of probabilities."""
    fine, coarse = _mean_losses(counts, edges), _mean_losses(joined(counts), edges[::2])
    return {
        name: _extrapolated(*pair) for name, pair in zip(LOSSES, zip(fine, coarse, strict=True), strict=True)
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
    return {"mean absolute error": residuals(counts, edges)["mean absolute error"]}


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
    """Of clipped residuals, prediction less truth. Linear in the counts: noise, negative counts too, adds no bias."""
    fine, coarse = residual_moments(edges), residual_moments(edges[::2])
    distances, squares = (
        _extrapolated(one, np.repeat(other, 2)) for one, other in zip(fine, coarse, strict=True)
    )
    every = counts.sum(-1)
    return {
        "mean absolute error": share((counts * distances).sum(-1), every),
        "mean squared error": share((counts * squares).sum(-1), every),
    }


def residual_moments(edges: Array) -> tuple[Array, Array]:
    """Mean distance from 0 and mean square in each bin, spread evenly."""
    low, high = edges[:-1], edges[1:]
    distances = (high * np.abs(high) - low * np.abs(low)) / (2.0 * (high - low))
    return distances, (low**2 + low * high + high**2) / 3.0


def target_variance(counts: Array, edges: Array) -> Statistics:
    """Of targets in even bins."""
    return {"variance": _extrapolated(_variance(counts, edges), _variance(joined(counts), edges[::2]))}


def _variance(counts: Array, edges: Array) -> Array:
    middles, every = (edges[1:] + edges[:-1]) / 2.0, counts.sum(-1)
    mean = share((counts * middles).sum(-1), every)
    return share((counts * middles**2).sum(-1), every) - mean**2


def residual_quantiles(counts: Array, edges: Array) -> Statistics:
    """By straight lines through the cumulated counts, made rising."""
    below = np.maximum.accumulate(np.cumsum(counts, axis=-1), axis=-1)
    below = np.concatenate([np.zeros_like(below[..., :1]), below], axis=-1)
    shape = (*counts.shape[:-1], len(QUANTILES))
    rows = below.reshape(-1, below.shape[-1])
    found = [np.interp(np.array(QUANTILES) * row[-1], row, edges) for row in rows]
    return {"residual quantiles": np.array(found).reshape(shape)}


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

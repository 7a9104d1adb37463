"""Rates and curves from counts, noisy or exact. Post-processing: nothing here reads a record.

Every function takes counts with any leading axes, so that thousands of simulated tables are measured at once
(`statistics.intervals`), and returns named numbers with the same leading axes. Scores of two classes are counted in an
array of shape (..., 2, bins), by true class and bin. See docs/theory/evaluation.md.

>>> counts = np.array([[6.0, 2.0], [1.0, 3.0]])  # two classes, two bins
>>> float(two_classes(counts, threshold=1)["accuracy"])  # 6 + 3 of 12 records
0.75
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privlearn.arrays import Array
from privlearn.statistics.intervals import NO_NOISE, CellNoise, Statistics

Indices = NDArray[np.int64]


def share(part: Array, whole: Array) -> Array:
    """Return a ratio; NaN where the noise left nothing to divide by."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(whole > 0, part / whole, np.nan)


def two_classes(counts: Array, threshold: int, noise: CellNoise = NO_NOISE) -> Statistics:
    """Return the rates of two classes at the edge ``threshold`` and the area under the curve."""
    return _confusion_rates(decide(counts, threshold)) | area_under_curve(counts, noise)


def area_under_curve(counts: Array, noise: CellNoise = NO_NOISE) -> dict[str, Array]:
    """Return the area under the ROC curve as a named number."""
    return {"auc": area(counts, noise)}


def decide(counts: Array, threshold: int) -> Array:
    """Return counts by true and predicted class, if bins from the edge ``threshold`` on predict the second class."""
    return np.stack([counts[..., :threshold].sum(-1), counts[..., threshold:].sum(-1)], axis=-1)


def _confusion_rates(cells: Array) -> dict[str, Array]:
    """Return the rates of counts by true and predicted class, the last two axes."""
    true_negative, false_positive = cells[..., 0, 0], cells[..., 0, 1]
    false_negative, true_positive = cells[..., 1, 0], cells[..., 1, 1]
    wrong, total = false_positive + false_negative, cells.sum((-2, -1))
    return {
        "accuracy": 1.0 - share(wrong, total),
        "error": share(wrong, total),
        "false positive rate": share(false_positive, false_positive + true_negative),
        "false negative rate": share(false_negative, false_negative + true_positive),
        "precision": share(true_positive, true_positive + false_positive),
        "recall": share(true_positive, true_positive + false_negative),
        "share of the second class": share(false_negative + true_positive, total),
    }


BY_THRESHOLD = frozenset(
    ["accuracy", "error", "false positive rate", "false negative rate", "precision", "recall"]
)
"""The numbers of two classes that depend on the threshold."""


def class_shares(counts: Array) -> Array:
    """Return the share of each class, from counts by true class and anything else."""
    return share(counts.sum(-1), counts.sum((-2, -1))[..., np.newaxis])


def confusion(counts: Array, threshold: int | None) -> Statistics:
    """Return the shares of all records by true and predicted class, flattened.

    ``counts`` are by true and predicted class or, with a ``threshold``, by true class and bin.
    """
    counts = counts if threshold is None else decide(counts, threshold)
    cells = counts.reshape(*counts.shape[:-2], -1)
    return {"confusion": share(cells, cells.sum(-1, keepdims=True))}


def area(counts: Array, noise: CellNoise = NO_NOISE) -> Array:
    """Return the area under the curve: how often a record of the second class has the higher score.

    It is the number of ordered pairs (one record of each class, in the right order) divided by the number of all pairs;
    a pair in one bin counts as a half. Both numbers are sums of products of two noisy counts. The noises of the two
    have a covariance, which biases each product. With B bins the bias is B^2 covariances for all pairs and half of that
    for the ordered ones, also if bins are joined. Both are subtracted (docs/theory/evaluation.md).
    """
    bias = noise.covariance * counts.shape[-1] ** 2
    return _extrapolate(_area_with_ties(counts, bias), _area_with_ties(join_bins(counts), bias))


def _area_with_ties(counts: Array, bias: float) -> Array:
    negative, positive = counts[..., 0, :], counts[..., 1, :]
    below = np.cumsum(negative, axis=-1) - negative / 2.0
    ordered, pairs = (positive * below).sum(-1), positive.sum(-1) * negative.sum(-1)
    return share(ordered - bias / 2.0, pairs - bias)


def join_bins(counts: Array) -> Array:
    """Return counts in half as many bins; the number of bins must be even."""
    return np.asarray(counts[..., ::2] + counts[..., 1::2])


def _extrapolate(fine: Array, coarse: Array) -> Array:
    """Return the limit of narrow bins (Richardson): bins of width h are off by about c h^2, joined ones by 4 c h^2."""
    return np.asarray((4.0 * fine - coarse) / 3.0)


def along_thresholds(counts: Array) -> Statistics:
    """Return recall, false positive rate and precision at each edge, from the lowest."""
    above = np.flip(np.cumsum(np.flip(counts, -1), axis=-1), -1)
    above = np.concatenate([above, np.zeros_like(above[..., :1])], axis=-1)
    negative, positive = above[..., 0, :], above[..., 1, :]
    return {
        "recall": share(positive, positive[..., :1]),
        "false positive rate": share(negative, negative[..., :1]),
        "precision": share(positive, positive + negative),
    }


def calibration(counts: Array, starts: Indices) -> Statistics:
    """Return the share of the second class in groups of bins, which begin at ``starts``."""
    grouped = np.add.reduceat(counts, starts, axis=-1)
    return {"calibration": share(grouped[..., 1, :], grouped.sum(-2))}


LOSSES = ("Brier score", "log-loss")


def probability_losses(counts: Array, edges: Array) -> Statistics:
    """Return the Brier score and the log-loss of probabilities."""
    fine, coarse = _mean_losses(counts, edges), _mean_losses(join_bins(counts), edges[::2])
    return dict(zip(LOSSES, map(_extrapolate, fine, coarse), strict=True))


def _mean_losses(counts: Array, edges: Array) -> tuple[Array, ...]:
    total = counts.sum((-2, -1))
    return tuple(share((counts * losses).sum((-2, -1)), total) for losses in bin_losses(edges))


CLIP = 0.01
"""Probabilities are clipped to this distance from 0 and 1, or a single surprise would dominate the log-loss."""
_POINTS_PER_BIN = 65


def bin_losses(edges: Array) -> tuple[Array, Array]:
    """Return the mean squared error and the mean clipped log-loss in each bin, for each class: shape (2, bins).

    Probabilities are taken to be even on the scale of the bins, arcsin(sqrt(p)).
    """
    angles = np.arcsin(np.sqrt(np.clip(edges, 0.0, 1.0)))
    steps = np.linspace(0.0, 1.0, _POINTS_PER_BIN)
    inside = np.sin(angles[:-1, np.newaxis] + np.diff(angles)[:, np.newaxis] * steps) ** 2
    clipped = np.clip(inside, CLIP, 1.0 - CLIP)
    squared = np.stack([inside**2, (1.0 - inside) ** 2]).mean(-1)
    return squared, np.stack([-np.log1p(-clipped), -np.log(clipped)]).mean(-1)


def groups(counts: Array) -> Statistics:
    """Return the error rates of groups, from counts by group, true and predicted class."""
    rates = _confusion_rates(counts)
    return {name: rates[name] for name in ("error", "false positive rate", "false negative rate")}


def group_errors(counts: Array) -> Statistics:
    """Return the error of groups, from counts by group and whether the prediction is wrong."""
    return {"error": share(counts[..., 1], counts.sum(-1))}


def group_distances(counts: Array, edges: Array) -> Statistics:
    """Return the mean absolute error of groups, from counts by group and residual."""
    return {"mean absolute error": residuals(counts, edges)["mean absolute error"]}


def several_classes(counts: Array) -> Statistics:
    """Return the rates of several classes, from counts by true and predicted class."""
    total = counts.sum((-2, -1))
    right = np.diagonal(counts, axis1=-2, axis2=-1)
    return {
        "accuracy": share(right.sum(-1), total),
        "error": 1.0 - share(right.sum(-1), total),
        "recall": share(right, counts.sum(-1)),
        "precision": share(right, counts.sum(-2)),
    }


QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


def residuals(counts: Array, edges: Array) -> Statistics:
    """Return the mean errors of clipped residuals (prediction less truth).

    They are linear in the counts, so noise and negative counts add no bias.
    """
    fine, coarse = residual_moments(edges), residual_moments(edges[::2])
    distances, squares = (
        _extrapolate(one, np.repeat(other, 2)) for one, other in zip(fine, coarse, strict=True)
    )
    total = counts.sum(-1)
    return {
        "mean absolute error": share((counts * distances).sum(-1), total),
        "mean squared error": share((counts * squares).sum(-1), total),
    }


def residual_moments(edges: Array) -> tuple[Array, Array]:
    """Return the mean distance from 0 and the mean square of values that are even in each bin."""
    low, high = edges[:-1], edges[1:]
    distances = (high * np.abs(high) - low * np.abs(low)) / (2.0 * (high - low))
    return distances, (low**2 + low * high + high**2) / 3.0


def target_variance(counts: Array, edges: Array, noise: CellNoise = NO_NOISE) -> Statistics:
    """Return the variance of targets in even bins."""
    coarse = np.repeat((edges[2::2] + edges[:-1:2]) / 2.0, 2)
    fine = (edges[1:] + edges[:-1]) / 2.0
    return {
        "variance": _extrapolate(*(binned_variance(counts, middles, noise) for middles in (fine, coarse)))
    }


def binned_variance(counts: Array, middles: Array, noise: CellNoise = NO_NOISE) -> Array:
    """Return the variance of values in bins, without the bias of a squared noisy mean.

    The mean's noise has the variance of a linear function whose coefficients are (middle - mean) / records.
    """
    total = counts.sum(-1)
    mean = share((counts * middles).sum(-1), total)
    centred = middles - mean[..., np.newaxis]
    squared = noise.variance * (centred**2).sum(-1) + noise.covariance * centred.sum(-1) ** 2
    return share((counts * middles**2).sum(-1), total) - mean**2 + share(squared, total**2)


def residual_quantiles(counts: Array, edges: Array) -> Statistics:
    """Return quantiles of residuals, interpolated in the cumulative counts after making these non-decreasing."""
    below = np.maximum.accumulate(np.cumsum(counts, axis=-1), axis=-1)
    below = np.concatenate([np.zeros_like(below[..., :1]), below], axis=-1)
    shape = (*counts.shape[:-1], len(QUANTILES))
    rows = below.reshape(-1, below.shape[-1])
    quantiles = [np.interp(np.array(QUANTILES) * row[-1], row, edges) for row in rows]
    return {"residual quantiles": np.array(quantiles).reshape(shape)}


def calibration_groups(counts: Array, deviation: float) -> Indices:
    """Return the first bins of groups of bins that hold at least twenty times the noise of their counts."""
    starts, in_group = [0], 0.0
    records = counts.sum(0)
    enough = max(20.0 * deviation * np.sqrt(2.0), records.sum() / 12.0)
    for index, in_bin in enumerate(records[:-1], start=1):
        in_group += in_bin
        if in_group >= enough and records[index:].sum() >= enough:
            starts.append(index)
            in_group = 0.0
    return np.array(starts, dtype=np.int64)


def isotonic(values: Array) -> Array:
    """Return the nearest non-decreasing values, by pooling neighbours that decrease (isotonic regression)."""
    pools: list[tuple[float, int]] = []
    for value in values:
        pools.append((float(value), 1))
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            (left, left_size), (right, right_size) = pools[-2:]
            size = left_size + right_size
            pools[-2:] = [((left * left_size + right * right_size) / size, size)]
    return np.array([value for value, size in pools for _ in range(size)])


def extend_to_ends(scores: Array, shares: Array, low: float, high: float) -> tuple[Array, Array]:
    """Return the knots of a calibration curve, extended to the ends of the scores by its outermost slopes."""
    slopes = np.diff(shares) / np.diff(scores)
    first = shares[0] - slopes[0] * (scores[0] - low)
    last = shares[-1] + slopes[-1] * (high - scores[-1])
    return np.array([low, *scores, high]), np.clip([first, *shares, last], 0.0, 1.0)

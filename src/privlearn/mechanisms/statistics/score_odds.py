"""Odds of the second class at any score, from noisy counts of scores: post-processing, at no cost."""

from __future__ import annotations

import numpy as np

from privlearn.arrays import Array
from privlearn.imports import optimize, special
from privlearn.mechanisms.statistics.score_counts import BINS, REACH

_WIDTH = 2.0 * REACH / BINS
MIDDLES = -REACH + _WIDTH * (np.arange(BINS) + 0.5)

_SLOPE = 1.5  # log-odds per unit of score, a priori: 1.6 to 1.8 on Adult and bank marketing
_SURE = 3.0  # prior precision: a slope's deviation is 1 / sqrt(3), and so is that of the log-odds at score 0
_DROWNED = 8.0  # (p^2 + q^2) / (p q) for classes of 1 to 9: the weight of a count relative to its noise
_SUMS = np.tril(np.ones((BINS, BINS)))


def log_odds_from_counts(counts: Array, noise_scale: float) -> Array:
    """Return non-decreasing log-odds of the second class in the middle of each bin.

    They are the likeliest for counts of weight n / (n + 8 noise_scale^2) and a prior of slope 1.5 with even odds at
    score 0. Where noise dominates the counts, the prior remains (docs/theory/calibration.md).

    Examples
    --------
    >>> counts = np.ones((2, 1)) * 100.0 * np.arange(1, BINS + 1)
    >>> counts[0] = counts[0, ::-1]
    >>> log_odds = log_odds_from_counts(counts, noise_scale=5.0)
    >>> bool(np.all(np.diff(log_odds) >= 0)), log_odds[[0, -1]].round(1).tolist()
    (True, [-2.8, 2.8])
    """
    first, second = np.maximum(counts, 0.0)
    total = first + second
    # Empty bins of exact counts have weight 0; the maximum avoids 0 / 0.
    weight = total / np.maximum(total + _DROWNED * noise_scale**2, 1.0)
    first, second = first * weight, second * weight

    def badness(steps: Array) -> tuple[float, Array]:
        odds = _SUMS @ steps
        even = (odds[BINS // 2 - 1] + odds[BINS // 2]) / 2.0
        excess = steps[1:] / _WIDTH - _SLOPE
        value = np.sum(second * np.logaddexp(0.0, -odds) + first * np.logaddexp(0.0, odds))
        value += _SURE / 2.0 * (even**2 + _WIDTH * np.sum(excess**2))
        gradient = first * special.expit(odds) - second * special.expit(-odds)
        gradient[BINS // 2 - 1 : BINS // 2 + 1] += _SURE * even / 2.0
        gradient = _SUMS.T @ gradient
        gradient[1:] += _SURE * excess
        return float(value), gradient

    start = np.full(BINS, _SLOPE * _WIDTH)
    start[0] = _SLOPE * MIDDLES[0]
    limits = [(None, None)] + [(0.0, None)] * (BINS - 1)
    result = optimize.minimize(
        badness, start, jac=True, method="L-BFGS-B", bounds=limits, options={"maxiter": 1000}
    )
    return np.asarray(np.maximum.accumulate(_SUMS @ result.x))


def log_odds_at(scores: Array, log_odds: Array) -> Array:
    """Return the log-odds at each score: linear between the middles of bins, constant beyond the outer ones."""
    return np.asarray(np.interp(scores, MIDDLES, log_odds))


def are_log_odds(numbers: Array) -> bool:
    """Return whether the numbers could have come from `log_odds_from_counts`."""
    return numbers.shape == (BINS,) and bool(np.isfinite(numbers).all() and (np.diff(numbers) >= 0).all())

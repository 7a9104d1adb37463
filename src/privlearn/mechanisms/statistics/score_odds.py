"""From noisy counts of scores to the odds of the second class at any score: no data, hence no cost."""

from __future__ import annotations

import numpy as np

from privlearn.arrays import Array
from privlearn.heavy import optimize, special
from privlearn.mechanisms.statistics.score_counts import BINS, REACH

_WIDTH = 2.0 * REACH / BINS
MIDDLES = -REACH + _WIDTH * (np.arange(BINS) + 0.5)

_SLOPE = 1.5  # log-odds per unit of score, before anything is known: 1.6 to 1.8 on Adult and bank marketing
_SURE = 3.0  # how sure of that: a slope's deviation is 1 / sqrt(3), and so is that of the log-odds at score 0
_DROWNED = 8.0  # (p^2 + q^2) / (p q) where classes are as 1 to 9: a count weighs what its noise leaves of it
_SUMS = np.tril(np.ones((BINS, BINS)))


def log_odds_from_counts(counts: Array, noise_scale: float) -> Array:
    """Log-odds of the second class in the middle of each bin, never falling.

    The likeliest ones, by counts that weigh n / (n + 8 noise_scale^2), if slopes are about 1.5 and odds are about even
    at score 0. Where noise drowns the counts, that is what remains (docs/theory/calibration.md).
    """
    first, second = np.maximum(counts, 0.0)
    total = first + second
    # Empty bins of exact counts weigh nothing, whatever they are divided by.
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
    found = optimize.minimize(
        badness, start, jac=True, method="L-BFGS-B", bounds=limits, options={"maxiter": 1000}
    )
    return np.asarray(np.maximum.accumulate(_SUMS @ found.x))


def log_odds_at(scores: Array, log_odds: Array) -> Array:
    """Of each score, between the middles of bins on a line, beyond the outer ones constant."""
    return np.asarray(np.interp(scores, MIDDLES, log_odds))


def are_log_odds(numbers: Array) -> bool:
    """Whether they could have come from `log_odds_from_counts`."""
    return numbers.shape == (BINS,) and bool(np.isfinite(numbers).all() and (np.diff(numbers) >= 0).all())

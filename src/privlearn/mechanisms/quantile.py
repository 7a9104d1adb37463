"""Private quantiles of a column of which nothing is known: the exponential mechanism over all sensible numbers.

The argument is in docs/theory/discovery.md.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from privlearn.mechanisms.selection import choose_row
from privlearn.randomness import Randomness

Array = NDArray[np.float64]

SHARE_UNIT = 2**12
"""Quantiles are multiples of 1/4096, so that losses are integers and no rounding depends on the number of rows."""

_LARGEST_EXPONENT = 1000
_ORDINARY_EXPONENT = 64
_FINE, _COARSE = 2**10, 2**4


def choose_quantile(cells: Array, share: int, epsilon: float, rows: int, randomness: Randomness) -> float:
    """A candidate near the quantile of order ``share / 4096``, for the price ``epsilon``.

    **Theorem** (McSherry and Talwar 2007; quantiles after Smith 2011; range after Cesar and Rogers 2021). A person who
    owns at most m = ``rows`` cells moves every loss of `quantile_losses` by at most m units of 4096, up or down, under
    ``replace_one`` and under ``zero_out``. So choosing c with probability proportional to
    weight(c) exp(-epsilon loss(c) / (2 m 4096)) has log-ratios within a range of epsilon, plus `SELECTION_ROUNDING`
    for rounding: it is (epsilon + rounding)-private and (epsilon + rounding)^2 / 8 zCDP.

    Parameters
    ----------
    cells : array
        NaN where a cell is missing: such a row counts on neither side.
    share : int
        From 1 to 4095.
    epsilon : float
    rows : int
        How many cells one person may own.
    randomness : Randomness
    """
    points, log_weights = candidates()
    losses = quantile_losses(np.sort(cells[~np.isnan(cells)]), share, points)
    # The smallest is taken off while they are integers: what is rounded afterwards is at most 700 where it matters.
    scores = log_weights - epsilon / (2.0 * rows * SHARE_UNIT) * (losses - losses.min())
    return float(points[choose_row(scores, randomness)])


def quantile_losses(ordered: Array, share: int, points: Array) -> NDArray[np.int64]:
    """How many rows, times 4096, would have to change sides for each point to be the quantile.

    With ``below``, ``equal`` and ``above`` the cells on each side of a point c and q = share / 4096 it is
    max(0, (1 - q) below - q (equal + above), q above - (1 - q) (below + equal)). One cell's part in either sum is
    1 - q, -q or (missing) 0, an interval of length 1.
    """
    below = np.searchsorted(ordered, points, side="left")
    up_to = np.searchsorted(ordered, points, side="right")
    total, rest = len(ordered), SHARE_UNIT - share
    too_high = rest * below - share * (total - below)
    too_low = share * (total - up_to) - rest * up_to
    return np.asarray(np.maximum(np.maximum(too_high, too_low), 0))


@lru_cache(maxsize=1)
def candidates() -> tuple[Array, Array]:
    """The public candidates in increasing order, and the logarithms of their public weights.

    0, and both signs of every number with 11 significant bits from 2^-64 to 2^65, with 5 bits down to 2^-1000 and up
    to 2^1001. All numbers between 2^k and 2^(k+1) together weigh 1 / (16 + |k|)^2: ordinary magnitudes come first, none
    is excluded. 0 weighs as much as the numbers from 1 to 2, because so many columns begin there.
    """
    exponents = np.arange(-_LARGEST_EXPONENT, _LARGEST_EXPONENT + 1)
    steps = np.where(np.abs(exponents) <= _ORDINARY_EXPONENT, _FINE, _COARSE)
    places = np.concatenate([np.arange(count) / count for count in steps])
    positive = np.ldexp(1.0 + places, np.repeat(exponents, steps))
    log_weights = np.repeat(-2.0 * np.log(16.0 + np.abs(exponents)) - np.log(steps), steps)
    points = np.concatenate([-positive[::-1], [0.0], positive])
    weights = np.concatenate([log_weights[::-1], [-2.0 * math.log(16.0)], log_weights])
    points.flags.writeable = weights.flags.writeable = False
    return points, weights

"""Private quantiles of a column without public bounds: the exponential mechanism over numbers of all magnitudes.

The argument is in docs/theory/discovery.md.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privlearn.arrays import Array
from privlearn.mechanisms.oracle import ColumnOracle, Counts, Sides
from privlearn.mechanisms.search.selection import choose_row, exponential_weights
from privlearn.randomness import Randomness

_MAX_EXPONENT = 1000  # candidates reach from 2^-1000 to 2^1001
_ORDINARY_EXPONENT = 64  # up to this magnitude of the exponent they are fine
_FINE, _COARSE = 2**10, 2**4  # candidates between a power of two and the next


def choose_centre(column: ColumnOracle, epsilon: float, rows: int, randomness: Randomness) -> float:
    """Return a number near the median of the cells, at cost ``epsilon``; see `_choose`."""
    points, log_weights = candidates()
    return _choose(points, log_weights, centre_losses(column.sides(points)), 2, epsilon, rows, randomness)


def choose_scale(distances: ColumnOracle, epsilon: float, rows: int, randomness: Randomness) -> float:
    """Return a number >= 0 near the median of the distances, at cost ``epsilon``; see `_choose`."""
    points, log_weights = candidates(distances=True)
    return _choose(points, log_weights, centre_losses(distances.sides(points)), 2, epsilon, rows, randomness)


def choose_reach(
    distances: ColumnOracle, scale: float, beyond: int, epsilon: float, rows: int, randomness: Randomness
) -> float:
    """Return a number >= 0 that about ``beyond`` of the distances exceed, at cost ``epsilon``; see `_choose`.

    ``scale`` is public or released. Numbers of its magnitude weigh most, because few cells near the bound support any
    number; 0 means unknown.
    """
    points, log_weights = candidates(distances=True)
    if scale > 0:
        log_weights = _around(scale, points, log_weights)
    losses = reach_losses(distances.sides(points), beyond)
    return _choose(points, log_weights, losses, 1, epsilon, rows, randomness)


def centre_losses(sides: Sides) -> Counts:
    """Return, for each point, the imbalance of the cells below and above it; 0 at a median.

    A cell adds 1 to one of two sums and subtracts 1 from the other, unless it is missing, and the larger sum counts:
    exchanging a cell moves the loss by at most 2.

    Examples
    --------
    >>> sides = Sides(below=np.array([0, 2, 5]), above=np.array([4, 2, 0]), cells=5)
    >>> centre_losses(sides).tolist()
    [3, 0, 5]
    """
    return np.asarray(np.maximum(2 * np.maximum(sides.below, sides.above) - sides.cells, 0))


def reach_losses(sides: Sides, beyond: int) -> Counts:
    """Return, for each point, how far the number of cells above it is from ``beyond``; equal cells count either way.

    A cell contributes 0 or 1, and 0 if it is missing: exchanging it moves the loss by at most 1.
    """
    from_here_on = sides.cells - sides.below
    return np.asarray(np.maximum(np.maximum(sides.above - beyond, beyond - from_here_on), 0))


@lru_cache(maxsize=2)
def candidates(distances: bool = False) -> tuple[Array, Array]:
    """Return the public candidates in increasing order, and the logarithms of their public weights.

    0, and both signs (for distances the positive one) of every number with 11 significant bits from 2^-64 to 2^65, and
    with 5 bits from 2^-1000 to 2^1001. All numbers from 2^k to 2^(k+1) together weigh 1 / (16 + |k|)^2: ordinary
    magnitudes come first, none is excluded. 0 weighs as much as the numbers from 1 to 2, because many columns begin
    there.
    """
    exponents = np.arange(-_MAX_EXPONENT, _MAX_EXPONENT + 1)
    steps = np.where(np.abs(exponents) <= _ORDINARY_EXPONENT, _FINE, _COARSE)
    fractions = np.concatenate([np.arange(count) / count for count in steps])
    positive = np.ldexp(1.0 + fractions, np.repeat(exponents, steps))
    each = np.repeat(_octave(exponents) - np.log(steps), steps)
    negative = slice(0, 0) if distances else slice(None, None, -1)
    points = np.concatenate([-positive[negative], [0.0], positive])
    log_weights = np.concatenate([each[negative], [_octave(np.zeros(1))[0]], each])
    # The cache hands the same arrays to every caller.
    points.flags.writeable = log_weights.flags.writeable = False
    return points, log_weights


def _octave(exponents: NDArray[Any]) -> Array:
    """Return the log-weight of all numbers from 2^k to 2^(k+1) together."""
    return np.asarray(-2.0 * np.log(16.0 + np.abs(exponents)))


def _around(scale: float, points: Array, log_weights: Array) -> Array:
    """Return log-weights of distances of known magnitude: about 2^k times the scale weighs 2^-|k|, 0 weighs 1/16."""
    positive = np.where(points > 0, points, 1.0)
    equal = log_weights - _octave(np.frexp(positive)[1] - 1)  # every octave weighs 1
    nearness = -np.abs(np.log(positive) - math.log(scale))
    return np.asarray(np.where(points > 0, equal + nearness, -math.log(16.0)))


def _choose(
    points: Array,
    log_weights: Array,
    losses: Counts,
    sensitivity: int,
    epsilon: float,
    rows: int,
    randomness: Randomness,
) -> float:
    """Return a point c with probability proportional to weight(c) exp(-epsilon loss(c) / (2 m sensitivity)).

    **Theorem** (McSherry and Talwar 2007; for quantiles Smith 2011; range: Cesar and Rogers 2021). A person who owns at
    most m = ``rows`` cells moves every loss by at most m times the sensitivity, up or down, whether they are replaced,
    blanked out or absent. So the log-ratio of neighbours' probabilities stays within a range of ``epsilon``, plus
    `SELECTION_ROUNDING`: the choice is (epsilon + rounding)-private and (epsilon + rounding)^2 / 8 zCDP.
    """
    weights = exponential_weights(-losses, epsilon / (2.0 * rows * sensitivity), log_weights)
    return float(points[choose_row(weights, randomness)])

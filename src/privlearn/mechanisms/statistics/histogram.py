"""Frequent values of a column without a public list: a histogram that releases only values of many people.

The argument is in docs/theory/discovery.md.
"""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from privlearn.accounting.functions import normal_tail
from privlearn.mechanisms.noise import add_gaussian
from privlearn.randomness import Randomness


def frequent(
    counts: NDArray[np.int64], noise_scale: float, threshold: float, randomness: Randomness
) -> NDArray[np.bool_]:
    """Return which of the occurring values have a noisy count above the threshold.

    **Theorem** (stability-based histogram, after Korolova et al. 2009 and Bun, Nissim and Stemmer 2016, with Gaussian
    noise). Let a person own at most m rows. Values that only this person has are released with probability at most
    `rare_probability`; if none is, the counts of the other values are a Gaussian mechanism whose L2-sensitivity is
    sqrt(2) m under ``replace_one`` (m rows leave one value and join another) and m where they only leave.

    The counts are whole and the noise's grid is finer than 1, so nothing is rounded.

    Examples
    --------
    >>> from privlearn.randomness import SeededRandomness
    >>> frequent(np.array([500, 1]), noise_scale=10.0, threshold=50.0, randomness=SeededRandomness(0)).tolist()
    [True, False]
    """
    return add_gaussian(counts.astype(np.float64), noise_scale, randomness) > threshold


def rare_probability(noise_scale: float, threshold: float, rows: int) -> float:
    """Return a bound on the probability that a list contains a value of one person, who owns at most ``rows`` rows.

    There are at most ``rows`` such values with a count of at most ``rows`` each.
    """
    return rows * normal_tail((threshold - rows) / noise_scale)


def rare_threshold(noise_scale: float, probability: float, rows: int) -> float:
    """Return the threshold at which `rare_probability` is ``probability``.

    Examples
    --------
    >>> threshold = rare_threshold(noise_scale=10.0, probability=1e-6, rows=1)
    >>> round(threshold, 1), round(1e6 * rare_probability(10.0, threshold, 1), 6)
    (48.5, 1.0)
    """
    return rows - noise_scale * NormalDist().inv_cdf(probability / rows)

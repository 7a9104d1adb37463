"""The frequent values of a column of which no list is known: a histogram that shows what many people share.

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
    """Which of the values that occur have a noisy count above the threshold.

    **Theorem** (stability-based histogram, after Korolova et al. 2009 and Bun, Nissim and Stemmer 2016, with Gaussian
    noise). Let a person own at most m rows. Values that only this person has are shown with probability at most
    `rare_probability`; if none is, the counts of the other values are a Gaussian mechanism whose L2-sensitivity is
    sqrt(2) m under ``replace_one`` (m rows leave one value and join another) and m where they only leave.

    The counts are whole and the noise's grid is finer than 1, so nothing is rounded.
    """
    return add_gaussian(counts.astype(np.float64), noise_scale, randomness) > threshold


def rare_probability(noise_scale: float, threshold: float, rows: int) -> float:
    """Probability, at most, that one list shows a value that only one person has, who owns at most ``rows`` rows.

    They are at most ``rows`` values with a count of at most ``rows`` each.
    """
    return rows * normal_tail((threshold - rows) / noise_scale)


def rare_threshold(noise_scale: float, probability: float, rows: int) -> float:
    """Inverse of `rare_probability`: the threshold that keeps it at most ``probability``."""
    return rows - noise_scale * NormalDist().inv_cdf(probability / rows)

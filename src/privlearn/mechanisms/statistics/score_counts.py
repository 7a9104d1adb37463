"""Probabilities of a margin model, learnt from private counts of records by class and score.

A support vector machine's score indicates the likelier class, not its probability. `ScoreCounts` releases an array of
shape (2, 16), classes by bins of scores. `log_odds_from_counts` turns it into 16 log-odds, one in the middle of each
bin, and `log_odds_at` interpolates between them; both are post-processing. The argument: docs/theory/calibration.md.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from privlearn.arrays import Array
from privlearn.errors import InvalidParameter
from privlearn.guarantee import Relation
from privlearn.imports import optimize, special
from privlearn.mechanisms.noise import add_gaussian
from privlearn.mechanisms.statistics.statistic import Statistic
from privlearn.randomness import Randomness

BINS = 16
REACH = 3.0
"""Scores are counted in BINS bins between -REACH and REACH; the outer bins include all scores beyond. A hinge's corner
is at 1, so that most scores are below 3 on any table."""

EDGES = np.linspace(-REACH, REACH, BINS + 1)[1:-1]


class CountsScores(Protocol):
    """Counts scores by class."""

    @abstractmethod
    def score_counts(self, coefficients: Array, edges: Array) -> Array:
        """PRIVATE: return the weight of the rows of each of two classes with a score between two edges, exactly.

        One line per class; multiples of 2^-20.
        """


@dataclass(frozen=True)
class ScoreCounts(Statistic):
    """Counts of records by class and score, with Gaussian noise.

    **Theorem** (docs/theory/calibration.md). A record counts once, in one of 2 * 16 cells that follow from it and from
    the released coefficients; the averaged rows of a person count 1 together. So one person moves the counts, for any
    earlier releases, by an L2 distance of at most S = 1, or sqrt(2) if they are replaced, and the counts are
    dominated by a Gaussian mechanism of

        ratio = S / noise_scale.

    Counts are multiples of 2^-20 and lie on the noise's grid. Earlier releases compose with it: the squares of
    ratios add up.

    Parameters
    ----------
    noise_scale : float
        Standard deviation of the noise in each count; 0 without a guarantee.

    Examples
    --------
    >>> from privlearn.guarantee import get_relation
    >>> round(ScoreCounts(noise_scale=20.0).ratio(get_relation("replace_one")), 4)
    0.0707
    """

    noise_scale: float

    released: ClassVar[str] = "the probabilities of its scores"

    def __post_init__(self) -> None:
        if not 0.0 <= self.noise_scale < 2.0**24:  # beyond, counts would not lie on the noise's grid
            raise InvalidParameter("the noise of counts must lie between 0 and 2^24")

    @classmethod
    def with_ratio(cls, ratio: float, relation: Relation) -> ScoreCounts:
        """Return the counts that cost a Gaussian mechanism of that ratio."""
        return cls(relation.counts / ratio)

    @property
    def numbers(self) -> int:
        return 2 * BINS

    def ratio(self, relation: Relation) -> float:
        return relation.counts / self.noise_scale

    def run(self, oracle: CountsScores, coefficients: Array, randomness: Randomness) -> Array:
        """Touch the data: return noisy counts, one row per class, which may be released."""
        counts = oracle.score_counts(coefficients, EDGES)
        return add_gaussian(counts, self.noise_scale, randomness) if self.noise_scale else counts

    def to_dict(self) -> dict[str, Any]:
        return {"bins": BINS, "reach": REACH, "noise_scale": self.noise_scale}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> ScoreCounts:
        return cls(float(record["noise_scale"]))


_WIDTH = 2.0 * REACH / BINS  # of a bin
MIDDLES = -REACH + _WIDTH * (np.arange(BINS) + 0.5)

_SLOPE = 1.5  # log-odds per unit of score, a priori: 1.6 to 1.8 on Adult and bank marketing
_SURE = 3.0  # prior precision: a slope's deviation is 1 / sqrt(3), and so is that of the log-odds at score 0
_DROWNED = 8.0  # (p^2 + q^2) / (p q) for classes of 1 to 9: the weight of a count relative to its noise
_SUMS = np.tril(np.ones((BINS, BINS)))  # from steps between bins to log-odds


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

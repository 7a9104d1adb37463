"""Private counts of records by class and score, from which a margin model's probabilities are learnt.

A support vector machine's score indicates the likelier class, not its probability. The argument:
docs/theory/calibration.md; `score_odds` turns the counts into probabilities.
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

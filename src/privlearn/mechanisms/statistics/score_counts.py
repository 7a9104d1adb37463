"""How many records of each class have which score: bought after a margin model, to learn its probabilities from.

A support vector machine's score says which class is likelier, not how much likelier. The argument, and why counts:
docs/theory/calibration.md; what becomes of them: `score_odds`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from privlearn.arrays import Array
from privlearn.errors import InvalidParameter
from privlearn.mechanisms.noise import add_gaussian
from privlearn.randomness import Randomness
from privlearn.relation import Relation

BINS = 16
REACH = 3.0
"""Scores are counted in so many bins between -REACH and REACH; the outer ones hold what lies beyond. A hinge's corner
is at 1, so that most scores are below 3 whatever the table."""

EDGES = np.linspace(-REACH, REACH, BINS + 1)[1:-1]


class CountsScores(Protocol):
    """What can be asked for the counts."""

    @abstractmethod
    def score_counts(self, coefficients: Array, edges: Array) -> NDArray[np.int64]:
        """PRIVATE: how many rows of each of two classes have a score between two edges; one row per class."""


@dataclass(frozen=True)
class ScoreCounts:
    """Counts of records by class and score, with Gaussian noise.

    **Theorem** (docs/theory/calibration.md). A record counts once, in one of 2 * 16 cells that follow from it and from
    the released coefficients. So one person moves the counts, whatever was released before, by an L2 distance of at
    most S = 1, or sqrt(2) if they are replaced, and the counts are dominated by a Gaussian mechanism of

        ratio = S / noise_scale.

    Counts are whole numbers and lie on the noise's grid. What was released before composes with it: ratios add up in
    squares.

    Parameters
    ----------
    noise_scale : float
        Standard deviation of the noise in each count; 0 where nothing is promised.
    """

    noise_scale: float

    def __post_init__(self) -> None:
        if not 0.0 <= self.noise_scale < 2.0**44:  # beyond, counts would not lie on the noise's grid
            raise InvalidParameter("the noise of counts must lie between 0 and 2^44")

    @classmethod
    def with_ratio(cls, ratio: float, relation: Relation) -> ScoreCounts:
        """The one that costs a Gaussian mechanism of that ratio."""
        return cls(relation.counts / ratio)

    def ratio(self, relation: Relation) -> float:
        """What it costs: the ratio of the Gaussian mechanism that dominates it."""
        return relation.counts / self.noise_scale

    def run(self, oracle: CountsScores, coefficients: Array, randomness: Randomness) -> Array:
        """Touch the data: noisy counts, one row per class. What is returned may leave."""
        counts = oracle.score_counts(coefficients, EDGES).astype(np.float64)
        return add_gaussian(counts, self.noise_scale, randomness) if self.noise_scale else counts

    def to_dict(self) -> dict[str, Any]:
        """For a certificate."""
        return {"bins": BINS, "reach": REACH, "noise_scale": self.noise_scale}


def score_counts_from_dict(record: Mapping[str, Any]) -> ScoreCounts:
    """Inverse of `ScoreCounts.to_dict`."""
    return ScoreCounts(float(record["noise_scale"]))

"""Private counts of the classes, from which a model's offsets follow: regularization then shrinks towards their rates.

The argument, and when the counts help: docs/theory/offsets.md.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from privlearn.arrays import Array
from privlearn.mechanisms.statistics.statistic import HistogramStatistic
from privlearn.randomness import Randomness


class CountsClasses(Protocol):
    """Counts records by class."""

    @abstractmethod
    def class_counts(self) -> Array:
        """PRIVATE: return the weight of the records of each class, exactly."""


@dataclass(frozen=True)
class ClassCounts(HistogramStatistic):
    """The number of records of each class, with noise.

    **Theorem**: that of `HistogramStatistic`, for one histogram. The shares are post-processing.
    """

    released: ClassVar[str] = "the shares of the classes"

    def run(self, oracle: CountsClasses, total: int, randomness: Randomness, is_exact: bool = False) -> Array:
        """Touch the data: return a positive share for each class, which may be released.

        Where the counts are known to add up to the public ``total``, they are moved to do so: each of two classes is
        then the mean of two estimates.
        """
        noisy = self.add_noise([oracle.class_counts()], randomness)[0]
        if is_exact:
            noisy = noisy - (noisy.sum() - total) / len(noisy)
        # A count that noise has drowned is taken as one deviation of the noise, and at least half a record.
        floor = max(self.deviation, 0.5)
        counts = np.clip(noisy, floor, max(floor, total))
        return np.asarray(counts / counts.sum())

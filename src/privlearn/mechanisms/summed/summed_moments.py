"""Second moments of several holders' records, targets included, as one noisy sum: regressions follow from it.

The argument is in docs/theory/multiparty.md, "Many regressions from one sum".
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from privlearn.errors import InvalidParameter
from privlearn.mechanisms.mechanism import register_mechanism
from privlearn.mechanisms.summed.summed import SUM_ROUNDING
from privlearn.mechanisms.summed.summed_counts import ROUNDING, SummedCounts


@register_mechanism
@dataclass(frozen=True)
class SummedMoments(SummedCounts):
    """The sums of x x' and of x y' over all records, |x| <= 1 and each of q targets in [-1, 1], in one question.

    **Theorem** (docs/theory/multiparty.md). The sum of x x' travels `packed`, times the root of its share w, that of
    x y' times the root of v, w + v = 1. With a = q v / w <= 1, a record replaced by another moves the vector by at
    most sqrt(2 w) (1 + a / 2), one deleted by at most sqrt(w) (1 + a / 2). Noise as in `SummedCounts`.

    ``cells`` are d (d + 1) / 2 and q d, for d features. The other parameters are those of `SummedCounts`.
    """

    summed: ClassVar[str] = "second moments"
    name: ClassVar[str] = "summed_moments"
    title: ClassVar[str] = "noisy second moments over a secure sum"
    page: ClassVar[str] = "multiparty"

    def __post_init__(self) -> None:
        super().__post_init__()
        moments, crossed = self.cells if len(self.cells) == 2 else (0, 0)
        features = self.features
        if features * (features + 1) != 2 * moments or not features or crossed % features:
            raise InvalidParameter("second moments have d (d + 1) / 2 numbers, those with q targets q d")
        if self._leverage > 1.0 + 2.0**-40:
            raise InvalidParameter("the share of the moments with targets is too large for their number")

    @property
    def features(self) -> int:
        """d."""
        return (math.isqrt(8 * self.cells[0] + 1) - 1) // 2

    @property
    def targets(self) -> int:
        """q."""
        return self.cells[1] // self.features

    @property
    def kinds(self) -> tuple[str, ...]:
        return ("second_moments_with_targets",)

    @property
    def moved(self) -> float:
        longest = math.sqrt(self.shares[0]) * (1.0 + self._leverage / 2.0)
        largest = self.records * self.rows_per_person * self.guarantee.relation.largest_table
        rounded = self.guarantee.relation.moments * self._rows_of_a_person * (1.0 + ROUNDING)
        return longest * (rounded + 2.0 * SUM_ROUNDING * largest)

    @property
    def _leverage(self) -> float:
        """a: how long a record's moments with targets are beside its own, squared."""
        return self.targets * self.shares[1] / self.shares[0]


def even_shares(targets: int) -> tuple[float, float]:
    """w and v with a = 1: the least noise in the moments with targets that the theorem allows."""
    return targets / (1.0 + targets), 1.0 / (1.0 + targets)

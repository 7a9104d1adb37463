"""Second moments of several holders' records, targets included, as one noisy sum: regressions follow from it.

The argument is in docs/theory/multiparty.md, "Many regressions from one sum".
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from privlearn.accounting.curves import Curve
from privlearn.erm.losses import LossFacts, Sees
from privlearn.errors import InvalidParameter, check_positive
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.mechanism import register_mechanism
from privlearn.mechanisms.summed.summed import SUM_ROUNDING
from privlearn.mechanisms.summed.summed_counts import ROUNDING, SummedCounts
from privlearn.mechanisms.task import Task


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


class Square(LossFacts):
    """Half the square of a residual: facts only. Its slope has no bound, so that nothing but moments is asked of it."""

    name: ClassVar[str] = "square"
    sees: ClassVar[Sees] = "residual"
    link: ClassVar[str] = "none"
    monotone: ClassVar[bool] = False
    derivative_rounding: ClassVar[float] = math.inf

    @property
    def lipschitz(self) -> float:
        return math.inf

    @property
    def smoothness(self) -> float:
        return 1.0

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name}


@dataclass(frozen=True)
class MomentsRegression:
    """One of the ridge regressions that follow from a noisy sum: post-processing, so all of them cost the sum once.

    Parameters
    ----------
    sum : SummedMoments
    sum_sha256 : str
        Digest of what was opened, by which regressions of one sum know each other.
    targets : tuple of str
        All that can be predicted from the sum.
    target : str
        The one that is.
    regularization : float
        Lambda, chosen by anybody.
    persons : bool
        Whether each person's rows were averaged into one record.
    """

    sum: SummedMoments
    sum_sha256: str
    targets: tuple[str, ...]
    target: str
    regularization: float
    persons: bool

    page: ClassVar[str] = SummedMoments.page
    uses_solver: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_positive(regularization=self.regularization)
        if self.target not in self.targets or len(self.targets) != self.sum.targets:
            raise InvalidParameter("the regression is of none of the targets in its sum")

    @property
    def guarantee(self) -> Guarantee:
        """The sum's."""
        return self.sum.guarantee

    @property
    def covers(self) -> str:
        """What the guarantee is about, and whom it trusts for what."""
        return f"{self.sum.covers} {self.shared}"

    @property
    def shared(self) -> str:
        """What whoever adds up costs has to know."""
        return (
            f"All regressions from the noisy sum {self.sum_sha256} (of {', '.join(self.targets)}, with any "
            "regularization) cost this once, together: count the claim of one of them, not the sum of their claims."
        )

    @property
    def floating_point(self) -> str:
        """What is exact in the parties' samplers."""
        return self.sum.floating_point

    @property
    def task(self) -> Task:
        """Public: what was learnt."""
        return Task(
            loss=Square(),
            total=self.sum.records,
            dimension=self.sum.features,
            problems=1,
            regularization=self.regularization,
            tolerance=0.0,
            neighbours=self.guarantee.neighbours,
            rows_per_person=self.sum.rows_per_person,
            averaged=self.persons,
            parties_per_person=self.sum.parties_per_person,
        )

    def spends(self) -> Guarantee:
        """What the sum costs, recomputed from its constants alone."""
        return self.sum.spends()

    def curve(self) -> Curve:
        """The sum's."""
        return self.sum.curve()

    def constants(self) -> dict[str, Any]:
        """Every number of the sum's theorem."""
        return self.sum.constants()

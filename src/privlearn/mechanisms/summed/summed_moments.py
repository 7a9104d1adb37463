"""Second moments of several holders' records, targets included, as one noisy sum, and regressions from it.

The argument is in docs/theory/multiparty.md, "Many regressions from one sum".
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from privlearn.accounting import Curve
from privlearn.errors import InvalidParameter, check_positive
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.mechanism import register_mechanism
from privlearn.mechanisms.summed.summed import SUM_ROUNDING
from privlearn.mechanisms.summed.summed_counts import ROUNDING, SummedCounts
from privlearn.mechanisms.task import Task
from privlearn.solvers.losses import LossArgument, LossProperties


@register_mechanism
@dataclass(frozen=True)
class SummedMoments(SummedCounts):
    """The sums of x x' and of x y' over all records, |x| <= 1 and each of q targets in [-1, 1], in one question.

    **Theorem** (docs/theory/multiparty.md). The sum of x x' is sent as a vector (`pack`), times the root of its share
    w, that of x y' times the root of v, w + v = 1. With a = q v / w <= 1, a record replaced by another moves the vector
    by at most sqrt(2 w) (1 + a / 2), one deleted by at most sqrt(w) (1 + a / 2). Noise as in `SummedCounts`.

    ``cells`` are d (d + 1) / 2 and q d, for d features. The other parameters are those of `SummedCounts`.

    Examples
    --------
    >>> mechanism = SummedMoments.calibrate(
    ...     Guarantee(1.0, 1e-6), records=1_000, rows_per_person=1, cells=[10, 8], weights=even_shares(2),
    ...     parties=3, noise_shares=2,
    ... )
    >>> mechanism.features, mechanism.targets, round(mechanism.noise_scale, 2)
    (4, 2, 7.32)
    """

    summed = "second moments"
    name = "summed_moments"
    title = "noisy second moments over a secure sum"
    page = "multiparty"

    def __post_init__(self) -> None:
        super().__post_init__()
        moments, with_targets = self.cells if len(self.cells) == 2 else (0, 0)
        features = self.features
        if features * (features + 1) != 2 * moments or not features or with_targets % features:
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
    def sum_sensitivity(self) -> float:
        length = math.sqrt(self.shares[0]) * (1.0 + self._leverage / 2.0)
        rows = self.records * self.rows_per_person * self.guarantee.relation.max_table_ratio
        sensitivity = self.guarantee.relation.moments * self._rows_of_a_person * (1.0 + ROUNDING)
        return length * (sensitivity + 2.0 * SUM_ROUNDING * rows)

    @property
    def _leverage(self) -> float:
        """a: squared norm of a record's moments with targets relative to its own moments."""
        return self.targets * self.shares[1] / self.shares[0]


def even_shares(targets: int) -> tuple[float, float]:
    """Return w and v with a = 1: the least noise in the moments with targets that the theorem allows."""
    return targets / (1.0 + targets), 1.0 / (1.0 + targets)


class Square(LossProperties):
    """Half the square of a residual: properties only. Its derivative is unbounded, so only its moments are used."""

    name: ClassVar[str] = "square"
    argument: ClassVar[LossArgument] = "residual"
    link: ClassVar[str] = "none"
    self_concordance: ClassVar[float] = 0.0
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
    """A ridge regression computed from a noisy sum: post-processing, so all of them cost the sum once.

    Parameters
    ----------
    sum : SummedMoments
    sum_sha256 : str
        Digest of the opened sum, which identifies regressions of one sum.
    targets : tuple of str
        All targets of the sum.
    target : str
        The predicted one.
    regularization : float
        Lambda; any value is free of cost.
    persons : bool
        Whether each person's rows were averaged into one record.
    """

    sum: SummedMoments
    sum_sha256: str
    targets: tuple[str, ...]
    target: str
    regularization: float
    persons: bool

    page = SummedMoments.page
    uses_solver: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_positive(regularization=self.regularization)
        if self.target not in self.targets or len(self.targets) != self.sum.targets:
            raise InvalidParameter("target must be one of the targets of the sum")

    @property
    def guarantee(self) -> Guarantee:
        """Guarantee of the sum."""
        return self.sum.guarantee

    @property
    def covers(self) -> str:
        return f"{self.sum.covers} {self.shared_cost}"

    @property
    def shared_cost(self) -> str:
        """Statement of certificates on the cost that all regressions of one sum share."""
        return (
            f"All regressions from the noisy sum {self.sum_sha256} (of {', '.join(self.targets)}, with any "
            "regularization) cost this once, together: count the claim of one of them, not the sum of their claims."
        )

    @property
    def floating_point(self) -> str:
        return self.sum.floating_point

    @property
    def task(self) -> Task:
        """Public: the task of the regression."""
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
        """Return the cost of the sum, recomputed from its constants alone."""
        return self.sum.spends()

    def curve(self) -> Curve:
        """Return the curve of the sum."""
        return self.sum.curve()

    def constants(self) -> dict[str, Any]:
        """Return every number of the sum's theorem."""
        return self.sum.constants()

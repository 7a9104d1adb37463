"""What every plan can be asked: how noise compares with margins, and what would help."""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

from scipy.optimize import brentq

from privlearn.guarantee import Guarantee
from privlearn.planning.stand_in import check_count
from privlearn.planning.summary import advice, as_dict, table
from privlearn.planning.verdict import Verdict, largest_ratio, verdict_of
from privlearn.strength import weakness

MOST_ROWS = 10**12
LEAST_EPSILON, MOST_EPSILON = 1e-4, 100.0
_STRIDE, _PRECISION = 4.0, 1.005  # of the search for the smallest number of records and the smallest epsilon


@dataclass(frozen=True, eq=False)
class Foretold(ABC):
    """A plan for so many records and a promise.

    Parameters
    ----------
    rows : int
    guarantee : Guarantee
    unit : float
        Units of the target in one of the scaled target.
    """

    rows: int
    guarantee: Guarantee
    unit: float = dataclasses.field(repr=False)

    @property
    @abstractmethod
    def mechanism(self) -> Any:
        """Exactly what would run."""

    @property
    @abstractmethod
    def noise(self) -> float:
        """In the prediction for a typical row."""

    @property
    @abstractmethod
    def worst_case(self) -> float:
        """In any prediction, at most."""

    @property
    @abstractmethod
    def margin(self) -> float:
        """Of the predictions without noise."""

    @property
    @abstractmethod
    def features(self) -> int:
        """Of a row, as encoded."""

    @property
    @abstractmethod
    def problems(self) -> int:
        """Functions that are learnt."""

    @property
    @abstractmethod
    def noise_scale(self) -> float:
        """Of the mechanism's law."""

    @property
    @abstractmethod
    def regularization(self) -> float:
        """Lambda."""

    @property
    def ratio(self) -> float:
        return self.noise / self.margin if self.margin else math.inf

    @property
    def verdict(self) -> Verdict:
        return verdict_of(self.ratio)

    @property
    def weakness(self) -> str | None:
        """Why the promise would be hardly private; ``None`` if it would not."""
        return weakness(self.mechanism.guarantee, self.rows)

    def at(
        self, *, rows: int | None = None, epsilon: float | None = None, delta: float | None = None
    ) -> Self:
        """The same with another number of records, another epsilon or another delta."""
        promised = self.guarantee
        guarantee = Guarantee(
            promised.epsilon if epsilon is None else epsilon,
            promised.delta if delta is None else delta,
            promised.neighbours,
        )
        return dataclasses.replace(
            self,
            rows=self.rows if rows is None else check_count("rows", rows, MOST_ROWS),
            guarantee=guarantee,
        )

    def smallest_rows(self, verdict: str = "clear") -> int | None:
        """Fewest records with which this epsilon gives that verdict or a better one; ``None`` if 10^12 are too few."""
        found = _smallest(
            lambda rows: self.at(rows=math.ceil(rows)).ratio, largest_ratio(verdict), 1.0, float(MOST_ROWS)
        )
        return None if found is None else math.ceil(found)

    def smallest_epsilon(self, verdict: str = "clear") -> float | None:
        """Smallest epsilon with which so many records give that verdict or better; ``None`` if 100 is too small."""
        return _smallest(
            lambda epsilon: self.at(epsilon=epsilon).ratio,
            largest_ratio(verdict),
            LEAST_EPSILON,
            MOST_EPSILON,
        )

    def to_dict(self) -> dict[str, Any]:
        """All numbers as plain JSON values."""
        return as_dict(self)

    def __str__(self) -> str:
        return "\n".join([table(self), "", *advice(self)])


def unit_of(rows: Any) -> float:
    """Half the distance of the target's bounds; 1 for classes."""
    bounds = getattr(rows, "target_bounds", None)
    return 1.0 if bounds is None else (bounds[1] - bounds[0]) / 2.0


def _smallest(ratio_at: Callable[[float], float], largest: float, low: float, high: float) -> float | None:
    """Where a falling ratio gets down to ``largest``, to half a per cent from above; ``None`` if it does not.

    From below, because a plan of more records can be worse again where the solver's tolerance costs more than it saves.
    """
    below = above = low
    while ratio_at(above) > largest:
        if above == high:
            return None
        below, above = above, min(_STRIDE * above, high)
    if above == low:
        return low
    found = math.exp(
        brentq(
            lambda place: math.log(ratio_at(math.exp(place)) / largest),
            math.log(below),
            math.log(above),
            xtol=math.log(_PRECISION) / 2.0,
        )
    )
    while ratio_at(found) > largest:
        found *= _PRECISION
    return found

"""Bounds and lists bought together: all quantiles and all histograms of a table as one guarantee."""

from __future__ import annotations

import math
from dataclasses import dataclass

from privlearn.accounting import MARGIN, zcdp_budget, zcdp_delta
from privlearn.data.schema.public import Value
from privlearn.errors import InvalidParameter
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.oracle import ColumnOracle, Histogram
from privlearn.mechanisms.search.selection import SELECTION_ROUNDING
from privlearn.mechanisms.statistics.histogram import frequent, rare_probability, rare_threshold
from privlearn.mechanisms.statistics.quantile import choose_centre, choose_reach, choose_spread
from privlearn.randomness import Randomness

LOG_ODDS = 10.0
"""How much likelier, in logarithms, the quantile aimed at is than a number beyond all data of the same weight. For
columns of many shapes it keeps the probability of a bound far too wide below 1 in 100 (docs/theory/discovery.md)."""
BOUND_WEIGHT = 3.0
"""rho of a bound for a rho of 1 of a list: then about as many rows lie beyond a bound as a listed value needs."""
ANCHOR = 0.5
"""Epsilon of a column's centre or spread beside that of a bound: there half of the rows speak for what is chosen."""
LARGEST_SHARE = 0.25
"""Of the records, beyond a bound, or with a listed value: where more would be needed, nothing is sold."""


@dataclass(frozen=True)
class Discovery:
    """A number of private bounds and of lists of frequent values, from one table, for one price.

    A bound is an origin plus or minus a distance that few cells exceed (`choose_reach`). Its anchors are chosen first:
    the origin, if both bounds of a column are bought (`choose_centre`; else it is the public bound), and the magnitude
    of the distances from it (`choose_spread`).

    **Theorem** (docs/theory/discovery.md). A bound is (e + 2^-38)^2 / 8 zCDP, an anchor (e / 2 + 2^-38)^2 / 8. Up to an
    event of probability delta0, the sum of `rare_probability` over the lists, the L lists together are
    s m^2 L / (2 scale^2) zCDP, s = 2 for ``replace_one``, else 1 (`frequent`). With rho the sum,

        delta(epsilon) <= delta0 + zcdp_delta(rho, epsilon + log(1 - delta0)).

    Without lists the choices are also private at the sum of their epsilons: the cheaper of the two counts.

    Parameters
    ----------
    guarantee : Guarantee
        The price of all of it.
    records : int
        Public number of records, or of persons; the expected one where it is private.
    rows_per_person : int
        m: how many records one person may own.
    bounds, anchors, lists : int
        How many of each.
    quantile_epsilon, noise_scale, threshold : float
        e, and the histograms' two constants; 0 where there is nothing of the kind.
    """

    guarantee: Guarantee
    records: int
    rows_per_person: int
    bounds: int
    anchors: int
    lists: int
    quantile_epsilon: float
    noise_scale: float
    threshold: float

    @classmethod
    def calibrate(
        cls,
        guarantee: Guarantee,
        *,
        records: int,
        rows_per_person: int,
        bounds: int,
        anchors: int,
        lists: int,
    ) -> Discovery:
        """The most accurate purchase for the price; refuses what would be noise. Looks at public facts only."""
        _check(guarantee, lists)
        rare = guarantee.delta / 2.0 if lists else 0.0
        budget = _zcdp_budget(guarantee, rare)
        weight = BOUND_WEIGHT * (bounds + ANCHOR**2 * anchors) + lists
        epsilon = scale = threshold = 0.0
        if bounds:
            epsilon = math.sqrt(8.0 * budget * BOUND_WEIGHT / weight)
            if not lists:
                epsilon = max(epsilon, guarantee.epsilon * (1.0 - MARGIN) / (bounds + ANCHOR * anchors))
            # Where rounding would cost more than there is, the floor is refused below, for any number of records.
            epsilon = max(epsilon - SELECTION_ROUNDING / ANCHOR, SELECTION_ROUNDING)
        if lists:
            square = _squared_sensitivity(guarantee, rows_per_person)
            scale = math.sqrt(square * weight / (2.0 * budget))
            threshold = rare_threshold(scale, rare * (1.0 - MARGIN) / lists, rows_per_person)
        plan = cls(guarantee, records, rows_per_person, bounds, anchors, lists, epsilon, scale, threshold)
        plan._refuse_noise()
        return plan

    @property
    def beyond(self) -> int:
        """How many cells shall lie beyond a bound: so many that numbers beyond all data are unlikely.

        The choice of such a number is `LOG_ODDS` less likely, in logarithms, than of one as heavy at the quantile.
        """
        return math.ceil(2.0 * self.rows_per_person * LOG_ODDS / self.quantile_epsilon)

    @property
    def zcdp(self) -> float:
        """rho of all bounds and anchors and, but for the event, of all lists."""
        bound, anchor = self._epsilons
        chosen = (self.bounds * bound**2 + self.anchors * anchor**2) / 8.0
        if not self.lists:
            return chosen
        square = _squared_sensitivity(self.guarantee, self.rows_per_person)
        return chosen + self.lists * square / (2.0 * self.noise_scale**2)

    def spends(self) -> Guarantee:
        """The guarantee recomputed from the constants alone."""
        epsilon, neighbours = self.guarantee.epsilon, self.guarantee.neighbours
        bound, anchor = self._epsilons
        if not self.lists and self.bounds * bound + self.anchors * anchor <= epsilon:
            return Guarantee(epsilon, 0.0, neighbours)
        rare = self.lists and self.lists * rare_probability(
            self.noise_scale, self.threshold, self.rows_per_person
        )
        delta = rare + zcdp_delta(self.zcdp, epsilon * (1.0 - MARGIN) + math.log1p(-rare))
        return Guarantee(epsilon, min(delta, math.nextafter(1.0, 0.0)), neighbours)

    def renyi(self, order: float) -> float:
        """Renyi divergence of the given order that bounds may cost; lists have none, because of the rare event."""
        return order * self.zcdp

    def centre(self, column: ColumnOracle, randomness: Randomness) -> float:
        """Touch the data: a number amid the cells."""
        return choose_centre(column, ANCHOR * self.quantile_epsilon, self.rows_per_person, randomness)

    def spread(self, column: ColumnOracle, origin: float, randomness: Randomness) -> float:
        """Touch the data: how far from the origin cells usually are."""
        epsilon = ANCHOR * self.quantile_epsilon
        return choose_spread(column.beyond(origin), epsilon, self.rows_per_person, randomness)

    def bound(
        self, column: ColumnOracle, side: str, origin: float, spread: float, randomness: Randomness
    ) -> float:
        """Touch the data: the lower or upper bound, seen from anchors that are public or were released."""
        sign = 1.0 if side == "upper" else -1.0
        return origin + sign * choose_reach(
            column.beyond(origin, side),
            spread,
            self.beyond,
            self.quantile_epsilon,
            self.rows_per_person,
            randomness,
        )

    def listed(self, histogram: Histogram, randomness: Randomness) -> list[Value]:
        """Touch the data: the frequent values, sorted: their order in the table is nobody's business."""
        shown = frequent(histogram.counts, self.noise_scale, self.threshold, randomness)
        return sorted(value for value, is_shown in zip(histogram.values, shown, strict=True) if is_shown)

    @property
    def _epsilons(self) -> tuple[float, float]:
        """Of a bound and of an anchor, rounding included."""
        return self.quantile_epsilon + SELECTION_ROUNDING, ANCHOR * self.quantile_epsilon + SELECTION_ROUNDING

    def _refuse_noise(self) -> None:
        """Bounds and lists that public facts already show to be worthless are not sold."""
        scarce = f"{self.records} records and {self.guarantee} buy noise"
        most = LARGEST_SHARE * self.records
        if self.bounds and self.beyond > most:
            raise InvalidParameter(
                f"{scarce}: {self.bounds} bounds need {math.ceil(10 * self.beyond / most) / 10:g} times as many "
                "records, or about as much more epsilon. Mark fewer bounds, or state them from public knowledge"
            )
        if self.lists and self.threshold > most:
            raise InvalidParameter(
                f"{scarce}: a value would have to occur more than {self.threshold:.0f} times to be listed. "
                "Spend more, mark fewer lists, or state them from public knowledge"
            )


def _check(guarantee: Guarantee, lists: int) -> None:
    if not guarantee.is_private:
        raise InvalidParameter("bounds and lists are bought for a finite epsilon: pass epsilon=0.1, say")
    if lists and guarantee.delta == 0:
        raise InvalidParameter(
            "lists of values or classes are bought by a stability-based histogram, which needs delta > 0: pass "
            "delta=1e-6 (well below 1/n)"
        )


def _zcdp_budget(guarantee: Guarantee, rare: float) -> float:
    """rho that is left for noise and choices once the rare event is paid for."""
    if guarantee.delta == 0:
        return 0.0
    epsilon = guarantee.epsilon + math.log1p(-rare)
    if epsilon <= 0:
        raise InvalidParameter("delta is larger than epsilon: pass a delta well below 1/n, such as 1e-6")
    return zcdp_budget(epsilon, guarantee.delta - rare) * (1.0 - MARGIN)


def _squared_sensitivity(guarantee: Guarantee, rows: int) -> float:
    """Of the counts of one list, in L2."""
    return (guarantee.relation.counts * rows) ** 2

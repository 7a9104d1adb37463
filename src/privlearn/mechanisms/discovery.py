"""Bounds and lists bought together: all quantiles and all histograms of a table as one guarantee."""

from __future__ import annotations

import math
from dataclasses import dataclass

from privlearn.accounting import MARGIN, zcdp_budget, zcdp_delta
from privlearn.errors import InvalidParameter
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.histogram import rare_probability, rare_threshold
from privlearn.mechanisms.quantile import SHARE_UNIT
from privlearn.mechanisms.selection import SELECTION_ROUNDING

LOG_ODDS = 12.0
"""How much likelier, in logarithms, the quantile aimed at is than a number beyond all data of the same weight."""
QUANTILE_WEIGHT = 2.0
"""What a quantile gets of the budget for what a list gets: at equal shares its error in rows would be larger."""
LARGEST_SHARE = SHARE_UNIT // 4


@dataclass(frozen=True)
class Discovery:
    """A number of private quantiles and of lists of frequent values, from one table, for one price.

    **Theorem** (docs/theory/discovery.md). A quantile is (e + 2^-38)^2 / 8 zCDP (`choose_quantile`). Up to an event of
    probability delta0, the sum of `rare_probability` over the lists, the L lists together are s m^2 L / (2 scale^2)
    zCDP, s = 2 for ``replace_one`` and 1 for ``zero_out`` (`frequent`). With rho the sum,

        delta(epsilon) <= delta0 + zcdp_delta(rho, epsilon + log(1 - delta0)).

    Without lists the quantiles are also epsilon-private for epsilon = (their number) times (e + 2^-38): the cheaper of
    the two counts.

    Parameters
    ----------
    guarantee : Guarantee
        The price of all of it.
    records : int
        Number of records, or of persons; public.
    rows_per_person : int
        m: how many records one person may own.
    quantiles, lists : int
        How many of each.
    quantile_epsilon, noise_scale, threshold : float
        e, and the histograms' two constants; 0 where there is nothing of the kind.
    """

    guarantee: Guarantee
    records: int
    rows_per_person: int
    quantiles: int
    lists: int
    quantile_epsilon: float
    noise_scale: float
    threshold: float

    @classmethod
    def calibrate(
        cls, guarantee: Guarantee, *, records: int, rows_per_person: int, quantiles: int, lists: int
    ) -> Discovery:
        """The most accurate purchase for the price; refuses what would be noise. Looks at public facts only."""
        _check(guarantee, lists)
        rare = guarantee.delta / 2.0 if lists else 0.0
        budget = _zcdp_budget(guarantee, rare)
        weight = QUANTILE_WEIGHT * quantiles + lists
        epsilon = scale = threshold = 0.0
        if quantiles:
            epsilon = math.sqrt(8.0 * budget * QUANTILE_WEIGHT / weight)
            if not lists:
                epsilon = max(epsilon, guarantee.epsilon * (1.0 - MARGIN) / quantiles)
            epsilon -= SELECTION_ROUNDING
        if lists:
            square = _squared_sensitivity(guarantee, rows_per_person)
            scale = math.sqrt(square * weight / (2.0 * budget))
            threshold = rare_threshold(scale, rare * (1.0 - MARGIN) / lists, rows_per_person)
        plan = cls(guarantee, records, rows_per_person, quantiles, lists, epsilon, scale, threshold)
        plan._refuse_noise()
        return plan

    @property
    def lower_share(self) -> int:
        """The order, in 4096ths, of the quantile that becomes a lower bound; an upper bound's is as far from the end.

        So many rows lie beyond it that numbers beyond all data are unlikely by `LOG_ODDS`.
        """
        rows = 2.0 * self.rows_per_person * LOG_ODDS / self.quantile_epsilon
        return math.ceil(SHARE_UNIT * rows / self.records)

    @property
    def zcdp(self) -> float:
        """rho of all quantiles and, but for the event, of all lists."""
        chosen = self.quantiles * (self.quantile_epsilon + SELECTION_ROUNDING) ** 2 / 8.0
        if not self.lists:
            return chosen
        square = _squared_sensitivity(self.guarantee, self.rows_per_person)
        return chosen + self.lists * square / (2.0 * self.noise_scale**2)

    def spends(self) -> Guarantee:
        """The guarantee recomputed from the constants alone."""
        epsilon, neighbours = self.guarantee.epsilon, self.guarantee.neighbours
        if not self.lists and self.quantiles * (self.quantile_epsilon + SELECTION_ROUNDING) <= epsilon:
            return Guarantee(epsilon, 0.0, neighbours)
        rare = self.lists and self.lists * rare_probability(
            self.noise_scale, self.threshold, self.rows_per_person
        )
        delta = rare + zcdp_delta(self.zcdp, epsilon * (1.0 - MARGIN) + math.log1p(-rare))
        return Guarantee(epsilon, min(delta, math.nextafter(1.0, 0.0)), neighbours)

    def renyi(self, order: float) -> float:
        """Renyi divergence of the given order that quantiles may cost; lists have none, because of the rare event."""
        return order * self.zcdp

    def _refuse_noise(self) -> None:
        """Bounds and lists that public facts already show to be worthless are not sold."""
        scarce = f"{self.records} records and {self.guarantee} buy noise"
        if self.quantiles and self.lower_share > LARGEST_SHARE:
            raise InvalidParameter(
                f"{scarce}: {self.quantiles} bounds would need {self.lower_share / LARGEST_SHARE:.2g} times as many "
                "records or, about, as large an epsilon. Mark fewer bounds, or state them from public knowledge"
            )
        if self.lists and self.threshold > self.records / 4.0:
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
    return (2.0 if guarantee.neighbours == "replace_one" else 1.0) * rows**2

"""Private bounds and lists: all quantiles and all histograms of a table under one guarantee.

A histogram (`frequent`) is over the values of a column without a public list, and releases only values of many people.
The argument is in docs/theory/discovery.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from privlearn.accounting import MARGIN, zcdp_budget, zcdp_delta
from privlearn.accounting.functions import normal_tail
from privlearn.data.schema.public import Value
from privlearn.errors import InvalidParameter
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.noise import add_gaussian
from privlearn.mechanisms.oracle import ColumnOracle, Histogram
from privlearn.mechanisms.search.selection import SELECTION_ROUNDING
from privlearn.mechanisms.statistics.quantile import choose_centre, choose_reach, choose_scale
from privlearn.randomness import Randomness

LOG_ODDS = 10.0
"""Log-ratio of the probabilities of the target quantile and of a number of equal weight beyond all data. For columns of
many shapes it keeps the probability of a bound far too wide below 1 in 100 (docs/theory/discovery.md)."""
BOUND_WEIGHT = 3.0
"""rho of a bound relative to that of a list: then a bound excludes about as many rows as a listed value needs."""
ANCHOR = 0.5
"""Epsilon of a column's centre or scale relative to that of a bound: half of the rows determine them."""
MAX_SHARE = 0.25
"""Maximal share of the records that a bound may exclude, or that a listed value may need; beyond it, refuse."""


@dataclass(frozen=True)
class Discovery:
    """Private bounds and lists of frequent values of one table, under one guarantee.

    A bound is an origin plus or minus a distance that few cells exceed (`choose_reach`). Its anchors are chosen first:
    the origin, if both bounds of a column are private (`choose_centre`; else it is the public bound), and the magnitude
    of the distances from it (`choose_scale`).

    **Theorem** (docs/theory/discovery.md). A bound is (e + 2^-38)^2 / 8 zCDP, an anchor (e / 2 + 2^-38)^2 / 8. Up to an
    event of probability delta0, the sum of `rare_probability` over the lists, the L lists together are
    s m^2 L / (2 scale^2) zCDP, s = 2 for ``replace_one``, else 1 (`frequent`). With rho the sum,

        delta(epsilon) <= delta0 + zcdp_delta(rho, epsilon + log(1 - delta0)).

    Without lists the choices are also private at the sum of their epsilons; the smaller cost counts.

    Parameters
    ----------
    guarantee : Guarantee
        For everything together.
    records : int
        Public number of records, or of persons; the expected one where it is private.
    rows_per_person : int
        m: maximal number of records of one person.
    bounds, anchors, lists : int
        Numbers of each.
    quantile_epsilon, noise_scale, threshold : float
        e, and the histograms' two constants; 0 where unused.
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
        """Return the most accurate constants for a guarantee; raise InvalidParameter if the results would be noise."""
        _check(guarantee, lists)
        rare = guarantee.delta / 2.0 if lists else 0.0
        budget = _zcdp_budget(guarantee, rare)
        weight = BOUND_WEIGHT * (bounds + ANCHOR**2 * anchors) + lists
        epsilon = scale = threshold = 0.0
        if bounds:
            epsilon = math.sqrt(8.0 * budget * BOUND_WEIGHT / weight)
            if not lists:
                epsilon = max(epsilon, guarantee.epsilon * (1.0 - MARGIN) / (bounds + ANCHOR * anchors))
            # Where rounding would cost more than the budget, the floor is refused below, for any number of records.
            epsilon = max(epsilon - SELECTION_ROUNDING / ANCHOR, SELECTION_ROUNDING)
        if lists:
            square = _sensitivity_squared(guarantee, rows_per_person)
            scale = math.sqrt(square * weight / (2.0 * budget))
            threshold = rare_threshold(scale, rare * (1.0 - MARGIN) / lists, rows_per_person)
        discovery = cls(
            guarantee, records, rows_per_person, bounds, anchors, lists, epsilon, scale, threshold
        )
        discovery._refuse_noise()
        return discovery

    @property
    def beyond(self) -> int:
        """Target number of cells beyond a bound: large enough that numbers beyond all data are unlikely.

        Such a number is `LOG_ODDS` less likely, in logarithms, than one of equal weight at the quantile.
        """
        return math.ceil(2.0 * self.rows_per_person * LOG_ODDS / self.quantile_epsilon)

    @property
    def zcdp(self) -> float:
        """rho of all bounds and anchors and, except for the rare event, of all lists."""
        bound, anchor = self._epsilons
        choices = (self.bounds * bound**2 + self.anchors * anchor**2) / 8.0
        if not self.lists:
            return choices
        square = _sensitivity_squared(self.guarantee, self.rows_per_person)
        return choices + self.lists * square / (2.0 * self.noise_scale**2)

    def spends(self) -> Guarantee:
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
        """Return the Renyi divergence of the bounds; lists have none, because of the rare event."""
        return order * self.zcdp

    def centre(self, column: ColumnOracle, randomness: Randomness) -> float:
        """Touch the data: return a number near the median of the cells."""
        return choose_centre(column, ANCHOR * self.quantile_epsilon, self.rows_per_person, randomness)

    def scale(self, column: ColumnOracle, origin: float, randomness: Randomness) -> float:
        """Touch the data: return the typical distance of the cells from the origin."""
        epsilon = ANCHOR * self.quantile_epsilon
        return choose_scale(column.beyond(origin), epsilon, self.rows_per_person, randomness)

    def bound(
        self, column: ColumnOracle, side: str, origin: float, scale: float, randomness: Randomness
    ) -> float:
        """Touch the data: return the lower or upper bound, from anchors that are public or released."""
        sign = 1.0 if side == "upper" else -1.0
        return origin + sign * choose_reach(
            column.beyond(origin, side),
            scale,
            self.beyond,
            self.quantile_epsilon,
            self.rows_per_person,
            randomness,
        )

    def frequent_values(self, histogram: Histogram, randomness: Randomness) -> list[Value]:
        """Touch the data: return the frequent values, sorted, because their order in the table is private."""
        above = frequent(histogram.counts, self.noise_scale, self.threshold, randomness)
        return sorted(value for value, is_above in zip(histogram.values, above, strict=True) if is_above)

    @property
    def _epsilons(self) -> tuple[float, float]:
        """Epsilons of a bound and of an anchor, rounding included."""
        return self.quantile_epsilon + SELECTION_ROUNDING, ANCHOR * self.quantile_epsilon + SELECTION_ROUNDING

    def _refuse_noise(self) -> None:
        """Raise InvalidParameter for bounds and lists that are useless by public parameters alone."""
        scarce = f"{self.records} records and {self.guarantee} give noise only"
        limit = MAX_SHARE * self.records
        if self.bounds and self.beyond > limit:
            raise InvalidParameter(
                f"{scarce}: {self.bounds} bounds need {math.ceil(10 * self.beyond / limit) / 10:g} times as many "
                "records, or about as much more epsilon. Mark fewer bounds, or state them from public knowledge"
            )
        if self.lists and self.threshold > limit:
            raise InvalidParameter(
                f"{scarce}: a value would have to occur more than {self.threshold:.0f} times to be listed. "
                "Spend more, mark fewer lists, or state them from public knowledge"
            )


def _check(guarantee: Guarantee, lists: int) -> None:
    if not guarantee.is_private:
        raise InvalidParameter(
            "private bounds and lists need a finite epsilon. Pass epsilon=0.1, for example."
        )
    if lists and guarantee.delta == 0:
        raise InvalidParameter(
            "private lists of values or classes use a stability-based histogram, which needs delta > 0. Pass "
            "delta=1e-6 (well below 1/n)."
        )


def _zcdp_budget(guarantee: Guarantee, rare: float) -> float:
    """Return the rho left for noise and choices after the rare event."""
    if guarantee.delta == 0:
        return 0.0
    epsilon = guarantee.epsilon + math.log1p(-rare)
    if epsilon <= 0:
        raise InvalidParameter("delta is larger than epsilon. Pass a delta well below 1/n, such as 1e-6")
    return zcdp_budget(epsilon, guarantee.delta - rare) * (1.0 - MARGIN)


def _sensitivity_squared(guarantee: Guarantee, rows: int) -> float:
    """Return the squared L2 sensitivity of the counts of one list."""
    return (guarantee.relation.counts * rows) ** 2


def frequent(
    counts: NDArray[np.int64], noise_scale: float, threshold: float, randomness: Randomness
) -> NDArray[np.bool_]:
    """Return which of the occurring values have a noisy count above the threshold.

    **Theorem** (stability-based histogram, after Korolova et al. 2009 and Bun, Nissim and Stemmer 2016, with Gaussian
    noise). Let a person own at most m rows. Values that only this person has are released with probability at most
    `rare_probability`; if none is, the counts of the other values are a Gaussian mechanism whose L2-sensitivity is
    sqrt(2) m under ``replace_one`` (m rows leave one value and join another) and m where they only leave.

    The counts are whole and the noise's grid is finer than 1, so nothing is rounded.

    Examples
    --------
    >>> from privlearn.randomness import SeededRandomness
    >>> frequent(np.array([500, 1]), noise_scale=10.0, threshold=50.0, randomness=SeededRandomness(0)).tolist()
    [True, False]
    """
    return add_gaussian(counts.astype(np.float64), noise_scale, randomness) > threshold


def rare_probability(noise_scale: float, threshold: float, rows: int) -> float:
    """Return a bound on the probability that a list contains a value of one person, who owns at most ``rows`` rows.

    There are at most ``rows`` such values with a count of at most ``rows`` each.
    """
    return rows * normal_tail((threshold - rows) / noise_scale)


def rare_threshold(noise_scale: float, probability: float, rows: int) -> float:
    """Return the threshold at which `rare_probability` is ``probability``.

    Examples
    --------
    >>> threshold = rare_threshold(noise_scale=10.0, probability=1e-6, rows=1)
    >>> round(threshold, 1), round(1e6 * rare_probability(10.0, threshold, 1), 6)
    (48.5, 1.0)
    """
    return rows - noise_scale * NormalDist().inv_cdf(probability / rows)

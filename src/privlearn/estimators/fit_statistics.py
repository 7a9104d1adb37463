"""Statistics that a fit releases with its model: which of them, and at which noise, from public numbers only.

Each receives a small share of the budget: of the squared ratio of Gaussian noise, or of epsilon where noise is pure.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from privlearn.mechanisms.mechanism import ReleaseMechanism
from privlearn.mechanisms.noise import coordinate_deviation
from privlearn.mechanisms.statistics.centring import Centring, row_sum_sensitivity
from privlearn.mechanisms.statistics.locations import CELLS, ROUNDS, Grid, Locations
from privlearn.mechanisms.statistics.score_counts import ScoreCounts
from privlearn.mechanisms.statistics.statistic import ClassCounts, scale_of_cost
from privlearn.release.score_map import MAX_TARGET

_CLOSE = 0.05  # noise in the mean, relative to a row's bound, that hardly takes up any norm
_USELESS = 0.5  # and with which the mean is not worth having
_MIN_FOR_MEAN, _MAX_FOR_MEAN, _FOR_COUNTS = 0.01, 0.1, 0.02
_FOR_SCORES = 0.05  # it makes the fit's noise 2.5 % larger
_MIN_SHARE = 0.01
_CLASS_ERROR, _MAX_FOR_CLASSES, _USELESS_CLASS_ERROR = 0.001, 0.05, 0.03  # errors: parts of all records
_QUANTILE_ERROR, _MAX_FOR_QUANTILES, _USELESS_QUANTILE_ERROR = 0.02, 0.1, 0.2


@dataclass(frozen=True)
class Centrable:
    """Public: the number of features and the norm bound of rows that may be centred; ``always`` if they must be."""

    features: int
    bound: float
    always: bool


@dataclass(frozen=True)
class Requests:
    """Public: what a fit could release with its model.

    Parameters
    ----------
    rows : Centrable, optional
        If rows may be centred.
    is_scored : bool
        Whether probabilities are estimated from counts of scores.
    classes : int
        Number of classes to count; 0 for none.
    weight_ratio : float
        Largest over smallest weight of a class.
    targets : tuple of (lower, upper, typical)
        Numbers whose centre and spread to estimate.
    chooses_width : bool
        Whether the loss is the default one of numbers, whose width is chosen where their unit is a spread.
    """

    rows: Centrable | None = None
    is_scored: bool = False
    classes: int = 0
    weight_ratio: float = 1.0
    targets: tuple[tuple[float, float, float | None], ...] = ()
    chooses_width: bool = False


@dataclass(frozen=True)
class Budget:
    """Public: the cost of a calibrated mechanism's own noise, of which statistics receive shares."""

    plain: ReleaseMechanism

    @property
    def noise(self) -> str:
        """Return the noise of the mechanism's family for counts."""
        return "gaussian" if self.plain.noise == "gaussian" else "laplace"

    @property
    def whole(self) -> float:
        """Return the ratio of all problems, or epsilon, for one row per person."""
        task = self.plain.task
        if self.noise == "gaussian":
            return math.sqrt(task.problems) * self.plain.ratio / task.records_of_a_person
        return self.plain.guarantee.epsilon / task.records_of_a_person

    def cost(self, share: float) -> float:
        """Return the cost of a statistic with that share."""
        return self.whole * (math.sqrt(share) if self.noise == "gaussian" else share)

    def scale(self, share: float, histograms: int) -> float:
        """Return the noise scale of histograms with that share; 0 without a guarantee."""
        if not self.plain.guarantee.is_private:
            return 0.0
        return scale_of_cost(self.noise, self.cost(share), histograms, self.plain.task.relation)

    def deviation(self, share: float, histograms: int) -> float:
        """Return the deviation of a cell's noise, as a part of all records."""
        scale = self.scale(share, histograms)
        task = self.plain.task
        return coordinate_deviation(self.noise, scale, 1) * task.row_weight_bound / task.total

    def smallest_share(self, error: float, largest: float, histograms: int) -> float:
        """Return the share at which a cell's deviation is ``error``, between `_MIN_SHARE` and ``largest``."""
        excess = self.deviation(largest, histograms) / error
        needed = largest * (excess * excess if self.noise == "gaussian" else excess)
        return min(max(needed, _MIN_SHARE), largest)


def affordable_statistics(requests: Requests, plain: ReleaseMechanism) -> dict[str, Any]:
    """Return the fields of the task that add statistics to a mechanism, as far as public numbers allow."""
    budget, task = Budget(plain), plain.task
    # Without a guarantee, too, rows are centred only where private rows would be: it is the limit of private models.
    may_centre = budget.noise == "gaussian" and task.problems == 1
    rows = affordable_centring(requests.rows, plain) if requests.rows is not None and may_centre else None
    scores = score_counts(plain) if requests.is_scored else None
    classes = class_counts(requests.classes, budget) if requests.classes else None
    locations = target_locations(requests.targets, budget) if requests.targets else None
    bound = task.offset_bound
    if classes is not None:
        odds = math.log(2.0 * requests.classes * task.total * requests.weight_ratio)
        bound = math.sqrt(requests.classes) * odds
    elif locations is not None:
        bound = MAX_TARGET - 1.0
    return {
        "centring": rows,
        "score_counts": scores,
        "class_counts": classes,
        "target_locations": locations,
        "offset_bound": bound,
    }


def class_counts(classes: int, budget: Budget) -> ClassCounts | None:
    """Return counts of the classes; ``None`` if noise would hide even common classes.

    The share of the budget is the one at which a class's share of the records has an error of a thousandth, between
    1 % and 5 % (docs/theory/offsets.md).
    """
    if budget.deviation(_MAX_FOR_CLASSES, 1) > _USELESS_CLASS_ERROR:
        return None
    share = budget.smallest_share(_CLASS_ERROR, _MAX_FOR_CLASSES, 1)
    return ClassCounts((classes,), budget.noise, budget.scale(share, 1))


def target_locations(
    targets: Sequence[tuple[float, float, float | None]], budget: Budget
) -> Locations | None:
    """Return centre and spread of the numbers; ``None`` if the noise would exceed what the quartiles need.

    The share of the budget is the one at which a quantile is off by 2 % of the records, between 1 % and 10 %
    (docs/theory/locations.md).
    """
    histograms, per_cell = ROUNDS * len(targets), 2.0 / math.sqrt(CELLS)
    if budget.deviation(_MAX_FOR_QUANTILES, histograms) > _USELESS_QUANTILE_ERROR * per_cell:
        return None
    share = budget.smallest_share(_QUANTILE_ERROR * per_cell, _MAX_FOR_QUANTILES, histograms)
    grids = [Grid.between(lower, upper, CELLS, typical) for lower, upper, typical in targets]
    return Locations.on(grids, budget.noise, budget.scale(share, histograms))


def affordable_centring(rows: Centrable, plain: ReleaseMechanism) -> Centring | None:
    """Return the centring that a mechanism can afford; ``None`` if its noise would be worse than no centre.

    Let r be the ratio of the mechanism's own noise. A mean that is given a share f of r^2 has noise of norm
    S sqrt(d) / (N r sqrt(f)), where one person changes the sum of the rows by at most S. The share is the one at
    which that is a twentieth of the rows' bound, between 1 % and 10 %; the fit's noise grows by about half of the
    share. Where 10 % leave more than half of the bound, rows are not centred (docs/theory/centring.md).
    """
    if not plain.guarantee.is_private:
        return Centring(rows.features, rows.bound, 0.0, 0.0)
    relation, whole = plain.task.relation, plain.ratio / plain.task.records_of_a_person
    moved = row_sum_sensitivity(relation, rows.features, rows.bound)
    noise = moved * math.sqrt(rows.features) / (plain.task.total * whole * rows.bound)  # with the whole ratio
    if noise > _USELESS * math.sqrt(_MAX_FOR_MEAN) and not rows.always:
        return None
    share = min(max((noise / _CLOSE) ** 2, _MIN_FOR_MEAN), _MAX_FOR_MEAN)
    return Centring.with_ratios(
        rows.features,
        rows.bound,
        relation,
        mean=whole * math.sqrt(share),
        counts=whole * math.sqrt(_FOR_COUNTS),
    )


def score_counts(plain: ReleaseMechanism) -> ScoreCounts:
    """Return counts of scores for a twentieth of the squared ratio of a mechanism's own noise."""
    if not plain.guarantee.is_private:
        return ScoreCounts(0.0)
    ratio = plain.ratio * math.sqrt(_FOR_SCORES) / plain.task.records_of_a_person
    return ScoreCounts.with_ratio(ratio, plain.task.relation)

"""What a description tells: counts, quantiles, missing shares and correlations, all from the noisy counts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from privlearn.arrays import Array
from privlearn.description.plan import edges_of, middles_of
from privlearn.errors import ReleaseError
from privlearn.evaluation.intervals import Estimate, NoisyTable
from privlearn.guarantee import Guarantee
from privlearn.release.counts_file import CountsFile

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
_COVERED = 0.95
_NORMAL = 1.959964
_TOO_NOISY = 0.5
"""A count is too noisy if its interval reaches more than half of it to either side, a correlation more than 0.25."""
_TOO_NOISY_CORRELATION = 0.25
_LEAST_VARIANCE = 1e-3  # of a column that goes from -1 to 1


@dataclass(frozen=True, eq=False)
class ColumnDescription:
    """One column.

    Attributes
    ----------
    name, type : str
    labels : list of str
        Its values, or its bins.
    counts : list of Estimate
        About how many records, or persons, have each.
    unlisted, missing : Estimate
        Share of values that the schema does not list, and of missing cells.
    quantiles : dict of float to Estimate
        Of numbers; of dates in days since the first day, see `shown_quantiles`.
    edges : array
        Of the bins; empty for a list.
    """

    name: str
    type: str
    labels: list[str]
    counts: list[Estimate]
    unlisted: Estimate
    missing: Estimate
    quantiles: dict[float, Estimate]
    edges: Array
    first_day: date | None = None

    @property
    def shown_quantiles(self) -> dict[str, str]:
        """In words: a value, and between which edges of bins it lies."""
        return {
            f"{at:.0%}": f"{self._spelled(found.value)} ({self._spelled(found.lower)} to {self._spelled(found.upper)})"
            for at, found in self.quantiles.items()
        }

    def _spelled(self, value: float) -> str:
        if self.first_day is not None:
            return (self.first_day + timedelta(round(value))).isoformat()
        return f"{value:.4g}"


@dataclass(frozen=True)
class _Moments:
    """Of a column from -1 to 1: the share of rows that have a value, and mean and variance of these, with noise."""

    share: float
    mean: float
    variance: float
    mean_noise: float
    variance_noise: float


@dataclass(frozen=True, eq=False)
class Description(CountsFile):
    """Noisy counts of a table's columns and of the products of pairs, and everything that follows from them.

    Intervals say what the noise may do: they cover the table's own number with probability 0.95. Sampling is not in
    them; a description is of these records. `load`, `save` and `signed` are those of a release.
    """

    what: ClassVar[str] = "description"

    def __post_init__(self) -> None:
        if self.about.get("kind") != "description":
            raise ReleaseError("this file holds other counts than those of a description")

    @property
    def guarantee(self) -> Guarantee:
        return self.certificate.guarantee

    @cached_property
    def records(self) -> float:
        """How many records, or persons, there are; about, where that is private."""
        mechanism = self.certificate.mechanism
        if self.guarantee.relation.count_is_public:
            return float(mechanism.records)
        sums = [float(np.sum(self.tables[place])) for place in range(len(self.about["columns"]))]
        return max(float(np.mean(sums)), 1.0)

    def __getitem__(self, name: str) -> ColumnDescription:
        return self.columns[name]

    @cached_property
    def columns(self) -> dict[str, ColumnDescription]:
        return {name: self._column(place, name) for place, name in enumerate(self.about["columns"])}

    @property
    def ordered(self) -> list[str]:
        """The columns that have correlations."""
        return list(dict.fromkeys(name for pair in self.about["pairs"] for name in pair))

    @cached_property
    def correlation(self) -> Array:
        """Of the `ordered` columns, a valid one: symmetric, no negative eigenvalue, ones on the diagonal."""
        size = len(self.ordered)
        matrix = np.eye(size)
        for (one, other), found in self.correlations.items():
            row, column = self.ordered.index(one), self.ordered.index(other)
            matrix[row, column] = matrix[column, row] = found.value if found.is_known else 0.0
        return _valid(matrix) if size else matrix

    @cached_property
    def correlations(self) -> dict[tuple[str, str], Estimate]:
        """Of each pair; not finite where a column hardly varies."""
        first = len(self.about["columns"])
        return {
            (one, other): self._correlation(first + place, one, other)
            for place, (one, other) in enumerate(self.about["pairs"])
        }

    def _table(self, place: int) -> NoisyTable:
        mechanism = self.certificate.mechanism
        public = self.guarantee.relation.count_is_public and mechanism.rows_per_person == 1
        records = mechanism.records if public and not self.certificate.subject["persons"] else None
        return NoisyTable(self.tables[place], mechanism.noise, mechanism.scales[place], records)

    def _half(self, place: int) -> float:
        """How far the noise in one cell reaches with probability 0.95."""
        mechanism = self.certificate.mechanism
        reach = _NORMAL if mechanism.noise == "gaussian" else -math.log(1.0 - _COVERED)
        return reach * mechanism.scales[place]

    def _column(self, place: int, name: str) -> ColumnDescription:
        told, table, half = self.about["columns"][name], self._table(place), self._half(place)
        known = [_between(value, half, 1.0) for value in table.counts[:-2]]
        shares = [_between(value, half, self.records) for value in table.counts[-2:]]
        edges = np.array([]) if "values" in told else edges_of(told)
        return ColumnDescription(
            name=name,
            type=told["type"],
            labels=_labels(told),
            counts=known,
            unlisted=shares[0],
            missing=shares[1],
            quantiles=_quantiles(edges, table.plausible[:-2], self._deviation(place)) if len(edges) else {},
            edges=edges,
            first_day=date.fromisoformat(told["edges"][0]) if told["type"] == "date" else None,
        )

    def _deviation(self, place: int) -> float:
        return self.certificate.mechanism.deviations[place]

    def _moments(self, name: str) -> _Moments:
        place = list(self.about["columns"]).index(name)
        known = self._table(place).plausible[:-2]
        total = max(float(np.sum(known)), 1.0)
        middles = middles_of(self.about["columns"][name])
        mean = float(known @ middles) / total
        noise = self._deviation(place) / total
        return _Moments(
            share=min(total / self.records, 1.0),
            mean=mean,
            variance=float(known @ (middles - mean) ** 2) / total,
            mean_noise=noise * float(np.linalg.norm(middles - mean)),
            variance_noise=noise * float(np.linalg.norm((middles - mean) ** 2)),
        )

    def _correlation(self, place: int, one: str, other: str) -> Estimate:
        """Of rows that have both, as if missing cells fell independently; its noise by the delta method."""
        own, their = self._moments(one), self._moments(other)
        if min(own.variance, their.variance) < _LEAST_VARIANCE:
            return Estimate(math.nan, math.nan, math.nan)
        positive, negative = self.tables[place]
        both, spread = self.records * own.share * their.share, math.sqrt(own.variance * their.variance)
        found = (float(positive - negative) / both - own.mean * their.mean) / spread
        half = _NORMAL * math.hypot(
            math.sqrt(2.0) * self._deviation(place) / both / spread,
            own.mean_noise * their.mean / spread,
            their.mean_noise * own.mean / spread,
            found * own.variance_noise / (2.0 * own.variance),
            found * their.variance_noise / (2.0 * their.variance),
        )
        return Estimate(*(float(np.clip(value, -1.0, 1.0)) for value in (found, found - half, found + half)))

    def __str__(self) -> str:
        lines = [f"{self.about['dataset']}: about {self.records:,.0f} {self.whom}"]
        for column in self.columns.values():
            lines.append(f"  {column.name} ({column.type}), missing {share(column.missing)}")
            told = column.shown_quantiles or {
                label: counted(found) for label, found in zip(column.labels, column.counts, strict=True)
            }
            lines += [f"    {label:<23} {text}" for label, text in told.items()]
        for (one, other), found in self.correlations.items():
            lines.append(f"  correlation of {one} and {other}: {correlated(found)}")
        return "\n".join(lines)


def counted(found: Estimate) -> str:
    """A count in words."""
    if found.upper - found.value > _TOO_NOISY * found.value:
        return f"too noisy: below about {found.upper:,.0f}"
    return f"{found.value:,.0f} ({found.lower:,.0f} to {found.upper:,.0f})"


def share(found: Estimate) -> str:
    """A share in words."""
    return f"{found.value:.1%} ({found.lower:.1%} to {min(found.upper, 1.0):.1%})"


def correlated(found: Estimate) -> str:
    """A correlation in words."""
    if not found.is_known or found.upper - found.lower > 2.0 * _TOO_NOISY_CORRELATION:
        return "too noisy"
    return f"{found.value:+.2f} ({found.lower:+.2f} to {found.upper:+.2f})"


def _between(value: float, half: float, unit: float) -> Estimate:
    return Estimate(*(max(float(number), 0.0) / unit for number in (value, value - half, value + half)))


def _labels(told: dict[str, Any]) -> list[str]:
    if "values" in told:
        return [str(value) for value in told["values"]]
    spelled = told["edges"] if told["type"] == "date" else [f"{edge:.4g}" for edge in told["edges"]]
    return [f"{low} to {high}" for low, high in pairwise(spelled)]


def _quantiles(edges: Array, counts: Array, deviation: float) -> dict[float, Estimate]:
    """Read off the cumulative counts. Intervals end at edges of bins, since a bin does not tell where it is full."""
    bins = len(counts)
    heights = np.append(0.0, np.cumsum(counts))
    steps = np.arange(bins + 1)
    reach = _NORMAL * deviation * np.sqrt(steps * (bins - steps) / bins)
    early, late = np.maximum.accumulate(heights + reach), np.maximum.accumulate(heights - reach)
    found = {}
    for at in QUANTILES:
        wanted = at * heights[-1]
        value = float(np.interp(wanted, heights, edges))
        lower = edges[max(int(np.searchsorted(early, wanted, side="left")) - 1, 0)]
        upper = edges[min(int(np.searchsorted(late, wanted, side="right")), bins)]
        found[at] = Estimate(value, float(lower), float(upper))
    return found


def _valid(matrix: Array) -> Array:
    """A near correlation matrix: negative eigenvalues become 0, and the diagonal 1 again."""
    values, vectors = np.linalg.eigh(matrix)
    positive = (vectors * np.maximum(values, 0.0)) @ vectors.T
    scale = 1.0 / np.sqrt(np.maximum(np.diag(positive), 1e-12))
    found = positive * np.outer(scale, scale)
    np.fill_diagonal(found, 1.0)
    return np.asarray((found + found.T) / 2.0)

"""A description: counts, quantiles, missing shares and correlations, all derived from the noisy counts.

Nothing here reads a record. Intervals of counts and correlations account for the noise only: they are of these records,
not of the population that they come from. Tests of association (`Description.tests`) account for sampling too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from privlearn.arrays import Array
from privlearn.errors import ReleaseError
from privlearn.guarantee import Guarantee
from privlearn.release.counts_file import CountsFile
from privlearn.statistics.description.cross_table import CrossTable, format_count
from privlearn.statistics.description.hypotheses import (
    CountNoise,
    HypothesisTest,
    difference_test,
    independence_test,
    tail_and_reach,
)
from privlearn.statistics.description.layout import edges_of, has_numbers, middles_of, numbers_of
from privlearn.statistics.evaluation.metrics import binned_variance
from privlearn.statistics.intervals import Estimate, NoisyTable

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
_COVERED = 0.95
_NORMAL = 1.959964
_TOO_NOISY_CORRELATION = 0.25  # largest half width of an interval of a correlation
_MIN_VARIANCE = 1e-3  # of a column on the scale from -1 to 1


@dataclass(frozen=True, eq=False)
class ColumnDescription:
    """Description of one column.

    Attributes
    ----------
    name, type : str
    labels : list of str
        Values, or bins.
    counts : list of Estimate
        Approximate number of records, or persons, with each value.
    unlisted, missing : Estimate
        Share of values that the schema does not list, and of missing cells.
    quantiles : dict of float to Estimate
        Numbers; for dates, days since ``first_day`` (see `shown_quantiles`).
    edges : array
        Edges of the bins; empty for a list of values.
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
        """Return each quantile as text, with the edges of bins between which it lies."""
        return {
            f"{at:.0%}": f"{self._text(one.value)} ({self._text(one.lower)} to {self._text(one.upper)})"
            for at, one in self.quantiles.items()
        }

    def _text(self, value: float) -> str:
        if self.first_day is not None:
            return (self.first_day + timedelta(round(value))).isoformat()
        return f"{value:.4g}"


@dataclass(frozen=True)
class _Moments:
    """Moments of a column on the scale from -1 to 1, of the rows that have a value, and the noise in them."""

    share: float
    mean: float
    variance: float
    mean_noise: float
    variance_noise: float


@dataclass(frozen=True, eq=False)
class Description(CountsFile):
    """Noisy counts of a table's columns and of the products of pairs, and every number that follows from them.

    Intervals cover the table's own number with probability 0.95; they account for the noise, not for sampling.
    `load`, `save` and `signed` work as for a release.
    """

    what: ClassVar[str] = "description"

    def __post_init__(self) -> None:
        if self.about.get("kind") != "description":
            raise ReleaseError("this file does not hold a description. Load it with the class of its kind.")

    @property
    def guarantee(self) -> Guarantee:
        return self.certificate.guarantee

    @cached_property
    def records(self) -> float:
        """Return the number of records or persons, or the sum of their weights; an estimate where it is private."""
        mechanism = self.certificate.mechanism
        if self.guarantee.relation.count_is_public and "weight" not in self.about:
            return float(mechanism.records)
        sums = [self.unit * float(np.sum(table)) for table in self.tables[: len(self.about["columns"])]]
        return max(float(np.mean(sums)), 1.0)

    def __getitem__(self, name: str) -> ColumnDescription:
        return self.columns[name]

    @cached_property
    def columns(self) -> dict[str, ColumnDescription]:
        return {name: self._column(index, name) for index, name in enumerate(self.about["columns"])}

    @property
    def ordered(self) -> list[str]:
        """Return the names of the columns that have correlations."""
        return list(dict.fromkeys(name for pair in self.about["pairs"] for name in pair))

    @cached_property
    def correlation(self) -> Array:
        """Return a valid correlation matrix of the `ordered` columns: no negative eigenvalue, ones on the diagonal."""
        size = len(self.ordered)
        matrix = np.eye(size)
        for (one, other), estimate in self.correlations.items():
            row, column = self.ordered.index(one), self.ordered.index(other)
            matrix[row, column] = matrix[column, row] = estimate.value if estimate.is_known else 0.0
        return _nearest_valid(matrix) if size else matrix

    @cached_property
    def correlations(self) -> dict[tuple[str, str], Estimate]:
        """Return the correlation of each pair; not finite where a column hardly varies."""
        first = len(self.about["columns"])
        return {
            (one, other): self._correlation(first + index, one, other)
            for index, (one, other) in enumerate(self.about["pairs"])
        }

    @cached_property
    def crosses(self) -> dict[tuple[str, str], CrossTable]:
        """Return the cross tables; rows and columns of a number are its bins."""
        columns, first = self.about["columns"], len(self.about["columns"]) + len(self.about["pairs"])
        tables = {}
        for index, (one, other) in enumerate(self.about.get("crosses", ()), start=first):
            half = self._half_width(index)
            counts = [
                [_interval(count, half, 1.0) for count in row] for row in self.unit * self.tables[index]
            ]
            tables[one, other] = CrossTable(
                (one, other), _labels(columns[one]), _labels(columns[other]), counts
            )
        return tables

    @cached_property
    def tests(self) -> list[HypothesisTest]:
        """Return tests of association: of each cross table, and of each other correlation that can be read.

        P-values and intervals account for sampling and for the noise. A person with several rows counts as one.
        """
        if self.certificate.mechanism.rows_per_person > 1:
            return []  # without a person column, the variance of sampling is unknown
        first = len(self.about["columns"]) + len(self.about["pairs"])
        crosses = self.about.get("crosses", ())
        tests = [
            test for index, cross in enumerate(crosses) for test in self._cross_tests(first + index, *cross)
        ]
        pairs = [pair for pair in self.correlations if set(pair) not in map(set, crosses)]
        return [*tests, *(test for pair in pairs if (test := self._correlation_test(*pair)).is_known)]

    def _cross_tests(self, index: int, one: str, other: str) -> list[HypothesisTest]:
        mechanism = self.certificate.mechanism
        noise = CountNoise(mechanism.noise, mechanism.scales[index])
        table = self.tables[index]
        tests = [independence_test((one, other), table, noise)]
        columns = self.about["columns"]
        for (group, measured), counts in (((one, other), table), ((other, one), table.T)):
            if len(counts) != 2 or not has_numbers(columns[measured]):
                continue
            labels = [str(value) for value in columns[group].get("values", ())]
            if labels:
                what = "mean" if len(counts[0]) > 2 else f"share of {columns[measured]['values'][1]}"
                name = f"{what}, {group} = {labels[1]} minus {labels[0]}:"
                values = numbers_of(columns[measured])
                tests.append(difference_test((measured, group), counts, values, noise, name))
                break
        return tests

    def _correlation_test(self, one: str, other: str) -> HypothesisTest:
        """Return the test of a correlation of 0; the products' noise and the means' are independent."""
        test = HypothesisTest("correlation", (one, other), math.nan)
        found = self.correlations[one, other]
        first, second = self._moments(one), self._moments(other)
        if not found.is_known or abs(found.upper - found.lower) > 2.0 * _TOO_NOISY_CORRELATION:
            return test
        both = self.records * first.share * second.share
        scale = math.sqrt(first.variance * second.variance)
        noise = CountNoise(self.certificate.mechanism.noise, 1.0)
        index = len(self.about["columns"]) + self.about["pairs"].index([one, other])
        parts = [np.array([1.0, -1.0]) / both * self._noise_scale(index)]
        for name, moments, factor in ((one, first, second.mean), (other, second, first.mean)):
            position = list(self.about["columns"]).index(name)
            middles = middles_of(self.about["columns"][name]) - moments.mean
            parts.append(-middles * factor / (moments.share * self.records) * self._noise_scale(position))
        coefficients = np.concatenate(parts) / scale
        sampling = math.sqrt(self.unit / both)
        p_value, _ = tail_and_reach(found.value, sampling, coefficients, noise)
        own = (found.upper - found.lower) / (2.0 * _NORMAL)
        half = _NORMAL * math.hypot(own, (1.0 - found.value**2) * sampling)
        ends = (float(np.clip(found.value + sign * half, -1.0, 1.0)) for sign in (-1.0, 1.0))
        return HypothesisTest(test.method, (one, other), p_value, "r =", Estimate(found.value, *ends))

    def _noise_scale(self, index: int) -> float:
        return self.unit * self.certificate.mechanism.scales[index]

    def _table(self, index: int) -> NoisyTable:
        mechanism = self.certificate.mechanism
        public = self.guarantee.relation.count_is_public and mechanism.rows_per_person == 1
        is_total = public and not self.certificate.subject["persons"] and "weight" not in self.about
        scale = self.unit * mechanism.scales[index]
        records = mechanism.records if is_total else None
        return NoisyTable(self.unit * self.tables[index], mechanism.noise, scale, records)

    def _half_width(self, index: int) -> float:
        """Return the bound that the noise in one cell of a table exceeds with probability 0.05."""
        mechanism = self.certificate.mechanism
        quantile = _NORMAL if mechanism.noise == "gaussian" else -math.log(1.0 - _COVERED)
        return self.unit * quantile * mechanism.scales[index]

    def _column(self, index: int, name: str) -> ColumnDescription:
        cells, table, half = self.about["columns"][name], self._table(index), self._half_width(index)
        unlisted, missing = (_interval(value, half, self.records) for value in table.counts[-2:])
        edges = np.array([]) if "values" in cells else edges_of(cells)
        return ColumnDescription(
            name=name,
            type=cells["type"],
            labels=_labels(cells),
            counts=[_interval(value, half, 1.0) for value in table.counts[:-2]],
            unlisted=unlisted,
            missing=missing,
            quantiles=_quantiles(edges, table.plausible[:-2], self._deviation(index)) if len(edges) else {},
            edges=edges,
            first_day=date.fromisoformat(cells["edges"][0]) if cells["type"] == "date" else None,
        )

    def _deviation(self, index: int) -> float:
        return self.unit * self.certificate.mechanism.deviations[index]

    def _moments(self, name: str) -> _Moments:
        """Return a column's moments, from the noisy counts: the nearest plausible counts would bias them."""
        index = list(self.about["columns"]).index(name)
        table = self._table(index)
        known = table.counts[:-2]
        total = max(float(np.sum(known)), 1.0)
        middles = middles_of(self.about["columns"][name])
        mean = float(known @ middles) / total
        noise = self._deviation(index) / total
        return _Moments(
            share=min(total / self.records, 1.0),
            mean=mean,
            variance=float(binned_variance(known, middles, table.cell_noise)),
            mean_noise=noise * float(np.linalg.norm(middles - mean)),
            variance_noise=noise * float(np.linalg.norm((middles - mean) ** 2)),
        )

    def _correlation(self, index: int, one: str, other: str) -> Estimate:
        """Return the correlation over rows that have both values, with an interval by the delta method.

        Assumes that missing cells of the two columns are independent.
        """
        first, second = self._moments(one), self._moments(other)
        if not min(first.variance, second.variance) >= _MIN_VARIANCE:  # also if a variance is not a number
            return Estimate(math.nan, math.nan, math.nan)
        positive, negative = self.unit * self.tables[index]
        both = self.records * first.share * second.share
        scale = math.sqrt(first.variance * second.variance)
        value = (float(positive - negative) / both - first.mean * second.mean) / scale
        half = _NORMAL * math.hypot(
            math.sqrt(2.0) * self._deviation(index) / both / scale,
            first.mean_noise * second.mean / scale,
            second.mean_noise * first.mean / scale,
            value * first.variance_noise / (2.0 * first.variance),
            value * second.variance_noise / (2.0 * second.variance),
        )
        return Estimate(*(float(np.clip(end, -1.0, 1.0)) for end in (value, value - half, value + half)))

    def __str__(self) -> str:
        lines = [f"{self.about['dataset']}: about {self.records:,.0f} {self.whom}{self.weighted_by}"]
        for column in self.columns.values():
            lines.append(f"  {column.name} ({column.type}), missing {format_share(column.missing)}")
            texts = column.shown_quantiles or {
                label: format_count(estimate)
                for label, estimate in zip(column.labels, column.counts, strict=True)
            }
            lines += [f"    {label:<23} {text}" for label, text in texts.items()]
        for (one, other), estimate in self.correlations.items():
            lines.append(f"  correlation of {one} and {other}: {format_correlation(estimate)}")
        lines += [f"  {line}" for cross in self.crosses.values() for line in str(cross).splitlines()]
        lines += [f"  {test}" for test in self.tests]
        return "\n".join(lines)


def format_share(estimate: Estimate) -> str:
    """Return a share and its interval as text."""
    return f"{estimate.value:.1%} ({estimate.lower:.1%} to {min(estimate.upper, 1.0):.1%})"


def format_correlation(estimate: Estimate) -> str:
    """Return a correlation and its interval as text."""
    if not estimate.is_known or estimate.upper - estimate.lower > 2.0 * _TOO_NOISY_CORRELATION:
        return "too noisy"
    return f"{estimate.value:+.2f} ({estimate.lower:+.2f} to {estimate.upper:+.2f})"


def _interval(value: float, half: float, unit: float) -> Estimate:
    return Estimate(*(max(float(number), 0.0) / unit for number in (value, value - half, value + half)))


def _labels(cells: dict[str, Any]) -> list[str]:
    if "values" in cells:
        return [str(value) for value in cells["values"]]
    edges = cells["edges"] if cells["type"] == "date" else [f"{edge:.4g}" for edge in cells["edges"]]
    return [f"{low} to {high}" for low, high in pairwise(edges)]


def _quantiles(edges: Array, counts: Array, deviation: float) -> dict[float, Estimate]:
    """Return quantiles from the cumulative counts.

    Intervals end at edges of bins, since the counts do not reveal where inside a bin its records lie.
    """
    bins = len(counts)
    heights = np.append(0.0, np.cumsum(counts))
    steps = np.arange(bins + 1)
    reach = _NORMAL * deviation * np.sqrt(steps * (bins - steps) / bins)
    early, late = np.maximum.accumulate(heights + reach), np.maximum.accumulate(heights - reach)
    quantiles = {}
    for at in QUANTILES:
        height = at * heights[-1]
        value = float(np.interp(height, heights, edges))
        lower = edges[max(int(np.searchsorted(early, height, side="left")) - 1, 0)]
        upper = edges[min(int(np.searchsorted(late, height, side="right")), bins)]
        quantiles[at] = Estimate(value, float(lower), float(upper))
    return quantiles


def _nearest_valid(matrix: Array) -> Array:
    """Return a nearby correlation matrix: negative eigenvalues are set to 0, and the diagonal is scaled back to 1."""
    values, vectors = np.linalg.eigh(matrix)
    positive = (vectors * np.maximum(values, 0.0)) @ vectors.T
    scale = 1.0 / np.sqrt(np.maximum(np.diag(positive), 1e-12))
    valid = positive * np.outer(scale, scale)
    np.fill_diagonal(valid, 1.0)
    return np.asarray((valid + valid.T) / 2.0)

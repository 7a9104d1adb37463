"""An evaluation: numbers with intervals, curves and groups, all derived from noisy counts of scores.

Nothing here reads a record. An evaluation also suggests a threshold or a calibration, at no further cost.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np

from privlearn.arrays import Array
from privlearn.errors import InvalidParameter, ReleaseError, check_positive
from privlearn.guarantee import Guarantee
from privlearn.release.counts_file import CountsFile
from privlearn.release.decision import Decision
from privlearn.statistics.evaluation import metrics
from privlearn.statistics.intervals import (
    RATE,
    TOO_NOISY,
    UNBOUNDED,
    Estimate,
    NoisyTable,
    Statistic,
    estimates,
    largest_share,
    magnitude,
    quotient,
    root,
)


@dataclass(frozen=True)
class GroupResult:
    """Errors in one group.

    Attributes
    ----------
    column, group : str
    records : float
        The noisy count of records or persons; the sum of their weights, where they have some.
    deviation : float
        Standard deviation of the noise in it, public.
    rates : mapping of str to Estimate
    """

    column: str
    group: str
    records: float
    deviation: float
    rates: Mapping[str, Estimate]

    @property
    def too_noisy(self) -> bool:
        """Return whether the noisy count is below ten times its noise; both are public."""
        return self.records < TOO_NOISY * self.deviation


@dataclass(frozen=True, eq=False)
class Evaluation(CountsFile):
    """Noisy counts of a model's scores, and every number that follows from them.

    ``evaluation["auc"]`` is an `Estimate`: a value with an interval that covers the population's value with
    probability 0.95 and accounts for noise and sampling. `load`, `save` and `signed` work as for a release.
    """

    what: ClassVar[str] = "evaluation"

    def __post_init__(self) -> None:
        if self.about.get("kind") != "evaluation":
            raise ReleaseError("this file does not hold an evaluation. Load it with the class of its kind.")

    @property
    def guarantee(self) -> Guarantee:
        return self.certificate.guarantee

    @property
    def classes(self) -> list[Any]:
        """Return the labels; empty if a number is predicted."""
        return list(self.about.get("classes", ()))

    @property
    def edges(self) -> Array:
        """Return the edges of the bins of scores or residuals."""
        return np.array(self.about["edges"])

    def __getitem__(self, name: str) -> Estimate:
        return self.numbers[name]

    @cached_property
    def numbers(self) -> dict[str, Estimate]:
        """Return all single numbers, by name."""
        if not self.classes:
            results = self._number_estimates()
        elif len(self.classes) == 2:
            results = self._two_class_estimates(self._threshold_index)
        else:
            results = estimates(metrics.several_classes, self._table(0))
        return {name: values[0] for name, values in results.items() if len(values) == 1}

    def numbers_at(self, threshold: float) -> dict[str, Estimate]:
        """Return the `numbers` of the model with another threshold.

        The counts determine all of them if the threshold is an edge of their bins; for other thresholds only the
        numbers that do not depend on the threshold are returned.
        """
        self._check_two_classes()
        clipped = float(np.clip(threshold, self.edges[0], self.edges[-1]))
        index = self._nearest_edge(clipped)
        numbers = {name: estimate for name, (estimate,) in self._two_class_estimates(index).items()}
        if math.isclose(self.edges[index], clipped, abs_tol=1e-9):
            return numbers
        return {name: estimate for name, estimate in numbers.items() if name not in metrics.BY_THRESHOLD}

    @cached_property
    def most_frequent(self) -> Estimate | None:
        """Return the accuracy of always predicting the most frequent class; ``None`` for a number."""
        return largest_share(metrics.class_shares, self._table(0)) if self.classes else None

    @cached_property
    def per_class(self) -> dict[str, dict[str, Estimate]]:
        """Return recall, precision and area under the curve of each of several classes against the others."""
        if len(self.classes) < 3:
            return {}
        rates = estimates(metrics.several_classes, self._table(0))
        results: dict[str, dict[str, Estimate]] = {}
        for index, label in enumerate(self.classes):
            (area,) = estimates(metrics.area_under_curve, self._table(1 + index), quadratic=True)["auc"]
            results[str(label)] = {name: rates[name][index] for name in ("recall", "precision")} | {
                "auc": area
            }
        return results

    @cached_property
    def confusion(self) -> list[list[Estimate]]:
        """Return shares of all records: a row per true class, a column per predicted class."""
        size = len(self.classes)
        if not size:
            return []
        threshold = self._threshold_index if size == 2 else None
        cells = estimates(partial(metrics.confusion, threshold=threshold), self._table(0))["confusion"]
        return [cells[start : start + size] for start in range(0, size * size, size)]

    @cached_property
    def curves(self) -> dict[str, dict[str, list[Estimate]]]:
        """Return recall, false positive rate and precision at each edge, of the second of two classes or of each."""
        if not self.classes:
            return {}
        labels = self.classes[1:] if len(self.classes) == 2 else self.classes
        first = 0 if len(self.classes) == 2 else 1
        return {
            str(label): estimates(metrics.along_thresholds, self._table(index))
            for index, label in enumerate(labels, start=first)
        }

    @cached_property
    def calibration(self) -> list[tuple[float, Estimate]]:
        """Return the mean score in groups of bins and the share of the second class there; for two classes."""
        if len(self.classes) != 2:
            return []
        table = self._table(0)
        starts = metrics.calibration_groups(table.counts, self._deviation(0))
        shares = estimates(partial(metrics.calibration, starts=starts), table)["calibration"]
        middles, weights = (self.edges[:-1] + self.edges[1:]) / 2.0, table.plausible.sum(0)
        sums, totals = (np.add.reduceat(values, starts) for values in (middles * weights, weights))
        return list(zip((sums / np.maximum(totals, 1e-9)).tolist(), shares, strict=True))

    @cached_property
    def residual_quantiles(self) -> dict[float, Estimate]:
        """Return quantiles of prediction less truth, for a number."""
        if self.classes:
            return {}
        return dict(zip(metrics.QUANTILES, self._number_estimates()["residual quantiles"], strict=True))

    @cached_property
    def groups(self) -> list[GroupResult]:
        """Return the errors in each group of the columns in ``by``, in the schema's order."""
        first = len(self.tables) - len(self.about["by"])
        by = enumerate(self.about["by"].items(), start=first)
        return [
            result for index, (column, values) in by for result in self._group_results(column, values, index)
        ]

    def best_threshold(self, *, false_positive: float = 1.0, false_negative: float = 1.0) -> float:
        """Return the edge at which mistakes cost least, by the noisy counts. Post-processing: it costs no privacy.

        Parameters
        ----------
        false_positive, false_negative : float
            Cost of each kind of mistake, in any unit.
        """
        self._check_two_classes()
        check_positive(false_positive=false_positive, false_negative=false_negative)
        negative, positive = self._table(0).counts
        missed = np.concatenate([[0.0], np.cumsum(positive)])
        alarms = negative.sum() - np.concatenate([[0.0], np.cumsum(negative)])
        return float(self.edges[np.argmin(false_negative * missed + false_positive * alarms)])

    def decision(self, *, threshold: float | None = None, calibrate: bool = False) -> Decision:
        """Return a decision for `Release.decided_by`: a threshold, a calibration, or both.

        Parameters
        ----------
        threshold : float, optional
            Predict the second class for scores above it; on the scale of the counted scores.
        calibrate : bool, default=False
            Whether to read probabilities off the calibration curve, made non-decreasing.
        """
        self._check_two_classes()
        if not calibrate:
            return Decision(threshold)
        known = [(score, estimate.value) for score, estimate in self.calibration if estimate.is_known]
        if len(known) < 2:
            raise InvalidParameter(
                "the counts are too noisy to calibrate. Evaluate with a larger epsilon, or on more records."
            )
        scores, shares = (np.array(column) for column in zip(*known, strict=True))
        knots = metrics.extend_to_ends(scores, metrics.isotonic(shares), self.edges[0], self.edges[-1])
        return Decision(threshold, *(tuple(column.tolist()) for column in knots))

    @property
    def numbers_with_baseline(self) -> dict[str, Estimate]:
        """Return the numbers, with the accuracy of always predicting the most frequent class after them."""
        baseline = self.most_frequent
        return self.numbers if baseline is None else {**self.numbers, "accuracy of a constant": baseline}

    def to_dict(self) -> dict[str, Any]:
        """Return all results as plain JSON values; ``None`` where the noise leaves no usable number."""
        return {
            "guarantee": self.guarantee.to_dict(),
            "numbers": _plain_all(self.numbers),
            "per_class": {label: _plain_all(rates) for label, rates in self.per_class.items()},
            "confusion": [[_plain(cell) for cell in row] for row in self.confusion],
            "residual_quantiles": _plain_all(self.residual_quantiles),
            "groups": [
                {
                    "column": result.column,
                    "group": result.group,
                    "records": result.records,
                    "deviation": result.deviation,
                    "too_noisy": result.too_noisy,
                    "rates": _plain_all(result.rates),
                }
                for result in self.groups
            ],
        }

    def __str__(self) -> str:
        lines = [f"{self.about['of']}, {self.records} {self.whom}{self.weighted_by}, {self.guarantee}"]
        lines += [f"  {name:<28}{estimate}" for name, estimate in self.numbers_with_baseline.items()]
        for label, rates in self.per_class.items():
            lines += [f"  {f'{label}: {name}':<28}{estimate}" for name, estimate in rates.items()]
        for result in self.groups:
            named = ", ".join(f"{name} {estimate}" for name, estimate in result.rates.items())
            text = f"about {result.records:.0f} {self.whom}; {'too noisy' if result.too_noisy else named}"
            lines.append(f"  {f'{result.column} = {result.group}':<28}{text}")
        return "\n".join(lines)

    def _two_class_estimates(self, threshold: int) -> dict[str, list[Estimate]]:
        table = self._table(0)
        rates = estimates(partial(metrics.two_classes, threshold=threshold), table, quadratic=True)
        if self.about["scale"] != "probability":
            return rates
        losses = partial(metrics.probability_losses, edges=self.edges)
        return rates | estimates(losses, table, within=(0.0, math.inf))

    def _number_estimates(self) -> dict[str, list[Estimate]]:
        residual, target = self._table(0), self._table(1)
        distances = partial(metrics.residuals, edges=self.edges)
        quantiles = partial(metrics.residual_quantiles, edges=self.edges)
        target_variance = partial(metrics.target_variance, edges=np.array(self.about["target_edges"]))
        means = estimates(distances, residual, within=UNBOUNDED)
        (squares,) = means["mean squared error"]
        (variance,) = estimates(target_variance, target, within=UNBOUNDED, quadratic=True)["variance"]
        unexplained = magnitude(quotient(squares, variance))
        return {
            "R2": [Estimate(1.0 - unexplained.value, 1.0 - unexplained.upper, 1.0 - unexplained.lower)],
            "mean absolute error": list(map(magnitude, means["mean absolute error"])),
            "root mean squared error": [root(squares)],
        } | estimates(quantiles, residual, within=UNBOUNDED)

    def _group_results(self, column: str, values: list[Any], index: int) -> list[GroupResult]:
        table = self._table(index)
        statistic: Statistic = metrics.groups if len(self.classes) == 2 else metrics.group_errors
        if not self.classes:
            statistic = partial(metrics.group_distances, edges=self.edges)
        rates = estimates(statistic, table, within=RATE if self.classes else UNBOUNDED)
        if not self.classes:
            rates = {name: list(map(magnitude, of_groups)) for name, of_groups in rates.items()}
        records = self.unit * table.noisy.reshape(len(values), -1)
        deviation = float(np.sqrt(records.shape[1]) * self._deviation(index)) * self.unit
        return [
            GroupResult(
                column,
                str(value),
                float(records[row].sum()),
                deviation,
                {name: of_groups[row] for name, of_groups in rates.items()},
            )
            for row, value in enumerate(values)
        ]

    def _table(self, index: int) -> NoisyTable:
        mechanism = self.certificate.mechanism
        counts_all = index < len(self.tables) - len(self.about["by"]) and self.about["complete"]
        is_public = counts_all and mechanism.guarantee.relation.count_is_public
        scale = self._noise_factor * mechanism.scales[index]
        records = self.records if is_public else None
        alike = self.certificate.rows_of_a_person
        return NoisyTable(self.tables[index], mechanism.noise, scale, records, alike)

    @property
    def records(self) -> int:
        """Public: return the number of records or persons; for several holders, of those in the sum."""
        return int(self.about["in_sum"]["records"]) if "in_sum" in self.about else self.certificate.records

    @property
    def _noise_factor(self) -> float:
        """Return the noise in the counts relative to the mechanism's: every holder in the sum added a share."""
        return float(self.about["in_sum"]["noise"]) if "in_sum" in self.about else 1.0

    def _deviation(self, index: int) -> float:
        return self._noise_factor * self.certificate.mechanism.deviations[index]

    @property
    def _threshold_index(self) -> int:
        """Return the index of the threshold among the edges."""
        return self._nearest_edge(self.about["threshold"])

    def _nearest_edge(self, score: float) -> int:
        return int(np.argmin(np.abs(self.edges - score)))

    def _check_two_classes(self) -> None:
        if len(self.classes) != 2:
            raise InvalidParameter(
                "a threshold or calibration needs a model of two classes. This evaluation is of another model."
            )


def _plain_all(results: Mapping[Any, Estimate]) -> dict[str, dict[str, float] | None]:
    return {str(name): _plain(estimate) for name, estimate in results.items()}


def _plain(estimate: Estimate) -> dict[str, float] | None:
    if not estimate.is_known:
        return None
    return {"value": estimate.value, "lower": estimate.lower, "upper": estimate.upper}

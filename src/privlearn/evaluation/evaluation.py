"""What an evaluation tells: numbers with intervals, curves, groups, and the threshold or calibration they suggest."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np

from privlearn.arrays import Array
from privlearn.errors import InvalidParameter, ReleaseError, check_positive
from privlearn.evaluation import metrics
from privlearn.evaluation.intervals import (
    RATE,
    TOO_NOISY,
    UNBOUNDED,
    Estimate,
    NoisyTable,
    Statistic,
    estimates,
    magnitude,
    quotient,
    root,
)
from privlearn.guarantee import Guarantee
from privlearn.release.counts_file import CountsFile
from privlearn.release.decision import Decision


@dataclass(frozen=True)
class GroupResult:
    """What was measured in one group.

    Attributes
    ----------
    column, group : str
    records : float
        How many records, or persons, there are about: the noisy count.
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
        """By public numbers: the noisy count is not ten times its noise."""
        return self.records < TOO_NOISY * self.deviation


@dataclass(frozen=True, eq=False)
class Evaluation(CountsFile):
    """Noisy counts of a model's scores, and everything that follows from them.

    ``evaluation["auc"]`` is an `Estimate`: a value with the interval that covers the population's with probability
    0.95, noise and sampling included. `load`, `save` and `signed` are those of a release.
    """

    what: ClassVar[str] = "evaluation"

    def __post_init__(self) -> None:
        if self.about.get("kind") != "evaluation":
            raise ReleaseError("this file holds other counts than those of an evaluation")

    @property
    def guarantee(self) -> Guarantee:
        return self.certificate.guarantee

    @property
    def classes(self) -> list[Any]:
        """The labels; empty for a number."""
        return list(self.about.get("classes", ()))

    @property
    def edges(self) -> Array:
        """Of the bins of scores, or of residuals."""
        return np.array(self.about["edges"])

    def __getitem__(self, name: str) -> Estimate:
        return self.numbers[name]

    @cached_property
    def numbers(self) -> dict[str, Estimate]:
        """Everything that is one number, by name."""
        if not self.classes:
            found = self._of_a_number()
        elif len(self.classes) == 2:
            found = self._of_two_classes(self._place)
        else:
            found = estimates(metrics.several_classes, self._table(0))
        return {name: values[0] for name, values in found.items() if len(values) == 1}

    def numbers_at(self, threshold: float) -> dict[str, Estimate]:
        """`numbers` of the model with another threshold, from the counts of its scores.

        They tell it at an edge of their bins; elsewhere only what depends on no threshold is there.
        """
        self._check_two_classes()
        at = float(np.clip(threshold, self.edges[0], self.edges[-1]))
        place = self._nearest_edge(at)
        found = {name: told for name, (told,) in self._of_two_classes(place).items()}
        if math.isclose(self.edges[place], at, abs_tol=1e-9):
            return found
        return {name: told for name, told in found.items() if name not in metrics.BY_THRESHOLD}

    @cached_property
    def most_frequent(self) -> Estimate | None:
        """The accuracy of always answering the most frequent class; ``None`` for a number."""
        if not self.classes:
            return None
        (found,) = estimates(metrics.most_frequent, self._table(0))["most frequent"]
        return found

    @cached_property
    def per_class(self) -> dict[str, dict[str, Estimate]]:
        """Of several classes: recall, precision and area under the curve of each against the others."""
        if len(self.classes) < 3:
            return {}
        shared = estimates(metrics.several_classes, self._table(0))
        told: dict[str, dict[str, Estimate]] = {}
        for place, label in enumerate(self.classes):
            area = estimates(lambda counts: {"auc": metrics.area(counts)}, self._table(1 + place))["auc"]
            told[str(label)] = {name: shared[name][place] for name in ("recall", "precision")} | {
                "auc": area[0]
            }
        return told

    @cached_property
    def confusion(self) -> list[list[Estimate]]:
        """Shares of all records: a row per true class, a column per predicted one."""
        size = len(self.classes)
        if not size:
            return []
        place = self._place if size == 2 else None
        cells = estimates(partial(metrics.confusion, place=place), self._table(0))["confusion"]
        return [cells[start : start + size] for start in range(0, size * size, size)]

    @cached_property
    def curves(self) -> dict[str, dict[str, list[Estimate]]]:
        """At each edge of the bins: recall, false positive rate and precision; of the second class, or of each."""
        if not self.classes:
            return {}
        of = [self.classes[1]] if len(self.classes) == 2 else self.classes
        first = 0 if len(self.classes) == 2 else 1
        return {
            str(label): estimates(metrics.along_thresholds, self._table(first + place))
            for place, label in enumerate(of)
        }

    @cached_property
    def calibration(self) -> list[tuple[float, Estimate]]:
        """Of two classes: mean score in a group of bins, and the share of the second class there."""
        if len(self.classes) != 2:
            return []
        table = self._table(0)
        starts = metrics.calibration_groups(table.counts, self._deviation(0))
        shares = estimates(partial(metrics.calibration, starts=starts), table)["calibration"]
        middles, weights = (self.edges[:-1] + self.edges[1:]) / 2.0, table.plausible.sum(0)
        grouped = np.add.reduceat(middles * weights, starts) / np.maximum(
            np.add.reduceat(weights, starts), 1e-9
        )
        return list(zip(grouped.tolist(), shares, strict=True))

    @cached_property
    def residual_quantiles(self) -> dict[float, Estimate]:
        """Of a number: prediction less truth."""
        if self.classes:
            return {}
        return dict(zip(metrics.QUANTILES, self._of_a_number()["residual quantiles"], strict=True))

    @cached_property
    def groups(self) -> list[GroupResult]:
        """Errors in each group of the columns asked for, in the schema's order."""
        first = len(self.tables) - len(self.about["by"])
        return [
            result
            for place, (column, values) in enumerate(self.about["by"].items(), start=first)
            for result in self._groups_of(column, values, place)
        ]

    def best_threshold(self, *, false_positive: float = 1.0, false_negative: float = 1.0) -> float:
        """The edge at which mistakes cost least, by the noisy counts. Post-processing: it costs no privacy.

        Parameters
        ----------
        false_positive, false_negative : float
            What either mistake costs, in any unit.
        """
        self._check_two_classes()
        check_positive(false_positive=false_positive, false_negative=false_negative)
        negative, positive = self._table(0).counts
        missed = np.concatenate([[0.0], np.cumsum(positive)])
        alarmed = negative.sum() - np.concatenate([[0.0], np.cumsum(negative)])
        return float(self.edges[np.argmin(false_negative * missed + false_positive * alarmed)])

    def decision(self, *, threshold: float | None = None, calibrate: bool = False) -> Decision:
        """What `Release.decided_by` stores: a threshold, on the scale of the counted scores, or a calibration, or both.

        Parameters
        ----------
        threshold : float, optional
            Scores above it are the second class.
        calibrate : bool, default=False
            Whether probabilities are read off the calibration curve, with neighbours that fall pooled.
        """
        self._check_two_classes()
        if not calibrate:
            return Decision(threshold)
        known = [(score, found.value) for score, found in self.calibration if found.is_known]
        if len(known) < 2:
            raise InvalidParameter(
                "the counts are too noisy to calibrate by: spend more, or measure more records"
            )
        scores, shares = (np.array(column) for column in zip(*known, strict=True))
        corners = metrics.straight_to_the_ends(scores, metrics.rising(shares), self.edges[0], self.edges[-1])
        return Decision(threshold, *(tuple(column.tolist()) for column in corners))

    def to_dict(self) -> dict[str, Any]:
        """Everything in plain JSON values; ``None`` where the noise has drowned a number."""
        return {
            "guarantee": self.guarantee.to_dict(),
            "numbers": {name: _plain(found) for name, found in self.numbers.items()},
            "per_class": {
                label: {name: _plain(found) for name, found in told.items()}
                for label, told in self.per_class.items()
            },
            "confusion": [[_plain(cell) for cell in row] for row in self.confusion],
            "residual_quantiles": {str(at): _plain(found) for at, found in self.residual_quantiles.items()},
            "groups": [
                {
                    "column": result.column,
                    "group": result.group,
                    "records": result.records,
                    "deviation": result.deviation,
                    "too_noisy": result.too_noisy,
                    "rates": {name: _plain(found) for name, found in result.rates.items()},
                }
                for result in self.groups
            ],
        }

    def __str__(self) -> str:
        lines = [f"{self.about['of']}, {self.records} {self.whom}, {self.guarantee}"]
        lines += [f"  {name:<28}{found}" for name, found in self.numbers.items()]
        for label, told in self.per_class.items():
            lines += [f"  {f'{label}: {name}':<28}{found}" for name, found in told.items()]
        for result in self.groups:
            rates = (
                "too noisy" if result.too_noisy else ", ".join(f"{n} {e}" for n, e in result.rates.items())
            )
            lines.append(
                f"  {f'{result.column} = {result.group}':<28}about {result.records:.0f} {self.whom}; {rates}"
            )
        return "\n".join(lines)

    def _of_two_classes(self, place: int) -> dict[str, list[Estimate]]:
        table = self._table(0)
        found = estimates(partial(metrics.two_classes, place=place), table)
        if self.about["scale"] != "probability":
            return found
        losses = partial(metrics.probability_losses, edges=self.edges)
        return found | estimates(losses, table, within=(0.0, math.inf))

    def _of_a_number(self) -> dict[str, list[Estimate]]:
        residual, target = self._table(0), self._table(1)
        distances = partial(metrics.residuals, edges=self.edges)
        quantiles = partial(metrics.residual_quantiles, edges=self.edges)
        spread = partial(metrics.target_variance, edges=np.array(self.about["target_edges"]))
        means = estimates(distances, residual, within=UNBOUNDED)
        (squares,) = means["mean squared error"]
        (variance,) = estimates(spread, target, within=UNBOUNDED)["variance"]
        left = magnitude(quotient(squares, variance))
        return {
            "R2": [Estimate(1.0 - left.value, 1.0 - left.upper, 1.0 - left.lower)],
            "mean absolute error": list(map(magnitude, means["mean absolute error"])),
            "root mean squared error": [root(squares)],
        } | estimates(quantiles, residual, within=UNBOUNDED)

    def _groups_of(self, column: str, values: list[Any], place: int) -> list[GroupResult]:
        table = self._table(place)
        statistic: Statistic = metrics.groups if len(self.classes) == 2 else metrics.group_errors
        if not self.classes:
            statistic = partial(metrics.group_distances, edges=self.edges)
        found = estimates(statistic, table, within=RATE if self.classes else UNBOUNDED)
        if not self.classes:
            found = {name: list(map(magnitude, told)) for name, told in found.items()}
        records = table.noisy.reshape(len(values), -1)
        deviation = float(np.sqrt(records.shape[1]) * self._deviation(place))
        return [
            GroupResult(
                column,
                str(value),
                float(records[row].sum()),
                deviation,
                {name: told[row] for name, told in found.items()},
            )
            for row, value in enumerate(values)
        ]

    def _table(self, place: int) -> NoisyTable:
        mechanism = self.certificate.mechanism
        in_all = place < len(self.tables) - len(self.about["by"]) and self.about["complete"]
        known = in_all and mechanism.guarantee.relation.count_is_public
        return NoisyTable(
            self.tables[place],
            mechanism.noise,
            self._surplus * mechanism.scales[place],
            self.records if known else None,
        )

    @property
    def records(self) -> int:
        """Public: how many were counted; of several holders, those whose records are in the sum."""
        return int(self.about["in_sum"]["records"]) if "in_sum" in self.about else self.certificate.records

    @property
    def _surplus(self) -> float:
        """Noise in the counts, for each promised one: of several holders, all that were there added a share."""
        return float(self.about["in_sum"]["noise"]) if "in_sum" in self.about else 1.0

    def _deviation(self, place: int) -> float:
        return self._surplus * self.certificate.mechanism.deviations[place]

    @property
    def _place(self) -> int:
        """Of the threshold among the edges."""
        return self._nearest_edge(self.about["threshold"])

    def _nearest_edge(self, score: float) -> int:
        return int(np.argmin(np.abs(self.edges - score)))

    def _check_two_classes(self) -> None:
        if len(self.classes) != 2:
            raise InvalidParameter("a threshold and a calibration are for models of two classes")


def _plain(found: Estimate) -> dict[str, float] | None:
    return {"value": found.value, "lower": found.lower, "upper": found.upper} if found.is_known else None

"""The candidates' rows: read once for all that read them alike, and never two readings in memory at a time."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privlearn.estimators.inputs import EncodedRows
from privlearn.estimators.work import Work
from privlearn.mechanisms.search import Plan
from privlearn.selection.grid import Parameters, same_value

_AFTER_READING = (
    "regularization", "loss", "mechanism", "noise", "calibration", "tolerance", "class_weight",
)  # fmt: skip
"""Parameters that say what is learnt from rows, not how they are read."""

_PER_ROW = ("features", "person_weights", "labels", "targets", "ignored")
_SHAPE = ("n_features_in_", "feature_names_in_")


class Workshop:
    """Hands out each candidate's `Work` on the same table.

    Parameters
    ----------
    estimators : sequence
        One a candidate.
    parameters : sequence of dict
        What tells them apart.
    X, y
        As for `fit`.
    """

    def __init__(self, estimators: Sequence[Any], parameters: Sequence[Parameters], X: Any, y: Any) -> None:
        self._estimators = estimators
        self._readings = [
            {name: value for name, value in candidate.items() if name not in _AFTER_READING}
            for candidate in parameters
        ]
        self._data = X, y
        self._last: tuple[int, Work] | None = None

    def __len__(self) -> int:
        return len(self._estimators)

    def work(self, place: int) -> Work:
        """The candidate's work on all rows."""
        estimator = self._estimators[place]
        if self._last is None or not self._reads_alike(self._last[0], place):
            self._last = None  # frees the rows before others are read
            self._last = place, estimator.prepare(*self._data, private=True)
        read = self._last[1]
        if read.estimator is estimator:
            return read
        vars(estimator).update({name: fact for name, fact in vars(read.estimator).items() if name in _SHAPE})
        return read.of(estimator)

    def plans(self) -> list[Plan]:
        """What calibrates each candidate on all rows."""
        return [self._plan(place) for place in range(len(self))]

    def _plan(self, place: int) -> Plan:
        return lambda guarantee: self.work(place).plan(guarantee)

    def _reads_alike(self, first: int, second: int) -> bool:
        one, other = self._readings[first], self._readings[second]
        return one.keys() == other.keys() and all(same_value(one[name], other[name]) for name in one)


def take(work: Work, places: NDArray[np.int64]) -> Work:
    """The same work on some of its rows."""
    rows: EncodedRows = work.rows
    kept = {name: getattr(rows, name)[places] for name in _PER_ROW if getattr(rows, name, None) is not None}
    weights = kept.get("person_weights")
    total = len(places) if weights is None else max(1, round(float(weights.sum())))
    return work.on(dataclasses.replace(rows, total=total, **kept))

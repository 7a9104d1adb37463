"""Candidates of a search: the points of a grid, and each one's `Fit` on rows that they share."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from sklearn.model_selection import ParameterGrid

from privlearn.errors import InvalidParameter
from privlearn.estimators.estimator import PrivateEstimator
from privlearn.estimators.fit import Fit
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.mechanism import ReleaseMechanism
from privlearn.mechanisms.search.search import Calibrator

SEARCH_PARAMETERS = ("epsilon", "delta", "neighbours", "ledger", "accept_weak_privacy", "random_state")
"""Parameters of the search itself: its guarantee and its charge."""

_DECLARED = (
    "schema", "expected_records", "classes", "target_bounds", "max_weight", "progress",
    "regularize_towards", "regularization_weights",
)  # fmt: skip

Parameters = dict[str, Any]


def candidates_of(estimator: object, param_grid: Any) -> list[Parameters]:
    """Return the grid's points, each a dict of parameters; refuse a grid that cannot be searched."""
    if not isinstance(estimator, PrivateEstimator):
        raise InvalidParameter(
            "PrivateGridSearch tunes privlearn's estimators: PrivateLogisticRegression, PrivateSVC, PrivateRegressor"
        )
    if estimator.ledger is not None or estimator.random_state is not None:
        raise InvalidParameter(
            "give ledger and random_state to PrivateGridSearch, not to its estimator: the whole search is charged once"
        )
    parts = [param_grid] if isinstance(param_grid, Mapping) else param_grid
    if isinstance(parts, str) or not isinstance(parts, Iterable):
        raise InvalidParameter(
            "param_grid must be a dict of lists, e.g. {'regularization': [0.001, 0.01]}, or a list of such dicts"
        )
    parts = list(parts)
    for part in parts:
        _check_part(estimator, part)
    candidates = list(ParameterGrid(parts)) if parts else []
    _check_number(candidates)
    return candidates


def same_value(first: Any, second: Any) -> bool:
    """Return whether two parameters are equal; arrays are compared as a whole."""
    if first is second:
        return True
    if isinstance(first, np.ndarray) or isinstance(second, np.ndarray):
        return np.array_equal(first, second)
    return type(first) is type(second) and bool(first == second)


def to_json(value: Any) -> Any:
    """Return the parameter as a certificate states it: numbers, strings and dicts unchanged, else the type's name."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        return float(value) if math.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return {str(name): to_json(item) for name, item in value.items()}
    return to_json(value.to_dict()) if hasattr(value, "to_dict") else type(value).__name__


def _check_part(estimator: PrivateEstimator, part: Any) -> None:
    if not isinstance(part, Mapping):
        raise InvalidParameter("param_grid must be a dict of lists, or a list of such dicts")
    known = set(estimator.get_params(deep=False)) - {*SEARCH_PARAMETERS, *_DECLARED}
    for name, values in part.items():
        if name in SEARCH_PARAMETERS:
            raise InvalidParameter(
                f"{name} cannot be searched: it belongs to the guarantee. Give it to the search as a whole"
            )
        if name in _DECLARED:
            raise InvalidParameter(
                f"{name} cannot be searched: it declares what is public. Give it to the estimator"
            )
        if name not in known:
            raise InvalidParameter(
                f"{type(estimator).__name__} has no parameter {name!r} to tune; it has {', '.join(sorted(known))}"
            )
        _check_values(name, values)


def _check_values(name: str, values: Any) -> None:
    if isinstance(values, str | Mapping) or not isinstance(values, Iterable):
        raise InvalidParameter(f"the grid's {name} must be a list of values, e.g. {name}=[...]")
    values = list(values)
    if not values:
        raise InvalidParameter(f"the grid's {name} is empty. List at least one value")
    if any(isinstance(value, numbers.Real) and math.isnan(value) for value in values):
        raise InvalidParameter(f"the grid's {name} has a NaN. Remove it")


def _check_number(candidates: list[Parameters]) -> None:
    if not any(candidates):
        raise InvalidParameter(
            "param_grid is empty. List the values to try, e.g. {'regularization': [0.001, 0.01]}"
        )
    if len(candidates) == 1:
        raise InvalidParameter(
            "param_grid has one candidate, so there is nothing to choose. Set its values on the estimator and fit it "
            "directly, with the whole epsilon"
        )
    for index, candidate in enumerate(candidates):
        if any(same_parameters(candidate, other) for other in candidates[:index]):
            raise InvalidParameter(
                "param_grid lists a candidate twice. Remove the repetition, which would cost budget"
            )


def same_parameters(first: Parameters, second: Parameters) -> bool:
    """Return whether two candidates have the same names and values."""
    return first.keys() == second.keys() and all(same_value(first[name], second[name]) for name in first)


_AFTER_READING = (
    "regularization", "loss", "mechanism", "noise", "calibration", "tolerance", "class_weight",
)  # fmt: skip
"""Parameters that affect what is learnt from rows, not how they are read."""

_SHAPE = ("n_features_in_", "feature_names_in_")


class Candidates:
    """The fits of all candidates on the same table, which is read again only where candidates read differently.

    Parameters
    ----------
    estimators : sequence
        One per candidate.
    parameters : sequence of dict
        Where they differ.
    X, y, sample_weight
        As for `fit`.
    """

    def __init__(
        self,
        estimators: Sequence[PrivateEstimator],
        parameters: Sequence[Parameters],
        X: Any,
        y: Any,
        sample_weight: Any = None,
    ) -> None:
        self._estimators = estimators
        self._readings = [
            {name: value for name, value in candidate.items() if name not in _AFTER_READING}
            for candidate in parameters
        ]
        self._data, self._sample_weight = (X, y), sample_weight
        self._last: tuple[int, Fit] | None = None

    def __len__(self) -> int:
        return len(self._estimators)

    def work(self, index: int) -> Fit:
        """Return the candidate's fit on all rows."""
        estimator, reading = self._estimators[index], self._readings[index]
        if self._last is None or not same_parameters(self._readings[self._last[0]], reading):
            self._last = None  # frees the rows before others are read
            self._last = index, estimator.prepare(*self._data, True, self._sample_weight)
        read = self._last[1]
        if read.estimator is estimator:
            return read
        shape = {name: value for name, value in vars(read.estimator).items() if name in _SHAPE}
        vars(estimator).update(shape)
        return read.of(estimator)

    def calibrations(self) -> list[Calibrator]:
        """Return the functions that calibrate each candidate on all rows for a guarantee."""
        return [partial(self._calibrate, index) for index in range(len(self))]

    def _calibrate(self, index: int, guarantee: Guarantee) -> ReleaseMechanism:
        return self.work(index).calibrate(guarantee)

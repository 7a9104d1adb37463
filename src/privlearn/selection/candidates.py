"""Candidates of a search: the grid, each trained on parts of the rows, their mistakes counted."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.model_selection import ParameterGrid

from privlearn.errors import InvalidParameter
from privlearn.estimators.base import PrivateLinearModel
from privlearn.estimators.fitting import Fitting
from privlearn.mechanisms.search.search import Plan

PROMISED = ("epsilon", "delta", "neighbours", "ledger", "accept_weak_privacy", "random_state")
"""The search's own: they are the guarantee, or keep its books."""

_DECLARED = ("schema", "expected_records", "classes", "target_bounds", "progress")

Parameters = dict[str, Any]


def candidates_of(estimator: object, param_grid: Any) -> list[Parameters]:
    """The grid's points, each a dict of parameters; refuses a grid that cannot be searched."""
    if not isinstance(estimator, PrivateLinearModel):
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
    """Whether two parameters are the same; arrays are compared as a whole."""
    if first is second:
        return True
    if isinstance(first, np.ndarray) or isinstance(second, np.ndarray):
        return np.array_equal(first, second)
    return type(first) is type(second) and bool(first == second)


def plain(value: Any) -> Any:
    """The parameter as a certificate can state it: a number, a word or a dict of them as it is, else its kind."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        return float(value) if math.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    return plain(value.to_dict()) if hasattr(value, "to_dict") else type(value).__name__


def _check_part(estimator: PrivateLinearModel, part: Any) -> None:
    if not isinstance(part, Mapping):
        raise InvalidParameter("param_grid must be a dict of lists, or a list of such dicts")
    known = set(estimator.get_params(deep=False)) - {*PROMISED, *_DECLARED}
    for name, values in part.items():
        if name in PROMISED:
            raise InvalidParameter(
                f"{name} is no candidate: it belongs to the promise, which is given to the search as a whole"
            )
        if name in _DECLARED:
            raise InvalidParameter(
                f"{name} is no candidate: it says what is public. Give it to the estimator"
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
        raise InvalidParameter(f"the grid's {name} is empty: list at least one value")
    if any(isinstance(value, numbers.Real) and math.isnan(value) for value in values):
        raise InvalidParameter(f"the grid's {name} has a NaN: take it out")


def _check_number(candidates: list[Parameters]) -> None:
    if not any(candidates):
        raise InvalidParameter(
            "param_grid is empty: list the values to try, e.g. {'regularization': [0.001, 0.01]}"
        )
    if len(candidates) == 1:
        raise InvalidParameter(
            "param_grid has one candidate, so there is nothing to choose: set its values on the estimator and fit it "
            "directly, with the whole epsilon"
        )
    for place, candidate in enumerate(candidates):
        if any(_same(candidate, other) for other in candidates[:place]):
            raise InvalidParameter(
                "param_grid lists a candidate twice: take the repetition out, it would cost budget"
            )


def _same(first: Parameters, second: Parameters) -> bool:
    return first.keys() == second.keys() and all(same_value(first[name], second[name]) for name in first)


_AFTER_READING = (
    "regularization", "loss", "mechanism", "noise", "calibration", "tolerance", "class_weight",
)  # fmt: skip
"""Parameters that say what is learnt from rows, not how they are read."""

_SHAPE = ("n_features_in_", "feature_names_in_")


class Candidates:
    """Hands out each candidate's `Fitting` on the same table.

    Parameters
    ----------
    estimators : sequence
        One per candidate.
    parameters : sequence of dict
        What tells them apart.
    X, y
        As for `fit`.
    """

    def __init__(
        self, estimators: Sequence[PrivateLinearModel], parameters: Sequence[Parameters], X: Any, y: Any
    ) -> None:
        self._estimators = estimators
        self._readings = [
            {name: value for name, value in candidate.items() if name not in _AFTER_READING}
            for candidate in parameters
        ]
        self._data = X, y
        self._last: tuple[int, Fitting] | None = None

    def __len__(self) -> int:
        return len(self._estimators)

    def work(self, place: int) -> Fitting:
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

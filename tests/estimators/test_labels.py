"""Labels of plain arrays: read by themselves, and no message that depends on more than a label that does not fit."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from privlearn import PrivateLogisticRegression, PrivateRegressor
from privlearn.errors import DataError, InvalidParameter
from privlearn.estimators import ClassTargets, NumberTargets

X = np.eye(4)


def numbered(y: Any, classes: Any) -> list[int]:
    estimator = PrivateLogisticRegression(norm_bound=1.0, classes=classes)
    targets = estimator.read_rows(X, y, private=True).targets
    assert isinstance(targets, ClassTargets)
    return list(targets.labels)


def objects(labels: list[Any]) -> Any:
    return np.array(labels, dtype=object)


CONTAINERS: list[Callable[[list[Any]], Any]] = [
    list,
    tuple,
    np.array,
    objects,
    pd.Series,
    pl.Series,
    pa.array,
]


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        ([2, 0, 1, 1], [0, 1, 2]),
        ([2.0, 0.0, 1.0, 1.0], [0, 1, 2]),
        ([2, 0, 1, 1], [0.0, 1.0, 2.0]),
        (["c", "a", "b", "b"], ["a", "b", "c"]),
    ],
)
def test_labels_are_found_whatever_they_are_kept_in(labels: Any, classes: Any, container: Any) -> None:
    assert numbered(container(labels), classes) == [2, 0, 1, 1]


def test_truth_values_are_numbers_and_numbers_of_several_types_are_numbers() -> None:
    assert numbered([True, False, True, False], [False, True]) == [1, 0, 1, 0]
    assert numbered([True, 0, 1.0, Decimal(0)], [0, 1]) == [1, 0, 1, 0]


@pytest.mark.parametrize("label", [0.5, 7, 2**53 + 1, 10**400, -1, np.inf])
def test_a_label_that_is_not_listed(label: Any) -> None:
    with pytest.raises(DataError, match="labels that classes does not list"):
        numbered([0, 1, label, 1], [0, 1])


@pytest.mark.parametrize("label", [None, np.nan, pd.NA])
def test_a_missing_label(label: Any) -> None:
    with pytest.raises(DataError, match="dropping rows changes the number of records, which is public"):
        numbered(objects([0, 1, label, 1]), [0, 1])


@pytest.mark.parametrize("label", ["one", b"1", [1], 1j])
def test_a_label_of_another_type(label: Any) -> None:
    with pytest.raises(DataError, match="of different types"):
        numbered([0, 1, label, 1], [0, 1])


@pytest.mark.parametrize("classes", [[0, 2**53], [0.5, 1.5], [0, np.inf], [b"a", b"b"]])
def test_classes_that_cannot_be_told_apart_are_refused(classes: Any) -> None:
    with pytest.raises(InvalidParameter, match="classes must"):
        numbered([0, 1, 1, 1], classes)


@pytest.mark.parametrize("different", [1, 20, 21, 40])
def test_no_warning_depends_on_the_labels(different: int) -> None:
    """Scikit-learn warns if more than half of the labels differ: a count of the records."""
    y = np.r_[np.arange(different), np.zeros(40 - different, dtype=int)]
    estimator = PrivateLogisticRegression(norm_bound=1.0, classes=range(40), epsilon=1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        estimator.read_rows(np.eye(40), y, private=True)


@pytest.mark.parametrize("odd", ["2", None, np.nan, 10**400, 2**70, Decimal("0.1"), True, np.float32(0.1)])
def test_the_other_targets_stay(odd: Any) -> None:
    estimator = PrivateRegressor(norm_bound=1.0, target_bounds=(0, 1))
    before = [np.float32(0.1), Decimal("0.7"), 0.3, 1]
    expected = estimator.read_rows(X, before, private=True).targets
    try:
        found = estimator.read_rows(X, [*before[:3], odd], private=True).targets
    except DataError:
        return
    assert isinstance(found, NumberTargets)
    assert isinstance(expected, NumberTargets)
    assert found.numbers[:3].tobytes() == expected.numbers[:3].tobytes()

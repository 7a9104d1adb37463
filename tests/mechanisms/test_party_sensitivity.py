"""How far one record moves what parties answer together: within the theorems, and in the worst case all the way."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privlearn.arrays import Array
from privlearn.guarantee import RELATIONS
from privlearn.mechanisms import LocalAggregation, SummedMechanism
from privlearn.mechanisms.summed import Question
from privlearn.solvers import HuberHinge, Logistic, SmoothedHinge
from tests.support.party_cases import aggregation, descent, exact_sum, parties_of, psgd, task_of

SIZES = [1, 4, 7]
LOSSES = [Logistic(), HuberHinge(), SmoothedHinge(0.3)]

unit_rows = st.lists(st.floats(-1.0, 1.0), min_size=3, max_size=3).map(
    lambda row: np.array(row) / max(1.0, 1.001 * float(np.linalg.norm(row)))
)
records = st.tuples(unit_rows, st.sampled_from([1.0, -1.0]))
every_relation = pytest.mark.parametrize("neighbours", RELATIONS)


def moved(mechanism: SummedMechanism, question: Question, data: Any, place: int, other: Any) -> float:
    """Distance between the sums of all parties before and after the record at ``place`` becomes another, or goes."""
    rows, signs = np.array([row for row, _ in data]), np.array([sign for _, sign in data])
    before = exact_sum(parties_of(mechanism, rows, signs, SIZES)).ask(question).vector
    if other is not None:
        rows[place], signs[place] = other
    missing = place if other is None else None
    after = exact_sum(parties_of(mechanism, rows, signs, SIZES, missing)).ask(question).vector
    return float(np.linalg.norm(after - before))


def asked(mechanism: SummedMechanism, kind: str, point: Array | None = None) -> Question:
    coefficients = None if point is None else point[np.newaxis]
    return Question(0, kind, 3, math.inf, (), coefficients)


def after(neighbours: str, other: Any) -> Any:
    return {"zero_out": (np.zeros(3), 1.0), "add_remove": None}.get(neighbours, other)


@every_relation
@settings(max_examples=40)
@given(
    st.lists(records, min_size=12, max_size=12),
    st.integers(0, 11),
    records,
    st.lists(st.floats(-50.0, 50.0), min_size=3, max_size=3),
    st.sampled_from(LOSSES),
)
def test_sums_of_gradients_and_of_second_moments(
    neighbours: Any, data: Any, place: int, other: Any, point: Any, loss: Any
) -> None:
    task = task_of(neighbours=neighbours, total=12, loss=loss)
    mechanism = descent(task, calibration="preconditioned")
    other = after(neighbours, other)
    gradients = moved(mechanism, asked(mechanism, "gradients", np.array(point)), data, place, other)
    moments = moved(mechanism, asked(mechanism, "second_moments"), data, place, other)
    assert gradients <= mechanism.sum_sensitivity
    assert moments <= mechanism.constants()["second_moment_sensitivity"]
    assert psgd(task).round_epsilon >= gradients / psgd(task).round_scale


@every_relation
@pytest.mark.parametrize("calibration", ["weighted", "uniform"])
@settings(max_examples=40)
@given(
    st.lists(records, min_size=12, max_size=12),
    st.integers(0, 11),
    records,
    st.sampled_from([0.01, 0.5, 5.0]),
    st.sampled_from(LOSSES),
)
def test_means_of_minimisers(
    neighbours: Any, calibration: str, data: Any, place: int, other: Any, strength: float, loss: Any
) -> None:
    task = task_of(neighbours=neighbours, total=12, loss=loss, regularization=strength)
    mechanism = aggregation(task, calibration, smallest=min(SIZES))
    distance = moved(mechanism, asked(mechanism, "minimisers"), data, place, after(neighbours, other))
    assert distance <= mechanism.sensitivity


def test_the_worst_record_reaches_every_bound() -> None:
    one, opposite, sideways = np.eye(3)[0], -np.eye(3)[0], np.eye(3)[1]
    others = [(np.zeros(3), 1.0)] * 11
    task = task_of(total=12, regularization=10.0)  # strong: no coefficient leaves the hinge's straight part
    mechanism = descent(task, calibration="preconditioned")
    at_zero = asked(mechanism, "gradients", np.zeros(3))
    assert moved(mechanism, at_zero, [(one, 1.0), *others], 0, (opposite, 1.0)) == pytest.approx(2.0)
    moments = asked(mechanism, "second_moments")
    assert moved(mechanism, moments, [(one, 1.0), *others], 0, (sideways, 1.0)) == pytest.approx(
        math.sqrt(2.0)
    )
    for calibration in ("weighted", "uniform"):
        mean = aggregation(task, calibration, smallest=min(SIZES))
        reached = moved(mean, asked(mean, "minimisers"), [(one, 1.0), *others], 0, (opposite, 1.0))
        assert reached == pytest.approx(mean.sensitivity, rel=1e-6)


def test_the_worst_record_that_comes_or_goes_reaches_every_bound() -> None:
    one, others = np.eye(3)[0], [(np.zeros(3), 1.0)] * 11
    task = task_of(total=12, regularization=10.0, neighbours="add_remove")
    mechanism = descent(task, calibration="preconditioned")
    for question in (asked(mechanism, "gradients", np.zeros(3)), asked(mechanism, "second_moments")):
        assert moved(mechanism, question, [(one, 1.0), *others], 0, None) == pytest.approx(1.0)
    for calibration in ("weighted", "uniform"):
        mean = aggregation(task, calibration, smallest=min(SIZES))
        reached = moved(mean, asked(mean, "minimisers"), [(one, 1.0), *others], 0, None)
        assert reached == pytest.approx(mean.sensitivity, rel=1e-6)


def test_only_the_uniform_mean_depends_on_the_smallest_party() -> None:
    task = task_of(total=1000)
    scales: dict[str, list[float]] = {
        kind: [aggregation(task, kind, smallest=smallest).noise_scale for smallest in (300, 30, 3)]
        for kind in ("weighted", "uniform")
    }
    assert scales["weighted"] == [scales["weighted"][0]] * 3
    assert scales["uniform"][1:] == pytest.approx(
        [10 * scales["uniform"][0], 100 * scales["uniform"][0]], rel=1e-3
    )
    everyone_alike = aggregation(task_of(total=900), "uniform", smallest=300)
    assert everyone_alike.noise_scale == pytest.approx(
        aggregation(task_of(total=900), "weighted", 300).noise_scale
    )


def test_a_forged_number_of_records_is_refused() -> None:
    honest = aggregation(task_of(total=12), "weighted", smallest=1)
    for count in (11, 13, 0, 1.5):
        with pytest.raises(ValueError, match="records"):
            LocalAggregation(honest.task, honest.guarantee, "gaussian", "weighted", 3, 3, 1, count, 1.0)  # type: ignore[arg-type]

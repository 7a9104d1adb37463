"""Contributions: what each column adds to a score; they add up to what the model says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from privlearn import (
    InvalidParameter,
    PrivateLogisticRegression,
    PrivateRegressor,
    PrivateSVC,
    Schema,
    contributions,
)
from privlearn.data import census_schema, simulated_census

PRICE: dict[str, Any] = {"epsilon": 2.0, "delta": 1e-6, "random_state": 0}


@pytest.mark.parametrize("records", [500, 20_000])  # centred rows; then bins and pairs
def test_they_add_up_to_the_score(records: int) -> None:
    people = simulated_census(records, 0)
    model = PrivateLogisticRegression(schema=census_schema(), **PRICE).fit(people)
    told = contributions(model.release_, people.slice(0, 30))
    assert told.base_row == ("the mean row, as released" if records == 500 else "the mean of synthetic rows")
    assert told.scores == pytest.approx(model.decision_function(people.slice(0, 30)), abs=1e-12)
    assert told.base + told.parts.sum(axis=1) == pytest.approx(told.scores, abs=1e-12)
    assert told.label == "high"
    assert told.names[:2] == ["age", "hours"]
    assert told.probabilities == pytest.approx(model.predict_proba(people.slice(0, 30))[:, 1])
    assert np.all(told.noise[:, :-1] > 0.0)  # type: ignore[index]


def test_a_typical_row_is_the_released_mean_of_centred_rows() -> None:
    people = simulated_census(500, 0)
    model = PrivateLogisticRegression(schema=census_schema(), **PRICE).fit(people)
    released: Any = model.release_.model
    constant = released.encoder.constant * released.coefficients[0, -1] + released.constants[0]
    told = contributions(model.release_, people.slice(0, 1))
    assert told.base == pytest.approx(constant)
    assert f"(probability {told.probabilities[0]:.3f})" in str(told)  # type: ignore[index]
    assert "(the mean row, as released)" in str(told)


def test_each_part_is_its_own_column_s() -> None:
    """Two rows that differ in one column differ in its part, in those of its pairs, and through their norms."""
    people = simulated_census(20_000, 0)
    model = PrivateLogisticRegression(schema=census_schema(), **PRICE).fit(people)
    rows = people.slice(0, 1).to_pydict()
    other = rows | {"sex": ["male" if rows["sex"] == ["female"] else "female"]}
    one, two = (contributions(model.release_, table) for table in (rows, other))
    changed = np.abs(one.parts - two.parts)[0] > 1e-12
    assert [name for name, moved in zip(one.names, changed, strict=True) if moved] == [
        name for name in one.names if "sex" in name
    ]


def test_several_classes_numbers_and_arrays() -> None:
    random = np.random.default_rng(0)
    X = random.normal(size=(3000, 2))
    y = X[:, 0] + random.normal(size=3000) * 0.1
    number = PrivateRegressor(norm_bound=3.0, target_bounds=(-5, 15), **PRICE).fit(X, y + 5)
    told = contributions(number.release_, X[:5])
    assert told.scores == pytest.approx(number.predict(X[:5]))
    assert told.names == ["x[0]", "x[1]", "intercept"]
    assert told.label is None
    named = PrivateLogisticRegression(norm_bound=3.0, classes=["a", "b", "c"], **PRICE)
    labels = np.array(["a", "b", "c"])[np.digitize(y, [-0.5, 0.5])]
    named.fit(X, labels)
    scores = named.decision_function(X[:5])
    assert contributions(named.release_, X[:5], "c").scores == pytest.approx(scores[:, 2])
    with pytest.raises(InvalidParameter, match="whose score"):
        contributions(named.release_, X[:5])


def test_what_is_said_names_the_largest_first() -> None:
    people = simulated_census(2000, 0)
    model = PrivateLogisticRegression(schema=census_schema(), **PRICE).fit(people)
    told = model.release_.explain(people.slice(0, 2))
    first, *lines = told.describe(0).splitlines()
    assert first.startswith("score for high")
    sizes = [abs(float(line.split("noise")[0].split()[-1])) for line in lines]
    assert sizes == sorted(sizes, reverse=True)
    assert str(told).count("score for high") == 2


def test_kernels_and_too_many_rows_are_refused_and_unknown_noise_is_not_told() -> None:
    random = np.random.default_rng(0)
    X, y = random.normal(size=(1200, 2)), random.integers(0, 2, 1200)
    kernel = PrivateSVC(kernel="rbf", fourier_pairs=10, norm_bound=3.0, classes=[0, 1], **PRICE).fit(X, y)
    with pytest.raises(InvalidParameter, match="mix all columns"):
        contributions(kernel.release_, X[:1])
    hinge = PrivateSVC(loss="hinge", norm_bound=3.0, classes=[0, 1], **PRICE).fit(X, y)
    told = contributions(hinge.release_, X[:1])
    assert told.noise is None
    assert "noise" not in str(told)
    with pytest.raises(InvalidParameter, match="1 to 1000 rows"):
        contributions(hinge.release_, X)


def test_a_schema_without_an_intercept() -> None:
    columns = {"age": {"type": "number", "lower": 0, "upper": 1}}
    target = {"name": "answer", "classes": ["no", "yes"]}
    schema = Schema.from_dict({"name": "clinic", "columns": columns, "target": target})
    random = np.random.default_rng(0)
    table = {"age": random.uniform(size=500), "answer": random.choice(["no", "yes"], 500)}
    model = PrivateLogisticRegression(schema=schema, fit_intercept=False, **PRICE).fit(table)
    told = contributions(model.release_, {"age": [0.1, 0.9]})
    assert told.names == ["age"]
    assert told.scores == pytest.approx(model.decision_function({"age": [0.1, 0.9]}))

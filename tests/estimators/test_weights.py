"""Row weights: a row of weight 2 counts like two rows, a public cap bounds every person, and the noise knows it."""

from __future__ import annotations

import copy
import dataclasses
import json
import math
from fractions import Fraction
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest

from privlearn import (
    PrivateGridSearch,
    PrivateLogisticRegression,
    PrivateRegressor,
    PrivateSVC,
    Schema,
    curvature,
    describe,
    evaluate,
    plan,
)
from privlearn.arrays import Array
from privlearn.data.encoding import WeightColumns
from privlearn.data.sources import in_memory as load_rows
from privlearn.errors import DataError, InvalidParameter, SchemaError, VerificationError
from privlearn.estimators import MemoryOracle
from privlearn.explain.private_curvature import CurvatureRows
from privlearn.mechanisms import NoisyCurvature
from privlearn.release import Certificate, check_agreement

RNG = np.random.default_rng(5)
N = 400
X = RNG.uniform(-1.0, 1.0, (N, 2))
NUMBERS = 3.0 * X[:, 0] - X[:, 1] + RNG.normal(size=N)
LABELS = (NUMBERS > 0).astype(int)
THREE = np.digitize(NUMBERS, [-1.0, 1.0])
WHOLE = RNG.integers(0, 4, N)
WEIGHTS = WHOLE.astype(float)
ARRAYS: dict[str, Any] = {"norm_bound": 2.0, "max_weight": 4.0}
CLASSES: dict[str, Any] = {"classes": [0, 1]}

PLAIN: dict[str, tuple[Any, Any]] = {
    "logistic": (PrivateLogisticRegression(**ARRAYS, **CLASSES, epsilon=math.inf), LABELS),
    "hinge": (PrivateSVC(**ARRAYS, **CLASSES, epsilon=math.inf, loss="hinge"), LABELS),
    "softmax": (PrivateLogisticRegression(**ARRAYS, classes=[0, 1, 2], epsilon=math.inf), THREE),
    "number": (PrivateRegressor(**ARRAYS, target_bounds=(-6, 6), loss="huber", epsilon=math.inf), NUMBERS),
}

SETTINGS: dict[str, Any] = {
    "name": "survey",
    "columns": {name: {"type": "number", "lower": -1, "upper": 1} for name in "ab"},
    "target": {"name": "y", "classes": [0, 1]},
    "weight": {"column": "w", "upper": 4},
}
SCHEMA = Schema.from_dict(SETTINGS)
TABLE = pa.table({"a": X[:, 0], "b": X[:, 1], "y": LABELS, "w": WEIGHTS})
PERSON = np.arange(N) // 3
OF_PERSONS = TABLE.append_column("id", pa.array(PERSON))
PROMISE: dict[str, Any] = {"epsilon": 2.0, "delta": 1e-5, "random_state": 0}


def with_persons(**weight: Any) -> Schema:
    return Schema.from_dict(SETTINGS | {"person": "id", "weight": {"column": "w"} | weight})


@pytest.mark.parametrize("name", PLAIN)
def test_a_row_of_weight_two_counts_like_two_rows(name: str) -> None:
    model, y = PLAIN[name]
    weighted = copy.copy(model).fit(X, y, sample_weight=WEIGHTS)
    repeated = copy.copy(model).set_params(max_weight=None).fit(np.repeat(X, WHOLE, 0), np.repeat(y, WHOLE))
    assert weighted.coefficients_ == pytest.approx(repeated.coefficients_, abs=1e-4)


def test_weights_of_the_schema_are_those_of_the_call() -> None:
    """With the mean as unit; C is scikit-learn's, whatever the mean."""
    tens = Schema.from_dict(SETTINGS | {"weight": {"column": "w", "upper": 40, "mean": 10}})
    choices: list[dict[str, Any]] = [{}, {"C": 3.0}, {"regularization": 0.1}]
    for settings in choices:
        ones = PrivateLogisticRegression(schema=SCHEMA, **PROMISE, **settings).fit(TABLE)
        table = TABLE.set_column(3, "w", pa.array(10.0 * WEIGHTS))
        scaled = settings | ({"C": settings["C"] / 10.0} if "C" in settings else {})
        other = PrivateLogisticRegression(schema=tens, **PROMISE, **scaled).fit(table)
        assert other.coefficients_ == pytest.approx(ones.coefficients_, abs=1e-9)
        assert ones.certificate_.task.row_weight_bound == 4.0


@pytest.mark.parametrize("odd", [-1.0, -math.inf, 4.5, math.inf, 1e300])
def test_every_weight_is_clipped_alone(odd: float) -> None:
    weights, clipped = WEIGHTS.copy(), WEIGHTS.copy()
    weights[7], clipped[7] = odd, np.clip(odd, 0.0, 4.0)
    model, y = PLAIN["logistic"]
    one, other = (copy.copy(model).fit(X, y, sample_weight=w) for w in (weights, clipped))
    assert np.array_equal(one.coefficients_, other.coefficients_)
    tables = [TABLE.set_column(3, "w", pa.array(w)) for w in (weights, clipped)]
    one, other = (PrivateSVC(schema=SCHEMA, **PROMISE).fit(table) for table in tables)
    assert np.array_equal(one.coefficients_, other.coefficients_)


def test_missing_weights_are_refused_or_count_nothing() -> None:
    gaps = TABLE.set_column(3, "w", pa.array([None, *WEIGHTS[1:]]))
    zero = TABLE.set_column(3, "w", pa.array([0.0, *WEIGHTS[1:]]))
    with pytest.raises(DataError, match="'w' has missing cells"):
        PrivateSVC(schema=SCHEMA, **PROMISE).fit(gaps)
    lenient = Schema.from_dict(SETTINGS | {"weight": {"column": "w", "upper": 4, "missing": "zero"}})
    one, other = (PrivateSVC(schema=lenient, **PROMISE).fit(table) for table in (gaps, zero))
    assert np.array_equal(one.coefficients_, other.coefficients_)
    with pytest.raises(DataError, match="NaN"):
        PrivateSVC(**ARRAYS, **CLASSES, **PROMISE).fit(X, LABELS, sample_weight=[math.nan, *WEIGHTS[1:]])


def test_all_weights_may_be_zero() -> None:
    """A refusal would tell that they are."""
    table = TABLE.set_column(3, "w", pa.array(np.zeros(N)))
    model = PrivateSVC(schema=SCHEMA, probability=True, **PROMISE).fit(table)
    assert np.isfinite(model.coefficients_).all()
    evaluate(model, table, epsilon=1.0, random_state=0)
    describe(table, SCHEMA, epsilon=1.0, random_state=0)
    within = OF_PERSONS.set_column(3, "w", pa.array(np.zeros(N)))
    assert np.isfinite(PrivateSVC(schema=with_persons(), **PROMISE).fit(within).coefficients_).all()


@pytest.mark.parametrize(
    ("parameters", "weights", "says"),
    [
        ({}, WEIGHTS, "max_weight="),
        ({"max_weight": 4.0}, None, "Pass sample_weight"),
        ({"max_weight": 0.0}, WEIGHTS, "above 0"),
        ({"max_weight": "many"}, WEIGHTS, "above 0"),
    ],
)
def test_a_cap_and_weights_belong_together(parameters: Any, weights: Any, says: str) -> None:
    with pytest.raises(InvalidParameter, match=says):
        PrivateSVC(norm_bound=2.0, **CLASSES, **parameters, **PROMISE).fit(X, LABELS, sample_weight=weights)


def test_a_table_has_its_weights_in_its_schema() -> None:
    choices: list[tuple[dict[str, Any], Any]] = [({"max_weight": 4.0}, None), ({}, WEIGHTS)]
    for settings, weights in choices:
        with pytest.raises(InvalidParameter, match="column of its schema"):
            PrivateSVC(schema=SCHEMA, **settings, **PROMISE).fit(TABLE, sample_weight=weights)
    with pytest.raises(DataError, match="one number for each row"):
        PrivateSVC(**ARRAYS, **CLASSES, **PROMISE).fit(X, LABELS, sample_weight=WEIGHTS[1:])


@pytest.mark.parametrize(
    ("weight", "says"),
    [
        ({"column": "w"}, "public cap"),
        ({"column": "a", "upper": 4}, "Remove it from columns"),
        ({"column": "y", "upper": 4}, "another role"),
        ({"column": "w", "upper": 0}, "greater than 0|above 0"),
        ({"column": "w", "upper": 2, "mean": 3}, "must not exceed upper"),
        ({"column": "w", "upper": 8000}, "mean: 1500"),
    ],
)
def test_a_schema_states_the_cap(weight: Any, says: str) -> None:
    with pytest.raises(SchemaError, match=says):
        Schema.from_dict(SETTINGS | {"weight": weight})


def test_schemas_without_weights_have_the_digest_they_had() -> None:
    assert "weight" not in Schema.from_dict({k: v for k, v in SETTINGS.items() if k != "weight"}).to_dict()
    assert Schema.from_dict(SCHEMA.to_dict()) == SCHEMA


def test_the_noise_is_that_of_the_cap() -> None:
    first, second = (
        PrivateLogisticRegression(
            norm_bound=2.0, regularization=0.1 * cap, max_weight=cap, centre=False, **CLASSES, **PROMISE
        )
        .fit(X, LABELS, sample_weight=WEIGHTS)
        .certificate_.mechanism
        for cap in (1.0, 4.0)
    )
    assert cast(Any, second).noise_scale == pytest.approx(4.0 * cast(Any, first).noise_scale, rel=1e-3)
    within = PrivateLogisticRegression(schema=with_persons(), **PROMISE).fit(OF_PERSONS)
    averaged = Schema.from_dict({k: v for k, v in SETTINGS.items() if k != "weight"} | {"person": "id"})
    without = PrivateLogisticRegression(schema=averaged, **PROMISE).fit(OF_PERSONS)
    assert within.certificate_.task == without.certificate_.task  # weights inside a person are free


def test_heavy_persons_are_shrunk_more_and_not_centred() -> None:
    """Where the noise exceeds the curvature of most directions; a person of one row of mean weight changes nothing."""

    def mechanism(rows: int, **instead: Any) -> Any:
        content = {name: part for name, part in SETTINGS.items() if name != "weight"} | instead
        content["columns"] = {
            name: column | ({"knots": 16} if column["type"] == "number" else {})
            for name, column in content["columns"].items()
        }
        return plan(PrivateLogisticRegression(schema=content, **PROMISE), rows=rows).mechanism

    heavy, many = mechanism(20_000, rows_per_person=40), mechanism(20_000_000, rows_per_person=40)
    assert heavy.effective_regularization * 20_000 > 1.1 * heavy.noise_scale
    assert heavy.task.centring is None
    assert many.effective_regularization * 20_000_000 < many.noise_scale
    weighted = mechanism(2000, weight={"column": "w", "upper": 40.0})
    assert weighted.effective_regularization * 2000 > 2.0 * weighted.noise_scale


def test_a_forecast_knows_the_cap() -> None:
    def at(upper: float, rows: int) -> Any:
        schema = Schema.from_dict(SETTINGS | {"weight": {"column": "w", "upper": upper}})
        return plan(PrivateLogisticRegression(schema=schema, **PROMISE), rows=rows)

    assert at(4.0, 20_000).noise > at(1.0, 20_000).noise  # and its features are coarser
    assert at(4.0, 20_000).expected_error.error > at(1.0, 20_000).expected_error.error
    model = PrivateLogisticRegression(**ARRAYS, **CLASSES, **PROMISE)
    assert plan(model, rows=5000, columns=2).mechanism.task.row_weight_bound == 4.0


def test_the_certificate_states_the_cap_and_verify_compares_it() -> None:
    release = PrivateSVC(schema=SCHEMA, **PROMISE).fit(TABLE).release_
    record = json.loads(json.dumps(release.certificate.to_dict()))
    assert record["task"]["row_weight_bound"] == 4.0
    forged = copy.deepcopy(record)
    forged["task"]["row_weight_bound"] = 1.0
    with pytest.raises(VerificationError):
        Certificate.from_dict(forged)
    light = Schema.from_dict(SETTINGS | {"weight": {"column": "w", "upper": 2}})
    other = PrivateSVC(schema=light, **PROMISE).fit(TABLE).release_
    with pytest.raises(VerificationError, match="another model"):
        check_agreement(release.model, other.certificate)


def shares_of(schema: Schema, persons: Any, weights: Array) -> Any:
    columns = WeightColumns(schema)
    columns.add(pa.table({"id": pa.array(persons), "w": pa.array(weights)}))
    return columns.result(len(weights))


def test_rows_of_a_person_add_up_to_at_most_one() -> None:
    """Exactly, whatever their number and sizes; a person without weight counts nothing."""
    rng = np.random.default_rng(1)
    for scale in (1e-320, 1e-30, 1.0, 1e30, 1e308):
        persons = rng.integers(0, 40, 5000)
        weights = scale * rng.uniform(0.0, 1.0, 5000) ** 8
        weights[persons == 3] = 0.0
        found = shares_of(with_persons(), persons, weights)
        assert (found.count, found.relative) == (40, None)
        for person in range(40):
            total = sum((Fraction(float(share)) for share in found.counted[persons == person]), Fraction(0))
            assert total <= 1
            if person == 3 or scale == 1e-320:
                assert total == 0
            else:
                assert total > 1 - Fraction(1, 10**9)


def test_a_capped_person_weighs_the_mean_of_the_weights() -> None:
    found = shares_of(with_persons(upper=4.0), [1, 1, 2], np.array([2.0, 10.0, 1.0]))
    assert found.counted.tolist() == [0.25, 0.5, 0.25]  # (2/4 + 4/4) / 2 and 1/4


@pytest.mark.parametrize(
    "schema", [SCHEMA, with_persons(), with_persons(upper=4.0)], ids=["rows", "within", "capped"]
)
def test_one_person_adds_at_most_one_to_every_count(schema: Schema) -> None:
    """Mistakes, score counts and rows within a radius; and gradients by the bound of the task."""
    table = TABLE if schema.person is None else OF_PERSONS
    work = PrivateSVC(schema=schema, **PROMISE).prepare(table, None, True)
    task = work.calibrate(work.estimator.make_guarantee()).task
    mine = np.flatnonzero(PERSON == 4) if schema.person else np.array([12])
    coefficients = np.ones((1, work.rows.dimension))
    alone = MemoryOracle(work.rows.take(mine), task)
    assert alone.mistakes(coefficients) <= 1.0
    assert alone.score_counts(coefficients, np.linspace(-1, 1, 5)).sum() <= 1.0
    bound = task.loss.lipschitz * task.max_weight
    assert np.linalg.norm(alone.gradients(50.0 * coefficients)) <= bound * (1.0 + 1e-12)
    mechanism = NoisyCurvature.calibrate(task, work.estimator.make_guarantee())
    for matrix in CurvatureRows(in_memory(work.rows.take(mine)), mechanism).sums(coefficients):
        assert np.trace(matrix) <= 1.0


def in_memory(rows: Any) -> Any:
    return dataclasses.replace(rows, features=load_rows(rows.features))


def test_the_heaviest_row_reaches_the_bound() -> None:
    model = PrivateSVC(**ARRAYS, **CLASSES, **PROMISE, fit_intercept=False)
    work = model.prepare(np.array([[2.0, 0.0]]), [0], True, sample_weight=[9.0])
    oracle = MemoryOracle(work.rows, work.task)
    reached = np.linalg.norm(oracle.gradients(np.array([[50.0, 0.0]])))
    assert reached == pytest.approx(work.task.loss.lipschitz * 4.0)


def test_an_evaluation_counts_weights() -> None:
    model = PrivateLogisticRegression(schema=SCHEMA, **PROMISE).fit(TABLE)
    repeated = TABLE.take(np.repeat(np.arange(N), WHOLE)).drop_columns("w")
    plain = Schema.from_dict({k: v for k, v in SETTINGS.items() if k != "weight"})
    weighted = evaluate(model, TABLE, epsilon=math.inf, by=[])
    counted = evaluate(model, repeated, schema=plain, epsilon=math.inf)
    assert 4.0 * weighted.tables[0].sum() == pytest.approx(counted.tables[0].sum())
    assert weighted["accuracy"].value == pytest.approx(counted["accuracy"].value, abs=1e-6)
    assert "weighted by w" in str(weighted)


def test_a_description_is_in_the_units_of_the_weights() -> None:
    exact = describe(TABLE, SCHEMA, epsilon=math.inf)
    assert exact.records == pytest.approx(WEIGHTS.sum())
    ill = exact["y"].counts[1]
    assert ill.value == pytest.approx(WEIGHTS[LABELS == 1].sum(), abs=0.01)
    noisy = describe(TABLE, SCHEMA, epsilon=1.0, random_state=0)
    plain = describe(
        TABLE,
        Schema.from_dict({k: v for k, v in SETTINGS.items() if k != "weight"}),
        epsilon=1.0,
        random_state=0,
    )
    wide = [found["y"].counts[0].upper - found["y"].counts[0].value for found in (noisy, plain)]
    assert wide[0] == pytest.approx(4.0 * wide[1])


def test_the_curvature_knows_the_weights() -> None:
    few: dict[str, Any] = {"epsilon": math.inf, "norm_bound": 2.0, **CLASSES}
    whole, order = WHOLE + 1, np.repeat(np.arange(N), WHOLE + 1)
    model = PrivateLogisticRegression(**few, max_weight=4.0, regularization=0.1)
    release = model.fit(X, LABELS, sample_weight=whole).release_
    found = curvature(release, X, LABELS, epsilon=math.inf, delta=1e-6, sample_weight=whole)
    ratio = len(order) / N
    repeated = (
        PrivateLogisticRegression(**few, regularization=0.1 / ratio).fit(X[order], LABELS[order]).release_
    )
    plain = curvature(repeated, X[order], LABELS[order], epsilon=math.inf, delta=1e-6)
    assert 4.0 * found.hessian == pytest.approx(plain.hessian, rel=2e-3, abs=0.05)
    with pytest.raises(InvalidParameter, match="Pass sample_weight"):
        curvature(release, X, LABELS, epsilon=1.0, delta=1e-6)


@pytest.mark.parametrize("method", ["partition", "every_candidate"])
def test_a_search_counts_weighted_mistakes(method: str) -> None:
    model = PrivateLogisticRegression(**ARRAYS, **CLASSES)
    search = PrivateGridSearch(model, {"regularization": [0.1, 1.0]}, method=method, **PROMISE)
    result: Any = search.fit(X, LABELS, sample_weight=WEIGHTS).certificate_.mechanism
    assert result.fit.task.row_weight_bound == 4.0


def test_predictions_need_no_weights() -> None:
    model = PrivateLogisticRegression(schema=SCHEMA, **PROMISE).fit(TABLE)
    assert len(model.predict(TABLE.drop_columns("w"))) == N

"""Intervals: that they hold what they are about as often as they say, and are refused where they would not."""

from __future__ import annotations

import dataclasses
import importlib.util
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from privlearn import (
    Curvature,
    InvalidParameter,
    PrivateLogisticRegression,
    PrivateRegressor,
    Release,
    Schema,
    curvature,
    intervals,
)
from privlearn.explain import symmetric_noise
from privlearn.explain.worst_case import mean_excess

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "intervals.py"
specification = importlib.util.spec_from_file_location("intervals_benchmark", BENCHMARK)
assert specification is not None
assert specification.loader is not None
benchmark: Any = importlib.util.module_from_spec(specification)
specification.loader.exec_module(benchmark)

SCHEMA: dict[str, Any] = {
    "name": "clinic",
    "columns": {
        "age": {"type": "number", "lower": 20, "upper": 80, "encoding": "linear"},
        "ward": {"type": "category", "values": ["a", "b", "c"]},
    },
    "target": {"name": "answer", "classes": ["no", "yes"]},
}


def fitted(records: int = 3000, **settings: Any) -> tuple[Release, Any, Any]:
    random = np.random.default_rng(1)
    X = random.normal(size=(records, 3))
    y = (X @ [1.0, -0.5, 0.0] + random.logistic(size=records) > 0).astype(int)
    default: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "norm_bound": 3.0, "classes": [0, 1]}
    model = PrivateLogisticRegression(**default | settings, random_state=3).fit(X, y)
    return model.release_, X, y


def bought(release: Release, X: Any, y: Any, **settings: Any) -> Curvature:
    return curvature(release, X, y, **{"epsilon": 1.0, "delta": 1e-6, "random_state": 5} | settings)


@pytest.mark.parametrize("mechanism", ["objective", "output"])
def test_intervals_hold_the_truth_as_often_as_they_say(mechanism: str) -> None:
    """A small version of benchmarks/intervals.py; halved or doubled widths would hold it in 67 % or in all cases."""
    people = benchmark.population("logistic", 5000, np.random.default_rng(1))
    runs = [benchmark.one_run("logistic", people, 6000, 1.0, mechanism, 0.5, seed) for seed in range(40)]
    assert None not in runs
    for key in runs[0]:
        share = float(np.mean([np.mean(run[key]) for run in runs]))
        most = 0.9995 if key[1] == "effects" else 0.995  # the bias of second order is bounded, not estimated
        assert 0.91 < share < most, key


def test_a_privacy_interval_of_output_perturbation_is_the_noise_law_and_free() -> None:
    release, X, y = fitted(mechanism="output")
    band = intervals(release, kind="privacy").linear(np.eye(4), "abcd")
    mechanism: Any = release.certificate.mechanism
    exact = stats.norm.isf(0.025) * mechanism.noise_scale
    assert band.upper - band.estimate == pytest.approx(np.full(4, exact), rel=1e-3)
    same = intervals(release, bought(release, X, y), kind="privacy").linear(np.eye(4), "abcd")
    assert np.array_equal(band.upper, same.upper)


def test_without_a_curvature_objective_perturbation_is_bounded_on_every_table() -> None:
    release, X, y = fitted(regularization=0.01)
    bound = intervals(release, kind="privacy")
    known = intervals(release, bought(release, X, y), kind="privacy")
    assert bound.uncertainty.is_bound
    assert "would make them narrower" in bound.meaning
    widths = [found.linear(np.eye(4), "abcd").upper for found in (bound, known)]
    assert np.all(widths[0] > widths[1])
    mechanism: Any = release.certificate.mechanism
    ridge = mechanism.task.total * mechanism.effective_regularization
    deviation = math.hypot(mechanism.noise_scale / ridge, mechanism.tolerance_noise_scale)
    bias = 3.0 * math.sqrt(3.0) / 64.0 * math.sqrt(4.0) * (mechanism.noise_scale / ridge) ** 2
    expected = bias + float(mean_excess(np.array(1.96))) * deviation
    assert expected < 2.4 * deviation  # a fraction of what every convex loss could need
    band = bound.linear(np.eye(4), "abcd")
    assert band.upper - band.estimate == pytest.approx(np.full(4, expected), rel=2e-3)
    with pytest.raises(InvalidParameter, match="costs privacy"):
        intervals(release)


@pytest.mark.parametrize(
    ("noise", "deviation"), [("laplace", math.sqrt(2.0)), ("norm_gamma", math.sqrt(5.0))]
)
def test_laws_that_are_not_normal_have_their_own_quantiles(noise: str, deviation: float) -> None:
    release, _, _ = fitted(mechanism="output", noise=noise, delta=0.0)
    scale = release.certificate.mechanism.noise_scale  # type: ignore[union-attr]
    band = intervals(release, kind="privacy", level=0.99).linear(np.eye(4)[:1], "a")
    draws = np.random.default_rng(0).laplace(size=10**6)
    if noise == "norm_gamma":
        random = np.random.default_rng(0)
        direction = random.normal(size=(10**6, 4))
        draws = random.gamma(4, size=10**6) * direction[:, 0] / np.linalg.norm(direction, axis=1)
    exact = scale * np.quantile(np.abs(draws), 0.99)
    assert float(band.upper[0] - band.estimate[0]) == pytest.approx(exact, rel=0.08)
    assert exact > 1.05 * 2.576 * scale * deviation  # a normal law would be too short


def test_noise_that_is_drawn_again_is_the_mechanism_s() -> None:
    drawn = symmetric_noise(3.0, 200, np.random.default_rng(0))
    assert np.array_equal(drawn, drawn.T)
    assert stats.kstest(np.diag(drawn) / 3.0, "norm").pvalue > 1e-6
    assert stats.kstest(drawn[np.triu_indices(200, 1)] * math.sqrt(2.0) / 3.0, "norm").pvalue > 1e-6


def test_more_noise_in_the_curvature_widens_intervals() -> None:
    release, X, y = fitted(6_000)
    clear, faint = (
        intervals(release, bought(release, X, y, epsilon=price)).coefficients() for price in (10.0, 0.05)
    )
    assert np.mean(faint.upper - faint.lower) > 1.1 * np.mean(clear.upper - clear.lower)


def test_where_first_order_fails_no_interval_is_given() -> None:
    release, X, y = fitted(100, epsilon=0.3)
    with pytest.raises(InvalidParameter, match="no interval is available"):
        intervals(release, bought(release, X, y, epsilon=20.0))
    with pytest.raises(InvalidParameter, match="is below its noise"):
        intervals(release, bought(release, X, y, epsilon=0.01))


def test_a_curvature_of_another_release_is_refused() -> None:
    release, X, y = fitted()
    other, _, _ = fitted(epsilon=2.0)
    with pytest.raises(InvalidParameter, match="another release"):
        intervals(other, bought(release, X, y))


def test_coefficients_of_arrays_are_in_the_units_of_the_rows() -> None:
    random = np.random.default_rng(2)
    X = random.uniform(-1, 1, size=(20_000, 2))
    y = 20 + 5 * X[:, 0] + random.normal(size=20_000)
    model = PrivateRegressor(
        epsilon=2.0, delta=1e-6, norm_bound=1.5, target_bounds=(10, 30), random_state=0
    ).fit(X, y)
    band = intervals(model.release_, bought(model.release_, X, y)).coefficients()
    assert band.names == ["x[0]", "x[1]", "intercept"]
    assert band.estimate[:2] == pytest.approx(model.coef_)
    assert band.estimate[2] == pytest.approx(float(model.intercept_))
    assert band.excludes_zero.tolist() == [True, False, True]
    found = intervals(model.release_, bought(model.release_, X, y)).predictions(X[:5])
    assert found.estimate == pytest.approx(model.predict(X[:5]))
    assert np.all((found.lower < found.estimate) & (found.estimate < found.upper))


@pytest.fixture(scope="module")
def several() -> tuple[Any, Any]:
    people = benchmark.population("softmax", 20_000, np.random.default_rng(1))
    model = PrivateLogisticRegression(
        epsilon=2.0, delta=1e-6, schema=benchmark.schema_of("softmax"), random_state=0
    )
    return model.fit(people), people


def test_several_classes_have_intervals_of_each(several: tuple[Any, Any]) -> None:
    model, people = several
    found = intervals(model.release_, bought(model.release_, people, None))
    chances = model.predict_proba(people.slice(0, 4))
    for place, label in enumerate(model.classes_.tolist()):
        band = found.predictions(people.slice(0, 4), label)
        assert band.estimate == pytest.approx(chances[:, place])
        assert np.all((band.lower > 0.0) & (band.lower < band.estimate) & (band.upper < 1.0))
    assert found.coefficients().names[0].startswith("no: ")
    with pytest.raises(InvalidParameter, match="name a class"):
        found.effect("age")
    assert found.shows_effect("age", "yes")


def test_effects_follow_the_columns_and_noise_is_not_shown() -> None:
    random = np.random.default_rng(3)
    shown = []
    for seed in range(12):
        age, ward = random.uniform(20, 80, 4000), random.choice(["a", "b", "c"], 4000)
        answer = np.where((age - 50) / 20 + random.logistic(size=4000) > 0, "yes", "no")
        table = {"age": age, "ward": ward, "answer": answer}
        model = PrivateLogisticRegression(
            epsilon=1.0, delta=1e-6, schema=Schema.from_dict(SCHEMA), random_state=seed
        ).fit(table)
        found = intervals(model.release_, bought(model.release_, table, None, random_state=seed))
        band = found.effect("age")
        assert np.all(np.diff(band.estimate) > 0.0)
        assert abs(band.estimate.mean()) < 1e-9
        assert found.columns == ["age", "ward"]
        assert found.shows_effect("age")
        shown.append(found.shows_effect("ward"))
    assert stats.binomtest(sum(shown), len(shown), 0.05, "greater").pvalue > 1e-3


def null_schema(**encoding: str) -> Schema:
    """Two numbers and a list."""
    number = {"type": "number", "lower": 0, "upper": 1} | encoding
    columns = {"age": number, "nothing": number, "ward": {"type": "category", "values": ["a", "b", "c"]}}
    return Schema.from_dict({"name": "clinic", "columns": columns, "target": SCHEMA["target"]})


@pytest.mark.parametrize("encoding", [{"encoding": "linear"}, {}])
def test_a_column_without_effect_is_seldom_above_the_noise(encoding: dict[str, str]) -> None:
    """Another column matters: what it says is divided by the row's norm, which the idle column changes."""
    alarms = 0
    for seed in range(40):
        random = np.random.default_rng(seed)
        age, nothing = random.uniform(size=(2, 6000))
        answer = np.where(8.0 * (age - 0.5) + random.logistic(size=6000) > 0, "yes", "no")
        table = {"age": age, "nothing": nothing, "ward": random.choice(list("abc"), 6000), "answer": answer}
        model = PrivateLogisticRegression(
            epsilon=1.0, delta=1e-6, schema=null_schema(**encoding), random_state=seed
        ).fit(table)
        found = intervals(model.release_, bought(model.release_, table, None, epsilon=0.5, random_state=seed))
        alarms += found.shows_effect("nothing")
    assert alarms <= 5


@pytest.mark.parametrize("settings", [{}, {"fit_intercept": False}, {"centre": True}])
def test_an_effect_is_the_column_s_own(settings: dict[str, Any]) -> None:
    """Whatever the rest of the row says: a line is a line."""
    random = np.random.default_rng(0)
    age, ward = random.uniform(20, 80, 4000), random.choice(["a", "b", "c"], 4000)
    answer = np.where((age - 50) / 20 + random.logistic(size=4000) > 0, "yes", "no")
    columns: dict[str, Any] = {"age": age, "ward": ward, "answer": answer}
    line = SCHEMA["columns"] | {"age": SCHEMA["columns"]["age"] | {"bins": "none"}}
    schema = Schema.from_dict(SCHEMA | {"columns": line, "pairs": "none"})
    model = PrivateLogisticRegression(epsilon=2.0, delta=1e-6, schema=schema, random_state=0, **settings)
    found = intervals(model.fit(columns).release_, kind="privacy")
    steps = np.diff(found.effect("age").estimate)
    assert steps == pytest.approx(np.full(len(steps), steps[0]))
    assert steps[0] > 0.0


def test_parameters_are_checked() -> None:
    release, _, _ = fitted()
    for wrong in ({"kind": "credible"}, {"level": 1.0}, {"level": 0.0}):
        with pytest.raises(InvalidParameter):
            intervals(release, **{"kind": "privacy"} | wrong)
    with pytest.raises(InvalidParameter, match="plain arrays"):
        intervals(release, kind="privacy").effect("age")


def test_bands_keep_order_under_maps() -> None:
    release, X, _ = fitted()
    band = intervals(release, kind="privacy").predictions(X[:3])
    assert dataclasses.asdict(band)["level"] == 0.95
    assert np.all((band.lower > 0.0) & (band.lower < band.upper) & (band.upper < 1.0))

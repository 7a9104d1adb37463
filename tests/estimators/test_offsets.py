"""Offsets: base rates and units are public, or released, charged and verified with the model."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from privlearn import (
    Guarantee,
    PrivateLogisticRegression,
    PrivateRegressor,
    PrivateSVC,
    Release,
    ReleaseError,
    verify,
)
from privlearn.errors import SchemaError
from privlearn.mechanisms.statistics.class_counts import ClassCounts
from privlearn.randomness import SeededRandomness
from privlearn.release.agreement import check_agreement
from privlearn.release.score_map import ScoreMap, offsets_of_shares

RNG = np.random.default_rng(0)
N = 6000
X = RNG.uniform(-1.0, 1.0, size=(N, 3))
RARE = (RNG.random(N) < 1.0 / (1.0 + np.exp(3.0 - 1.5 * X[:, 0]))).astype(int)
THREE = np.where(RARE == 1, 2, (RNG.random(N) < 0.2).astype(int))
NUMBERS = 500.0 + 40.0 * X[:, 0] - 20.0 * X[:, 1] + RNG.normal(0.0, 20.0, N)
COLUMNS = {f"x{i}": {"type": "number", "lower": -1, "upper": 1} for i in range(3)}


def table(**target: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    schema = {"name": "t", "columns": COLUMNS, "target": target, "one_row_per_person": True}
    return schema, {f"x{i}": X[:, i] for i in range(3)}


def classifier(y: Any, epsilon: float = 2.0, **settings: Any) -> PrivateLogisticRegression:
    model = PrivateLogisticRegression(
        epsilon=epsilon, delta=1e-6, norm_bound=2.0, classes=np.unique(y).tolist(), random_state=0,
        accept_weak_privacy=True, **settings,
    )  # fmt: skip
    return model.fit(X, y)


def regressor(
    epsilon: float = 2.0, delta: float = 1e-6, upper: float = 1e5, **settings: Any
) -> PrivateRegressor:
    model = PrivateRegressor(
        epsilon=epsilon, delta=delta, norm_bound=2.0, target_bounds=(0.0, upper), random_state=0,
        accept_weak_privacy=True, **settings,
    )  # fmt: skip
    return model.fit(X, NUMBERS)


@pytest.mark.parametrize("delta", [1e-6, 0.0])
@pytest.mark.parametrize("y", [RARE, THREE])
def test_mean_predictions_are_the_rates(y: Any, delta: float) -> None:
    labels = np.unique(y).tolist()
    model = PrivateLogisticRegression(
        epsilon=1.0, delta=delta, norm_bound=2.0, classes=labels, random_state=1
    )
    shares = model.fit(X, y).predict_proba(X).mean(axis=0)
    assert shares == pytest.approx(np.bincount(y) / N, rel=0.25)
    task = model.certificate_.task
    assert task.class_counts is not None
    assert task.class_counts.noise == ("gaussian" if delta else "laplace")
    assert model.certificate_.mechanism.spends() <= Guarantee(1.0, delta)


@pytest.mark.parametrize("delta", [1e-6, 0.0])
def test_wide_bounds_cost_little(delta: float) -> None:
    narrow, wide = (regressor(1.0, delta, upper).score(X, NUMBERS) for upper in (1e3, 1e6))
    assert wide > narrow - 0.1
    assert wide > 0.4


def test_released_offsets_are_verified(tmp_path: Any) -> None:
    for model in (classifier(RARE), classifier(THREE), regressor(), regressor(delta=0.0)):
        path = tmp_path / "model.privlearn"
        model.release_.save(path, overwrite=True)
        verify(path)
        loaded = Release.load(path)
        assert np.array_equal(loaded.model.predict(X), model.predict(X))
        record = loaded.certificate.to_dict()
        stated = next(name for name in ("class_counts", "target_locations") if name in record)
        record[stated]["noise_scale"] /= 4.0
        with pytest.raises(ReleaseError):
            type(loaded.certificate).from_dict(record)
        alone = dataclasses.replace(
            loaded.certificate.mechanism, task=loaded.certificate.task.without_statistics()
        )
        free = dataclasses.replace(loaded.certificate, mechanism=alone)
        with pytest.raises(ReleaseError):  # offsets that nothing pays for
            check_agreement(loaded.model, free)
        with pytest.raises(ReleaseError):
            check_agreement(dataclasses.replace(loaded.model, score_map=None), loaded.certificate)


def test_public_rates_cost_nothing_and_are_those_of_the_schema() -> None:
    schema, cells = table(name="y", classes=[0, 1], rate=0.05)
    model = PrivateLogisticRegression(epsilon=2.0, delta=1e-6, schema=schema, random_state=0)
    model.fit(cells, RARE)
    assert model.certificate_.task.class_counts is None
    assert model.release_.model.constants == pytest.approx([math.log(0.05 / 0.95)])
    check_agreement(model.release_.model, model.certificate_)
    moved = dataclasses.replace(model.release_.model, score_map=ScoreMap(np.array([-1.0])))
    with pytest.raises(ReleaseError):
        check_agreement(moved, model.certificate_)


def test_public_units() -> None:
    schema, cells = table(name="y", lower=0, upper=1e6, typical=500, spread=30)
    model = PrivateRegressor(epsilon=2.0, delta=1e-6, schema=schema, random_state=0).fit(cells, NUMBERS)
    assert model.certificate_.task.target_locations is None
    assert model.score(cells, NUMBERS) > 0.4
    check_agreement(model.release_.model, model.certificate_)


@pytest.mark.parametrize(
    "target",
    [
        {"classes": [0, 1, 2], "rate": 0.1},
        {"classes": [0, 1], "rate": 1.5},
        {"classes": [0, 1, 2], "rates": {"0": 0.5, "1": 0.5}},
        {"classes": [0, 1], "typical": 3},
        {"lower": 0, "upper": 1, "typical": 3},
        {"lower": 0, "upper": 1, "rate": 0.5},
        {"lower": 0, "upper": 1, "typical": 0.5, "spread": 0},
    ],
)
def test_contradictory_schemas_are_refused(target: dict[str, Any]) -> None:
    schema, cells = table(name="y", **target)
    with pytest.raises(SchemaError):
        PrivateLogisticRegression(epsilon=1.0, schema=schema).fit(cells, RARE)


def test_support_vector_machines_have_no_offsets() -> None:
    model = PrivateSVC(epsilon=2.0, delta=1e-6, norm_bound=2.0, classes=[0, 1], random_state=0).fit(X, RARE)
    assert model.release_.model.score_map is None


@pytest.mark.parametrize("delta", [1e-6, 0.0])
@pytest.mark.parametrize("kind", ["two", "three", "number"])
def test_without_a_guarantee_it_is_the_limit_of_private_models(kind: str, delta: float) -> None:
    def predictions(epsilon: float) -> Any:
        strength: dict[str, Any] = {"regularization": 1e-3, "delta": delta}
        if kind == "number":
            return regressor(epsilon, upper=1e4, **strength).predict(X)
        settings: dict[str, Any] = {"norm_bound": 2.0, "random_state": 0, "accept_weak_privacy": True}
        y = RARE if kind == "two" else THREE
        labels = np.unique(y).tolist()
        model = PrivateLogisticRegression(epsilon=epsilon, classes=labels, **strength, **settings)
        return model.fit(X, y).predict_proba(X)

    plain, near = predictions(math.inf), predictions(1e5)
    assert np.max(np.abs(plain - near)) < 1e-2 * np.ptp(plain)


def test_noise_of_class_counts_is_as_declared() -> None:
    """Fails if it is halved or doubled."""

    class Counts:
        def class_counts(self) -> Any:
            return np.full(3000, 1e6)

    statistic = ClassCounts((3000,), "gaussian", 500.0)
    shares = statistic.run(Counts(), 3 * 10**9, SeededRandomness(np.random.default_rng(1)))
    drawn = (shares / shares.mean() - 1.0) * 1e6 / 500.0
    assert stats.kstest(drawn, "norm").pvalue > 1e-6


def test_offsets_of_shares() -> None:
    assert offsets_of_shares(np.array([0.9, 0.1]), None, False) == pytest.approx([math.log(0.1 / 0.9)])
    weighted = offsets_of_shares(np.array([0.9, 0.1]), np.array([1.0, 9.0]), False)
    assert weighted == pytest.approx([0.0])
    together = offsets_of_shares(np.array([0.5, 0.3, 0.2]), None, True)
    assert np.exp(together) / np.exp(together).sum() == pytest.approx([0.5, 0.3, 0.2])
    rest = offsets_of_shares(np.array([0.5, 0.3, 0.2]), None, False)
    assert 1.0 / (1.0 + np.exp(-rest)) == pytest.approx([0.5, 0.3, 0.2])

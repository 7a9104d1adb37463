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
from privlearn.accounting import gaussian_ratio
from privlearn.errors import InvalidParameter, SchemaError
from privlearn.estimators import NumberTargets
from privlearn.estimators.selection import Candidates
from privlearn.mechanisms import Task
from privlearn.mechanisms.statistics import ClassCounts, Grid
from privlearn.randomness import SeededRandomness
from privlearn.release import MechanismOutput, check_agreement
from privlearn.release.score_map import MAX_TARGET, ScoreMap, map_of_locations, offsets_of_shares
from privlearn.solvers import Huber, Logistic

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


def test_the_width_of_the_loss_follows_from_public_numbers() -> None:
    """It is log(N / (3 sigma d)) spreads, a fifth of a unit each, where sigma is the noise in one coordinate."""
    model = regressor(1.0)
    task = model.certificate_.task
    noise = math.hypot(2.0 / gaussian_ratio(1.0, 1e-6), 1.0)
    assert task.centring is not None
    assert 1.0 / task.loss.smoothness == pytest.approx(math.log(N / (3.0 * noise * 4)) / 5.0)
    plain = regressor(math.inf, delta=0.0).certificate_.task.loss
    assert 1.0 / plain.smoothness == pytest.approx(math.log(N / (3.0 * 4)) / 5.0)
    assert regressor(0.05).certificate_.task.loss == Huber(0.2)  # drowned
    assert regressor(1.0, loss="huber").certificate_.task.loss == Huber(0.2)
    stated, cells = table(name="y", lower=0, upper=1e5, typical=500, spread=50)
    model = PrivateRegressor(epsilon=1.0, delta=1e-6, schema=stated, random_state=0)
    assert model.fit(cells | {"y": NUMBERS}).certificate_.task.loss != Huber(0.2)


def test_skewed_numbers_are_learnt_by_their_mean() -> None:
    skewed = 100.0 + RNG.exponential(np.exp(3.0 + X[:, 0]))
    settings: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "norm_bound": 2.0, "target_bounds": (0.0, 1e4)}
    mean, median = (
        PrivateRegressor(loss=loss, random_state=0, **settings).fit(X, skewed).predict(X).mean()
        for loss in (None, "huber")
    )
    assert mean == pytest.approx(skewed.mean(), abs=2.0)
    assert median < skewed.mean() - 4.0


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


def test_offsets_next_to_a_public_model_of_zeros_are_refused() -> None:
    """Such a model does not show in the certificate, and its offsets would be free."""
    release = classifier(RARE, centre=False).release_
    alone = dataclasses.replace(
        release.certificate.mechanism, task=release.certificate.task.without_statistics()
    )
    output = MechanismOutput(release.model.coefficients, np.zeros_like(release.model.coefficients))
    with pytest.raises(ReleaseError):
        check_agreement(
            dataclasses.replace(release.model, output=output),
            dataclasses.replace(release.certificate, mechanism=alone),
        )


def test_a_public_model_of_zeros_gives_no_offsets() -> None:
    release = classifier(RARE, centre=False).release_
    nothing = dataclasses.replace(release.model, coefficients=np.zeros_like(release.model.coefficients))
    model = classifier(RARE, centre=False, regularize_towards=dataclasses.replace(release, model=nothing))
    assert model.release_.model.score_map is None
    check_agreement(model.release_.model, model.certificate_)


@pytest.mark.parametrize("stretch", [1e300, 1e-300, math.nan])
def test_units_outside_their_bounds_are_refused(stretch: float) -> None:
    release = regressor().release_
    forged = ScoreMap(release.model.constants, np.array([stretch]))
    with pytest.raises(ReleaseError):
        check_agreement(dataclasses.replace(release.model, score_map=forged), release.certificate)


@pytest.mark.parametrize("y", [RARE, THREE])
def test_offsets_that_the_stated_noise_would_have_drowned_are_refused(y: Any) -> None:
    """Nothing else shows that the stated noise of counts is too large."""
    release = classifier(y).release_
    check_agreement(release.model, release.certificate)
    task = release.certificate.task
    assert task.class_counts is not None
    louder = dataclasses.replace(task.class_counts, noise_scale=2.0 * N)
    mechanism = dataclasses.replace(
        release.certificate.mechanism, task=dataclasses.replace(task, class_counts=louder)
    )
    with pytest.raises(ReleaseError):
        check_agreement(release.model, dataclasses.replace(release.certificate, mechanism=mechanism))


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("loss", ["logistic", "multinomial"]),
        ("loss", ["multinomial", "logistic"]),
        ("calibration", ["tight", "cms11"]),
        ("class_weight", [None, {0: 1.0, 1: 10.0}]),
    ],
)
def test_candidates_of_a_search_have_offsets_of_their_own(name: str, values: list[Any]) -> None:
    """They share the rows that were read for the first one, and verification refuses another's offsets."""
    schema, cells = table(name="y", classes=[0, 1], rate=0.05)
    estimators = [PrivateLogisticRegression(epsilon=2.0, schema=schema, **{name: each}) for each in values]
    candidates = Candidates(estimators, [{name: each} for each in values], cells, RARE)
    for index, estimator in enumerate(estimators):
        shared, alone = candidates.work(index).rows.targets, estimator.prepare(cells, RARE, True).rows.targets
        assert (shared.score_map is None) == (alone.score_map is None)
        assert shared.offset_bound == alone.offset_bound
        if shared.score_map is not None and alone.score_map is not None:
            assert shared.score_map.to_dict() == alone.score_map.to_dict()


@pytest.mark.parametrize(
    ("centre", "spread", "bounds"),
    [(20.0, 1.0, (0, 193)), (1000.0, 10.0, (0, 5000)), (130.0, 18.0, (0, 300))],
)
def test_numbers_far_from_0_are_learnt(centre: float, spread: float, bounds: tuple[float, float]) -> None:
    """R2 is 0.5 without privacy; with one coarse grid around 0 it was between -16 and 0.4."""
    rng = np.random.default_rng(0)
    rows = rng.uniform(0.0, 1.0, (6000, 3))
    y = centre + spread * (np.sqrt(6.0) * (rows[:, 0] - 0.5) + np.sqrt(0.5) * rng.normal(size=6000))
    model = PrivateRegressor(
        epsilon=1.0, delta=1e-6, column_bounds=[(0, 1)] * 3, target_bounds=bounds, random_state=0
    ).fit(rows, y)
    assert model.score(rows, y) > 0.4
    check_agreement(model.release_.model, model.certificate_)


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
        {"classes": [0, 1, 2], "rates": {"0": 0.5, "1": 0.5, "2": -0.1}},
        {"classes": [0, 1, 2], "rates": {"0": 1e-300, "1": 1e300, "2": 1.0}},
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


def test_bounds_too_close_are_refused_before_the_charge() -> None:
    with pytest.raises(InvalidParameter, match="too close"):
        Grid.between(0.0, 5e-324, 256)


def test_probabilities_around_a_public_model_are_of_scores_with_its_offset() -> None:
    y = (np.random.default_rng(3).random(N) < 1.0 / (1.0 + np.exp(1.0 - 1.5 * X[:, 0]))).astype(int)
    settings: dict[str, Any] = {"delta": 1e-6, "norm_bound": 2.0, "classes": [0, 1], "centre": False}
    public = PrivateLogisticRegression(epsilon=4.0, random_state=1, **settings).fit(X, y).release_
    model = PrivateSVC(
        epsilon=4.0,
        loss="huber_hinge",
        probability=True,
        regularize_towards=public,
        random_state=0,
        **settings,
    ).fit(X, y)
    assert model.release_.model.constants[0] == public.model.constants[0] != 0.0
    assert model.predict_proba(X)[:, 1].mean() == pytest.approx(y.mean(), rel=0.2)


@pytest.mark.filterwarnings("error")
def test_no_unit_makes_a_warning_that_depends_on_the_numbers() -> None:
    numbers = np.linspace(-1.0, 1.0, 5)
    tiny = ScoreMap(np.array([0.0]), np.array([1e-310]))
    (offsets,) = NumberTargets(numbers, (0.0, 1.0), score_map=tiny).offsets
    assert offsets is not None
    assert offsets.tolist() == [-MAX_TARGET, -MAX_TARGET, 0.0, MAX_TARGET, MAX_TARGET]
    assert map_of_locations((0.0, 1e308), [(5e307, 1e308)]).stretches.tolist() == [1.0]


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


def test_rounding_allows_for_offsets() -> None:
    task = Task(Logistic(), 1000, 2, 1, 1e-3, 1e-10, "replace_one")
    far = dataclasses.replace(task, offset_bound=1e9)
    assert far.certifiable().tolerance > 100.0 * task.certifiable().tolerance


def test_targets_far_away_are_cut() -> None:
    """Where most numbers lie within a billionth of the range, bounds on rounding still hold for the others."""
    numbers = np.append(np.full(999, 0.25), 1.0)
    score_map = map_of_locations((0.0, 1.0), [(0.25, 1e-12)])
    (offsets,) = NumberTargets(2.0 * numbers - 1.0, (0.0, 1.0), score_map=score_map).offsets
    assert offsets is not None
    assert np.max(np.abs(offsets)) == MAX_TARGET


@pytest.mark.parametrize(
    "labels",
    [np.zeros(N, dtype=int), np.append(np.zeros(N - 1, dtype=int), 1)],
    ids=["one class", "one record"],
)
def test_a_class_without_records_has_an_offset(labels: Any) -> None:
    model = PrivateLogisticRegression(
        epsilon=1.0, delta=1e-6, norm_bound=2.0, classes=[0, 1], random_state=0
    ).fit(X, labels)
    assert np.all(np.isfinite(model.predict_proba(X)))
    assert model.predict_proba(X)[:, 1].mean() < 0.05


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
